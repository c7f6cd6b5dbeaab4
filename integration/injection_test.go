package integration

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/net/html"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestHostileRequestGetsAPageLikeAnyOther sends what would harm a careless page, in every part of a request that a page
// can show, and compares the page with that for a harmless request.
func TestHostileRequestGetsAPageLikeAnyOther(t *testing.T) {
	file := testcaddy.TempFile(t, "404.html", `<!DOCTYPE html><title>{{.Heading}}</title><h1 title="{{.Placeholder "http.request.uri.query.x"}}">HTTP ERROR {{.Status}} {{.Message}}</h1>`+
		`<p>URI: <a href="{{.URI}}">{{.URI}}</a><p>STATUS: {{.Status}}<p>MESSAGE: {{.Message}}<p>{{.Placeholder "http.request.uri.query.x"}} {{.Footer}}`)
	fed := func(placeholder, template string) string {
		return "not_found {\ncontext_path {" + placeholder + "}\nbase_url {" + placeholder + "}\nuri {" + placeholder + "}\nfooter \"{" + placeholder + "}\"\n" + template + "\n}"
	}
	s := testcaddy.Start(t, `
http://:0 {
	not_found
}
http://query.test:0 {
	`+fed("http.request.uri.query.x", "")+`
}
http://header.test:0 {
	`+fed("http.request.header.X-Evil", "")+`
}
http://message.test:0 {
	not_found {
		message {http.request.uri.query.x}
	}
}
http://template.test:0 {
	`+fed("http.request.uri.query.x", "template "+file)+`
}`)

	type request struct{ method, target, host, fields string }
	requests := []request{
		{"GET", "javascript://a.test/%0aalert(1)", "a.test", ""}, {"GET", "javascript:alert(1)", "a.test", ""}, {"GET", "data:text/html,<b>", "a.test", ""},
		{"GET", "javascript:alert(1)", "template.test", ""},
		{"&LT&AMP'#|`", "/x", "a.test", ""}, {"</SCRIPT>", "/x", "a.test", ""},
		{"GET", "/x", "a&lt'b;c=d", ""}, {"GET", "/x", "'onload='alert(1)'", ""}, {"GET", "/x", "javascript:alert(1)", ""}, {"GET", "/x", "%22%3e%3cb%3e", ""},
		{"GET", "/x", "[::1]<b>", ""},
	}
	for target := range hostileTargets {
		requests = append(requests, request{"GET", target, "a.test", ""})
	}
	for _, text := range hostileTexts {
		query := url.QueryEscape(text)
		requests = append(requests,
			request{"GET", "/x?x=" + query, "query.test", ""}, request{"GET", "/x?x=" + query, "message.test", ""}, request{"GET", "/x?x=" + query, "template.test", ""}, request{"GET", "/" + query, "a.test", ""})
		if !strings.ContainsFunc(text, isControl) {
			requests = append(requests, request{"GET", "/x", "header.test", "X-Evil: " + text + "\r\n"})
		}
	}
	// net/http refuses these: a method is a token, and a Host has no markup
	refused := map[string]bool{"</SCRIPT>": true, "[::1]<b>": true}

	for _, f := range testcaddy.Formats {
		send := func(t *testing.T, r request) testcaddy.Response {
			return s.Only(t, r.method, r.method+" "+r.target+" HTTP/1.1\r\nHost: "+r.host+"\r\n"+r.fields+"Accept: "+f.MediaType+"\r\nConnection: close\r\n\r\n")
		}
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			harmless, ownTemplate := send(t, request{"GET", "/x", "a.test", ""}), send(t, request{"GET", "/x?x=/x", "template.test", ""})
			for _, r := range requests {
				res := send(t, r)
				switch {
				case refused[r.method] || refused[r.host]:
					if res.StatusCode != http.StatusBadRequest || strings.Contains(res.Content, "<") {
						t.Errorf("got %d %q", res.StatusCode, res.Content)
					}
				case r.host == "template.test":
					wantLikeHarmless(t, f, res, ownTemplate)
				default:
					wantLikeHarmless(t, f, res, harmless)
				}
				if t.Failed() {
					t.Fatalf("at %q", r)
				}
			}
		})
	}
}

