package integration

import (
	"html/template"
	"maps"
	"net/url"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestMessageNamesTheContextPath asks for addresses within the context path, outside of it and rewritten.
func TestMessageNamesTheContextPath(t *testing.T) {
	s := testcaddy.Start(t, `
http://app.test:0 {
	not_found {
		context_path /app
	}
	handle_path /strip/* {
		rewrite * /elsewhere
	}
}
http://request.test:0 {
	not_found {
		context_path {http.request.header.X-Path}
	}
}`)
	for _, uri := range []string{"http://app.test/", "http://app.test/app/x?y", "http://app.test/strip/x?y", "http://app.test/missing.html"} {
		s.Get(t, uri).WantPage(t, "GET", uri, "/app")
	}
	for value, contextPath := range map[string]string{"/app//": "/app", "/": "", "app": "/app", "/a b<c>?d": "/a%20b%3Cc%3E%3Fd", "/ü%zz": "/%C3%BC%25zz"} {
		s.Get(t, "http://request.test/x", "X-Path: "+value).WantPage(t, "GET", "http://request.test/x", contextPath)
	}
}

// TestBaseURL sends every form of a request target, through a trusted proxy that names another host.
func TestBaseURL(t *testing.T) {
	s := testcaddy.Start(t, `
http://:0 {
	not_found {
		base_url https://www.example.com/app/
	}
}
http://request.test:0 {
	not_found {
		base_url {http.request.header.X-Base}
	}
}`, "servers {\ntrusted_proxies static 127.0.0.0/8\n}")
	forwarded := "X-Forwarded-Host: other.test"
	s.Get(t, "http://a.test/x?y", forwarded).WantPage(t, "GET", "https://www.example.com/app/x?y", "")
	for target, want := range map[string]string{
		"GET http://evil.example/x?y":       "https://www.example.com/app/x?y",
		"GET http://me:secret@evil.example": "https://www.example.com/app",
		"GET https://evil.example?y":        "https://www.example.com/app?y",
		"GET urn:x?y=http://evil.example":   "https://www.example.com/app/x?y=http://evil.example",
		"CONNECT evil.example:443":          "https://www.example.com/app",
		"GET *":                             "https://www.example.com/app",
	} {
		method, _, _ := strings.Cut(target, " ")
		host := "a.test"
		if method == "CONNECT" {
			host = "evil.example:443"
		}
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			s.Raw(t, method, target+" HTTP/1.1\r\nHost: "+host+"\r\n"+forwarded+"\r\nConnection: close\r\n\r\n").WantPage(t, method, want, "")
		})
	}
	for base, want := range map[string]string{
		"https://b.test/":   "https://b.test/x",
		"":                  "http://request.test/x",
		"ftp://b.test":      "http://request.test/x",
		"https://me@b.test": "http://request.test/x",
	} {
		t.Run("from a header field: "+base, func(t *testing.T) {
			t.Parallel()
			s.Get(t, "http://request.test/x", "X-Base: "+base).WantPage(t, "GET", want, "")
		})
	}
}

