package notfound

import (
	"html/template"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/html"
)

func writeTemplate(t testing.TB, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "404.html")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestTemplate(t *testing.T) {
	file := writeTemplate(t, `<h1 title="{{.URI}}">{{.Heading}}</h1><a href="{{.URI}}">{{.URI}}</a><p>{{.Status}} {{.Message}} {{.Footer}}`+
		`<p id="{{placeholder "http.request.uuid"}}">{{placeholder "http.request.header.X-Name"}}{{placeholder "unknown"}}<script>var x = {{placeholder "http.request.header.X-Name"}}</script>`)
	s := startCaddy(t, `
http://a.test:0 {
	not_found {
		template `+file+`
		context_path /app
	}
}`)
	const name = `<b>"'& {{.URI}}`
	res := s.get(t, "http://a.test/x?y&z", "Accept: text/html", "X-Name: "+name)
	res.wantHeader(t, "Content-Type", "text/html; charset=utf-8")
	res.wantHeader(t, "Content-Security-Policy", "")
	if res.ContentLength != int64(len(res.body)) {
		t.Errorf("got Content-Length %d for %d bytes", res.ContentLength, len(res.body))
	}
	for _, want := range []string{
		`<h1 title="http://a.test/x?y&amp;z">HTTP ERROR 404 No endpoint GET /app/missing.html.</h1>`,
		`<a href="http://a.test/x?y&amp;z">http://a.test/x?y&amp;z</a>`,
		`<p>404 No endpoint GET /app/missing.html. ` + footer(),
		template.HTMLEscapeString(name) + "<script>",
	} {
		if !strings.Contains(res.body, want) {
			t.Errorf("%s is not in\n%s", want, res.body)
		}
	}
	if strings.Contains(res.body, "<b>") {
		t.Errorf("a placeholder is not escaped in\n%s", res.body)
	}

	// other representations have nothing to do with it
	s.get(t, "http://a.test/x").wantPage(t, "GET", "http://a.test/x", "/app")

	t.Run("each request has its own placeholders", func(t *testing.T) {
		var mu sync.Mutex
		ids := make(map[string]bool)
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				res := s.get(t, "http://a.test/x", "Accept: text/html")
				_, id, _ := strings.Cut(res.body, `<p id="`)
				id, _, _ = strings.Cut(id, `"`)
				mu.Lock()
				defer mu.Unlock()
				if len(id) != 36 || ids[id] {
					t.Errorf("got the id %q again, or none", id)
				}
				ids[id] = true
			})
		}
		wg.Wait()
	})
}

func TestTemplateThatFailsYieldsBuiltInPage(t *testing.T) {
	file := writeTemplate(t, `<p>half a page {{if eq (placeholder "http.request.header.X-Fail") "yes"}}{{index .URI 99999}}{{end}}`)
	s := startCaddy(t, "http://a.test:0 {\nnot_found {\ntemplate "+file+"\n}\n}")

	if res := s.get(t, "http://a.test/x", "Accept: text/html"); res.body != "<p>half a page " {
		t.Errorf("the template gives %q", res.body)
	}

	res := s.get(t, "http://a.test/x?y", "Accept: text/html", "X-Fail: yes")
	if got := fieldsOf(t, res); got.URI != "http://a.test/x?y" || got.Footer != footer() {
		t.Errorf("got %+v", got)
	}
	res.wantHeader(t, "Content-Security-Policy", builtinCSP)
	s.get(t, "http://a.test/x", "Accept: text/html") // the failure has no consequences

	s.logs.waitFor(t, "wrote the 404 page", 3)
	entries := s.logs.waitFor(t, "rendering the template; sending the built-in page instead", 1)
	if len(entries) != 1 {
		t.Fatalf("got %d log lines", len(entries))
	}
	if entry := entries[0]; entry["level"] != "error" || entry["template"] != file || !strings.Contains(entry["error"].(string), "99999") {
		t.Errorf("got the log line %v", entry)
	}
}

// TestTemplateIsTriedWithPlaceholders loads a template that can do without no part of a placeholder.
func TestTemplateIsTriedWithPlaceholders(t *testing.T) {
	file := writeTemplate(t, `{{slice (placeholder "http.request.uuid") 0 8}} {{slice (placeholder "http.request.host") 0 1}} {{slice (placeholder "http.request.remote.host") 0 1}}`+
		`{{slice .URI 0 7}}{{slice .Message 0 11}}{{slice .Footer 0 7}}{{slice .Heading 0 14}}{{if ne .Status 404}}{{index .URI 99999}}{{end}}`)
	if _, err := loadTemplate(file); err != nil {
		t.Error(err)
	}
}

// TestBuiltInPageIsItsTemplate compares the page put together from pieces with html/template's rendering.
func TestBuiltInPageIsItsTemplate(t *testing.T) {
	p := &page{uri: []byte("http://a.test/x?y&z='1'+"), message: []byte("No endpoint G'&ET /app/missing.html."), footer: `<b>"Powered" & 'Ü' mark-of-URI`}
	var want strings.Builder
	if err := template.Must(template.New("").Parse(builtinSource)).Execute(&want, templateData{
		"HTTP ERROR 404 " + string(p.message), string(p.uri), 404, string(p.message), p.footer,
	}); err != nil {
		t.Fatal(err)
	}
	// html/template escapes the plus as well
	if got, want := html.UnescapeString(string(appendHTML(nil, p))), html.UnescapeString(want.String()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := strings.Count(string(appendHTML(nil, p)), "<b>"); got != 0 {
		t.Error("the footer is not escaped")
	}
}

func TestBuiltInPageShowsTheTextPage(t *testing.T) {
	p := &page{uri: []byte("http://a.test/x?y&z"), message: []byte("No endpoint GET /missing.html."), footer: "Powered by Caddy"}
	page := string(appendHTML(nil, p))
	if got, want := strings.Join(visibleLines(t, page), "\n")+"\n", string(appendText(nil, p)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}

	// nothing in it needs another request, or a script
	var visit func(n *html.Node)
	visit = func(n *html.Node) {
		for _, a := range n.Attr {
			if a.Key == "src" || a.Key == "href" || a.Key == "style" || strings.HasPrefix(a.Key, "on") {
				t.Errorf("%s has %s", n.Data, a.Key)
			}
		}
		if n.Data == "script" || n.Data == "link" || n.Data == "img" {
			t.Errorf("the page has the element %s", n.Data)
		}
		for child := n.FirstChild; child != nil; child = child.NextSibling {
			visit(child)
		}
	}
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	visit(doc)
	for _, part := range []string{`<html lang="en">`, "<title>404 Not Found</title>", `name="viewport"`, "prefers-color-scheme: dark"} {
		if !strings.Contains(page, part) {
			t.Errorf("the page lacks %s", part)
		}
	}
	if strings.Contains(page, "url(") || strings.Contains(page, "@import") {
		t.Error("the style needs another request")
	}
}
