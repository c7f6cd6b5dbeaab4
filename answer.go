package notfound

import (
	"maps"
	"net/http"
	"strconv"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/net/http/httpguts"

	"github.com/caddy-notfound/notfound/internal/page"
	"github.com/caddy-notfound/notfound/internal/report"
)

// answer sends the page in the representation that the client accepts. err is the error that it answers, or nil.
func (rw *responseWriter) answer(cause report.Outcome, err error) {
	h := rw.handler
	rw.decision.decide(cause)
	rw.request.setHandled()

	asked := rw.request.asked()
	p := h.pages.Make(&asked, rw.request.replacer)
	rw.countPage(&asked, p.URI, cause)
	rep := h.pages.Represent(&p, rw.request.client.accept)
	defer rep.Free()

	rw.setHeader(rep)
	rw.ResponseWriter.WriteHeader(http.StatusNotFound)
	if asked.Method != http.MethodHead {
		_, _ = rw.ResponseWriter.Write(rep.Body.Bytes()) // an error means that the client is gone
	}

	if e := h.logger.Check(zapcore.DebugLevel, "wrote the 404 page"); e != nil {
		rw.logPage(e, cause, asked.Method, p.URI, rep.Format, err)
	}
}

// logPage is separate, because zap's fields enlarge the frame, and most requests would grow their stack.
func (rw *responseWriter) logPage(e *zapcore.CheckedEntry, cause report.Outcome, method, uri, format string, err error) {
	replaced := zap.Skip()
	if cause == report.Response {
		replaced = zap.String("replaced_content_type", rw.replaced.header.Get("Content-Type"))
	}
	e.Write(
		zap.Stringer("cause", cause),
		zap.String("method", method),
		zap.String("uri", uri),
		zap.String("format", format),
		replaced,
		zap.Error(err),
	)
}

// logPassed logs why a 404 response has passed, unless an inner handler has decided, which logs it.
func (rw *responseWriter) logPassed() {
	e := rw.handler.logger.Check(zapcore.DebugLevel, "a 404 response passes")
	if e == nil || rw.reason == reasonInner {
		return
	}
	asked := rw.request.asked()
	e.Write(
		zap.Stringer("reason", rw.reason),
		zap.String("method", asked.Method),
		zap.String("uri", rw.handler.pages.URI(&asked, rw.request.replacer)),
		zap.String("content_type", rw.Header().Get("Content-Type")),
	)
}

// setHeader sets the header of a page, without the fields of another body. A Content-Security-Policy of the site's
// overrides the page's.
func (rw *responseWriter) setHeader(rep page.Representation) {
	header := rw.Header()
	if rw.replaced != nil {
		clear(header) // of trailers, too
		maps.Copy(header, rw.replaced.header)
	}
	maps.DeleteFunc(header, func(field string, _ []string) bool { return describesBody(field) })
	if rw.replaced != nil && rw.replaced.cause == report.Response {
		rw.restoreSiteHeader()
	}

	// The values are not shared between responses: Caddy's header handler changes values in place.
	values := make([]string, 0, 6)
	set := func(field, value string) {
		values = append(values, value)
		header[field] = values[len(values)-1 : len(values) : len(values)]
	}

	set("Content-Type", rep.ContentType)
	set("Content-Length", strconv.Itoa(rep.Body.Len()))
	set("X-Content-Type-Options", "nosniff")
	set("Cache-Control", "no-store")
	if rep.Policy != "" && header["Content-Security-Policy"] == nil {
		set("Content-Security-Policy", rep.Policy)
	}
	if !rw.handler.pages.Varies() {
		return
	}
	switch vary := header["Vary"]; {
	case vary == nil:
		set("Vary", "Accept")
	case !httpguts.HeaderValuesContainsToken(vary, "Accept") && !httpguts.HeaderValuesContainsToken(vary, "*"):
		header.Add("Vary", "Accept")
	}
}

// restoreSiteHeader restores the site's fields, as they were before the response that the page replaces. A response
// without Server gets none: a handler has taken it away.
func (rw *responseWriter) restoreSiteHeader() {
	header := rw.Header()
	for i, field := range siteFields {
		switch value := rw.siteHeader[i]; {
		case value == "":
			delete(header, field)
		case field != "Server" || header[field] != nil:
			header[field] = []string{value}
		}
	}
}