// TestURI has the page asked for at an address of its own, as another proxy does, where what is behind not_found changes
// all that the option is made of.
func TestURI(t *testing.T) {
	t.Setenv("NOT_FOUND_TEST_PAGE", "page")
	s := testcaddy.Start(t, strings.ReplaceAll(`
http://query.test:0 {
	not_found {
		uri {http.request.uri.query.url}
	}
	rewrite * /rewritten?url=/wrong
	respond /rewritten 404
}
http://header.test:0 {
	not_found {
		uri {http.request.header.X-Original-URI}
	}
	request_header X-Original-URI /wrong
	reverse_proxy BACKEND
}
http://based.test:0 {
	not_found {
		base_url https://www.example.com/app/
		uri {http.request.header.X-Original-URI}
	}
}
http://literal.test:0 {
	not_found {
		uri /gone/{env.NOT_FOUND_TEST_PAGE}?x
	}
}
http://proxies.test:0 {
	@proxies remote_ip 192.0.2.0/24
	not_found @proxies {
		uri {http.request.header.X-Original-URI}
	}
	not_found
}
http://errors.test:0 {
	rewrite * /rewritten?url=/wrong
	error 404
	handle_errors {
		not_found {
			uri {http.request.uri.query.url}
		}
	}
}`, "BACKEND", testcaddy.Backend(t, testcaddy.MissingPage)), "servers {\ntrusted_proxies static 127.0.0.0/8\n}")

	for value, want := range map[string]struct{ own, based string }{
		"/docs/nothing?x=1":  {"https://header.test/docs/nothing?x=1", "/docs/nothing?x=1"},
		"/x?y#z":             {"https://header.test/x?y", "/x?y"},
		"//evil.example/x":   {"https://header.test//evil.example/x", "//evil.example/x"},
		`/\evil.example/x`:   {"https://header.test/%5Cevil.example/x", "/%5Cevil.example/x"},
		"/{{.}}?<b>&%zz&%C3": {"https://header.test/%7B%7B.%7D%7D?%3Cb%3E&%25zz&%C3", "/%7B%7B.%7D%7D?%3Cb%3E&%25zz&%C3"},

		"http://shop.example/a%20b?x":                   {"http://shop.example/a%20b?x", "/a%20b?x"},
		"HTTPS://me:secret@shop.example:8443/x@y?z@#me": {"HTTPS://shop.example:8443/x@y?z@", "/x@y?z@"},
		"https://shop.example?x":                        {"https://shop.example?x", "?x"},
	} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			fields := []string{"X-Original-URI: " + value, "X-Forwarded-Proto: https"}
			s.Get(t, "http://header.test/404?x=y", fields...).WantPage(t, "GET", want.own, "")
			s.Do(t, "POST", "http://based.test/404?x=y", fields...).WantPage(t, "POST", "https://www.example.com/app"+want.based, "")
			query := s.Get(t, "http://query.test/404?url="+url.QueryEscape(value), fields[1])
			query.WantPage(t, "GET", strings.Replace(want.own, "https://header.test", "https://query.test", 1), "")
		})
	}

	// anything else is not believed, and what the client asked for is on the page
	for _, value := range []string{
		"", "?x", "*", "www.example.com/x", "ftp://evil.example/x", "javascript:alert(1)//", "http:/evil.example/x", `http:\\evil.example\x`, "http://", "http://me@/x",
		"http://:80/x", "http://evil.example:x/", "http://evil%2eexample/x", `http://evil\example/x`, "http://[127.0.0.1]/", "x, http://evil.example/",
	} {
		t.Run("not believed: "+value, func(t *testing.T) {
			t.Parallel()
			s.Get(t, "http://header.test/404?x=y", "X-Original-URI: "+value).WantPage(t, "GET", "http://header.test/404?x=y", "")
			s.Get(t, "http://based.test/404?x=y", "X-Original-URI: "+value).WantPage(t, "GET", "https://www.example.com/app/404?x=y", "")
			target := "/404?url=" + url.QueryEscape(value)
			s.Get(t, "http://query.test"+target).WantPage(t, "GET", "http://query.test"+target, "")
		})
	}
	t.Run("other cases", func(t *testing.T) {
		t.Parallel()
		s.Get(t, "http://query.test/404?x").WantPage(t, "GET", "http://query.test/404?x", "")
		s.Get(t, "http://query.test/404?url=/a+%0D%0Ab%252F").WantPage(t, "GET", "http://query.test/a%20%0D%0Ab%2F", "")
		s.Get(t, "http://literal.test/404").WantPage(t, "GET", "http://literal.test/gone/page?x", "")
		s.Get(t, "http://errors.test/404?url=/x").WantPage(t, "GET", "http://errors.test/x", "")
		s.Get(t, "http://proxies.test/404", "X-Original-URI: /x").WantPage(t, "GET", "http://proxies.test/404", "")
	})
}

