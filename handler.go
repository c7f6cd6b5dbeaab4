package notfound

import (
	"context"
	"errors"
	"net/http"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// cause is the reason why a page is written.
type cause int

const (
	unanswered cause = iota // nothing was written
	errored                 // an error with status 404
	responded               // a response with status 404
	numCauses
)

var causeNames = [numCauses]string{"unanswered", "error", "response"}

// causePlaceholder holds the cause of the page that was written for a request; it is empty where none
// was. It is also how a handler knows a page of ours that comes from further down the chain.
const causePlaceholder = "http.not_found.cause"

// ServeHTTP calls the next handler, and writes the page if nothing else answered:
//
//	what came back                                         what happens
//	the end of the chain, nothing written                  the page
//	an error with status 404, nothing written              the page
//	a 404 response that is a page                          the page in its place (see responseWriter)
//	anything else, a handler that wrote nothing included   passes through
//
// In handle_errors, where Caddy answers with the status of the error that is being handled, only a 404
// gets the page.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	ctx := r.Context()
	repl := ctx.Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	repl.Map(noCause)

	rw := newResponseWriter(w, r, h, repl)
	err := rw.serve(next)
	if rw.state != pending {
		return err
	}

	handled, handling := ctx.Value(caddyhttp.ErrorCtxKey).(error)
	switch {
	case handling && !isNotFound(handled):
		return err
	case isNotFound(err):
		h.answer(rw, errored, err)
	case err != nil:
		return err
	case !rw.reachedEnd():
		return nil // a handler has answered, with nothing: net/http makes an empty 200 of it
	case handling:
		h.answer(rw, errored, handled)
	default:
		h.answer(rw, unanswered, nil)
	}
	return nil
}

// replaces reports whether the page takes the place of a 404 response with these header fields, and the
// cause that it is then written for.
func (h *Handler) replaces(ctx context.Context, repl *caddy.Replacer, header http.Header) (cause, bool) {
	if c, _ := repl.GetString(causePlaceholder); c != "" {
		return 0, false // a page of ours
	}

	// At the end of an error route Caddy writes the error's bare status: it is the 404 error still
	// that arrives here, not a response of somebody's.
	handled, _ := ctx.Value(caddyhttp.ErrorCtxKey).(error)
	if isNotFound(handled) && header.Get("Content-Type") == "" {
		return errored, true
	}

	switch h.Replace {
	case replaceAll:
		return responded, true
	case replaceNone:
		return 0, false
	default:
		return responded, isPage(header)
	}
}

// answer makes the page from the request, and writes it in the representation that the client asks for.
func (h *Handler) answer(rw *responseWriter, c cause, err error) {
	rw.replacer.Set(causePlaceholder, causeValues[c])
	h.pages[c].Inc()

	// Or the access log would say NOP. Only then: a reverse_proxy may still be dialing, for a
	// connection that it needs no more, and it reads the variables meanwhile, which have no lock.
	vars := varsOf(rw.exchange.Context)
	if isUnhandled(vars) {
		vars[unhandledVar] = false
	}

	p := h.newPage(rw.request, &rw.received, isTrusted(vars), rw.replacer)
	defer p.free()
	f := h.choose(rw.received.accept)
	policy := h.render(p, f, rw.replacer)
	rw.send(p, f, policy, c == responded, len(h.offered) > 1)

	if e := h.logger.Check(zapcore.DebugLevel, "wrote the 404 page"); e != nil {
		e.Write(
			zap.String("cause", causeNames[c]),
			zap.String("method", p.method),
			zap.String("uri", string(p.uri)), // a copy: a core may hold the entry back, and the page is reused
			zap.String("format", f.name),
			zap.Error(err),
		)
	}
}

// unhandledVar is the variable that Caddy sets where a route ended without an answer.
const unhandledVar = "unhandled"

// varsOf returns the variables of a request.
func varsOf(ctx context.Context) map[string]any {
	vars, _ := ctx.Value(caddyhttp.VarsCtxKey).(map[string]any)
	return vars
}

func isUnhandled(vars map[string]any) bool {
	unhandled, _ := vars[unhandledVar].(bool)
	return unhandled
}

// isTrusted reports whether the request comes from one of the server's trusted proxies.
func isTrusted(vars map[string]any) bool {
	trusted, _ := vars[caddyhttp.TrustedProxyVarKey].(bool)
	return trusted
}

// causeValues are causeNames as the replacer takes them, boxed once.
var causeValues = [numCauses]any{unanswered: causeNames[unanswered], errored: causeNames[errored], responded: causeNames[responded]}

// noCause makes the placeholder known, and empty, until a page sets it: what is set comes first.
func noCause(key string) (any, bool) {
	if key == causePlaceholder {
		return "", true
	}
	return nil, false
}

// isNotFound reports whether err asks for a 404 response.
func isNotFound(err error) bool {
	if err == nil {
		return false
	}
	he, ok := errors.AsType[caddyhttp.HandlerError](err)
	return ok && he.StatusCode == http.StatusNotFound
}
