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
//	a 404 response that is a page               the page in its place (see exchange.judge)
//	anything else                               passes through
//
// A handler that returns without writing has answered, too: net/http makes an empty 200 of it. In the error routes of a
// 404, the page is also for the end of the route and for any other error; in those of another error, its status stands.
// With dry_run, everything passes through.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if h.DryRun {
		return h.dryRun(w, r, next)
	}
	rw := new(responseWriter)
	if !rw.enter(h, w, r) {
		return next.ServeHTTP(w, r)
	}
	err := rw.serve(next)
	cause, isPage := rw.cause(err)
	if !isPage {
		return err
	}
	switch {
	case rw.state != pending || err == nil:
		err = rw.request.handledError()
	case !isNotFound(err):
		// in an error route, where Caddy would log it and send a bare 404: a dead backend must not go silent
		h.logger.Error("handling a 404 error; sending the page", zap.Error(err))
	}
	rw.answer(cause, err)
	return nil
}
