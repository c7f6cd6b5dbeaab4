package integration

import (
	"html/template"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestTemplate renders a template with every field, and with placeholders wherever HTML is escaped differently. It fails for one
// request, at the end of the page. Then it is broken while Caddy runs, and corrected.
func TestTemplate(t *testing.T) {
	file := testcaddy.TempFile(t, "404.html", `<h1 title="{{.URI}}">{{.Heading}}</h1><a href="{{.URI}}">{{.URI}}</a><p>{{.Status}} {{.Message}} {{.Footer}}`+
		`<p>{{.Placeholder "http.request.header.X-Name"}}<script>var x = {{.Placeholder "http.request.header.X-Name"}}</script>`+
		`{{if eq (.Placeholder "http.request.header.X-Fail") "yes"}}{{index .URI 99999}}{{end}}`)
	site := "http://a.test:0 {\nnot_found {\ntemplate " + file + "\ncontext_path /app\n}\n}"
	s := testcaddy.Start(t, site)
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

	// where it fails, the page is the built-in one
	res = s.Get(t, "http://a.test/x?y", "Accept: text/html", "X-Fail: yes")
	if got := testcaddy.FieldsOf(t, res); got.URI != "http://a.test/x?y" || got.Footer != testcaddy.Footer() {
		t.Errorf("got %+v", got)
	}
	res.WantHeader(t, "Content-Security-Policy", testcaddy.StylePolicy(t, res.Content))
	s.Logs.WaitFor(t, "wrote the 404 page", 3)
	entries := s.Logs.WaitFor(t, "rendering the template; sending the built-in page instead", 1)
	if e := entries[0]; len(entries) != 1 || e["level"] != "error" || e["template"] != file || !strings.Contains(e["error"].(string), "99999") {
		t.Errorf("got the log entries %v", entries)
	}

	for _, edit := range []struct {
		content, begins, logged string
	}{
		{"<p>{{.URL}}", "<h1 title=", "the changed template cannot be used; the last good one stays in use"},
		{"<p>two", "<p>two", "the changed template is in use"},
	} {
		if err := os.WriteFile(file, []byte(edit.content), 0o600); err != nil {
			t.Fatal(err)
		}
		eventually(t, edit.content+" is shown, or logged", func() bool {
			page := s.Get(t, "http://a.test/x", "Accept: text/html").Content
			logged := s.Logs.Select(t, func(e testcaddy.Entry) bool { return e["msg"] == edit.logged })
			return strings.HasPrefix(page, edit.begins) && len(logged) > 0
		})
	}
}