// TestNothingThatAClientSendsIsExecuted has Caddy's templates directive before the page and after it, and sends template
// actions and placeholders in every part of a request that a page can show.
func TestNothingThatAClientSendsIsExecuted(t *testing.T) {
	const secret = "a-secret-of-the-server"
	t.Setenv("NOT_FOUND_TEST_SECRET", secret)
	root := filepath.Dir(testcaddy.TempFile(t, "secret.txt", secret))
	file := testcaddy.TempFile(t, "404.html", `<p>{{.Placeholder "http.request.header.X-Evil"}}<p>{{.URI}} {{.Message}} {{.Footer}}`)
	replacer := strings.NewReplacer(
		"FED", `{
			context_path "/{http.request.header.X-Evil}{http.request.uri.query.x}"
			base_url "http://a.test/{http.request.header.X-Evil}"
			uri "/{http.request.header.X-Evil}?{http.request.uri.query.x}"
			footer "{http.request.header.X-Evil} {http.request.uri.query.x}"
		}`,
		"TEMPLATES", "templates {\nroot "+root+"\n}", "APP", testcaddy.Backend(t, testcaddy.MissingPage), "FILE", file)
	sites := map[string]struct {
		site string
		fed  bool // the footer is the client's
	}{
		"default order":           {"TEMPLATES\nnot_found FED", true},
		"default order, proxied":  {"TEMPLATES\nnot_found FED\nreverse_proxy APP", true},
		"route":                   {"route {\nnot_found FED\nTEMPLATES\n}", true},
		"in handle_errors":        {"error 404\nhandle_errors {\nTEMPLATES\nnot_found FED\n}", true},
		"a template of one's own": {"TEMPLATES\nnot_found {\ntemplate FILE\nfooter \"{http.request.header.X-Evil} {http.request.uri.query.x}\"\n}", true},
		"a message of one's own":  {"TEMPLATES\nnot_found {\nmessage \"{http.request.header.X-Evil} {http.request.uri.query.x}\"\nfooter \"{http.request.header.X-Evil} {http.request.uri.query.x}\"\n}", true},

		// Where templates executes the page, it finds nothing: the address and the message have no braces, and the rest
		// does not come from a client.
		"after templates":                      {"route {\nTEMPLATES\nnot_found\n}", false},
		"after templates, error":               {"route {\nTEMPLATES\nnot_found\nerror 404\n}", false},
		"after templates, in a handle block":   {"TEMPLATES\nhandle {\nnot_found\n}", false},
		"after templates, with a URI":          {"route {\nTEMPLATES\nnot_found {\nuri \"/{http.request.header.X-Evil}?{http.request.uri.query.x}\"\n}\n}", false},
		"after templates, in handle_errors":    {"error 404\nhandle_errors {\nroute {\nTEMPLATES\nnot_found\n}\n}", false},
		"after templates, in a response route": {"TEMPLATES\nreverse_proxy APP {\n@missing status 404\nhandle_response @missing {\nnot_found\n}\n}", false},
	}
	// the README warns of these
	unsafe := map[string]string{
		"after templates in a route":          "route {\nTEMPLATES\nnot_found FED\n}",
		"in a block of a site with templates": "TEMPLATES\nhandle {\nnot_found FED\n}",
	}
	all := make(map[string]string)
	for name, tt := range sites {
		all[name] = tt.site
	}
	maps.Copy(all, unsafe)
	for name, site := range all {
		all[name] = "vars secret " + secret + "\n" + replacer.Replace(site)
	}
	s, hosts := testcaddy.StartSites(t, "", all)

	texts := []string{
		`{{env "NOT_FOUND_TEST_SECRET"}}`, `{{include "secret.txt"}}`, `{{.Req.Header}}`, `{{/*`, `{{placeholder "env.NOT_FOUND_TEST_SECRET"}}`, `{{.Placeholder "env.NOT_FOUND_TEST_SECRET"}}`,
		`{env.NOT_FOUND_TEST_SECRET}`, `{$NOT_FOUND_TEST_SECRET}`, `{http.vars.secret}`, `{file.` + root + `/secret.txt}`,
		`{http.request.header.X-Secret}`, `\{env.NOT_FOUND_TEST_SECRET\}`, `{{placeholder "http.request.header.X-Secret"}}`,
	}
	send := func(t *testing.T, name, text, accept string) testcaddy.Response {
		target := "/" + strings.ReplaceAll(text, " ", "%20") + "/" + url.PathEscape(text) + "?" + strings.ReplaceAll(text, " ", "+") + "&x=" + url.QueryEscape(text)
		return s.Only(t, "GET", "GET "+target+" HTTP/1.1\r\nHost: "+hosts[name]+"\r\nX-Evil: "+text+"\r\nX-Secret: "+secret+
			"\r\nAccept: "+accept+"\r\nConnection: close\r\n\r\n")
	}
	for name, tt := range sites {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, text := range texts {
				for _, f := range testcaddy.Formats {
					res := send(t, name, text, f.MediaType)
					if res.StatusCode != http.StatusNotFound || strings.Contains(fmt.Sprint(res.Header, res.Content), secret) {
						t.Fatalf("%s as %s: got %d %s", text, f.Name, res.StatusCode, res.Content)
					}
					if name == "a template of one's own" && f.Name == "html" {
						if !strings.HasPrefix(res.Content, "<p>"+html.EscapeString(text)+"<p>") {
							t.Errorf("%s: got %s", text, res.Content)
						}
						continue
					}
					got, want := testcaddy.FieldsOf(t, res), testcaddy.Footer()
					if tt.fed && f.Name != "problem" {
						want = text + " " + text // as it was sent, and not expanded again
					}
					if name == "a message of one's own" {
						if got.Message != text+" "+text {
							t.Errorf("%s as %s: got the message %q", text, f.Name, got.Message)
						}
						got.Message = ""
					} else if !strings.HasPrefix(got.Message, "No endpoint GET ") {
						t.Errorf("%s as %s: got the message %q", text, f.Name, got.Message)
					}
					if got.Footer != want || strings.ContainsAny(got.URI+got.Message, "{}") {
						t.Errorf("%s as %s: got %+v", text, f.Name, got)
					}
				}
			}
		})
	}
	for name := range unsafe {
		t.Run("unsafe: "+name, func(t *testing.T) {
			t.Parallel()
			if res := send(t, name, texts[0], "text/plain"); !strings.Contains(res.Content, "\n"+secret+" "+secret) {
				t.Errorf("got %s, want the secret: the README need not warn, or this test cannot see a leak", res.Content)
			}
		})
	}
}

