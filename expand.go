package notfound

import (
	"strings"

	"github.com/caddyserver/caddy/v2"
)

// expandable is the value of an option that takes placeholders. Global placeholders are expanded when the config
// loads, the others for each request.
type expandable struct {
	value      string
	perRequest bool // there are placeholders left to expand
}

// unexpanded returns a value as it is written.
func unexpanded(s string) expandable {
	return expandable{s, strings.Contains(s, "{") && strings.Contains(s, "}")}
}

// expandGlobal expands the global placeholders of s, but for the time, which is that of the request.
func expandGlobal(s string) expandable {
	// an escaped brace loses its backslash when it is expanded, so that must happen only once
	if strings.Contains(s, `\{`) || strings.Contains(s, `\}`) {
		return expandable{s, true}
	}
	repl := caddy.NewReplacer()
	value, err := repl.ReplaceFunc(s, func(name string, value any) (any, error) {
		if _, known := repl.Get(name); !known || strings.HasPrefix(name, "time.") {
			return "{" + name + "}", nil
		}
		return value, nil
	})
	if err != nil { // too many braces that don't end
		return expandable{s, false}
	}
	return unexpanded(value)
}

// expand returns the value for a request. An unknown placeholder stays as it is written.
func (e expandable) expand(repl *caddy.Replacer) string {
	if !e.perRequest {
		return e.value
	}
	return repl.ReplaceKnown(e.value, "")
}
