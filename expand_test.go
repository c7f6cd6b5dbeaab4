package notfound

import (
	"testing"

	"github.com/caddyserver/caddy/v2"
)

// TestPlaceholdersAreExpandedInTwoSteps expands values when the config loads, and then for a request.
func TestPlaceholdersAreExpandedInTwoSteps(t *testing.T) {
	t.Setenv("NOT_FOUND_TEST_HOST", "a.test")
	repl := caddy.NewEmptyReplacer()
	repl.Set("x", "a request's")
	repl.Set("nested", "{x}")
	for value, want := range map[string]struct {
		global     string // the value once the config is loaded
		perRequest bool
		expanded   string
	}{
		"":                             {"", false, ""},
		"plain } text {":               {"plain } text {", true, "plain } text {"},
		"{env.NOT_FOUND_TEST_HOST}:81": {"a.test:81", false, "a.test:81"},
		"{env.NOT_FOUND_TEST_HOST}{x}": {"a.test{x}", true, "a.testa request's"},
		"{env.NOT_FOUND_TEST_UNSET}":   {"", false, ""},
		"{unknown}":                    {"{unknown}", true, "{unknown}"},
		"{time.now.year}":              {"{time.now.year}", true, "{time.now.year}"},
		"{nested}":                     {"{nested}", true, "{x}"},
		`\{x\} {x}`:                    {`\{x\} {x}`, true, "{x} a request's"},
	} {
		t.Run(value, func(t *testing.T) {
			e := expandGlobal(value)
			if e.value != want.global || e.perRequest != want.perRequest {
				t.Errorf("got %+v once the config is loaded, want %+v", e, want)
			}
			if got := e.expand(repl); got != want.expanded {
				t.Errorf("got %q for a request, want %q", got, want.expanded)
			}
		})
	}
}
