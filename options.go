package notfound

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/page"
)

// writtenText returns the value of an option as it is written, with all its placeholders.
func writtenText(value string) page.Text { return parseText(value, nil) }

// loadedText returns the value of an option once the config is loaded. Its global placeholders have their values,
// except the time, which is that of the request. An empty value is an absent one.
func loadedText(value string) page.Text {
	if value == "" {
		return page.Text{}
	}
	global := caddy.NewReplacer()
	return parseText(value, func(name string) (any, bool) {
		if strings.HasPrefix(name, "time.") {
			return nil, false
		}
		return global.Get(name)
	})
}

// parseText splits a value at its placeholders, except those that have a value now. Caddy's replacer finds them,
// and puts a mark in the place of each.
func parseText(value string, now func(name string) (any, bool)) page.Text {
	const mark = "\x00"
	var names []string
	repl := caddy.NewEmptyReplacer()
	repl.Map(func(name string) (any, bool) {
		if now != nil {
			if value, known := now(name); known {
				return value, true
			}
		}
		names = append(names, name)
		return mark, true
	})
	marked, err := repl.ReplaceOrErr(value, false, false)
	if err != nil { // too many braces that don't end
		return page.Literal(value)
	}
	literals := strings.Split(marked, mark)
	if len(literals) != len(names)+1 { // the value has what looks like a mark, which no option can have
		return page.Literal(value)
	}
	return page.NewText(literals, names)
}

// written returns a check of the value of an option as it is written.
func written(check func(page.Text) error) func(value string) error {
	return func(value string) error { return check(writtenText(value)) }
}

// The modes of the option replace.
const (
	replacePages = "pages"
	replaceAll   = "all"
	replaceNone  = "none"
)

var modes = []string{replacePages, replaceAll, replaceNone}

func checkMode(mode string) error {
	if mode == "" || slices.Contains(modes, mode) {
		return nil
	}
	return fmt.Errorf("unknown mode %q; the modes are %s", mode, strings.Join(modes, ", "))
}

// loadKeep checks the matchers of keep, and expands the global placeholders in them, because Caddy expands none in a
// response matcher.
func loadKeep(matchers []caddyhttp.ResponseMatcher) error {
	repl := caddy.NewReplacer()
	for _, m := range matchers {
		if err := checkKeep(m); err != nil {
			return err
		}
		for field, values := range m.Headers {
			for i, value := range values {
				expanded, err := repl.ReplaceOrErr(value, false, true)
				if err != nil {
					return fmt.Errorf("header %s: %q: %w", field, value, err)
				}
				if expanded == "" && value != "" {
					return fmt.Errorf("header %s: %q expands to nothing; set it, or leave the matcher out", field, value)
				}
				values[i] = expanded
			}
		}
	}
	return nil
}

// checkKeep refuses a matcher that matches every 404 response, or none.
func checkKeep(m caddyhttp.ResponseMatcher) error {
	const instead = "write one as in header X-Error-Page *"
	var statuses []string
	for _, code := range m.StatusCode {
		if code < 10 {
			statuses = append(statuses, fmt.Sprintf("%dxx", code))
		} else {
			statuses = append(statuses, strconv.Itoa(code))
		}
	}
	status := cmp.Or(strings.Join(statuses, " or "), "[]")
	switch {
	case !(caddyhttp.ResponseMatcher{StatusCode: m.StatusCode}).Match(http.StatusNotFound, nil):
		return fmt.Errorf("no 404 response has the status %s; leave the status out, and %s", status, instead)
	case len(m.Headers) == 0 && len(m.StatusCode) > 0:
		return fmt.Errorf("the matcher status %s would keep every 404 response; %s, or use replace none", status, instead)
	case len(m.Headers) == 0:
		return fmt.Errorf("the matcher is empty and would keep every 404 response; %s, or use replace none", instead)
	}

	for field, values := range m.Headers {
		if !httpguts.ValidHeaderFieldName(field) {
			return fmt.Errorf("%q is not the name of a header field; %s", field, instead)
		}
		for _, value := range values {
			if err := checkGlobal(value); err != nil {
				return fmt.Errorf("header %s: %q: %w", field, value, err)
			}
		}
	}
	return nil
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
