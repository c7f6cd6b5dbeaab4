package notfound

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestHeaderOfReplacedResponse sends every field that a backend may describe its own page by, and
// others that are none of the page's business. Between them they are what IANA's registry of HTTP field names has for
// responses, but for those of the connection, and some more.
func TestHeaderOfReplacedResponse(t *testing.T) {
	gone := map[string]string{
		"Content-Encoding": "br", "Content-Language": "de", "Content-Location": "/x", "Content-Disposition": "attachment",
		"Content-Range": "bytes */1", "Content-MD5": "Q2hlY2sgSW50ZWdyaXR5IQ==", "Content-Digest": "sha-256=:a:",
		"Repr-Digest": "sha-256=:a:", "Digest": "sha-256=a", "ETag": `"1"`, "Last-Modified": "Sat, 21 Nov 2026 11:00:00 GMT",
		"Accept-Ranges": "bytes", "Expires": "Sat, 21 Nov 2099 11:00:00 GMT", "Pragma": "public", "Age": "7", "Refresh": "1",
		"CDN-Cache-Control": "max-age=600", "Cloudflare-CDN-Cache-Control": "max-age=600", "Surrogate-Control": "max-age=600",
		"Edge-Control": "!no-store, max-age=600", "X-Accel-Expires": "600",
		"Signature": "sig1=:a:", "Signature-Input": `sig1=("content-digest")`, "Content-Security-Policy-Report-Only": "default-src 'self'",
		"X-Accel-Redirect": "/protected/x", "X-Accel-Charset": "latin1", "X-Sendfile": "/srv/x", "X-Sendfile2": "/srv/x 0-9", "X-LIGHTTPD-send-file": "/srv/x",
		"X-Reproxy-URL": "http://b.test/x", "X-Archive-Files": "zip", "IM": "feed", "Delta-Base": `"0"`,
		"Memento-Datetime": "Sat, 21 Nov 2020 11:00:00 GMT", "Content-Transfer-Encoding": "binary", "Content-Base": "http://b.test/",
		"Content-Version": "2", "Content-ID": "<1@b.test>", "Content-Script-Type": "text/vbscript", "Content-Style-Type": "text/css",
		"Content-DPR": "2", "Unencoded-Digest": "sha-256=:a:", "Alternates": `{"x.de" 0.9}`, "TCN": "choice", "Variant-Vary": "negotiate",
		"URI": "</x>", "Derived-From": "1", "Default-Style": "dark", "PICS-Label": "(x)", "MIME-Version": "1.0", "OData-Version": "4.0",
		"OSLC-Core-Version": "2.0", "Schedule-Tag": `"1"`, "Preference-Applied": "return=minimal", "CMSD-Static": "ot=v", "AMP-Cache-Transform": "any",
		"Warning": `110 - "stale"`, "Use-As-Dictionary": `match="/*"`, "No-Vary-Search": "params", "SourceMap": "/x.map", "X-SourceMap": "/x.map",
	}
	stay := map[string]string{
		"Access-Control-Allow-Origin": "https://b.test", "Access-Control-Allow-Credentials": "true", "Access-Control-Expose-Headers": "X-A",
		"Traceparent": "00-1-2-03", "Tracestate": "a=b", "Server-Timing": "db;dur=1", "X-Request-Id": "7",
		"WWW-Authenticate": "Basic", "Authentication-Info": "nextnonce=a", "Proxy-Status": "b.test", "DPoP-Nonce": "a", "Replay-Nonce": "a",
		"Strict-Transport-Security": "max-age=1", "Permissions-Policy": "camera=()", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY",
		"Cross-Origin-Resource-Policy": "same-site", "Cross-Origin-Embedder-Policy": "require-corp", "Cross-Origin-Opener-Policy": "same-origin",
		"Origin-Agent-Cluster": "?1", "NEL": "{}", "Reporting-Endpoints": `a="/r"`, "Expect-CT": "max-age=1", "Accept-CH": "DPR", "P3P": "x",
		"Link": "</a>; rel=preload", "Link-Template": `"/{a}"`, "Location": "/elsewhere", "Retry-After": "1", "Sunset": "Sat, 21 Nov 2099 11:00:00 GMT",
		"Deprecation": "@1", "Clear-Site-Data": `"cache"`, "Allow": "GET", "Accept-Patch": "a/b", "Accept-Post": "a/b", "DAV": "1",
		"Cache-Status": "b.test; hit", "Surrogate-Key": "shop", "X-Cache-Controlled": "yes", "Timing-Allow-Origin": "*", "Priority": "u=1",
		"Lock-Token": "<a>", "Want-Content-Digest": "sha-256=1", "Accept-Signature": `sig1=()`, "Public-Key-Pins": "max-age=1", "X-Accelerated": "yes",
	}
	app := backend(t, func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		for field, value := range gone {
			h.Set(field, value)
		}
		for field, value := range stay {
			h.Set(field, value)
		}
		h["Set-Cookie"] = []string{"a=1", "b=2; Secure"}
		h.Set("Content-Type", "text/html; charset=latin1")
		h.Set("Content-Length", "6")
		h.Set("Cache-Control", "public, max-age=31536000")
		h.Set("Server", "ShopServer/1.3")
		h.Set("Content-Security-Policy", "default-src shop.test")
		h["Vary"] = []string{"Origin", "Cookie, accept-encoding"}
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, "theirs")
	})
	s := startCaddy(t, strings.ReplaceAll(`
http://a.test:0 {
	not_found
	header X-Site yes
	header Content-Security-Policy "default-src 'none'"
	reverse_proxy APP
}
http://b.test:0 {
	not_found
	header >Cache-Control "no-store, private"
	header -X-Request-Id
	reverse_proxy APP
}`, "APP", app))

	res := s.get(t, "http://a.test/x", "Accept: text/html")
	if got := fieldsOf(t, res).URI; got != "http://a.test/x" {
		t.Errorf("got the address %s", got)
	}
	for field := range gone {
		res.wantHeader(t, field, "")
	}
	for field, value := range stay {
		res.wantHeader(t, field, value)
	}
	res.wantHeader(t, "Set-Cookie", "a=1 | b=2; Secure")
	res.wantHeader(t, "Content-Type", "text/html; charset=utf-8")
	res.wantHeader(t, "Server", "Caddy")
	res.wantHeader(t, "Via", "1.1 Caddy")
	res.wantHeader(t, "Vary", "Origin | Cookie, accept-encoding | Accept")
	res.wantHeader(t, "X-Site", "yes")
	res.wantHeader(t, "Content-Security-Policy", "default-src 'none'") // the site's, not the backend's and not ours

	// without a policy of the site's, the built-in page has its own
	res = s.get(t, "http://b.test/x", "Accept: text/html")
	res.wantHeader(t, "Content-Security-Policy", builtinCSP)
	s.get(t, "http://b.test/x").wantHeader(t, "Content-Security-Policy", "") // text needs none
	res.wantHeader(t, "Cache-Control", "no-store, private")
	res.wantHeader(t, "X-Request-Id", "")
}

