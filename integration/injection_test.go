package integration

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/net/html"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestHostileRequestGetsAPageLikeAnyOther attacks every part of a request that a page can show, and compares the page
// with a harmless one.
func TestHostileRequestGetsAPageLikeAnyOther(t *testing.T) {
	const fed = "{http.request.uri.query.x}"
	file := testcaddy.TempFile(t, "404.html", `<!DOCTYPE html><title>{{.Heading}}</title>
<h1 title="{{.Placeholder "http.request.uri.query.x"}}">HTTP ERROR {{.Status}} {{.Message}}</h1>
<p>URI: <a href="{{.URI}}">{{.URI}}</a>
<p>STATUS: {{.Status}}
<p>MESSAGE: {{.Message}}
<p>{{.Placeholder "http.request.uri.query.x"}} {{.Footer}}`)
	s := testcaddy.Start(t, strings.NewReplacer("FED", fed, "FILE", testcaddy.Quote(file)).Replace(`
(fed) {
	not_found {
		context_path FED
		base_url FED
		uri FED
		footer FED
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
		message FED
	}
}`), "servers {\nmax_header_size 256KB\n}")

	requests := []rawRequest{
		{method: "&LT&AMP'#|`"},
		{target: "javascript://a.test/%0aalert(1)"},
		{target: "javascript:alert(1)", host: "template.test"},
		{host: "a&lt'b;c=d"},
		{host: "'onload='alert(1)'"},
		{host: "javascript:alert(1)"},
		{host: "%22%3e%3cb%3e"},
	}
	for _, target := range hostileTargets {
		requests = append(requests, rawRequest{target: target})
	}
	for _, text := range hostileTexts {
		for _, host := range []string{"query.test", "template.test", "message.test"} {
			requests = append(requests, rawRequest{target: "/x?x=" + url.QueryEscape(text), host: host})
		}
	}
	for _, f := range testcaddy.Formats {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			harmless := rawRequest{}.send(t, s, f)
			ofTemplate := rawRequest{target: "/x?x=/x", host: "template.test"}.send(t, s, f)
			for _, r := range requests {
				want := harmless
				if r.host == "template.test" {
					want = ofTemplate
				}
				wantLikeHarmless(t, f, r.send(t, s, f), want)
				if t.Failed() {
					t.Fatalf("at %.200q", r)
				}
			}
		})
	}
}

// rawRequest is a request that is sent byte for byte: by default, a GET of /x from a.test.
type rawRequest struct {
	method, target, host string
	fields               string // further lines of the header
}

// send asks for a format.
func (r rawRequest) send(t *testing.T, s *testcaddy.Server, f testcaddy.Format) testcaddy.Response {
	t.Helper()
	const request = "%s %s HTTP/1.1\r\nHost: %s\r\nAccept: %s\r\nConnection: close\r\n%s\r\n"
	method := cmp.Or(r.method, "GET")
	target := cmp.Or(r.target, "/x")
	host := cmp.Or(r.host, "a.test")
	return s.Only(t, method, fmt.Sprintf(request, method, target, host, f.MediaType, r.fields))
}

// TestNothingThatAClientSendsIsExecuted sends template actions and placeholders in every part of a request that a page
// can show, with Caddy's templates before not_found and after it.
func TestNothingThatAClientSendsIsExecuted(t *testing.T) {
	const secret = "a-secret-of-the-server"
	t.Setenv("NOT_FOUND_TEST_SECRET", secret)
	root := filepath.Dir(testcaddy.TempFile(t, "secret.txt", secret))
	const page = `<p>{{.Placeholder "http.request.header.X-Evil"}}<p>{{.URI}} {{.Message}} {{.Footer}}`
	template := testcaddy.TempFile(t, "404.html", page)
	const (
		fed   = "not_found {\ncontext_path /EVIL\nbase_url http://a.test/EVIL\nuri /EVIL?EVIL\nfooter EVIL\n}\n"
		noFed = "not_found {\nuri /EVIL?EVIL\n}\n"
	)
	sites := map[string]string{
		"default order":            "TEMPLATES\n" + fed,
		"default order, a message": "TEMPLATES\nnot_found {\nmessage EVIL\n}",
		"in handle_errors":         "error 404\nhandle_errors {\nTEMPLATES\n" + fed + "}",
		"a template":               "TEMPLATES\nnot_found {\ntemplate " + testcaddy.Quote(template) + "\n}",

		// templates executes these pages, but the client's parts, the address and the message, have no braces
		"after templates":                      "route {\nTEMPLATES\n" + noFed + "}",
		"after templates, in handle_errors":    "error 404\nhandle_errors {\nroute {\nTEMPLATES\nnot_found\n}\n}",
		"after templates, in a response route": "TEMPLATES\nintercept" + handleAll + "respond gone 410",

		// docs/order.md warns of these
		"unsafe, after templates in a route":          "route {\nTEMPLATES\n" + fed + "}",
		"unsafe, in a block of a site with templates": "TEMPLATES\nhandle {\n" + fed + "}",
	}
	filled := strings.NewReplacer(
		"EVIL", "{http.request.header.X-Evil}",
		"TEMPLATES", "templates {\nroot "+testcaddy.Quote(root)+"\n}",
	)
	for name, site := range sites {
		sites[name] = "vars secret " + secret + "\n" + filled.Replace(site)
	}
	s, hosts := testcaddy.StartSites(t, "", sites)

	texts := []string{
		`{{env "NOT_FOUND_TEST_SECRET"}}`, `{{include "secret.txt"}}`, `{{.Req.Header}}`, `{{/*`,
		`{{placeholder "http.request.header.X-Secret"}}`, `{{.Placeholder "env.NOT_FOUND_TEST_SECRET"}}`,
		`{env.NOT_FOUND_TEST_SECRET}`, `{$NOT_FOUND_TEST_SECRET}`, `{http.vars.secret}`, `{file.` + root + `/secret.txt}`,
		`{http.request.header.X-Secret}`, `\{env.NOT_FOUND_TEST_SECRET\}`,
	}
	for name, host := range hosts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			isUnsafe := strings.HasPrefix(name, "unsafe")
			leaks := false
			for _, text := range texts {
				path := strings.ReplaceAll(text, " ", "%20")
				request := rawRequest{
					target: "/" + path + "?" + path + "&x=" + url.QueryEscape(text),
					host:   host,
					fields: "X-Evil: " + text + "\r\nX-Secret: " + secret + "\r\n",
				}
				for _, f := range testcaddy.Formats {
					res := request.send(t, s, f)
					got := fmt.Sprint(res.Header, res.Content)
					hasSecret := strings.Contains(got, secret)
					leaks = leaks || hasSecret
					if hasSecret && !isUnsafe {
						t.Errorf("%s as %s: got %s", text, f.Name, got)
					}
				}
			}
			if isUnsafe && !leaks {
				t.Error("got no secret: docs/order.md need not warn, or this test cannot see a leak")
			}
		})
	}
}

