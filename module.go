// Package notfound is a Caddy HTTP handler that answers when nothing else does: it writes one
// consistent 404 page for every unknown address, whether a route ended without an answer, a handler
// such as file_server returned a 404 error, or a backend sent a 404 page of its own.
package notfound

import (
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

func init() {
	caddy.RegisterModule(Handler{})
}

// Handler answers a request with a 404 page when nothing else does. It calls the next handler, and
// writes the page if
//
//   - nothing was written (Caddy alone would send an empty 200);
//   - an error with status 404 was returned, as file_server and `error 404` do;
//   - a 404 response that is itself a page was written, by a proxied backend for example.
//
// Everything else passes through untouched: other statuses, other errors, upgrades, streams. Its
// position in the route decides what it covers: last, it is the end of the chain; ahead of
// reverse_proxy, it is the fallback of every backend behind it.
//
// The page is sent as plain text, HTML, JSON, problem details or XML, as the request's Accept header
// asks. After a page was written, the placeholder `{http.not_found.cause}` holds the reason:
// `unanswered`, `error` or `response`; otherwise it is empty.
type Handler struct {
	// The path of the application that the page speaks for, for example `/app`. The page's message
	// then names `/app/missing.html`, whatever path was requested. It begins with a slash; a
	// trailing slash is dropped. Placeholders are supported. Default: empty, the root context.
	ContextPath string `json:"context_path,omitempty"`

	// The absolute http or https URL that the address on the page begins with, for example
	// `https://www.example.com`. It may have a path, but no user, query or fragment; a trailing
	// slash is dropped. Placeholders are supported. Default: the scheme and the host that the
	// client addressed, as X-Forwarded-Proto and X-Forwarded-Host give them where the request comes
	// from one of the server's trusted proxies.
	BaseURL string `json:"base_url,omitempty"`

	// The last line of the page: one line of text. Placeholders are supported.
	// Default: `Powered by Caddy` and Caddy's version.
	Footer string `json:"footer,omitempty"`

	// The representations on offer: `text`, `html`, `json`, `problem` (RFC 9457) and `xml`. The
	// first is preferred among those that the client accepts equally, and is what a client gets
	// that accepts none of them. Default: all five, in this order.
	Formats []string `json:"formats,omitempty"`

	// Which 404 responses of the next handlers the page replaces. `pages`: those with no body, with
	// no Content-Type, or with HTML, XHTML or plain text, which is what people look at; JSON,
	// images and the like pass. `all`: every one. `none`: not one; requests that nothing answered
	// and 404 errors still get the page. Default: `pages`.
	Replace string `json:"replace,omitempty"`

	// A file with a Go html/template for the HTML representation. Its data are `.Heading`, `.URI`,
	// `.Status`, `.Message` and `.Footer`; its function `placeholder "name"` gives the value of a
	// Caddy placeholder. It is read when the config loads. Should it fail for a request, the error
	// is logged and the built-in page is sent. Default: the built-in page.
	Template string `json:"template,omitempty"`

	contextPath, baseURL, footer text

	offered  []*format
	usual    map[string]*format // by usualAccepts
	template *pageTemplate      // nil: the built-in page
	pages    pageCounter
	logger   *zap.Logger
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

// Provision resolves the global placeholders, finds the formats, reads the template and registers
// the counter.
func (h *Handler) Provision(ctx caddy.Context) error {
	h.logger = ctx.Logger()

	h.contextPath = newText(h.ContextPath)
	h.baseURL = newText(h.BaseURL)
	h.footer = newText(h.Footer)
	if h.Footer == "" {
		h.footer = text{value: defaultFooter()}
	}

	h.offered = nil
	for _, name := range h.Formats {
		f := formatByName(name)
		if f == nil {
			return fmt.Errorf("formats: unknown format %q; the formats are text, html, json, problem and xml", name)
		}
		if slices.Contains(h.offered, f) {
			return fmt.Errorf("formats: %s is given twice; give each format once", name)
		}
		h.offered = append(h.offered, f)
	}
	if len(h.offered) == 0 {
		for i := range formats {
			h.offered = append(h.offered, &formats[i])
		}
	}

	h.usual = make(map[string]*format, len(usualAccepts))
	for _, accept := range usualAccepts {
		h.usual[accept] = h.negotiate([]string{accept})
	}

	if h.Template != "" {
		t, err := loadTemplate(h.Template)
		if err != nil {
			return fmt.Errorf("template: %w", err)
		}
		h.template = t
	}

	var err error
	if h.pages, err = newPageCounter(ctx.GetMetricsRegistry()); err != nil {
		return fmt.Errorf("registering the counter: %w", err)
	}
	return nil
}

// Validate refuses values that no request could use, and trims those that all of them will. Of a value
// with per-request placeholders it sees only how it begins; the rest is made safe for each request.
func (h *Handler) Validate() error {
	if s := h.contextPath.value; h.contextPath.perRequest {
		if s[0] != '/' && s[0] != '{' {
			return fmt.Errorf("context_path: %q does not begin with a slash; write it as in /app", s)
		}
	} else {
		path, err := parseContextPath(s)
		if err != nil {
			return fmt.Errorf("context_path: %w", err)
		}
		h.contextPath.value = path
	}

	if s := h.baseURL.value; h.baseURL.perRequest {
		if s[0] != '{' && !hasHTTPScheme(s) {
			return fmt.Errorf("base_url: %q does not begin with http:// or https://", s)
		}
	} else if h.BaseURL != "" {
		base, err := parseBaseURL(s)
		if err != nil {
			return fmt.Errorf("base_url: %w", err)
		}
		h.baseURL.value = base
	}

	if s := h.footer.value; !h.footer.perRequest {
		clean := cleanLine(s)
		if clean == "" {
			return fmt.Errorf("footer: %q is blank; write one line of text, or leave the option out", h.Footer)
		}
		if strings.ContainsFunc(s, isNotLineText) {
			return fmt.Errorf("footer: %q is not one line of text; leave out line breaks and control characters", s)
		}
		h.footer.value = clean
	}

	switch h.Replace {
	case "", replacePages, replaceAll, replaceNone:
	default:
		return fmt.Errorf("replace: unknown mode %q; it is pages, all or none", h.Replace)
	}
	return nil
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddy.Validator             = (*Handler)(nil)
	_ caddyfile.Unmarshaler       = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
)
