package represent

import (
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// setHeader makes a header that of an HTML page. Nil for the site means that the page replaces no response.
func setHeader(t *testing.T, o Options, header http.Header, site *SiteHeader) {
	t.Helper()
	rep := newFormats(t, o).Represent(&Input{Page: *anyPage, Placeholders: placeholders(nil), Accept: "text/html"})
	rep.SetHeader(header, site)
	rep.Free()
}

// TestFieldsOfAnotherBodyGo has every name and every prefix of a field that goes.
func TestFieldsOfAnotherBodyGo(t *testing.T) {
	for _, field := range []string{
		"Content-Encoding", "Content-Digest", "Digest", "Repr-Digest", "Unencoded-Digest", "ETag", "Last-Modified",
		"Accept-Ranges", "Memento-Datetime", "Alternates", "TCN", "MIME-Version", "OData-Version", "Preference-Applied",
		"Signature", "Signature-Input", "Expires", "Pragma", "Age", "Warning", "CDN-Cache-Control", "Surrogate-Control",
		"Edge-Control", "Use-As-Dictionary", "No-Vary-Search", "Trailer", "Transfer-Encoding", "Incremental",
		"X-Inertia", "X-Accel-Redirect", "X-Accel-Expires", "X-Sendfile", "X-Sendfile-Type", "X-LIGHTTPD-Send-File",
		"X-LiteSpeed-Location", "X-Reproxy-URL",
		"Refresh", "SourceMap", "X-SourceMap", "Grpc-Status", http.TrailerPrefix + "X-Sum", "Status", "X-Cascade",
		"Retry-After",
	} {
		header := http.Header{http.CanonicalHeaderKey(field): {"theirs"}}
		setHeader(t, Options{}, header, nil)
		if got := header.Get(field); got != "" {
			t.Errorf("got %s: %s", field, got)
		}
	}
	header := http.Header{"Cache-Control": {"max-age=9"}, "Content-Type": {"text/css"}, "Content-Length": {"9"}}
	setHeader(t, Options{}, header, nil)
	if header.Get("Cache-Control") != "no-store" || header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("got %v", header)
	}
}

// TestOtherFieldsStay has fields that say nothing about a body.
func TestOtherFieldsStay(t *testing.T) {
	for _, field := range []string{
		"Access-Control-Allow-Origin", "Cross-Origin-Embedder-Policy", "Server-Timing", "Set-Cookie",
		"Strict-Transport-Security", "Via", "Www-Authenticate", "X-Request-Id", "X-Robots-Tag",
	} {
		header := http.Header{field: {"theirs"}}
		setHeader(t, Options{}, header, new(SiteHeader))
		if got := header.Get(field); got != "theirs" {
			t.Errorf("got %s: %s", field, got)
		}
	}
}

// TestSiteFieldsAreRestored replaces a response that has set, changed and removed fields of the site.
func TestSiteFieldsAreRestored(t *testing.T) {
	before := http.Header{
		"Content-Language":        {"de"},
		"Content-Security-Policy": {"default-src 'self'", "frame-ancestors 'none'"},
		"Server":                  {"Caddy"},
	}
	header := http.Header{
		"Content-Language":                    {"en"},
		"Content-Security-Policy":             {"default-src *"},
		"Content-Security-Policy-Report-Only": {"default-src *"},
		"Link":                                {"</style.css>; rel=preload"},
		"Server":                              {"theirs"},
	}
	var site SiteHeader
	site.Read(before)
	before["Server"][0] = "changed in place"
	setHeader(t, Options{}, header, &site)
	for field, want := range map[string]string{
		"Content-Language":                    "de",
		"Content-Security-Policy":             "default-src 'self', frame-ancestors 'none'",
		"Content-Security-Policy-Report-Only": "",
		"Link":                                "",
		"Server":                              "Caddy",
	} {
		if got := strings.Join(header[field], "|"); got != want {
			t.Errorf("%s: got %q, want %q", field, got, want)
		}
	}

	// A site that hides the server removes the field from every response.
	header.Del("Server")
	setHeader(t, Options{}, header, &site)
	if header["Server"] != nil {
		t.Errorf("got Server %q, which the response does not have", header["Server"])
	}
}