// TestFieldsOfProxiesDoNotChangeThePage sends fields that some proxies and frameworks take an address, a host or a
// method from. not_found believes a trusted proxy alone, and of that X-Forwarded-Host and X-Forwarded-Proto alone.
func TestFieldsOfProxiesDoNotChangeThePage(t *testing.T) {
	fields := []string{
		"X-Original-URL: /evil", "X-Rewrite-URL: /evil", "X-Original-URI: /evil", "X-Envoy-Original-Path: /evil", "X-Forwarded-Prefix: /evil",
		"X-Forwarded-Uri: /evil", "X-Script-Name: /evil", "X-Forwarded-Method: EVIL", "Forwarded: for=192.0.2.1;host=evil.test;proto=https",
		"X-Host: evil.test", "X-Forwarded-Server: evil.test", "X-Forwarded-Port: 666", "X-Forwarded-Scheme: https", "X-Forwarded-Ssl: on", "Front-End-Https: on",
		"X-Forwarded-For: 192.0.2.1", "X-HTTP-Method-Override: DELETE", "Accept-Charset: utf-7", "Accept-Language: de", "Origin: https://evil.test",
		"Referer: https://evil.test/", "Cookie: a=b", "Range: bytes=0-3", "If-None-Match: *", "If-Modified-Since: Sat, 21 Nov 2099 11:00:00 GMT",
		"Accept-Encoding: gzip, br", "User-Agent: <script>",
	}
	for trust, network := range map[string]string{"trusted": "127.0.0.0/8", "other": "192.0.2.0/24"} {
		t.Run(trust, func(t *testing.T) {
			s := testcaddy.Start(t, "http://a.test:0 {\nnot_found\n}", "servers {\ntrusted_proxies static "+network+"\n}")
			fields := fields
			if trust == "other" {
				fields = append(fields, "X-Forwarded-Host: evil.test", "X-Forwarded-Proto: https")
			}
			for _, f := range testcaddy.Formats {
				accept := "Accept: " + f.MediaType
				plain := s.Get(t, "http://a.test/x?y", accept)
				testcaddy.FieldsOf(t, plain)
				plain.WantHeader(t, "Vary", "Accept")
				for _, field := range fields {
					if got := s.Get(t, "http://a.test/x?y", accept, field); got.Content != plain.Content || fmt.Sprint(got.Undated()) != fmt.Sprint(plain.Undated()) {
						t.Errorf("%s as %s: got %v %s", field, f.Name, got.Header, got.Content)
					}
				}
			}
		})
	}
}

