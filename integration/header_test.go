package integration

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestHeaderOfPage compares the whole header, in text and in HTML.
func TestHeaderOfPage(t *testing.T) {
	s := testcaddy.Start(t, "http://a.test:0 {\nnot_found\n}")
	for _, f := range []string{"text/plain", "text/html"} {
		res := s.Get(t, "http://a.test/x", "Accept: "+f)
		want := http.Header{
			"Cache-Control": {"no-store"}, "Content-Type": {f + "; charset=utf-8"}, "Server": {"Caddy"}, "Vary": {"Accept"},
			"X-Content-Type-Options": {"nosniff"}, "Content-Length": {fmt.Sprint(len(res.Content))},
		}
		if f == "text/html" {
			want.Set("Content-Security-Policy", testcaddy.StylePolicy(t, res.Content))
		}
		if got := res.Undated(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, want %v", f, got, want)
		}
	}
}

// TestVaryIsNeverAddedTwice has the site set Vary before the page does.
func TestVaryIsNeverAddedTwice(t *testing.T) {
	s := testcaddy.Start(t, "http://a.test:0 {\nheader Vary {query.vary}\nnot_found\n}")
	for vary, want := range map[string]string{
		"accept": "accept", "Origin, Accept": "Origin, Accept", "*": "*", "Accept-Encoding": "Accept-Encoding | Accept", "X-Accept": "X-Accept | Accept",
	} {
		t.Run(vary, func(t *testing.T) {
			t.Parallel()
			s.Get(t, "http://a.test/x?vary="+url.QueryEscape(vary)).WantHeader(t, "Vary", want)
		})
	}
}

