package integration

import (
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestBaseURL sends every form of a request target, through a trusted proxy that names another host.
func TestBaseURL(t *testing.T) {
	s := testcaddy.Start(t, "http://:0 {\nnot_found {\nbase_url https://www.example.com/app/\n}\n}", "servers {\ntrusted_proxies static 127.0.0.0/8\n}")
	for request, want := range map[string]string{
		"GET /x?y HTTP/1.1\r\nHost: a.test":                             "/x?y",
		"GET https://me:secret@evil.example?y HTTP/1.1\r\nHost: a.test": "?y",
		"GET urn:x?y=http://evil.example HTTP/1.1\r\nHost: a.test":      "/x?y=http://evil.example",
		"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443":   "",
		"GET * HTTP/1.1\r\nHost: a.test":                                "",
	} {
		method, _, _ := strings.Cut(request, " ")
		s.Raw(t, method, request+"\r\nX-Forwarded-Host: other.test\r\nConnection: close\r\n\r\n").
			WantPage(t, method, "https://www.example.com/app"+want, "")
	}
}

// TestURI has the page asked for at an address of its own, as another proxy does, where what is behind not_found changes
// all that the option is made of.
func TestURI(t *testing.T) {
	const query, header = "uri {http.request.uri.query.url}", "uri {http.request.header.X-Original-URI}"
	s := testcaddy.Start(t, `
http://query.test:0 {
	not_found {
		`+query+`
	}
	rewrite * /rewritten?url=/wrong
	respond /rewritten 404
}
http://header.test:0 {
	not_found {
		`+header+`
	}
	request_header X-Original-URI /wrong
	reverse_proxy `+testcaddy.Backend(t, testcaddy.MissingPage)+`
}
http://proxies.test:0 {
	@proxies remote_ip 192.0.2.0/24
	not_found @proxies {
		`+header+`
	}
	not_found
}
http://errors.test:0 {
	rewrite * /rewritten?url=/wrong
	error 404
	handle_errors {
		not_found {
			`+query+`
		}
	}
}`, "servers {\ntrusted_proxies static 127.0.0.0/8\n}")

	for value, want := range map[string]string{
		"/docs/nothing?x=1": "https://HOST/docs/nothing?x=1",
		"//evil.example/x":  "https://HOST//evil.example/x",
		"/{{.}}?<b>&%zz":    "https://HOST/%7B%7B.%7D%7D?%3Cb%3E&%25zz",
		"HTTPS://me:secret@shop.example:8443/x@y?z@#me": "HTTPS://shop.example:8443/x@y?z@",
		// anything else is not believed, and what the client asked for is on the page
		"":                        "https://HOST/404?url=",
		"ftp://evil.example/x":    "https://HOST/404?url=ftp%3A%2F%2Fevil.example%2Fx",
		"http://evil%2eexample/x": "https://HOST/404?url=http%3A%2F%2Fevil%252eexample%2Fx",
		"javascript:alert(1)//":   "https://HOST/404?url=javascript%3Aalert%281%29%2F%2F",
	} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			for _, host := range []string{"query.test", "header.test", "errors.test"} {
				res := s.Do(t, "POST", "http://"+host+"/404?url="+url.QueryEscape(value), "X-Original-URI: "+value, "X-Forwarded-Proto: https")
				res.WantPage(t, "POST", strings.Replace(want, "HOST", host, 1), "")
			}
		})
	}
	s.Get(t, "http://query.test/404?url=/a+%0D%0Ab%252F").WantPage(t, "GET", "http://query.test/a%20%0D%0Ab%2F", "")
	s.Get(t, "http://proxies.test/404", "X-Original-URI: /x").WantPage(t, "GET", "http://proxies.test/404", "")
}

// TestReportHasTheURI counts pages and a 404 response that passes, at addresses that the option uri says.
func TestReportHasTheURI(t *testing.T) {
	backend := testcaddy.Backend(t, testcaddy.MissingPage)
	s := startReporting(t, "http://a.test:0 {\nnot_found {\nreport\nuri {http.request.uri.query.url}\n}\nrewrite * /rewritten?url=/wrong\nreverse_proxy "+backend+"\n}\n"+
		"http://passing.test:0 {\nnot_found {\nreport\nreplace none\nuri https://{http.request.header.X-Host}/a{http.request.header.X-Original-URI}\n}\n"+
		"request_header X-Original-URI /wrong\nreverse_proxy "+backend+"\n}")
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
		"own": "  Nothing by   <us> & you, 2026 ", "unknown": `{unknown} and \{http.request.host\}`, "request": "{http.request.header.X-Line}",
	} {
		sites += "http://" + host + ".test:0 {\nnot_found {\nmessage \"" + value + "\"\nfooter \"" + value + "\"\n}\n}\n"
	}
	s := testcaddy.Start(t, sites)
	for request, want := range map[string][2]string{
		"own":                     {"Nothing by <us> & you, 2026", "Nothing by <us> & you, 2026"},
		"unknown":                 {"{unknown} and {http.request.host}", "{unknown} and {http.request.host}"},
		"request \t":              {"No endpoint GET /missing.html.", testcaddy.Footer()},
		"request a\tb  \xff<b>{{": {"a b \uFFFD<b>{{", "a b \uFFFD<b>{{"},
	} {
		host, line, _ := strings.Cut(request, " ")
		for _, f := range testcaddy.Formats {
			got := testcaddy.FieldsOf(t, s.Get(t, "http://"+host+".test/x", "X-Line: "+line, "Accept: "+f.MediaType))
			if got.Message != want[0] || got.Footer != want[1] && f.Name != "problem" { // which has none
				t.Errorf("%q as %s: got the message %q and the footer %q, want %q", request, f.Name, got.Message, got.Footer, want)
			}
		}
	}
}

