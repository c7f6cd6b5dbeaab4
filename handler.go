package notfound

import (
	"net/http"

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
// A handler that returns without writing has answered, too: net/http makes an empty 200 of it. In handle_errors,
// where the end of the chain is the status of the handled error, only a 404 gets the page.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	handled := handledError(r)
	rw := newResponseWriter(w, r, h, handled)
	err := rw.serve(next)
	if rw.state == passed {
		return err
	}

	switch {
	case rw.state == replaced: // whatever the error is
		rw.answer(report.Response, nil)
	case rw.state == errorStatus:
		rw.answer(report.Error, handled)
	case handled != nil && !isNotFound(handled):
		return err
	case isNotFound(err):
		rw.answer(report.Error, err)
	case err != nil || !rw.reachedEnd():
		return err
	case handled != nil:
		rw.answer(report.Error, handled)
	default:
		rw.answer(report.Unanswered, nil)
	}
	return nil
}