// wantLikeHarmless checks that a page differs from a harmless one in its text alone: it has the same header and the
// same HTML elements, and no other format can be sniffed as HTML.
func wantLikeHarmless(t testing.TB, f testcaddy.Format, page, harmless testcaddy.Response) {
	t.Helper()
	header := page.Undated()
	header.Set("Content-Length", harmless.Header.Get("Content-Length"))
	if want := harmless.Undated(); !reflect.DeepEqual(header, want) {
		t.Errorf("got the header\n%s\nwant\n%s", header, want)
	}
	sniffed := http.DetectContentType([]byte(page.Content))
	if f.Name == "html" {
		got := skeleton(t, page.Content)
		if want := skeleton(t, harmless.Content); got != want {
			t.Errorf("got the document\n%s\nwant\n%s", got, want)
		}
	} else if strings.HasPrefix(sniffed, "text/html") {
		t.Errorf("the body looks like %s", sniffed)
	}
	got := testcaddy.FieldsOf(t, page)
	shown := got.URI
	if strings.HasPrefix(got.Message, "No endpoint ") { // else it is the option's, which is any line of text
		shown += got.Message
	}
	if strings.ContainsFunc(shown, isUnsafe) {
		t.Errorf("got the address and the message %q", shown)
	}
	if strings.ContainsFunc(got.Message, isControl) || !utf8.ValidString(got.Message) {
		t.Errorf("got the message %q", got.Message)
	}
}

// isUnsafe reports whether c is a character that an address on a page cannot have.
func isUnsafe(c rune) bool {
	return c < ' ' || c > '~' || strings.ContainsRune(`"<>\{}`, c)
}

// isControl reports whether c is a character that a header field cannot have.
func isControl(c rune) bool {
	return c < ' ' || c == '\x7f'
}

// skeleton returns an HTML document as a browser parses it, without text and without the values of titles and of links
// that are http or refused.
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
				isHarmlessLink := strings.HasPrefix(a.Val, "http://") || a.Val == "#ZgotmplZ"
				if a.Key == "title" || a.Key == "href" && isHarmlessLink {
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
	`/<script>alert(1)</script>`, `/"><img/src=x/onerror=alert(1)>`, `/'onmouseover='x`, `/</title></style><!--`,
	`/]]>&amp;&lt;&#60;`, `/&copy;=1&lt=2`, `/{{.}}{{printf}}`, `/x?${7*7}#{7*7}<%=7*7%>`, `/\u003cscript\u003e\`,
	`/"},"x":"`, "/\xc3\xbc\xe2\x80\xa8\xe2\x80\xae\xef\xbf\xbf", "/\xff\xc0\x80\xed\xa0\x80",
	`/%00%0A%0D%22%3C`, `/x?%zz%`,
	"/" + strings.Repeat("x<%7A\u00fc&", 8<<10),
}

// hostileTexts are values that a placeholder may have, as from a decoded query.
var hostileTexts = []string{
	`<script>alert(1)</script>`, `"><svg onload=alert(1)>`, `' onmouseover='alert(1)`, `</footer><iframe src=//evil.test>`,
	`</title></style></textarea>--><img src=x onerror=alert(1)>`, `<!--`, `--!><b>`, `]]><x/>`, `<?php ?>`,
	`<!DOCTYPE html><html>`,
	`<base href=//evil.test>`, `<meta http-equiv=refresh content=0>`, `javascript:alert(1)`, `//evil.test/`,
	`https://evil.test"><b>`,
	`&lt;script&gt;&#60;b&#62;&lt`, `\u003cscript\u003e`, `%3Cscript%3E`, `{{.}}`, `","status":200,"x":"`,
	"+ADw-script+AD4-alert(1)+ADw-/script+AD4-", // UTF-7
	"\ufeff<script>", "\xff\xfe<\x00s\x00>\x00", "\xfe\xff\x00<\x00s\x00>", "\xc0\xbcscript\xc0\xbe", "\x1b$B\x1b(J<b>",
	"\u2028alert(1)\u2029", "\u202e<b>", "\x00<b>", "a\x00", "\b\x7f\x1b[31m", "\ufffe\uffff\ud7ff",
	"a\r\nSet-Cookie: evil=1\r\n\r\n<script>alert(1)</script>", "a\nX-Evil: 1", "\rX-Evil: 1", "\u0085X-Evil: 1",
	"\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
}