// TestHeaderValuesAreNotShared has one site's header directive change the values of a page's fields, which it does in
// place, and asks another site.
func TestHeaderValuesAreNotShared(t *testing.T) {
	s := testcaddy.Start(t, `
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
	res := s.Get(t, "http://a.test/x")
	res.WantHeader(t, "Content-Type", "text/PLAIN; charset=utf-8")
	res.WantHeader(t, "Cache-Control", "NO-STORE")
	res = s.Get(t, "http://b.test/x")
	res.WantHeader(t, "Content-Type", "text/plain; charset=utf-8")
	res.WantHeader(t, "X-Content-Type-Options", "nosniff")
	res.WantHeader(t, "Vary", "Accept")
	res.WantHeader(t, "Cache-Control", "no-store")
}

// TestHeaderOfReplacedResponse has a backend send every field that describes its own page, or acts on it, and others that
// have nothing to do with it. Together they are the response fields in IANA's registry of HTTP field names, except those of the
// connection, and some that are not registered.
func TestHeaderOfReplacedResponse(t *testing.T) {
	gone := map[string]string{
		"Content-Encoding": "br", "Content-Language": "de", "Content-Location": "/x", "Content-Disposition": "attachment",
		"Content-Range": "bytes */1", "Content-MD5": "Q2hlY2sgSW50ZWdyaXR5IQ==", "Content-Digest": "sha-256=:a:",
		"Repr-Digest": "sha-256=:a:", "Digest": "sha-256=a", "ETag": `"1"`, "Last-Modified": "Sat, 21 Nov 2026 11:00:00 GMT",
		"Accept-Ranges": "bytes", "Expires": "Sat, 21 Nov 2099 11:00:00 GMT", "Pragma": "public", "Age": "7", "Refresh": "1",
		"CDN-Cache-Control": "max-age=600", "Cloudflare-CDN-Cache-Control": "max-age=600", "Surrogate-Control": "max-age=600",
		"Edge-Control": "!no-store, max-age=600", "X-Accel-Expires": "600",
		"Signature": "sig1=:a:", "Signature-Input": `sig1=("content-digest")`, "Content-Security-Policy-Report-Only": "default-src theirs.test",
		"X-Accel-Redirect": "/protected/x", "X-Accel-Charset": "latin1", "X-Sendfile": "/srv/x", "X-Sendfile2": "/srv/x 0-9", "X-LIGHTTPD-send-file": "/srv/x",
		"X-Reproxy-URL": "http://b.test/x", "X-Archive-Files": "zip", "IM": "feed", "Delta-Base": `"0"`,
		"Memento-Datetime": "Sat, 21 Nov 2020 11:00:00 GMT", "Content-Transfer-Encoding": "binary", "Content-Base": "http://b.test/",
		"Content-Version": "2", "Content-ID": "<1@b.test>", "Content-Script-Type": "text/vbscript", "Content-Style-Type": "text/css",
		"Content-DPR": "2", "Unencoded-Digest": "sha-256=:a:", "Incremental": "?1", "Capsule-Protocol": "?1", "Alternates": `{"x.de" 0.9}`, "TCN": "choice", "Variant-Vary": "negotiate",
		"URI": "</x>", "Derived-From": "1", "Default-Style": "dark", "PICS-Label": "(x)", "MIME-Version": "1.0", "OData-Version": "4.0",
		"OSLC-Core-Version": "2.0", "Schedule-Tag": `"1"`, "Preference-Applied": "return=minimal", "CMSD-Static": "ot=v", "AMP-Cache-Transform": "any",
		"Grpc-Status": "5", "Grpc-Message": "theirs", "Warning": `110 - "stale"`, "Use-As-Dictionary": `match="/*"`, "No-Vary-Search": "params", "SourceMap": "/x.map", "X-SourceMap": "/x.map",
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
	app := testcaddy.Backend(t, func(w http.ResponseWriter, r *http.Request) {
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
	s := testcaddy.Start(t, strings.ReplaceAll(`
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

	res := s.Get(t, "http://a.test/x", "Accept: text/html")
	if got := testcaddy.FieldsOf(t, res).URI; got != "http://a.test/x" {
		t.Errorf("got the address %s", got)
	}
	for field := range gone {
		res.WantHeader(t, field, "")
	}
	for field, value := range stay {
		res.WantHeader(t, field, value)
	}
	res.WantHeader(t, "Set-Cookie", "a=1 | b=2; Secure")
	res.WantHeader(t, "Content-Type", "text/html; charset=utf-8")
	res.WantHeader(t, "Server", "Caddy")
	res.WantHeader(t, "Via", "1.1 Caddy")
	res.WantHeader(t, "Vary", "Origin | Cookie, accept-encoding | Accept")
	res.WantHeader(t, "X-Site", "yes")
	res.WantHeader(t, "Content-Security-Policy", "default-src 'none'") // the site's, not the backend's or the page's

	// if the site has no policy, the built-in page has its own
	res = s.Get(t, "http://b.test/x", "Accept: text/html")
	res.WantHeader(t, "Content-Security-Policy", testcaddy.StylePolicy(t, res.Content))
	s.Get(t, "http://b.test/x").WantHeader(t, "Content-Security-Policy", "") // text needs none
	res.WantHeader(t, "Cache-Control", "no-store, private")
	res.WantHeader(t, "X-Request-Id", "")
}

// TestHeaderOfTheSiteStays has the site set its language, its policies and Server, before not_found and after it, and remove
// Server. Where nothing is replaced, all of it stays. A replaced response gives back what it may have overwritten.
func TestHeaderOfTheSiteStays(t *testing.T) {
	file := testcaddy.TempFile(t, "404.html", "<h1>{{.Heading}}</h1>")
	app := testcaddy.Backend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/auth" {
			return
		}
		w.Header().Set("Content-Security-Policy", "default-src theirs.test")
		w.Header().Set("Content-Security-Policy-Report-Only", "default-src theirs.test")
		w.Header().Set("Content-Language", "en")
		if r.URL.Path != "/no-server" {
			w.Header().Set("Server", "theirs")
		}
		w.WriteHeader(http.StatusNotFound)
	})
	// a header directive defers to delete a field, but in JSON it can do so at once
	noServer := testcaddy.Directive(t, func(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
		w.Header().Del("Server")
		return next.ServeHTTP(w, r)
	})
	const within = `
		header Content-Security-Policy "default-src 'self'"
		header Content-Security-Policy-Report-Only "default-src ro.test"
		header Content-Language de
		`
	site := `
	header /sets/* Content-Security-Policy "default-src site.test"
	header /sets/* Content-Security-Policy-Report-Only "default-src site-ro.test"
	header /sets/* Content-Language fr
	not_found {
		TEMPLATE
	}
	handle /app/* {` + within + noServer + `
		root /nowhere
		file_server
	}
	handle /unanswered/* {` + within + noServer + `
	}
	handle /intercepted/* {
		intercept {
			handle_response {
				respond no
			}
		}
		route {` + within + noServer + `
		}
	}
	handle /authorized/* {
		route {
			forward_auth APP {
				uri /auth
			}` + within + noServer + `
		}
	}
	handle /none/* {
		header Server mine
	}
	header /changed/* Content-Language fr
	handle /changed/* {
		header >Content-Language fr en
		respond "theirs" 404
	}
	handle /removed/* {
		header -Server
		reverse_proxy APP
	}
	handle {
		reverse_proxy APP
	}`
	s := testcaddy.Start(t, "http://builtin.test:0 {\n"+strings.NewReplacer("TEMPLATE", "", "APP", app).Replace(site)+"\n}\n"+
		"http://template.test:0 {\n"+strings.NewReplacer("TEMPLATE", "template "+file, "APP", app).Replace(site)+"\n}")
	const builtIn = "that of the built-in page"
	type want struct{ policy, reportOnly, language, server string }
	for host, ownPolicy := range map[string]string{"builtin.test": builtIn, "template.test": ""} {
		for path, want := range map[string]want{
			"/app/x":         {"default-src 'self'", "default-src ro.test", "de", ""},
			"/unanswered/x":  {"default-src 'self'", "default-src ro.test", "de", ""},
			"/authorized/x":  {"default-src 'self'", "default-src ro.test", "de", ""},
			"/intercepted/x": {"default-src 'self'", "default-src ro.test", "de", ""},
			"/none/x":        {ownPolicy, "", "", "mine"},
			"/proxied":       {ownPolicy, "", "", "Caddy"},
			"/no-server":     {ownPolicy, "", "", ""},
			"/removed/x":     {ownPolicy, "", "", ""},
			"/changed/x":     {ownPolicy, "", "fr", "Caddy"}, // header changes values in place
			"/sets/x":        {"default-src site.test", "default-src site-ro.test", "fr", "Caddy"},
		} {
			t.Run(host+path, func(t *testing.T) {
				t.Parallel()
				res := s.Get(t, "http://"+host+path, "Accept: text/html")
				if res.StatusCode != 404 || !strings.Contains(res.Content, "No endpoint GET") {
					t.Errorf("got %d %s", res.StatusCode, res.Content)
				}
				if want.policy == builtIn {
					want.policy = testcaddy.StylePolicy(t, res.Content)
				}
				res.WantHeader(t, "Content-Security-Policy", want.policy)
				res.WantHeader(t, "Content-Security-Policy-Report-Only", want.reportOnly)
				res.WantHeader(t, "Content-Language", want.language)
				res.WantHeader(t, "Server", want.server)
				res.WantHeader(t, "Cache-Control", "no-store")
			})
		}
	}
}

