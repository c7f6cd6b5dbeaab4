package integration

import (
	"html"
	"strings"
	"testing"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestTemplate renders a template with every field, and with placeholders in the text and in a script. It fails for
// one request, which gets the built-in page.
func TestTemplate(t *testing.T) {
	const lines = `<h1 title="{{.URI}}">{{.Heading}}</h1><p>{{.URI}}<p>{{.Status}} {{.Message}}<p>{{.Footer}}`
	const script = "<script>var x = NAME</script>"
	const fails = `{{if eq (.Placeholder "http.request.header.X-Fail") "yes"}}{{index .URI 99999}}{{end}}`
	const name = `{{.Placeholder "http.request.header.X-Name"}}`
	template := strings.ReplaceAll(lines+"<p>NAME"+script+fails, "NAME", name)
	file := testcaddy.TempFile(t, "404.html", template)
	s := startSite(t, "not_found {\ntemplate "+testcaddy.Quote(file)+"\ncontext_path /app\n}")

	const hostile = `<b>"'& {{.URI}}`
	res := s.Get(t, "http://a.test/x?y&z", "Accept: text/html", "X-Name: "+hostile)
	res.WantHeader(t, "Content-Type", "text/html; charset=utf-8")
	res.WantHeader(t, "Content-Security-Policy", "")
	fields := strings.NewReplacer(
		"{{.Heading}}", "HTTP ERROR 404 {{.Message}}",
		"{{.URI}}", "http://a.test/x?y&amp;z",
		"{{.Status}}", "404",
		"{{.Footer}}", testcaddy.Footer(),
	)
	want := strings.ReplaceAll(fields.Replace(lines), "{{.Message}}", "No endpoint GET /app/missing.html.")
	want += "<p>" + html.EscapeString(hostile) + "<script>"
	if !strings.HasPrefix(res.Content, want) || strings.Contains(res.Content, "<b>") {
		t.Errorf("got\n%s\nwant\n%s", res.Content, want)
	}

	text := s.Get(t, "http://a.test/x")
	text.WantPage(t, "GET", "http://a.test/x", "/app") // has no template
	builtIn := s.Get(t, "http://a.test/x", "Accept: text/html", "X-Fail: yes")
	policy := testcaddy.StylePolicy(t, builtIn.Content)
	builtIn.WantHeader(t, "Content-Security-Policy", policy)
}
