// Package notfound is a Caddy HTTP handler that answers when nothing else does. It writes one consistent 404 page
// for every unknown address: whether no handler answered, a handler such as file_server returned a 404 error, or
// an upstream sent a 404 page of its own.
package notfound

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"go.uber.org/zap"
	"golang.org/x/net/http/httpguts"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

func init() {
	caddy.RegisterModule(Handler{})
}

// Handler answers a request with a 404 page when nothing else does. It calls the next handler, and writes the
// page if
//
//   - the request reached the end of the chain and nothing was written (Caddy alone sends an empty 200);
//   - a handler returned an error with status 404, as file_server and `error 404` do;
//   - a handler, such as reverse_proxy, wrote a 404 response that is itself a page.
//
// Everything else passes through untouched: other statuses, other errors, upgrades, streams. The position of the
// handler in the route decides what it covers: last, it is the end of the chain; before reverse_proxy, it is the
// fallback for every upstream.
//
// The page is sent as plain text, HTML, Markdown, JSON, problem details or XML, whichever the request's Accept
// header prefers. Once a page is written, the placeholder `{http.not_found.cause}` is `unanswered`, `error` or
// `response`; otherwise it is empty.
type Handler struct {
	// The path of the application that the page speaks for, for example `/app`. The message on the page
	// then names `/app/missing.html`, whatever path was requested. It begins with a slash; a trailing
	// slash is dropped. Placeholders are supported. Default: empty, the root context.
	ContextPath string `json:"context_path,omitempty"`

	// The absolute http or https URL that the address on the page begins with, for example
	// `https://www.example.com`. It may have a path, but no user, query or fragment; a trailing slash
	// is dropped. Placeholders are supported. Default: the scheme and the host that the client
	// addressed, or those in X-Forwarded-Proto and X-Forwarded-Host if the request comes from one of
	// the server's trusted proxies.
	BaseURL string `json:"base_url,omitempty"`

	// The last line of the page: one line of text. Placeholders are supported.
	// Default: `Powered by Caddy` and Caddy's version.
	Footer string `json:"footer,omitempty"`

	// The representations on offer: `text`, `html`, `markdown`, `json`, `problem` (RFC 9457) and `xml`.
	// The first is preferred among those that the client accepts equally, and is sent to a client that
	// accepts none of them. Default: all six, in this order.
	Formats []string `json:"formats,omitempty"`

	// Which 404 responses of the next handlers the page replaces. `pages`: those without a body, without
	// a Content-Type, or with HTML, XHTML or plain text, which is what people look at; JSON, images and
	// the like pass, and so does everything of gRPC. `all`: every one. `none`: none; requests that
	// nothing answered and 404 errors still get the page. Default: `pages`.
	Replace string `json:"replace,omitempty"`

	// Which 404 responses are never replaced, in any mode: those that one of these matchers matches, for example by
	// a header field that marks an application's own designed pages. Global placeholders are supported in the
	// values of header fields. Default: none.
	Keep []caddyhttp.ResponseMatcher `json:"keep,omitempty"`

	// A file with a Go html/template for the HTML representation. Its data are `.Heading`, `.URI`,
	// `.Status`, `.Message` and `.Footer`; its function `placeholder "name"` returns the value of a
	// Caddy placeholder. The template is read, and tried on a sample page, when the config loads, and again
	// within two seconds or so after the file has changed; if it is no good then, the error is logged, and the
	// last good one goes on. If it fails for a request, the error is logged and the built-in page is sent.
	// Default: the built-in page.
	Template string `json:"template,omitempty"`

	// Whether to count this handler's 404s in the report of missing addresses, which Caddy's admin API serves
	// at `/not_found/report` and `caddy not-found report` prints. It is kept in memory, for the whole
	// process and across config reloads, for at most 1,000 addresses (host and path, without the query and
	// the fragment).
	// Default: false.
	Report bool `json:"report,omitempty"`

	page     pageOptions
	offered  []*format
	template *pageTemplate // nil: the built-in page
	pages    pageCounter
	logger   *zap.Logger

	reporting bool // registered with the report
}

