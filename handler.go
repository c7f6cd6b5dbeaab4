package notfound

import (
	"net/http"

	"go.uber.org/zap"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// ServeHTTP calls the next handler, and writes the page if nothing else answered:
//
//	what came back                              what happens
//	the end of the chain, nothing written       the page
//	an error with status 404, nothing written   the page
//	a 404 response that is a page               the page in its place (see responseWriter.judge)
//	anything else                               passes through
//
// A handler that returns without writing has answered, too: net/http makes an empty 200 of it. In the error routes of a
// 404, the page is also for the end of the route and for any other error; in those of another error, its status stands.
// With dry_run, everything passes through.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	rw := new(responseWriter)
	if !rw.enter(h, w, r) {
		return next.ServeHTTP(w, r)
	}
	err := rw.callNext(next)
	cause, isPage := rw.cause(err)
	switch {
	case rw.reason != noReason:
		rw.logPassed()
		rw.countWithoutPage(rw.reason.countsAs())
		return err
	case !isPage:
		return err
	case h.DryRun:
		rw.countWithoutPage(cause)
		return err
	case rw.replaced != nil, err == nil:
		err = rw.request.handledError()
	case !isNotFound(err):
		// in an error route: Caddy would have logged this error; the page hides it, so log it here
		h.logger.Error("handling a 404 error; sending the page", zap.Error(err))
	}
	rw.answer(cause, err)
	return nil
}