// TestPageDescribesItself has the header fields of another content on the response when the page is written: those of a file
// that an upstream hands over to Caddy, and the site's own.
func TestPageDescribesItself(t *testing.T) {
	fields := map[string]string{
		"Content-Encoding": "br", "Content-Disposition": "attachment", "Etag": `"1"`, "Expires": "Sat, 21 Nov 2099 11:00:00 GMT",
		"Cdn-Cache-Control": "max-age=3600", "X-Accel-Expires": "3600",
	}
	app := testcaddy.Backend(t, func(w http.ResponseWriter, r *http.Request) {
		for field, value := range fields {
			w.Header().Set(field, value)
		}
		w.Header().Set("X-Accel-Redirect", "/protected/x.png")
		w.Header().Set("X-Stays", "yes")
		w.Header().Set("Content-Type", "image/png")
		w.Header().Set("Content-Length", "6")
		io.WriteString(w, "theirs")
	})
	fcgi := testcaddy.FastCGI(t, func(w http.ResponseWriter, r *http.Request) {
		for field, value := range fields {
			w.Header().Set(field, value)
		}
		w.Header().Set("X-Accel-Redirect", "/protected/x.png")
		w.Header().Set("X-Stays", "yes")
	})
	accel := func(routes string) string {
		return "reverse_proxy " + app + " {\n@accel header X-Accel-Redirect *\nhandle_response @accel {\n" + routes + "\n}\n}\n"
	}
	const copied = "copy_response_headers\n"
	own := "header X-Stays yes\n"
	for field, value := range fields {
		own += fmt.Sprintf("header %s %q\n", field, value)
	}
	sites := map[string]string{
		"an error":                   "not_found\n" + accel(copied+"error 404"),
		"the end of the routes":      "not_found\n" + accel(copied),
		"not_found in the routes":    accel(copied + "not_found\nerror 404"),
		"within another response":    "not_found\n" + accel(copied+accel(copied+"error 404")),
		"in handle_errors":           accel(copied+"error 404") + "handle_errors {\nnot_found\n}\n",
		"a copy with another status": "not_found {\nreplace all\n}\n" + accel("copy_response 404"),
		"php_fastcgi":                "not_found\nroot /srv\nphp_fastcgi " + fcgi + " {\ntry_files index.php\n@accel header X-Accel-Redirect *\nhandle_response @accel {\n" + copied + "error 404\n}\n}",
		"intercepted":                "not_found\nintercept {\n@ok status 200\nhandle_response @ok {\nerror 404\n}\n}\nreverse_proxy " + app,
		"the site's own, unanswered": own + "not_found",
		"the site's own, within":     "not_found\nhandle {\n" + own + "error 404\n}",
	}
	s, hosts := testcaddy.StartSites(t, "", sites)
	for name, host := range hosts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res := s.Get(t, "http://"+host+"/x")
			res.WantPage(t, "GET", "http://"+host+"/x", "")
			for field := range fields {
				res.WantHeader(t, field, "")
			}
			res.WantHeader(t, "Cache-Control", "no-store")
			if !strings.HasPrefix(res.Header.Get("X-Stays"), "yes") { // or more than once
				t.Errorf("the header is %v, want X-Stays in it", res.Header)
			}
		})
	}
}