func TestHeaderOfPage(t *testing.T) {
	s := startCaddy(t, "http://a.test:0 {\nnot_found\n}\nhttp://one.test:0 {\nnot_found {\nformats html\n}\n}")
	for accept, want := range map[string]string{
		"text/plain": "Cache-Control=no-store Content-Type=text/plain; charset=utf-8 Server=Caddy Vary=Accept X-Content-Type-Options=nosniff",
		"text/html":  "Cache-Control=no-store Content-Security-Policy=" + builtinCSP + " Content-Type=text/html; charset=utf-8 Server=Caddy Vary=Accept X-Content-Type-Options=nosniff",
	} {
		res := s.get(t, "http://a.test/x", "Accept: "+accept)
		var got []string
		for _, field := range slices.Sorted(maps.Keys(res.Header)) {
			if field != "Date" && field != "Content-Length" {
				got = append(got, field+"="+strings.Join(res.Header[field], " | "))
			}
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", accept, got, want)
		}
	}
	s.get(t, "http://one.test/x").wantHeader(t, "Vary", "")
}

func TestVaryIsNeverAddedTwice(t *testing.T) {
	for vary, want := range map[string]string{
		"accept": "accept", "Origin, Accept": "Origin, Accept", "*": "*", "Accept-Encoding": "Accept-Encoding | Accept", "X-Accept": "X-Accept | Accept",
	} {
		s := startCaddy(t, "http://a.test:0 {\nheader Vary \""+vary+"\"\nnot_found\n}")
		s.get(t, "http://a.test/x").wantHeader(t, "Vary", want)
	}
}