// TestTemplate renders a template with every field, and with placeholders in each place where HTML is escaped in its
// own way.
func TestTemplate(t *testing.T) {
	file := testcaddy.TempFile(t, "404.html", `<h1 title="{{.URI}}">{{.Heading}}</h1><a href="{{.URI}}">{{.URI}}</a><p>{{.Status}} {{.Message}} {{.Footer}}`+
		`<p>{{.Placeholder "http.request.header.X-Name"}}<script>var x = {{.Placeholder "http.request.header.X-Name"}}</script>`)
	s := testcaddy.Start(t, "http://a.test:0 {\nnot_found {\ntemplate "+file+"\ncontext_path /app\n}\n}")
	const name = `<b>"'& {{.URI}}`
	res := s.Get(t, "http://a.test/x?y&z", "Accept: text/html", "X-Name: "+name)
	res.WantHeader(t, "Content-Type", "text/html; charset=utf-8")
	res.WantHeader(t, "Content-Security-Policy", "")
	res.WantHeader(t, "Content-Length", strconv.Itoa(len(res.Content)))
	want := `<h1 title="http://a.test/x?y&amp;z">HTTP ERROR 404 No endpoint GET /app/missing.html.</h1>` +
		`<a href="http://a.test/x?y&amp;z">http://a.test/x?y&amp;z</a><p>404 No endpoint GET /app/missing.html. ` + testcaddy.Footer() +
		"<p>" + template.HTMLEscapeString(name) + "<script>"
	if !strings.HasPrefix(res.Content, want) || strings.Contains(res.Content, "<b>") {
		t.Errorf("got\n%s\nwant\n%s", res.Content, want)
	}
	// the other representations do not use it
	s.Get(t, "http://a.test/x").WantPage(t, "GET", "http://a.test/x", "/app")
}

// TestTemplateThatFailsYieldsBuiltInPage has a template fail for one request, after it has rendered half of the page.
func TestTemplateThatFailsYieldsBuiltInPage(t *testing.T) {
	file := testcaddy.TempFile(t, "404.html", `<p>half a page {{if eq (.Placeholder "http.request.header.X-Fail") "yes"}}{{index .URI 99999}}{{end}}`)
	s := testcaddy.Start(t, "http://a.test:0 {\nnot_found {\ntemplate "+file+"\n}\n}")
	res := s.Get(t, "http://a.test/x?y", "Accept: text/html", "X-Fail: yes")
	if got := testcaddy.FieldsOf(t, res); got.URI != "http://a.test/x?y" || got.Footer != testcaddy.Footer() {
		t.Errorf("got %+v", got)
	}
	res.WantHeader(t, "Content-Security-Policy", testcaddy.StylePolicy(t, res.Content))
	s.Get(t, "http://a.test/x", "Accept: text/html").Want(t, http.StatusNotFound, "<p>half a page ")

	s.Logs.WaitFor(t, "wrote the 404 page", 2)
	entries := s.Logs.WaitFor(t, "rendering the template; sending the built-in page instead", 1)
	if e := entries[0]; len(entries) != 1 || e["level"] != "error" || e["template"] != file || !strings.Contains(e["error"].(string), "99999") {
		t.Errorf("got the log entries %v", entries)
	}
}

// TestEditedTemplateIsShown breaks a template while Caddy runs, and corrects it.
func TestEditedTemplateIsShown(t *testing.T) {
	file := testcaddy.TempFile(t, "404.html", "<p>one")
	s := testcaddy.Start(t, "http://a.test:0 {\nnot_found {\ntemplate "+file+"\n}\n}")
	for _, edit := range []struct{ content, page, logged string }{
		{"<p>{{.URL}}", "<p>one", "reading the changed template; the last good one stays in use"},
		{"<p>two", "<p>two", "wrote the 404 page"},
	} {
		if err := os.WriteFile(file, []byte(edit.content), 0o600); err != nil {
			t.Fatal(err)
		}
		eventually(t, edit.content+" is shown, or logged", func() bool {
			page := s.Get(t, "http://a.test/x", "Accept: text/html").Content
			logged := s.Logs.Select(t, func(e testcaddy.Entry) bool { return e["msg"] == edit.logged })
			return page == edit.page && len(logged) > 0
		})
	}
}
