package notfound

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestDescribesContent has the response fields of IANA's registry of HTTP field names, except those of the connection, and
// some that are not registered.
func TestDescribesContent(t *testing.T) {
	for fields, want := range map[string]bool{
		`Content-Encoding Content-Location Content-Disposition Content-Range Content-MD5 Content-Digest Content-Base Content-ID
		Content-Transfer-Encoding Content-Version Content-Script-Type Content-Style-Type Content-DPR Repr-Digest Digest
		Unencoded-Digest ETag etag Last-Modified Accept-Ranges Memento-Datetime Alternates TCN Variant-Vary URI Derived-From
		Default-Style PICS-Label MIME-Version OData-Version OSLC-Core-Version Schedule-Tag Preference-Applied CMSD-Static
		AMP-Cache-Transform Signature Signature-Input Cache-Control CDN-Cache-Control Cloudflare-CDN-Cache-Control Expires
		Pragma Age Warning Surrogate-Control Edge-Control Use-As-Dictionary No-Vary-Search Trailer Transfer-Encoding IM
		Delta-Base Incremental Capsule-Protocol Refresh SourceMap X-SourceMap X-Accel-Redirect X-Accel-Expires X-Sendfile
		X-Sendfile2 X-LIGHTTPD-send-file X-Reproxy-URL X-Archive-Files Grpc-Status Grpc-Message Trailer:X-Sum`: true,
		`Content-Language Content-Security-Policy Content-Security-Policy-Report-Only Server Set-Cookie Vary Via
		Access-Control-Allow-Origin Access-Control-Allow-Credentials Access-Control-Expose-Headers Traceparent Tracestate
		Server-Timing X-Request-Id WWW-Authenticate Authentication-Info Proxy-Status DPoP-Nonce Replay-Nonce
		Strict-Transport-Security Permissions-Policy Referrer-Policy X-Frame-Options Cross-Origin-Resource-Policy
		Cross-Origin-Embedder-Policy Cross-Origin-Opener-Policy Origin-Agent-Cluster NEL Reporting-Endpoints Expect-CT Accept-CH
		P3P Link Link-Template Location Retry-After Sunset Deprecation Clear-Site-Data Allow Accept-Patch Accept-Post DAV
		Cache-Status Surrogate-Key X-Cache-Controlled Timing-Allow-Origin Priority Lock-Token Want-Content-Digest
		Accept-Signature Public-Key-Pins X-Accelerated`: false,
	} {
		for field := range strings.FieldsSeq(fields) {
			if got := describesContent(field); got != want {
				t.Errorf("%s: got %v, want %v", field, got, want)
			}
		}
	}
}

func TestOneFormatDoesNotVary(t *testing.T) {
	w := httptest.NewRecorder()
	err := serve(provision(t, &Handler{Formats: []string{"json"}}), w, "GET", "/x", testcaddy.EndOfChain)
	if _, varies := w.Header()["Vary"]; err != nil || varies || w.Code != 404 {
		t.Errorf("got %d with %v, %v", w.Code, w.Header(), err)
	}
}
