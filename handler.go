package notfound

import (
	"errors"
	"net/http"

	"go.uber.org/zap"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/report"
)

// ServeHTTP calls the next handler, and writes the page if nothing else answered:
//
//	what came back                              what happens
//	the end of the chain, nothing written       the page
//	an error with status 404, nothing written   the page
//	a 404 response that is a page               the page in its place (see responseWriter)
//	anything else                               passes through
//
// A handler that returns without writing has answered, too: net/http makes an empty 200 of it. In the error routes of a
// 404, the page is also for the end of the route and for any other error; in those of another error, its status stands.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	rw := newResponseWriter(w, r, h)
	if !rw.decision.enter(rw) {
		return next.ServeHTTP(w, r)
	}
	err := rw.serve(next)

	failure := errorOfRoute(r)
	switch {
	case rw.state == passed:
		return err
	case rw.state == replaced: // whatever the error is
		rw.answer(rw.replaced.cause, failure)
	case rw.state == bare:
		rw.answer(report.Error, failure)
	case failure != nil && !isNotFound(failure):
		return err
	case isNotFound(err):
		rw.answer(report.Error, err)
	case err != nil && failure != nil:
		// Caddy would send the bare 404, and log this error: a dead backend must not go silent
		h.logger.Error("handling a 404 error; sending the page", zap.Error(err))
		rw.answer(report.Error, err)
	case err != nil || !rw.reachedEnd():
		return err
	case failure != nil:
		rw.answer(report.Error, failure)
	default:
		rw.answer(report.Unanswered, nil)
	}
	return nil
}

// errorOfRoute returns the error that an error route is for, or nil in any other route.
func errorOfRoute(r *http.Request) error {
	err, _ := r.Context().Value(caddyhttp.ErrorCtxKey).(error)
	return err
}

// isNotFound reports whether err asks for a 404 response.
func isNotFound(err error) bool {
	if err == nil {
		return false
	}
	he, ok := errors.AsType[caddyhttp.HandlerError](err)
	return ok && he.StatusCode == http.StatusNotFound
}