// CaddyModule returns the Caddy module information.
func (Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.not_found",
		New: func() caddy.Module { return new(Handler) },
	}
}

// The modes of Handler.Replace.
const (
	replacePages = "pages"
	replaceAll   = "all"
	replaceNone  = "none"
)

// Provision expands the global placeholders of the options, checks them, reads the template and registers the
// counter.
func (h *Handler) Provision(ctx caddy.Context) error {
	h.logger = ctx.Logger()

	var err error
	if h.page.contextPath, err = provisionText(h.ContextPath, parseContextPath); err != nil {
		return fmt.Errorf("context_path: %w", err)
	}
	if h.BaseURL != "" {
		if h.page.baseURL, err = provisionText(h.BaseURL, parseBaseURL); err != nil {
			return fmt.Errorf("base_url: %w", err)
		}
	}
	h.page.footer = expandable{value: defaultFooter()}
	if h.Footer != "" {
		if h.page.footer, err = provisionText(h.Footer, parseFooter); err != nil {
			return fmt.Errorf("footer: %w", err)
		}
	}

	if h.offered, err = parseFormats(h.Formats); err != nil {
		return fmt.Errorf("formats: %w", err)
	}

	if err = h.provisionKeep(); err != nil {
		return fmt.Errorf("keep: %w", err)
	}
	if err = h.checkTemplate(); err != nil {
		return err
	}
	if h.Template != "" {
		if h.template, err = loadTemplate(h.Template, h.logger); err != nil {
			return fmt.Errorf("template: %w", err)
		}
	}

	if h.pages, err = newPageCounter(ctx.GetMetricsRegistry()); err != nil {
		return fmt.Errorf("registering the counter: %w", err)
	}
	if h.Report {
		missed.register()
		h.reporting = true
	}
	return nil
}

// provisionText expands the global placeholders of a value, and parses it.
func provisionText(s string, parse func(expandable) (string, error)) (e expandable, err error) {
	e = expandGlobal(s)
	e.value, err = parse(e)
	return e, err
}

// Validate refuses an unknown mode.
func (h *Handler) Validate() error {
	if err := checkReplace(h.Replace); err != nil {
		return fmt.Errorf("replace: %w", err)
	}
	return nil
}

func checkReplace(mode string) error {
	switch mode {
	case "", replacePages, replaceAll, replaceNone:
		return nil
	default:
		return fmt.Errorf("unknown mode %q; it is pages, all or none", mode)
	}
}

// provisionKeep checks the matchers of keep, and expands the global placeholders in them, for Caddy expands none in a
// response matcher.
func (h *Handler) provisionKeep() error {
	repl := caddy.NewReplacer()
	for _, m := range h.Keep {
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

// keeps reports whether a 404 response with these header fields is never replaced.
func (h *Handler) keeps(header http.Header) bool {
	return slices.ContainsFunc(h.Keep, func(m caddyhttp.ResponseMatcher) bool {
		return m.Match(http.StatusNotFound, header)
	})
}

// checkTemplate refuses a template that no format uses.
func (h *Handler) checkTemplate() error {
	if h.Template == "" || len(h.Formats) == 0 || slices.Contains(h.Formats, "html") {
		return nil
	}
	return fmt.Errorf("template: %s is for the HTML page, and the formats %s have no html; add html to them, or leave the template out",
		h.Template, strings.Join(h.Formats, " "))
}

// Cleanup takes the handler off the report, which goes on for the handlers of the next config.
func (h *Handler) Cleanup() error {
	if h.reporting {
		missed.unregister()
	}
	return nil
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddy.CleanerUpper          = (*Handler)(nil)
	_ caddy.Validator             = (*Handler)(nil)
	_ caddyfile.Unmarshaler       = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
)
