package notfound

import (
	"html/template"
	"os"
	"path/filepath"
	"strings"
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
