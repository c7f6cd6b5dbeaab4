package integration

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
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
			policy := testcaddy.StylePolicy(t, res.Content)
			want.Set("Content-Security-Policy", policy)
			if hash := regexp.MustCompile(`'sha256-[^']+'`).FindString(policy); !strings.Contains(readFile(t, "../docs/headers.md"), hash) {
				t.Errorf("docs/headers.md lacks the hash of the page's style, %s", hash)
			}
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
	s.Get(t, "http://a.test/x").WantHeader(t, "Cache-Control", "NO-STORE")
	res := s.Get(t, "http://b.test/x")
	res.WantHeader(t, "Content-Type", "text/plain; charset=utf-8")
	res.WantHeader(t, "X-Content-Type-Options", "nosniff")
	res.WantHeader(t, "Vary", "Accept")
	res.WantHeader(t, "Cache-Control", "no-store")
}

// TestHeaderOfReplacedResponse has a backend send header fields that describe its own page, and others.
func TestHeaderOfReplacedResponse(t *testing.T) {
	app := testcaddy.Backend(t, func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		for field, value := range map[string]string{
			"Content-Type": "text/html; charset=latin1", "Content-Length": "6", "Content-Language": "de", "ETag": `"1"`,
			"Cache-Control": "public, max-age=31536000", "CDN-Cache-Control": "max-age=600", "X-Accel-Redirect": "/protected/x",
			"Content-Security-Policy": "default-src shop.test", "Server": "ShopServer/1.3", "X-Request-Id": "7", "Link": "</a>; rel=preload",
		} {
			h.Set(field, value)
		}
		h["Set-Cookie"] = []string{"a=1", "b=2; Secure"}
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
	want := http.Header{
		"Content-Type": {"text/html; charset=utf-8"}, "Content-Length": {fmt.Sprint(len(res.Content))}, "Cache-Control": {"no-store"},
		"X-Content-Type-Options": {"nosniff"}, "Server": {"Caddy"}, "Via": {"1.1 Caddy"}, "X-Site": {"yes"}, "X-Request-Id": {"7"},
		"Set-Cookie": {"a=1", "b=2; Secure"}, "Vary": {"Origin", "Cookie, accept-encoding", "Accept"},
		"Content-Security-Policy": {"default-src 'none'"}, // the site's, not the backend's or the page's
	}
	if got := res.Undated(); !reflect.DeepEqual(got, want) {
		t.Errorf("got the header %v, want %v", got, want)
	}

	// if the site has no policy, the built-in page has its own
	res = s.Get(t, "http://b.test/x", "Accept: text/html")
	res.WantHeader(t, "Content-Security-Policy", testcaddy.StylePolicy(t, res.Content))
	res.WantHeader(t, "Cache-Control", "no-store, private")
	res.WantHeader(t, "X-Request-Id", "")
}

// TestHeaderOfTheSiteStays has the site set its language, its policies, Link and Server, before not_found and after it, and remove
// Server. Where nothing is replaced, all of it stays. A replaced response gives back what it may have overwritten.
func TestHeaderOfTheSiteStays(t *testing.T) {
	app := testcaddy.Backend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/auth" {
			return
		}
		for _, field := range []string{"Content-Security-Policy", "Content-Security-Policy-Report-Only", "Content-Language", "Link", "Server"} {
			w.Header().Set(field, "theirs")
		}
		if r.URL.Path == "/no-server" {
			w.Header().Del("Server")
		}
		w.WriteHeader(http.StatusNotFound)
	})
	// a header directive defers to delete a field, but in JSON it can do so at once
	noServer := testcaddy.Directive(t, func(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
		w.Header().Del("Server")
		return next.ServeHTTP(w, r)
	})
	sets := func(matcher, value string) string {
		return strings.NewReplacer("MATCHER", matcher, "VALUE", value).Replace(`
			header MATCHER Content-Security-Policy VALUE
			header MATCHER Content-Security-Policy-Report-Only VALUE
			header MATCHER Content-Language VALUE
			header MATCHER Link VALUE
			`)
	}
	site := strings.NewReplacer("WITHIN", sets("*", "within")+noServer, "APP", app).Replace(sets("/sets/*", "before") + `
	not_found {
		TEMPLATE
	}
	handle /error/* {WITHIN
		error 404
	}
	handle /unanswered/* {WITHIN
	}
	handle /intercepted/* {
		intercept {
			handle_response {
				respond no
			}
		}
		route {WITHIN
		}
	}
	handle /authorized/* {
		route {
			forward_auth APP {
				uri /auth
			}WITHIN
		}
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
	}`)
	file := testcaddy.TempFile(t, "404.html", "<h1>{{.Heading}}</h1>")
	s := testcaddy.Start(t, "http://builtin.test:0 {\n"+strings.ReplaceAll(site, "TEMPLATE", "")+"\n}\n"+
		"http://template.test:0 {\n"+strings.ReplaceAll(site, "TEMPLATE", "template "+file)+"\n}")
	type want struct{ policy, reportOnly, language, link, server string }
	for path, want := range map[string]want{
		"/error/x":       {"within", "within", "within", "within", ""},
		"/unanswered/x":  {"within", "within", "within", "within", ""},
		"/authorized/x":  {"within", "within", "within", "within", ""},
		"/intercepted/x": {"within", "within", "within", "within", ""},
		"/proxied":       {"", "", "", "", "Caddy"},
		"/no-server":     {"", "", "", "", ""},
		"/removed/x":     {"", "", "", "", ""},
		"/changed/x":     {"", "", "fr", "", "Caddy"}, // header changes values in place
		"/sets/x":        {"before", "before", "before", "before", "Caddy"},
	} {
		for _, host := range []string{"builtin.test", "template.test"} {
			t.Run(host+path, func(t *testing.T) {
				t.Parallel()
				res := s.Get(t, "http://"+host+path, "Accept: text/html")
				if res.StatusCode != 404 || !strings.Contains(res.Content, "No endpoint GET") {
					t.Errorf("got %d %s", res.StatusCode, res.Content)
				}
				policy := want.policy
				if policy == "" && host == "builtin.test" {
					policy = testcaddy.StylePolicy(t, res.Content)
				}
				res.WantHeader(t, "Content-Security-Policy", policy)
				res.WantHeader(t, "Content-Security-Policy-Report-Only", want.reportOnly)
				res.WantHeader(t, "Content-Language", want.language)
				res.WantHeader(t, "Link", want.link)
				res.WantHeader(t, "Server", want.server)
			})
		}
	}
}

