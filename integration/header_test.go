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

// TestHeaderOfPage compares the whole header. docs/headers.md has the hashes of the page's style and script.
func TestHeaderOfPage(t *testing.T) {
	s := startSite(t, "not_found")
	res := s.Get(t, "http://a.test/x", "Accept: text/html")
	policy := testcaddy.PagePolicy(t, res.Content)
	want := http.Header{
		"Cache-Control":           {"no-store"},
		"Content-Length":          {fmt.Sprint(len(res.Content))},
		"Content-Security-Policy": {policy},
		"Content-Type":            {"text/html; charset=utf-8"},
		"Server":                  {"Caddy"},
		"Vary":                    {"Accept"},
		"X-Content-Type-Options":  {"nosniff"},
	}
	if got := res.Undated(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, directive := range regexp.MustCompile(`\w+-src 'sha256-[^']+'`).FindAllString(policy, 2) {
		ofSite := strings.Replace(directive, "-src ", "-src 'self' ", 1)
		if !strings.Contains(readFile(t, "../docs/headers.md"), ofSite) {
			t.Errorf("docs/headers.md lacks %s", ofSite)
		}
	}
}

// TestHeaderOfReplacedResponse replaces a response with fields that describe its body, and with others.
func TestHeaderOfReplacedResponse(t *testing.T) {
	app := testcaddy.Backend(t, func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		for _, field := range []string{"Content-Language", "ETag", "Server"} {
			h.Set(field, "theirs")
		}
		h.Set("Content-Type", "text/html; charset=latin1")
		h.Set("Cache-Control", "public, max-age=31536000")
		h.Set("X-Request-Id", "7")
		h["Set-Cookie"] = []string{"a=1", "b=2; Secure"}
		h["Vary"] = []string{"Origin", "Cookie, accept-encoding"}
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, "theirs")
	})
	s := startSite(t, `
	not_found
	header X-Site yes
	header Content-Security-Policy "default-src 'none'"
	reverse_proxy `+app)
	res := getPage(t, s.Client, "http://a.test/x")
	want := http.Header{
		"Cache-Control":           {"no-store"},
		"Content-Length":          {fmt.Sprint(len(res.Content))},
		"Content-Security-Policy": {"default-src 'none'"},
		"Content-Type":            {"text/plain; charset=utf-8"},
		"Server":                  {"Caddy"},
		"Set-Cookie":              {"a=1", "b=2; Secure"},
		"Vary":                    {"Origin, Cookie, accept-encoding, Accept, Sec-Fetch-Mode, Upgrade-Insecure-Requests"},
		"Via":                     {"1.1 Caddy"},
		"X-Content-Type-Options":  {"nosniff"},
		"X-Request-Id":            {"7"},
		"X-Site":                  {"yes"},
	}
	if got := res.Undated(); !reflect.DeepEqual(got, want) {
		t.Errorf("got the header\n%v\nwant\n%v", got, want)
	}
}