// wantLikeHarmless checks that a page differs from that for a harmless request in its text alone: the header has the
// same fields, an HTML document has the same elements, and a browser that sniffs takes nothing else for HTML.
func wantLikeHarmless(t testing.TB, f testcaddy.Format, page, harmless testcaddy.Response) {
	t.Helper()
	header, want := page.Header.Clone(), harmless.Header.Clone()
	for _, field := range []string{"Date", "Content-Length"} {
		header.Del(field)
		want.Del(field)
	}
	if got, want := fmt.Sprint(header), fmt.Sprint(want); got != want {
		t.Errorf("got the header\n%s\nwant\n%s", got, want)
	}
	page.WantHeader(t, "Content-Type", f.ContentType)

	sniffed := map[string]string{"html": "text/html; charset=utf-8", "xml": "text/xml; charset=utf-8"}[f.Name]
	if sniffed == "" {
		sniffed = "text/plain; charset=utf-8"
	}
	if got := http.DetectContentType([]byte(page.Content)); got != sniffed {
		t.Errorf("the body looks like %s, want %s", got, sniffed)
	}

	if f.Name == "html" {
		if got, want := skeleton(t, page.Content), skeleton(t, harmless.Content); got != want {
			t.Errorf("got the document\n%s\nwant\n%s", got, want)
		}
	}
	got := testcaddy.FieldsOf(t, page)
	if !strings.HasPrefix(got.Message, "No endpoint ") { // the option's, which is any line of text
		if strings.ContainsFunc(got.Message, isControl) || !utf8.ValidString(got.Message) {
			t.Errorf("got the message %q", got.Message)
		}
		got.Message = ""
	}
	if i := strings.IndexFunc(got.URI+got.Message, func(c rune) bool {
		return c < ' ' || c > '~' || strings.ContainsRune(`"<>\{}`, c)
	}); i >= 0 {
		t.Errorf("the address or the message has %q", (got.URI + got.Message)[i])
	}
}

// skeleton returns an HTML document without its text, as a browser builds it: doctype, elements, attributes, comments and
// style. The value of a title attribute counts as text, and so does that of a link, if it is an address or was refused.
func skeleton(t testing.TB, page string) string {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for n := range doc.Descendants() {
		switch n.Type {
		case html.ElementNode:
			fmt.Fprintf(&b, "<%s", n.Data)
			for _, a := range n.Attr {
				switch {
				case a.Key == "title", a.Key == "href" && (strings.HasPrefix(a.Val, "http://") || a.Val == "#ZgotmplZ"):
					a.Val = ""
				}
				fmt.Fprintf(&b, " %s=%q", a.Key, a.Val)
			}
			b.WriteByte('>')
		case html.TextNode:
			if n.Parent.Data == "style" {
				b.WriteString(n.Data)
			}
		default:
			fmt.Fprintf(&b, "<%d %q>", n.Type, n.Data)
		}
	}
	return b.String()
}

// hostileTexts are what a placeholder may expand to, for example from a query that was decoded.
var hostileTexts = []string{
	`<script>alert(1)</script>`, `"><svg onload=alert(1)>`, `' onmouseover='alert(1)`, `</footer><iframe src=//evil.test>`,
	`</title></style></textarea>--><img src=x onerror=alert(1)>`, `<!--`, `--!><b>`, `]]><x/>`, `<?php ?>`, `<!DOCTYPE html><html>`,
	`<base href=//evil.test>`, `<meta http-equiv=refresh content=0>`, `javascript:alert(1)`, `//evil.test/`, `https://evil.test"><b>`,
	`&lt;script&gt;&#60;b&#62;&lt`, `\u003cscript\u003e`, `%3Cscript%3E`, `{{.}}`, `","status":200,"x":"`,
	"+ADw-script+AD4-alert(1)+ADw-/script+AD4-", // UTF-7
	"\ufeff<script>", "\xff\xfe<\x00s\x00>\x00", "\xfe\xff\x00<\x00s\x00>", "\xc0\xbcscript\xc0\xbe", "\x1b$B\x1b(J<b>",
	"\u2028alert(1)\u2029", "\u202e<b>", "\x00<b>", "a\x00", "\b\x7f\x1b[31m", "\ufffe\uffff\ud7ff",
	"a\r\nSet-Cookie: evil=1\r\n\r\n<script>alert(1)</script>", "a\nX-Evil: 1", "\rX-Evil: 1", "\u0085X-Evil: 1", "\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
}

// isControl reports whether c is a character that a header field cannot have.
func isControl(c rune) bool { return c < ' ' || c == '\x7f' }