// TestPageDescribesItself has the header fields of another body on the response when the page is written: those of a file
// that an upstream hands over to Caddy, and the site's own.
func TestPageDescribesItself(t *testing.T) {
	fields := map[string]string{ // one of each rule
		"Content-Encoding": "br", "Etag": `"1"`, "Expires": "Sat, 21 Nov 2099 11:00:00 GMT", "X-Accel-Expires": "3600", "Signature": "x=:eA==:",
		"Cdn-Cache-Control": "max-age=600", "Surrogate-Control": "max-age=600", "X-Sendfile2": "/x", "Refresh": "0", "Grpc-Status": "5",
	}
	app := testcaddy.Backend(t, func(w http.ResponseWriter, r *http.Request) {
		for field, value := range fields {
			w.Header().Set(field, value)
		}
		w.Header().Set("X-Accel-Redirect", "/protected/x.png")
		w.Header().Set("X-Stays", "yes")
		w.Header().Set("Content-Type", "image/png")
		io.WriteString(w, "theirs")
	})
	accel := func(routes string) string {
		return "reverse_proxy " + app + " {\n@accel header X-Accel-Redirect *\nhandle_response @accel {\ncopy_response_headers\n" + routes + "\n}\n}\n"
	}
	own := "header X-Stays yes\n"
	for field, value := range fields {
		own += fmt.Sprintf("header %s %q\n", field, value)
	}
	s, hosts := testcaddy.StartSites(t, "", map[string]string{
		"an error":                   accel("error 404"),
		"the end of the routes":      accel(""),
		"not_found in the routes":    accel("not_found\nerror 404"),
		"in handle_errors":           accel("error 404") + "handle_errors {\nnot_found\n}\n",
		"a copy with another status": "not_found {\nreplace all\n}\n" + accel("copy_response 404"),
		"intercepted":                "intercept {\n@ok status 200\nhandle_response @ok {\nerror 404\n}\n}\nreverse_proxy " + app,
		"the site's own, unanswered": own + "not_found",
		"the site's own, within":     "handle {\n" + own + "error 404\n}",
	})
	for name, host := range hosts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res := s.Get(t, "http://"+host+"/x")
			res.WantPage(t, "GET", "http://"+host+"/x", "")
			for field := range fields {
				res.WantHeader(t, field, "")
			}
			if !strings.HasPrefix(res.Header.Get("X-Stays"), "yes") { // or more than once
				t.Errorf("the header is %v, want X-Stays in it", res.Header)
			}
		})
	}
}
