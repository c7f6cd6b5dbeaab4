package notfound

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/page"
)

// valueOption is an option that takes one value.
type valueOption struct {
	name  string
	value *string
	check func(string) error

	placeholders bool // are expanded; the check is for values without placeholders, or with global ones expanded
}

// valueOptions returns the options that take one value.
func (h *Handler) valueOptions() []valueOption {
	return []valueOption{
		{"message", &h.Message, page.CheckLine, true},
		{"context_path", &h.ContextPath, page.CheckContextPath, true},
		{"base_url", &h.BaseURL, page.CheckBaseURL, true},
		{"uri", &h.URI, page.CheckURI, true},
		{"footer", &h.Footer, page.CheckLine, true},
		{"replace", &h.Replace, checkMode, false},
	}
}

// checkOptions checks the options when the config loads, with global placeholders expanded.
func (h *Handler) checkOptions() error {
	for _, o := range h.valueOptions() {
		value, known := *o.value, true
		if o.placeholders {
			value, known = expandGlobal(value)
		}
		if *o.value == "" || !known {
			continue
		}
		if err := o.check(value); err != nil {
			return fmt.Errorf("%s: %w", o.name, err)
		}
	}
	for _, m := range h.Keep {
		if err := checkKeep(m); err != nil {
			return fmt.Errorf("keep: %w", err)
		}
	}
	return h.checkTogether()
}

// checkTogether refuses an option that another leaves without effect.
func (h *Handler) checkTogether() error {
	if h.Message != "" && h.ContextPath != "" {
		return errors.New("message: with a message of your own, context_path has no effect; leave one of the two out")
	}
	for _, file := range h.Template {
		if err := checkNoPlaceholders(file); err != nil {
			return fmt.Errorf("template: %w", err)
		}
	}
	if err := page.CheckTemplates(h.Template, h.Formats); err != nil {
		return fmt.Errorf("template: %w", err)
	}
	return nil
}

// addTemplate adds a template: a file, perhaps after its format. caddy adapt does not read the file.
func (h *Handler) addTemplate(args []string) error {
	format := "html"
	switch {
	case len(args) == 1 && slices.Contains(page.Formats(), args[0]):
		return fmt.Errorf("template %s needs a file; for a file of that name, write ./%[1]s", args[0])
	case len(args) == 2:
		format = args[0]
	case len(args) != 1:
		return fmt.Errorf("option 'template' takes a file, perhaps after its format, and not %d arguments; quote a name that has spaces", len(args))
	}
	if h.Template[format] != "" {
		return fmt.Errorf("option 'template' is given twice for %s; leave one of the two out", format)
	}
	if h.Template == nil {
		h.Template = make(map[string]string)
	}
	h.Template[format] = args[len(args)-1]
	return h.checkTogether()
}

// expandGlobal expands a value's placeholders. It returns false if one depends on the request.
func expandGlobal(value string) (expanded string, ok bool) {
	expanded, err := caddy.NewReplacer().ReplaceFunc(value, func(name string, value any) (any, error) {
		// see caddy.NewReplacer; time is a request's
		if strings.HasPrefix(name, "env.") || strings.HasPrefix(name, "file.") || strings.HasPrefix(name, "system.") {
			return value, nil
		}
		return nil, errors.New("not a global placeholder")
	})
	return expanded, err == nil
}

func checkNoPlaceholders(value string) error {
	if strings.Contains(value, "{") {
		return fmt.Errorf("%q takes no placeholders; {$NAME} in a Caddyfile is expanded when it is read", value)
	}
	return nil
}

// The modes of the option replace.
const (
	replacePages = "pages"
	replaceAll   = "all"
	replaceNone  = "none"
)

var modes = []string{replacePages, replaceAll, replaceNone}

func checkMode(mode string) error {
	if slices.Contains(modes, mode) {
		return nil
	}
	return fmt.Errorf("unknown mode %q; the modes are %s", mode, strings.Join(modes, ", "))
}

// checkKeep refuses a matcher of every 404 response, or of none.
func checkKeep(m caddyhttp.ResponseMatcher) error {
	const instead = "write one as in header X-Error-Page *"
	switch {
	case !(caddyhttp.ResponseMatcher{StatusCode: m.StatusCode}).Match(http.StatusNotFound, nil):
		return fmt.Errorf("no 404 response has one of the statuses %d; leave the status out, and %s", m.StatusCode, instead)
	case len(m.Headers) == 0:
		return fmt.Errorf("a matcher without a header field would keep every 404 response; %s, or use replace none", instead)
	}

	for field, values := range m.Headers {
		if !httpguts.ValidHeaderFieldName(field) {
			return fmt.Errorf("%q is not the name of a header field; %s", field, instead)
		}
		for _, value := range values {
			if err := checkNoPlaceholders(value); err != nil {
				return fmt.Errorf("header %s: %w", field, err)
			}
		}
	}
	return nil
}