// TestReportHasTheURI counts pages and a 404 response that passes, at addresses that the option uri says.
func TestReportHasTheURI(t *testing.T) {
	s := startReporting(t, strings.ReplaceAll(`
http://a.test:0 {
	not_found {
		uri {http.request.uri.query.url}
		report
	}
	rewrite * /rewritten?url=/wrong
	reverse_proxy BACKEND
}
http://passing.test:0 {
	not_found {
		uri https://{http.request.header.X-Host}/a{http.request.header.X-Original-URI}
		replace none
		report
	}
	request_header X-Original-URI /wrong
	reverse_proxy BACKEND
}`, "BACKEND", testcaddy.Backend(t, testcaddy.MissingPage)))
	s.miss(t, "GET", "http://a.test/404?url=https%3A%2F%2Fme%40shop.test%2Fa%2520b%3Fx%23y")
	s.miss(t, "GET", "http://a.test/404?url=/nothing")
	s.miss(t, "GET", "http://a.test/404")
	s.miss(t, "GET", "http://passing.test/404", "X-Host: shop.test", "X-Original-URI: %20b?z")
	counts := make(map[string]uint64)
	for _, a := range s.report(t, "").Addresses {
		counts[a.Host+a.Path] = a.Count
	}
	if want := map[string]uint64{"shop.test/a%20b": 2, "a.test/nothing": 1, "a.test/404": 1}; !maps.Equal(counts, want) {
		t.Errorf("got %v, want %v", counts, want)
	}
}

// TestMessageAndFooter has lines of text that are set in every way, and what a client sends in one of them.
func TestMessageAndFooter(t *testing.T) {
	sites := ""
	for host, value := range map[string]string{
		"own": "  Nothing by   <us> & you, 2026 ", "unknown": `{unknown} and \{http.request.host\}`,
		"request": "{http.request.header.X-Line}", "time": "{time.now.unix_ms}",
	} {
		sites += "http://" + host + ".test:0 {\nnot_found {\nmessage \"" + value + "\"\nfooter \"" + value + "\"\n}\n}\n"
	}
	s := testcaddy.Start(t, sites+"http://default.test:0 {\nnot_found\n}")
	const message = "No endpoint GET /missing.html."
	wants := func(t *testing.T, host, message, footer string, fields ...string) {
		t.Helper()
		for _, f := range testcaddy.Formats {
			res := s.Get(t, "http://"+host+".test/x", append(fields, "Accept: "+f.MediaType)...)
			if !utf8.ValidString(res.Content) {
				t.Errorf("%s is not UTF-8", f.Name)
			}
			got := testcaddy.FieldsOf(t, res)
			if got.Message != message || got.Footer != footer && f.Name != "problem" { // which has none
				t.Errorf("%s: got the message %q and the footer %q, want %q and %q", f.Name, got.Message, got.Footer, message, footer)
			}
		}
	}
	wants(t, "default", message, testcaddy.Footer())
	wants(t, "own", "Nothing by <us> & you, 2026", "Nothing by <us> & you, 2026")
	wants(t, "unknown", "{unknown} and {http.request.host}", "{unknown} and {http.request.host}")

	// what a client sends stays one line of text, and never leaves the page without a message or its last line
	for value, want := range map[string]string{
		"": "", "\t": "", "a\tb  c": "a b c", "\xff\xfe": "\uFFFD", "a\u2028b\u0085c": "a b c", "<script>": "<script>",
	} {
		t.Run("from a header field: "+value, func(t *testing.T) {
			t.Parallel()
			if want == "" {
				wants(t, "request", message, testcaddy.Footer(), "X-Line: "+value)
			} else {
				wants(t, "request", want, want, "X-Line: "+value)
			}
		})
	}

	// the time is that of the request, not of the config
	now := func() string { return testcaddy.FieldsOf(t, s.Get(t, "http://time.test/x")).Message }
	for first := now(); now() == first; {
	}
}

