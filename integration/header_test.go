package integration

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
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

// TestHeaderOfReplacedResponse replaces a response with fields that describe its body, and with others.
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
		for field := range strings.FieldsSeq("Digest Repr-Digest Unencoded-Digest Memento-Datetime Alternates TCN MIME-Version OData-Version Preference-Applied " +
			"Signature-Input Edge-Control Use-As-Dictionary No-Vary-Search Incremental SourceMap X-SourceMap X-LIGHTTPD-Send-File X-Reproxy-URL") {
			h.Set(field, "theirs")
		}
		h["Set-Cookie"] = []string{"a=1", "b=2; Secure"}
		h["Vary"] = []string{"Origin", "Cookie, accept-encoding"}
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, "theirs")
	})
	s := testcaddy.Start(t, `
http://a.test:0 {
	not_found
	header X-Site yes
	header Content-Security-Policy "default-src 'none'"
	reverse_proxy `+app+`
}`)
	res := s.Get(t, "http://a.test/x", "Accept: text/html")
	if got := testcaddy.FieldsOf(t, res).URI; got != "http://a.test/x" {
		t.Errorf("got the address %s", got)
	}
	want := http.Header{
		"Content-Type": {"text/html; charset=utf-8"}, "Content-Length": {fmt.Sprint(len(res.Content))}, "Cache-Control": {"no-store"},
		"X-Content-Type-Options": {"nosniff"}, "Server": {"Caddy"}, "Via": {"1.1 Caddy"}, "X-Site": {"yes"}, "X-Request-Id": {"7"},
		"Set-Cookie": {"a=1", "b=2; Secure"}, "Vary": {"Origin, Cookie, accept-encoding, Accept"},
		"Content-Security-Policy": {"default-src 'none'"}, // the site's, not the backend's or the page's
	}
	if got := res.Undated(); !reflect.DeepEqual(got, want) {
		t.Errorf("got the header %v, want %v", got, want)
	}
}

// TestHeaderOfTheSiteStays sets the site's own fields before not_found and after it. They stay, but a replaced response may have
// overwritten them, so they get back what they were before.
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
	// at once, as header can in JSON; in a Caddyfile, it defers deletions
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
	s := testcaddy.Start(t, "http://a.test:0 {\n"+strings.NewReplacer("WITHIN", sets("*", "within")+noServer, "APP", app).Replace(sets("/sets/*", "before")+`
	not_found
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
	}
}`))
	for path, want := range map[string]struct{ own, language, server string }{
		"/error/x":       {"within", "within", ""},
		"/unanswered/x":  {"within", "within", ""},
		"/authorized/x":  {"within", "within", ""},
		"/intercepted/x": {"within", "within", ""},
		"/proxied":       {"", "", "Caddy"},
		"/no-server":     {"", "", ""},
		"/removed/x":     {"", "", ""},
		"/changed/x":     {"", "fr", "Caddy"}, // header changes values in place
		"/sets/x":        {"before", "before", "Caddy"},
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			res := s.Get(t, "http://a.test"+path, "Accept: text/html")
			if got := testcaddy.FieldsOf(t, res).URI; got != "http://a.test"+path {
				t.Errorf("got the address %s", got)
			}
			res.WantHeader(t, "Content-Security-Policy", cmp.Or(want.own, testcaddy.StylePolicy(t, res.Content)))
			res.WantHeader(t, "Content-Security-Policy-Report-Only", want.own)
			res.WantHeader(t, "Content-Language", want.language)
			res.WantHeader(t, "Link", want.own)
			res.WantHeader(t, "Server", want.server)
		})
	}
}

// TestPageDescribesItself writes the page where the header has fields of another body: a file's that an upstream hands over to
// Caddy, or the site's.
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
