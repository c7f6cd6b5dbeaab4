package notfound

import (
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/caddyserver/caddy/v2"
)

func TestMessageNamesTheContextPath(t *testing.T) {
	t.Setenv("NOT_FOUND_TEST_PATH", "/env")
	s := startCaddy(t, `
http://app.test:0 {
	not_found {
		context_path /app
	}
	handle_path /strip/* {
		rewrite * /elsewhere
	}
	uri strip_prefix /prefix
}
http://slash.test:0 {
	not_found {
		context_path /app/
	}
}
http://root.test:0 {
	not_found {
		context_path /
	}
}
http://deep.test:0 {
	not_found {
		context_path /a/b%20c/~d
	}
}
http://env.test:0 {
	not_found {
		context_path {env.NOT_FOUND_TEST_PATH}/x
	}
}
http://request.test:0 {
	not_found {
		context_path {http.request.header.X-Path}
	}
}
http://unknown.test:0 {
	not_found {
		context_path /{unknown.placeholder}
	}
}`)
	for uri, contextPath := range map[string]string{
		"http://app.test/":             "/app",
		"http://app.test/app/x?y":      "/app",
		"http://app.test/strip/x?y":    "/app",
		"http://app.test/prefix/x?y":   "/app",
		"http://app.test/missing.html": "/app",
		"http://slash.test/x":          "/app",
		"http://root.test/x":           "",
		"http://deep.test/x":           "/a/b%20c/~d",
		"http://env.test/x":            "/env/x",
		"http://unknown.test/x":        "/%7Bunknown.placeholder%7D",
	} {
		s.get(t, uri).wantPage(t, "GET", uri, contextPath)
	}
	for value, contextPath := range map[string]string{
		"/app": "/app", "/app//": "/app", "": "", "/": "", "app": "/app", "/a b<c>?d": "/a%20b%3Cc%3E%3Fd", "/ü%zz": "/%C3%BC%25zz",
		"{http.request.host}": "/%7Bhttp.request.host%7D", // a value is not expanded again
	} {
		s.get(t, "http://request.test/x", "X-Path: "+value).wantPage(t, "GET", "http://request.test/x", contextPath)
	}
}

func TestFooter(t *testing.T) {
	t.Setenv("NOT_FOUND_TEST_FOOTER", "from the environment")
	s := startCaddy(t, `
http://default.test:0 {
	not_found
}
http://own.test:0 {
	not_found {
		footer "  Powered by   <us> & you, 2026 "
	}
}
http://env.test:0 {
	not_found {
		footer {env.NOT_FOUND_TEST_FOOTER}
	}
}
http://request.test:0 {
	not_found {
		footer "{http.request.header.X-Footer}"
	}
}
http://unknown.test:0 {
	not_found {
		footer "{unknown} and \{http.request.host\}"
	}
}
http://time.test:0 {
	not_found {
		footer "{time.now.unix_ms}"
	}
}`)
	last := func(res response) string {
		t.Helper()
		lines := strings.Split(strings.TrimSuffix(res.body, "\n"), "\n")
		if len(lines) != 5 {
			t.Errorf("got %d lines:\n%s", len(lines), res.body)
		}
		return lines[len(lines)-1]
	}
	version, _ := caddy.Version()
	for host, want := range map[string]string{
		"default": "Powered by Caddy " + version,
		"own":     "Powered by <us> & you, 2026",
		"env":     "from the environment",
		"unknown": "{unknown} and {http.request.host}",
	} {
		if got := last(s.get(t, "http://"+host+".test/x")); got != want {
			t.Errorf("%s: got the footer %q, want %q", host, got, want)
		}
	}

	// what a client sends stays one line of text, and never leaves the page without its last line
	for value, want := range map[string]string{
		"Me":                  "Me",
		"":                    "Powered by Caddy " + version,
		"\t":                  "Powered by Caddy " + version,
		"a\tb  c":             "a b c",
		"\xff\xfe":            "\uFFFD",
		"a\u2028b\u0085c":     "a b c",
		"<script>":            "<script>",
		"{http.request.uuid}": "{http.request.uuid}",
	} {
		res := s.get(t, "http://request.test/x", "X-Footer: "+value)
		if got := last(res); got != want {
			t.Errorf("%q: got the footer %q, want %q", value, got, want)
		}
		if !utf8.ValidString(res.body) {
			t.Errorf("%q: the page is not UTF-8", value)
		}
		for _, accept := range []string{"text/html", "application/json", "application/xml"} {
			if got := fieldsOf(t, s.get(t, "http://request.test/x", "X-Footer: "+value, "Accept: "+accept)).Footer; got != want {
				t.Errorf("%q as %s: got the footer %q, want %q", value, accept, got, want)
			}
		}
	}

	// the time is that of the request, not of the config
	first := last(s.get(t, "http://time.test/x"))
	for last(s.get(t, "http://time.test/x")) == first {
	}
}

// TestMethodThatIsNoToken covers HTTP/2, which allows bytes in a method that HTTP/1.1 does not.
func TestMethodThatIsNoToken(t *testing.T) {
	o := &pageOptions{footer: expandable{value: "x"}}
	r, err := http.NewRequest("GET", "http://a.test/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Method, r.RequestURI = "A <b>\"\xff\u2028", "/"
	p := o.newPage(&clientRequest{Request: r, host: "a.test"})
	if got, want := string(p.message), "No endpoint A%20%3Cb%3E%22%FF%E2%80%A8 /missing.html."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
