package notfound

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/net/http/httpguts"

	"github.com/caddy-notfound/notfound/internal/page"
	"github.com/caddy-notfound/notfound/internal/report"
)

// cause is the reason why a page is written.
type cause int

const (
	causeUnanswered cause = iota // nothing answered
	causeError                   // a handler returned an error with status 404
	causeResponse                // a handler wrote a response with status 404
	numCauses
)

var causeNames = [numCauses]string{"unanswered", "error", "response"}

// causeValues are causeNames as the replacer takes them, boxed once.
var causeValues = [numCauses]any{
	causeUnanswered: causeNames[causeUnanswered],
	causeError:      causeNames[causeError],
	causeResponse:   causeNames[causeResponse],
}

// outcomes are the causes as the report has them.
var outcomes = [numCauses]report.Outcome{
	causeUnanswered: report.Unanswered,
	causeError:      report.Error,
	causeResponse:   report.Response,
}

// answer makes the page, and sends it in the representation that the client asks for. err is the 404 error, if there is
// one.
func (rw *responseWriter) answer(c cause, err error) {
	h := rw.handler
	rw.request.decide(causeValues[c])
	rw.request.markHandled()

	asked := rw.request.asked()
	p := h.pages.Make(asked, rw.request.replacer)
	address := []byte(p.URI)
	link := report.LinkOf(rw.request.referer, address, asked.Authority)
	h.counter[c][link].Inc()
	if h.Report {
		missed.Add(report.Miss{Address: address, Referer: rw.request.referer, Link: link, Outcome: outcomes[c]})
	}
	rep := h.pages.Represent(p, rw.request.accept)
	defer rep.Free()
	if rep.TemplateError != nil {
		h.logTemplateError(rep.TemplateError)
	}

	rw.prepareHeader(c)
	rw.setHeader(rep)
	rw.ResponseWriter.WriteHeader(http.StatusNotFound)
	if asked.Method != http.MethodHead {
		// an error is of no use: the client is gone
		_, _ = rw.ResponseWriter.Write(rep.Body.Bytes())
	}

	if e := h.logger.Check(zapcore.DebugLevel, "wrote the 404 page"); e != nil {
		logPage(e, c, asked.Method, p.URI, rep.Format, err)
	}
}

// logPage and logTemplateError are functions of their own because zap's fields would need so much of the stack that many a
// page made it grow.
func logPage(e *zapcore.CheckedEntry, c cause, method, uri, format string, err error) {
	e.Write(
		zap.String("cause", causeNames[c]),
		zap.String("method", method),
		zap.String("uri", uri),
		zap.String("format", format),
		zap.Error(err),
	)
}

func (h *Handler) logTemplateError(err error) {
	h.logger.Error("rendering the template; sending the built-in page instead",
		zap.String("template", h.Template),
		zap.Error(err))
}

// prepareHeader removes the fields of a response that the page replaces which describe its content, and gives those
// about its server and its policies back to the site. Where nothing is replaced, what the site has set stays.
func (rw *responseWriter) prepareHeader(c cause) {
	header := rw.Header()
	if c != causeResponse {
		if describesAnyContent(header) && rw.request.isHandledResponse() {
			maps.DeleteFunc(header, func(field string, _ []string) bool { return describesContent(field) })
		}
		return
	}

	clear(header) // of what came after the response's header, too: trailers
	maps.Copy(header, rw.replaced.header)
	if header["Server"] != nil { // it may have been taken away, too
		restore(header, "Server", rw.server)
	}
	site := cmp.Or(rw.policies, new(policies))
	restore(header, "Content-Security-Policy", site.contentSecurityPolicy)
	restore(header, "Content-Security-Policy-Report-Only", site.contentSecurityPolicyReportOnly)
}

// restore sets a header field to what it was.
func restore(header http.Header, field string, values []string) {
	if values == nil {
		delete(header, field)
	} else {
		header[field] = values
	}
}

// setHeader sets the header fields of a page. The site's own Content-Security-Policy overrides the one that the
// representation needs.
func (rw *responseWriter) setHeader(rep page.Representation) {
	// The values are not shared between responses: Caddy's header handler changes values in place.
	header, values := rw.Header(), make([]string, 0, 6)
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
	case httpguts.HeaderValuesContainsToken(vary, "Accept"), httpguts.HeaderValuesContainsToken(vary, "*"):
		// nothing to add
	default:
		header["Vary"] = append(slices.Clip(vary), "Accept")
	}
}