// TestHeaderValuesAreNotShared has header manipulation change values in place, which it does.
func TestHeaderValuesAreNotShared(t *testing.T) {
	s := startCaddy(t, `
http://a.test:0 {
	header >Content-Type plain PLAIN
	header >X-Content-Type-Options nosniff NOSNIFF
	header >Vary Accept ACCEPT
	header >Cache-Control no-store NO-STORE
	not_found
}
http://b.test:0 {
	not_found
}`)
	res := s.get(t, "http://a.test/x")
	res.wantHeader(t, "Content-Type", "text/PLAIN; charset=utf-8")
	res.wantHeader(t, "Cache-Control", "NO-STORE")
	res = s.get(t, "http://b.test/x")
	res.wantHeader(t, "Content-Type", "text/plain; charset=utf-8")
	res.wantHeader(t, "X-Content-Type-Options", "nosniff")
	res.wantHeader(t, "Vary", "Accept")
	res.wantHeader(t, "Cache-Control", "no-store")
}

func TestReplacesWhateverTheBodyIs(t *testing.T) {
	app := backend(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/none":
			w.WriteHeader(http.StatusNotFound)
		case "/long":
			w.Header().Set("Content-Length", fmt.Sprint(8<<20))
			w.WriteHeader(http.StatusNotFound)
			io.Copy(w, io.LimitReader(endless{}, 8<<20))
		case "/chunked":
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, "theirs")
			http.NewResponseController(w).Flush()
			io.WriteString(w, "theirs")
		case "/trailers":
			w.Header().Set("Trailer", "X-Announced")
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, "theirs")
			w.Header().Set("X-Announced", "1")
			w.Header().Set(http.TrailerPrefix+"X-Unannounced", "1")
		case "/endless":
			w.WriteHeader(http.StatusNotFound)
			if r.Method != http.MethodHead {
				io.Copy(w, endless{})
			}
		case "/broken":
			w.Header().Set("Content-Length", "1000")
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, "theirs")
			http.NewResponseController(w).Flush()
			if r.Method != http.MethodHead { // or the proxy would take the connection for idle
				panic(http.ErrAbortHandler)
			}
		}
	})
	s := startCaddy(t, "http://a.test:0 {\nlog\nnot_found\nreverse_proxy "+app+"\n}")
	for _, path := range []string{"/none", "/long", "/chunked", "/trailers", "/endless", "/broken"} {
		t.Run(path, func(t *testing.T) {
			// one connection for all: a page never costs the client its connection
			conn, err := net.Dial("tcp", s.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			r := bufio.NewReader(conn)
			for _, method := range []string{"GET", "HEAD", "POST", "GET"} {
				uri := "http://a.test" + path
				fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n", method, path)
				res := readResponse(t, r, method, method)
				if len(res.Trailer) > 0 || len(res.TransferEncoding) > 0 {
					t.Errorf("%s: got the trailers %v and the transfer encoding %v", method, res.Trailer, res.TransferEncoding)
				}
				if method == "HEAD" {
					if want := int64(len(textPage("GET", uri, ""))); res.ContentLength != want {
						t.Errorf("HEAD: got Content-Length %d, want %d", res.ContentLength, want)
					}
					continue
				}
				res.wantPage(t, method, uri, "")
			}
		})
	}
	if entries := s.logs.waitFor(t, "handled request", 24); entries[0]["status"] != 404.0 {
		t.Errorf("the access log has %v", entries[0])
	}
}

// endless is a body without end.
type endless struct{}

var xs = bytes.Repeat([]byte{'x'}, 32<<10)

func (endless) Read(p []byte) (int, error) { return copy(p, xs), nil }
