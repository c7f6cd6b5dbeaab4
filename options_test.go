package notfound

import (
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-notfound/notfound/internal/page"
	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestPlaceholdersAreExpandedInTwoSteps expands values when the config loads, and then for a request.
func TestPlaceholdersAreExpandedInTwoSteps(t *testing.T) {
	t.Setenv("NOT_FOUND_TEST_HOST", "a.test")
	t.Setenv("NOT_FOUND_TEST_BRACES", "{x}")
	repl := caddy.NewEmptyReplacer()
	repl.Set("x", "a request's")
	repl.Set("nested", "{x}")
	for value, want := range map[string]struct{ written, loaded, expanded string }{
		"plain } text {":                {"plain } text {", "plain } text {", "plain } text {"},
		"{env.NOT_FOUND_TEST_HOST}:81":  {"{env.NOT_FOUND_TEST_HOST}:81", "a.test:81", "a.test:81"},
		"{env.NOT_FOUND_TEST_HOST}{x}":  {"{env.NOT_FOUND_TEST_HOST}{x}", "a.test{x}", "a.testa request's"},
		"y{env.NOT_FOUND_TEST_UNSET}":   {"y{env.NOT_FOUND_TEST_UNSET}", "y", "y"},
		"{env.NOT_FOUND_TEST_BRACES} y": {"{env.NOT_FOUND_TEST_BRACES} y", "{x} y", "{x} y"},
		"{unknown}":                     {"{unknown}", "{unknown}", "{unknown}"},
		"{nested}":                      {"{nested}", "{nested}", "{x}"},
		`\{x\} {x}`:                     {"{x} {x}", "{x} {x}", "{x} a request's"},
		"{time.now.year}":               {"{time.now.year}", "{time.now.year}", "{time.now.year}"},
		strings.Repeat("{", 200):        {strings.Repeat("{", 200), strings.Repeat("{", 200), strings.Repeat("{", 200)},
	} {
		t.Run(value, func(t *testing.T) {
			written, loaded := writtenText(value), loadedText(value)
			if written.String() != want.written || loaded.String() != want.loaded {
				t.Errorf("got %q as it is written, and %q once the config is loaded", written, loaded)
			}
			pages, err := page.Parse(page.Options{Footer: loaded})
			if err != nil {
				t.Fatal(err)
			}
			if got := pages.Make(page.Asked{}, repl).Footer; got != want.expanded {
				t.Errorf("got %q for a request", got)
			}
		})
	}

	if err := page.CheckFooter(writtenText("a\x00{x}")); err == nil {
		t.Error("what looks like the mark of a placeholder is accepted")
	}
}

// TestTemplateIsTriedWithPlaceholders loads a template that fails on a sample page whose fields or placeholders are empty.
func TestTemplateIsTriedWithPlaceholders(t *testing.T) {
	provision(t, &Handler{Template: testcaddy.TempFile(t, "404.html",
		`{{slice (placeholder "http.request.uuid") 0 8}} {{slice (placeholder "http.request.host") 0 1}} {{slice (placeholder "http.request.remote.host") 0 1}}`+
			`{{slice .URI 0 7}}{{slice .Message 0 11}}{{slice .Footer 0 7}}{{slice .Heading 0 14}}{{if ne .Status 404}}{{index .URI 99999}}{{end}}`)})
}