// TestTemplate renders a template with every field, and with placeholders in each place where HTML is escaped in its
// own way.
func TestTemplate(t *testing.T) {
	file := testcaddy.TempFile(t, "404.html", `<h1 title="{{.URI}}">{{.Heading}}</h1><a href="{{.URI}}">{{.URI}}</a><p>{{.Status}} {{.Message}} {{.Footer}}`+
		`<p id="{{.Placeholder "http.request.uuid"}}">{{.Placeholder "http.request.header.X-Name"}}{{.Placeholder "unknown"}}<script>var x = {{.Placeholder "http.request.header.X-Name"}}</script>`)
	s := testcaddy.Start(t, `
http://a.test:0 {
	not_found {
		template `+file+`
		context_path /app
	}
}`)
	const name = `<b>"'& {{.URI}}`
	res := s.Get(t, "http://a.test/x?y&z", "Accept: text/html", "X-Name: "+name)
	res.WantHeader(t, "Content-Type", "text/html; charset=utf-8")
	res.WantHeader(t, "Content-Security-Policy", "")
	if res.ContentLength != int64(len(res.Content)) {
		t.Errorf("got Content-Length %d for %d bytes", res.ContentLength, len(res.Content))
	}
	for _, want := range []string{
		`<h1 title="http://a.test/x?y&amp;z">HTTP ERROR 404 No endpoint GET /app/missing.html.</h1>`,
		`<a href="http://a.test/x?y&amp;z">http://a.test/x?y&amp;z</a>`,
		`<p>404 No endpoint GET /app/missing.html. ` + testcaddy.Footer(),
		template.HTMLEscapeString(name) + "<script>",
	} {
		if !strings.Contains(res.Content, want) {
			t.Errorf("%s is not in\n%s", want, res.Content)
		}
	}
	if strings.Contains(res.Content, "<b>") {
		t.Errorf("a placeholder is not escaped in\n%s", res.Content)
	}

	// the other representations do not use it
	s.Get(t, "http://a.test/x").WantPage(t, "GET", "http://a.test/x", "/app")
}

// TestTemplateThatFailsYieldsBuiltInPage has a template fail for one request, after it has rendered half of the page.
func TestTemplateThatFailsYieldsBuiltInPage(t *testing.T) {
	file := testcaddy.TempFile(t, "404.html", `<p>half a page {{if eq (.Placeholder "http.request.header.X-Fail") "yes"}}{{index .URI 99999}}{{end}}`)
	s := testcaddy.Start(t, "http://a.test:0 {\nnot_found {\ntemplate "+file+"\n}\n}")

	if res := s.Get(t, "http://a.test/x", "Accept: text/html"); res.Content != "<p>half a page " {
		t.Errorf("the template renders %q", res.Content)
	}

	res := s.Get(t, "http://a.test/x?y", "Accept: text/html", "X-Fail: yes")
	if got := testcaddy.FieldsOf(t, res); got.URI != "http://a.test/x?y" || got.Footer != testcaddy.Footer() {
		t.Errorf("got %+v", got)
	}
	res.WantHeader(t, "Content-Security-Policy", testcaddy.StylePolicy(t, res.Content))
	if res := s.Get(t, "http://a.test/x", "Accept: text/html"); res.Content != "<p>half a page " {
		t.Errorf("after a failure, the template renders %q", res.Content)
	}

	s.Logs.WaitFor(t, "wrote the 404 page", 3)
	entries := s.Logs.WaitFor(t, "rendering the template; sending the built-in page instead", 1)
	if len(entries) != 1 {
		t.Fatalf("got %d log entries, want 1", len(entries))
	}
	if entry := entries[0]; entry["level"] != "error" || entry["template"] != file || !strings.Contains(entry["error"].(string), "99999") {
		t.Errorf("got the log entry %v", entry)
	}
}

// TestEditedTemplateIsShown edits a template while Caddy runs, breaks it and corrects it.
func TestEditedTemplateIsShown(t *testing.T) {
	file := testcaddy.TempFile(t, "404.html", "<p>one")
	s := testcaddy.Start(t, "http://a.test:0 {\nnot_found {\ntemplate "+file+"\n}\n}")
	shows := func(content string) bool { return s.Get(t, "http://a.test/x", "Accept: text/html").Content == content }
	if !shows("<p>one") {
		t.Error("the page is not the template")
	}
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const broken = "reading the changed template; the last good one stays in use"
	write("<p>{{.URL}}")
	var logged []testcaddy.Entry
	eventually(t, "the log says so", func() bool {
		if !shows("<p>one") {
			t.Error("the last good template is not in use")
		}
		logged = s.Logs.Select(t, func(e testcaddy.Entry) bool { return e["msg"] == broken })
		return len(logged) > 0
	})
	if e := logged[0]; e["level"] != "error" || e["template"] != file || !strings.Contains(e["error"].(string), "field URL") {
		t.Errorf("got the log entry %v", e)
	}
	write("<p>two")
	eventually(t, "the page is the corrected template", func() bool { return shows("<p>two") })
}
