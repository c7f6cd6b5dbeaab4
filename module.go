// Package notfound is a Caddy HTTP handler that answers when nothing else does, with one 404 page for every unknown
// address.
//
// A request goes through the code in one of these ways:
//
//   - Nothing answers, or a handler returns an error with status 404. The next handler writes nothing.
//     [judge.Judge.Decide] finds the cause, and exchange.answer sends the page.
//   - An upstream sends a 404. reverse_proxy calls [response.Writer.WriteHeader], which asks [judge.Judge.Status]. If
//     the response is held, [response.Writer.Write] drains it, unless [judge.Judge.Body] sees that it is JSON. Then
//     exchange.answer sends the page.
//   - Another response comes, such as a 200. [response.Writer] passes it on unchanged.
//   - A handler of the same group is already running. [Handler.ServeHTTP] calls the next one, and does nothing else.
//
// In a dry run, [judge.DryRun] takes the judge's place, and everything passes. CONTRIBUTING.md has a map of the code.
package notfound

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/encode"

	"github.com/caddy-notfound/notfound/internal/judge"
	"github.com/caddy-notfound/notfound/internal/page"
	"github.com/caddy-notfound/notfound/internal/report"
	"github.com/caddy-notfound/notfound/internal/represent"
)

func init() {
	caddy.RegisterModule(Handler{})
}

// Handler answers a request with a 404 page when nothing else does. It calls the next handler, and writes the page if
//
//   - the request reached the end of the chain and nothing was written (Caddy alone sends an empty 200);
//   - a handler returned an error with status 404, as file_server and `error 404` do;
//   - a handler, such as reverse_proxy, wrote a 404 response that is itself a page.
//
// Everything else passes through unchanged, except that a 404 response which other clients would not get is sent with a
// `Vary`. The position of the handler in the route decides what it covers: last, it is the end of the chain; before
// reverse_proxy, it is the fallback for every upstream.
//
// The page is plain text, HTML, Markdown, JSON, problem details or XML, whichever the client's Accept header prefers.
// Once it is written, the placeholder `{http.not_found.cause}` is `unanswered`, `error` or `response`; otherwise it is
// empty. If a 404 response passed, `{http.not_found.reason}` says why: `keep`, `media type`, `script`, `JSON`, `no
// browser`, `replace none` or `dry_run`. In a dry run, `dry_run` is also the reason if nothing answered, or if a
// handler returned an error with status 404.
//
// See docs/options.md for more about each option.
type Handler struct {
	// The message on the page is this line of text. Default: `No endpoint <METHOD> <context_path>/missing.html.`
	Message string `json:"message,omitempty"`

	// The default message names this path of the application. Default: empty, the root context.
	ContextPath string `json:"context_path,omitempty"`

	// The address on the page begins with this http or https URL. Default: the scheme and host that the client addressed.
	BaseURL string `json:"base_url,omitempty"`

	// This URL or path is the address on the page, if another proxy asks for the page. Default: what the client asked for.
	URI string `json:"uri,omitempty"`

	// The last line of the page is this line of text. Default: `Powered by Caddy <version>`.
	Footer string `json:"footer,omitempty"`

	// These representations are offered, the first one to a client that accepts none of them. Default: `text html markdown
	// json problem xml`, those with a `template` first.
	Formats []string `json:"formats,omitempty"`

	// These 404 responses are replaced: what people look at (`pages`), that for `browsers` alone, `all` or `none`.
	// Default: `pages`.
	Replace string `json:"replace,omitempty"`

	// A 404 response that matches is never replaced. Default: none.
	Keep []caddyhttp.ResponseMatcher `json:"keep,omitempty"`

	// The first of these files of your own that can be sent is the page in one format, by default `html`. A path may have
	// placeholders. Default: the built-in page.
	Template map[string][]string `json:"template,omitempty"`

	// The compressed file of a build, such as `404.html.br`, is sent in place of a file whose path has placeholders of a
	// request. Default: off.
	Precompressed []string `json:"precompressed,omitempty"`

	// The report counts the 404s of this handler. Default: off.
	Report bool `json:"report,omitempty"`

	// Nothing changes, and the report counts what the page would be for. Default: off.
	DryRun bool `json:"dry_run,omitempty"`

	// While a handler of a group is running, the others of the group only call the next handler. The Caddyfile gives the
	// directives of a block the same group, so that only the first one that matches takes effect. Default: none.
	Group string `json:"group,omitempty"`

	maker           *page.Maker
	representations *represent.Formats
	judgeOptions    judge.Options
	showsRequestID  bool            // an option names the ID; a template may name it as well
	counter         *report.Counter // nil: it counts nothing
	logger          *zap.Logger
}

// CaddyModule returns the Caddy module information.
func (Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.not_found",
		New: func() caddy.Module { return new(Handler) },
	}
}

// optionNames are the names of the options, in the order of their fields. The Caddyfile sets the group by itself.
var optionNames = func() (names []string) {
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Handler]()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "" && name != "group" {
			names = append(names, name)
		}
	}
	return names
}()

// valueOption is an option that takes one value.
type valueOption struct {
	name  string
	value *string
	rule  func(string) error // says what is wrong with a value

	takesPlaceholders bool // the rule then applies to the expanded value
}

// valueOptions returns the options that take one value.
func (h *Handler) valueOptions() []valueOption {
	return []valueOption{
		{"message", &h.Message, page.CheckLine, true},
		{"context_path", &h.ContextPath, page.CheckContextPath, true},
		{"base_url", &h.BaseURL, page.CheckBaseURL, true},
		{"uri", &h.URI, page.CheckURI, true},
		{"footer", &h.Footer, page.CheckLine, true},
		{"replace", &h.Replace, judge.CheckMode, false},
	}
}

