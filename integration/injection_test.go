package integration

import (
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/net/html"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestHostileRequestGetsAPageLikeAnyOther attacks every part of a request that a page can show, and compares the page with a
// harmless one.
func TestHostileRequestGetsAPageLikeAnyOther(t *testing.T) {
	file := testcaddy.TempFile(t, "404.html", `<!DOCTYPE html><title>{{.Heading}}</title><h1 title="{{.Placeholder "http.request.uri.query.x"}}">HTTP ERROR {{.Status}} {{.Message}}</h1>`+
		`<p>URI: <a href="{{.URI}}">{{.URI}}</a><p>STATUS: {{.Status}}<p>MESSAGE: {{.Message}}<p>{{.Placeholder "http.request.uri.query.x"}} {{.Footer}}`)
	s := testcaddy.Start(t, strings.NewReplacer("X", "{http.request.uri.query.x}", "FILE", file).Replace(`
(fed) {
	not_found {
		context_path X
		base_url X
		uri X
		footer X
		{args[:]}
	}
}
http://:0 {
	not_found
}
http://query.test:0 {
	import fed
}
http://template.test:0 {
	import fed template FILE
}
http://message.test:0 {
	not_found {
		message X
	}
}`), "servers {\nmax_header_size 256KB\n}")

	type request struct{ method, target, host string }
	requests := []request{
		{"GET", "javascript://a.test/%0aalert(1)", "a.test"}, {"GET", "javascript:alert(1)", "template.test"}, {"GET", "data:text/html,<b>", "a.test"},
		{"&LT&AMP'#|`", "/x", "a.test"}, {"GET", "/x", "a&lt'b;c=d"}, {"GET", "/x", "'onload='alert(1)'"}, {"GET", "/x", "javascript:alert(1)"}, {"GET", "/x", "%22%3e%3cb%3e"},
	}
	for _, target := range hostileTargets {
		requests = append(requests, request{"GET", target, "a.test"})
	}
	for _, text := range hostileTexts {
		for _, host := range []string{"query.test", "template.test", "message.test"} {
			requests = append(requests, request{"GET", "/x?x=" + url.QueryEscape(text), host})
		}
	}
	for _, f := range testcaddy.Formats {
		send := func(t *testing.T, r request) testcaddy.Response {
			return s.Only(t, r.method, r.method+" "+r.target+" HTTP/1.1\r\nHost: "+r.host+"\r\nAccept: "+f.MediaType+"\r\nConnection: close\r\n\r\n")
		}
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			harmless, ownTemplate := send(t, request{"GET", "/x", "a.test"}), send(t, request{"GET", "/x?x=/x", "template.test"})
			for _, r := range requests {
				want := harmless
				if r.host == "template.test" {
					want = ownTemplate
				}
				res := send(t, r)
				res.WantHeader(t, "Content-Type", f.ContentType)
				wantLikeHarmless(t, f, res, want)
				if t.Failed() {
					t.Fatalf("at %.200q", r)
				}
			}
		})
	}
}

