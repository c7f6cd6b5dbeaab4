package notfound

import (
	"html/template"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestTemplateIsTriedWithPlaceholders loads a template that fails on a sample page whose fields or placeholders are empty.
func TestTemplateIsTriedWithPlaceholders(t *testing.T) {
	file := testcaddy.TempFile(t, "404.html", `{{slice (placeholder "http.request.uuid") 0 8}} {{slice (placeholder "http.request.host") 0 1}} {{slice (placeholder "http.request.remote.host") 0 1}}`+
		`{{slice .URI 0 7}}{{slice .Message 0 11}}{{slice .Footer 0 7}}{{slice .Heading 0 14}}{{if ne .Status 404}}{{index .URI 99999}}{{end}}`)
	if _, err := loadTemplate(file); err != nil {
		t.Error(err)
	}
}

// TestBuiltInPageIsItsTemplate compares the page, which is put together from pieces of its template, with what html/template
// renders.
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
	if strings.Contains(string(appendHTML(nil, p)), "<b>") {
		t.Error("the footer is not escaped")
	}
}

// TestBuiltInPageShowsTheTextPage compares what a browser shows with the text page, and looks for anything that would make
// the browser send another request or run a script.
func TestBuiltInPageShowsTheTextPage(t *testing.T) {
	p := &page{uri: []byte("http://a.test/x?y&z"), message: []byte("No endpoint GET /missing.html."), footer: "Powered by Caddy"}
	document := string(appendHTML(nil, p))
	if got, want := strings.Join(testcaddy.VisibleLines(t, document), "\n")+"\n", string(appendText(nil, p)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}

	doc, err := html.Parse(strings.NewReader(document))
	if err != nil {
		t.Fatal(err)
	}
	for n := range doc.Descendants() {
		for _, a := range n.Attr {
			if a.Key == "src" || a.Key == "href" || a.Key == "style" || strings.HasPrefix(a.Key, "on") {
				t.Errorf("%s has %s", n.Data, a.Key)
			}
		}
		if n.Data == "script" || n.Data == "link" || n.Data == "img" {
			t.Errorf("the page has the element %s", n.Data)
		}
	}
	for _, part := range []string{`<html lang="en">`, "<title>404 Not Found</title>", `name="viewport"`, "prefers-color-scheme: dark"} {
		if !strings.Contains(document, part) {
			t.Errorf("the page lacks %s", part)
		}
	}
	if strings.Contains(document, "url(") || strings.Contains(document, "@import") {
		t.Error("the style needs another request")
	}
}