// Provision checks the options, reads the files of pages and registers the counter.
func (h *Handler) Provision(ctx caddy.Context) error {
	h.logger = ctx.Logger()
	err := h.checkLoaded()
	if err != nil {
		return err
	}
	h.judgeOptions = judge.Options{
		Mode:  cmp.Or(h.Replace, judge.Pages),
		Keep:  h.Keep,
		Group: h.Group,
	}
	h.maker = page.NewMaker(page.Options{
		Message:       h.Message,
		ContextPath:   h.ContextPath,
		BaseURL:       h.BaseURL,
		URI:           h.URI,
		Footer:        h.Footer,
		DefaultFooter: serverLine(),
	})
	h.representations, err = h.newRepresentations()
	if err != nil {
		return err
	}
	for _, o := range h.valueOptions() {
		h.showsRequestID = h.showsRequestID || strings.Contains(*o.value, represent.RequestID)
	}
	for _, row := range h.Template {
		h.showsRequestID = h.showsRequestID || strings.Contains(strings.Join(row, " "), represent.RequestID)
	}
	if err := report.Register(ctx.GetMetricsRegistry()); err != nil {
		h.logger.Warn("the metrics have no caddy_not_found_pages_total", zap.Error(err))
	}
	if h.Report || h.DryRun {
		h.counter = &report.Missed
		h.counter.Begin()
	}
	return nil
}

// newRepresentations returns the representations of the pages, and reads the files of pages.
func (h *Handler) newRepresentations() (*represent.Formats, error) {
	suffixes, _ := h.suffixes() // check has refused what is wrong
	return represent.New(represent.Options{
		Formats:   h.Formats,
		Templates: h.Template,
		Encodings: h.Precompressed,
		Suffixes:  suffixes,
		Logger:    h.logger,
		Trial:     represent.Trial{Sample: sample, FullName: fullName},
	})
}

// suffixes returns the suffixes of the compressed files, from the modules that file_server uses.
func (h *Handler) suffixes() (suffixes []string, err error) {
	for i, encoding := range h.Precompressed {
		if slices.Contains(h.Precompressed[:i], encoding) {
			return nil, fmt.Errorf("precompressed: %s is given twice; give each encoding once", encoding)
		}
		var module encode.Precompressed
		if info, err := caddy.GetModule("http.precompressed." + encoding); err == nil {
			module, _ = info.New().(encode.Precompressed)
		}
		if module == nil {
			return nil, fmt.Errorf("precompressed: unknown encoding %q; write br, zstd or gzip", encoding)
		}
		suffixes = append(suffixes, module.Suffix())
	}
	return suffixes, nil
}

// check checks the options, but for values with placeholders. The Caddyfile's parser calls it after each option, so
// that an error has a line, and perhaps on a machine where the config will not run.
func (h *Handler) check() error {
	for _, o := range h.valueOptions() {
		if err := o.check(); err != nil {
			return fmt.Errorf("%s: %w", o.name, err)
		}
	}
	if err := page.CheckNoError(h.URI); err != nil {
		return fmt.Errorf("uri: %w", err)
	}
	if h.Message != "" && h.ContextPath != "" {
		return errors.New("message: with a message of your own, context_path has no effect; leave one of the two out")
	}
	if err := represent.CheckFormats(h.Formats); err != nil {
		return fmt.Errorf("formats: %w", err)
	}
	for _, m := range h.Keep {
		if err := judge.CheckKeep(m); err != nil {
			return fmt.Errorf("keep: %w", err)
		}
	}
	if err := represent.CheckTemplates(h.Template, h.Formats); err != nil {
		return fmt.Errorf("template: %w", err)
	}
	_, err := h.suffixes()
	return err
}

// checkLoaded checks the options of a config that loads. By now, all of them are set, and global placeholders can be
// expanded.
func (h *Handler) checkLoaded() error {
	if err := h.check(); err != nil {
		return err
	}
	for _, o := range h.valueOptions() {
		if err := o.checkExpanded(); err != nil {
			return fmt.Errorf("%s: %w", o.name, err)
		}
	}
	for _, row := range h.Template {
		for _, path := range row {
			if err := checkShorthands(path); err != nil {
				return fmt.Errorf("template: %w", err)
			}
		}
	}
	if len(h.Precompressed) > 0 {
		if err := represent.CheckPrecompressed(h.Template); err != nil {
			return fmt.Errorf("precompressed: %w", err)
		}
	}
	return nil
}

// check checks a value, unless it has placeholders.
func (o *valueOption) check() error {
	value := *o.value
	if value == "" {
		return nil
	}
	if err := page.CheckNoBody(value); err != nil {
		return err
	}
	if o.hasPlaceholders() {
		return nil
	}
	return o.rule(value)
}

// checkExpanded checks a value with placeholders, unless one of them depends on the request.
func (o *valueOption) checkExpanded() error {
	value := *o.value
	if !o.hasPlaceholders() {
		return nil
	}
	expanded, err := caddy.NewReplacer().ReplaceOrErr(value, false, true)
	if err != nil { // a placeholder depends on the request
		return checkShorthands(value)
	}
	return o.rule(expanded)
}

func (o *valueOption) hasPlaceholders() bool {
	return o.takesPlaceholders && strings.Contains(*o.value, "{")
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddyfile.Unmarshaler       = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
)