// TestNothingThatAClientSendsIsExecuted sends template actions and placeholders in every part of a request that a page can show,
// with Caddy's templates before not_found and after it.
func TestNothingThatAClientSendsIsExecuted(t *testing.T) {
	const secret = "a-secret-of-the-server"
	t.Setenv("NOT_FOUND_TEST_SECRET", secret)
	root := filepath.Dir(testcaddy.TempFile(t, "secret.txt", secret))
	file := testcaddy.TempFile(t, "404.html", `<p>{{.Placeholder "http.request.header.X-Evil"}}<p>{{.URI}} {{.Message}} {{.Footer}}`)
	replacer := strings.NewReplacer(
		"FED", `not_found {
			context_path "/EVIL"
			base_url "http://a.test/EVIL"
			uri "/EVIL?EVIL"
			footer EVIL
		}`,
		"EVIL", "{http.request.header.X-Evil}",
		"TEMPLATES", "templates {\nroot "+root+"\n}", "APP", testcaddy.Backend(t, testcaddy.MissingPage), "FILE", file)
	sites := map[string]string{ // FED: the footer is the client's
		"default order":          "TEMPLATES\nFED",
		"default order, proxied": "TEMPLATES\nFED\nreverse_proxy APP",
		"in handle_errors":       "error 404\nhandle_errors {\nTEMPLATES\nFED\n}",
		"template":               "TEMPLATES\nnot_found {\ntemplate FILE\n}",
		"message":                "TEMPLATES\nnot_found {\nmessage EVIL\n}",

		// templates executes these pages, but the client's parts, the address and the message, have no braces
		"after templates":                      "route {\nTEMPLATES\nnot_found {\nuri /EVIL?EVIL\n}\n}",
		"after templates, error":               "route {\nTEMPLATES\nnot_found\nerror 404\n}",
		"after templates, in handle_errors":    "error 404\nhandle_errors {\nroute {\nTEMPLATES\nnot_found\n}\n}",
		"after templates, in a response route": "TEMPLATES\nreverse_proxy APP {\n@missing status 404\nhandle_response @missing {\nnot_found\n}\n}",

		// the README warns of these
		"unsafe, after templates in a route":          "route {\nTEMPLATES\nFED\n}",
		"unsafe, in a block of a site with templates": "TEMPLATES\nhandle {\nFED\n}",
	}
	expanded := make(map[string]string)
	for name, site := range sites {
		expanded[name] = "vars secret " + secret + "\n" + replacer.Replace(replacer.Replace(site))
	}
	s, hosts := testcaddy.StartSites(t, "", expanded)

	texts := []string{
		`{{env "NOT_FOUND_TEST_SECRET"}}`, `{{include "secret.txt"}}`, `{{.Req.Header}}`, `{{/*`, `{{placeholder "http.request.header.X-Secret"}}`, `{{.Placeholder "env.NOT_FOUND_TEST_SECRET"}}`,
		`{env.NOT_FOUND_TEST_SECRET}`, `{$NOT_FOUND_TEST_SECRET}`, `{http.vars.secret}`, `{file.` + root + `/secret.txt}`, `{http.request.header.X-Secret}`, `\{env.NOT_FOUND_TEST_SECRET\}`,
	}
	for name, site := range sites {
		send := func(t *testing.T, text, accept string) testcaddy.Response {
			target := "/" + strings.ReplaceAll(text, " ", "%20") + "/" + url.PathEscape(text) + "?" + strings.ReplaceAll(text, " ", "+") + "&x=" + url.QueryEscape(text)
			return s.Only(t, "GET", "GET "+target+" HTTP/1.1\r\nHost: "+hosts[name]+"\r\nX-Evil: "+text+"\r\nX-Secret: "+secret+
				"\r\nAccept: "+accept+"\r\nConnection: close\r\n\r\n")
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if strings.HasPrefix(name, "unsafe") {
				if res := send(t, texts[0], "text/plain"); !strings.Contains(res.Content, "\n"+secret) {
					t.Errorf("got %s, want the secret: the README need not warn, or this test cannot see a leak", res.Content)
				}
				return
			}
			for _, text := range texts {
				for _, f := range testcaddy.Formats {
					res := send(t, text, f.MediaType)
					if res.StatusCode != http.StatusNotFound || strings.Contains(fmt.Sprint(res.Header, res.Content), secret) {
						t.Fatalf("%s as %s: got %d %s", text, f.Name, res.StatusCode, res.Content)
					}
					if name == "template" && f.Name == "html" {
						if !strings.HasPrefix(res.Content, "<p>"+html.EscapeString(text)+"<p>") {
							t.Errorf("%s: got %s", text, res.Content)
						}
						continue
					}
					// the client's text is not expanded again
					got, footer := testcaddy.FieldsOf(t, res), testcaddy.Footer()
					if strings.Contains(site, "FED") && f.Name != "problem" {
						footer = text
					}
					isText := name == "message" && got.Message == text
					if got.Footer != footer || strings.Contains(got.URI, "{") || !isText && (strings.Contains(got.Message, "{") || name == "message") {
						t.Errorf("%s as %s: got %+v", text, f.Name, got)
					}
				}
			}
		})
	}
}

// wantLikeHarmless checks that a page differs from a harmless one in its text alone: it has the same header and the same HTML
// elements, and no other format can be sniffed as HTML.
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

// skeleton returns an HTML document as a browser parses it, without text and without the values of titles and of links that are
// http or refused.
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

// hostileTargets are request targets that would harm a careless page.
var hostileTargets = []string{
	`/<script>alert(1)</script>`, `/"><img/src=x/onerror=alert(1)>`, `/'onmouseover='x`, `/</title></style><!--`, `/]]>&amp;&lt;&#60;`, `/&copy;=1&lt=2`,
	`/{{.}}{{printf}}`, `/x?${7*7}#{7*7}<%=7*7%>`, `/\u003cscript\u003e\`, `/"},"x":"`, "/\xc3\xbc\xe2\x80\xa8\xe2\x80\xae\xef\xbf\xbf", "/\xff\xc0\x80\xed\xa0\x80",
	`/%00%0A%0D%22%3C`, `/x?%zz%`, `/+a+b`, "/" + strings.Repeat("x<%7A\u00fc&", 8<<10),
}

// hostileTexts are values that a placeholder may have, as from a decoded query.
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