// TestPoliciesOfTheApplicationGo has a response that overwrites, adds or removes a field that acts on its own page.
func TestPoliciesOfTheApplicationGo(t *testing.T) {
	for _, field := range []string{
		"Connection-Allowlist", "Content-Language", "Content-Security-Policy", "Content-Security-Policy-Report-Only",
		"Document-Isolation-Policy", "Document-Policy", "Feature-Policy", "Integrity-Policy", "Integrity-Policy-Report-Only", "Link", "Permissions-Policy",
		"Speculation-Rules",
	} {
		for name, tt := range map[string]struct{ site, theirs []string }{
			"overwritten": {[]string{"the site's"}, []string{"theirs"}},
			"added":       {nil, []string{"theirs"}},
			"removed":     {[]string{"the site's"}, nil},
		} {
			var site SiteHeader
			site.Read(http.Header{field: tt.site})
			header := http.Header{field: tt.theirs}
			setHeader(t, Options{Templates: rows{"html": {tempFile(t, "a page")}}}, header, &site)
			if got := header[field]; !slices.Equal(got, tt.site) {
				t.Errorf("%s, %s: got %q, want %q", field, name, got, tt.site)
			}
		}
	}
}

// TestOnlyTheBuiltInPageHasAPolicy has a site with a Content-Security-Policy, which overrides the page's, and one with
// a template.
func TestOnlyTheBuiltInPageHasAPolicy(t *testing.T) {
	const field = "Content-Security-Policy"
	header := http.Header{field: {"default-src 'self'"}}
	setHeader(t, Options{}, header, nil)
	if got := header.Get(field); got != "default-src 'self'" {
		t.Errorf("got the policy %q", got)
	}
	header.Del(field)
	setHeader(t, Options{}, header, nil)
	if got := header.Get(field); !strings.HasPrefix(got, "default-src 'none'; img-src 'self'; style-src 'sha256-") {
		t.Errorf("got the policy %q", got)
	}
	header.Del(field)
	template := tempFile(t, "<h1>ours</h1>")
	setHeader(t, Options{Templates: rows{"html": {template}}}, header, nil)
	if got := header.Get(field); got != "" {
		t.Errorf("with a template, got the policy %q", got)
	}
}

// TestHeaderValuesAreNotShared changes a page's values in place, as Caddy's header handler does, and asks for another
// page.
func TestHeaderValuesAreNotShared(t *testing.T) {
	first := make(http.Header)
	setHeader(t, Options{}, first, nil)
	want := first.Clone()
	for field, values := range first {
		values[0] = "changed"
		if cap(values) > len(values) {
			t.Errorf("appending to %s may change another field", field)
		}
	}
	second := make(http.Header)
	setHeader(t, Options{}, second, nil)
	if !reflect.DeepEqual(second, want) {
		t.Errorf("got %v, want %v as before", second, want)
	}
}

// TestMissingStylesheetHasNoNosniff has browsers that ask for a stylesheet, and a client that takes one beside a page.
func TestMissingStylesheetHasNoNosniff(t *testing.T) {
	formats := newFormats(t, Options{})
	for field, want := range map[string]string{
		"text/css,*/*;q=0.1":              "",
		"text/html, text/plain, text/css": "nosniff", // lynx
		"image/avif,image/webp,*/*;q=0.8": "nosniff",
		"*/*":                             "nosniff",
	} {
		for _, ofSite := range []string{"", "nosniff"} {
			rep := formats.Represent(&Input{Page: *anyPage, Accept: field})
			header := http.Header{}
			if ofSite != "" {
				header.Set("X-Content-Type-Options", ofSite)
			}
			rep.SetHeader(header, nil)
			rep.Free()
			got := header.Get("X-Content-Type-Options")
			if wanted := max(want, ofSite); got != wanted {
				t.Errorf("%s: got %q, want %q", field, got, wanted)
			}
		}
	}
}
