package notfound

import (
	"fmt"
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

// checkGlobal refuses a value with placeholders that are not global.
func checkGlobal(s string) error {
	_, err := caddy.NewEmptyReplacer().ReplaceFunc(s, func(name string, _ any) (any, error) {
		for _, prefix := range [...]string{"env.", "file.", "system.", "time."} { // see caddy.NewReplacer
			if strings.HasPrefix(name, prefix) {
				return "", nil
			}
		}
		return nil, fmt.Errorf("{%s} is not a global placeholder such as {env.NAME}; escape a brace of the value as in \\{", name)
	})
	return err
}

// expand returns the value for a request. An unknown placeholder stays as it is written.
func (e expandable) expand(repl *caddy.Replacer) string {
	if !e.perRequest {
		return e.value
	}
	return repl.ReplaceKnown(e.value, "")
}