// TestHeaderOfTheSiteStays sets the site's own fields before not_found and after it. They stay, but a replaced
// response may have overwritten them, so they get back what they were before.
func TestHeaderOfTheSiteStays(t *testing.T) {
	app := testcaddy.Backend(t, func(w http.ResponseWriter, _ *http.Request) {
		for _, field := range []string{"Content-Security-Policy", "Content-Language", "Link", "Server"} {
			w.Header().Set(field, "theirs")
		}
		w.WriteHeader(http.StatusNotFound)
	})
	// at once, as header can in JSON; in a Caddyfile, it defers deletions
	within := testcaddy.Directive(t, func(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
		w.Header().Set("Content-Security-Policy", "within")
		w.Header().Set("Link", "within")
		w.Header().Set("Content-Language", "within")
		w.Header().Del("Server")
		return next.ServeHTTP(w, r)
	})
	site := strings.NewReplacer("WITHIN", within, "APP", app).Replace(`
	header /sets/* Content-Security-Policy before
	header /sets/* Content-Language before
	header /sets/* Link before
	not_found
	handle /error/* {
		WITHIN
		error 404
	}
	handle /intercepted/* {
		intercept {
			handle_response {
				respond no
			}
		}
		route {
			WITHIN
		}
	}
	handle /intercepted-404/* {
		intercept {
			@404 status 404
			handle_response @404 {
				not_found /intercepted-404/inside
				error 404
			}
		}
		reverse_proxy APP
	}
	handle /inside/* {
		route {
			WITHIN
			not_found
			reverse_proxy APP
		}
	}
	handle /intercepted-tea/* {
		intercept {
			@tea status 418
			handle_response @tea {
				route {
					not_found
					WITHIN
				}
			}
		}
		respond 418
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
	s := startSite(t, site)
	for path, want := range map[string]struct {
		own      string // Link, and the policy if it is not the page's
		language string
		server   string
	}{
		"/error/x":                {own: "within", language: "within"},
		"/intercepted/x":          {own: "within", language: "within"},
		"/intercepted-tea/x":      {own: "within", language: "within"},
		"/inside/x":               {own: "within", language: "within"}, // which takes Server away
		"/proxied":                {server: "Caddy"},
		"/intercepted-404/x":      {server: "Caddy"},
		"/intercepted-404/inside": {own: "theirs", language: "theirs", server: "theirs"},
		"/removed/x":              {},
		"/changed/x":              {language: "fr", server: "Caddy"}, // header changes values in place
		"/sets/x":                 {own: "before", language: "before", server: "Caddy"},
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			res := s.Get(t, "http://a.test"+path, "Accept: text/html")
			policy := cmp.Or(want.own, testcaddy.PagePolicy(t, res.Content))
			res.WantHeader(t, "Content-Security-Policy", policy)
			res.WantHeader(t, "Content-Language", want.language)
			res.WantHeader(t, "Link", want.own)
			res.WantHeader(t, "Server", want.server)
		})
	}
}

// deferredSite is a site whose header directives wait until the header is sent, as people write them.
const deferredSite = `
	header {
		-Server
		X-Frame-Options DENY
		Cache-Control "public, max-age=604800"
	}
	header >Content-Type text/css
	header >Content-Encoding gzip
	header >Content-Disposition attachment
	header >ETag "theirs"
	header {
		match header Content-Type text/*
		CDN-Cache-Control max-age=60
		X-Text yes
	}
	header {
		match status 2xx 304
		X-Found yes
	}
	header /found/* >X-Stays yes
`

// TestPageHoldsAgainstADeferredHeader sends a page for each cause, also through another not_found. Its own fields are
// those of a site without such directives, and the site's other fields stay. What passes has them all.
func TestPageHoldsAgainstADeferredHeader(t *testing.T) {
	handlers := `
	error /error 404
	respond /response "theirs" 404
	route /found/json {
		header Content-Type application/json
		respond "theirs" 404
	}
	respond /found/html "found" 200
	handle /nested/* {
		not_found
	}
`
	s := testcaddy.Start(t, "http://alone.test:0 {\nnot_found\n"+handlers+"}\n"+
		"http://defer.test:0 {\nnot_found\n"+deferredSite+handlers+"}\n"+
		"http://dry.test:0 {\nnot_found {\ndry_run\n}\n"+deferredSite+handlers+"}\n"+
		"http://without.test:0 {\n"+deferredSite+handlers+"}\n")
	for _, path := range []string{"/unanswered", "/error", "/response", "/nested/x"} {
		for _, method := range []string{"GET", "HEAD"} {
			want := s.Do(t, method, "http://alone.test"+path, "Accept: text/html").Undated()
			want.Del("Server")
			want["X-Frame-Options"] = []string{"DENY"}
			want["X-Text"] = []string{"yes"}
			res := s.Do(t, method, "http://defer.test"+path, "Accept: text/html")
			if got := res.Undated(); !reflect.DeepEqual(got, want) || res.StatusCode != http.StatusNotFound {
				t.Errorf("%s %s: got the status %d and the header\n%v\nwant\n%v", method, path, res.StatusCode, got, want)
			}
		}
	}
	dry := s.Get(t, "http://dry.test/nested/x", "Accept: text/html")
	dry.WantHeader(t, "Cache-Control", "no-store")

	for _, path := range []string{"/found/html", "/found/json"} {
		want := s.Get(t, "http://without.test"+path)
		got := s.Get(t, "http://defer.test"+path)
		if got.StatusCode != want.StatusCode || !reflect.DeepEqual(got.Undated(), want.Undated()) {
			t.Errorf("%s: got the status %d and the header\n%v\nwant\n%v", path, got.StatusCode, got.Undated(), want.Undated())
		}
	}
}
