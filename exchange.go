package notfound

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/report"
)

// exchange is a request at a handler. It judges what the next handler writes. The handler's writer obeys, and a dry run's
// does not.
type exchange struct {
	caddyhttp.ResponseWriterWrapper
	handler *Handler // its configuration
	request request

	state        state
	passed404    bool              // a 404 response passes
	passedAs     report.Outcome    // and counts as this
	isForProgram bool              // a 404 response came whose type `replace pages` lets pass
	replaced     *replacedResponse // nil until there is one

	decision *decision // of all not_found handlers of the request
	own      decision  // which it is in the first of them
	outer    *exchange // of the handler around this one
}

// state is the state of a response.
type state uint8

const (
	pending  state = iota // nothing is sent
	bare                  // the handled error's status came, and nothing else; it is not sent
	passed                // the next handler answers
	replaced              // the page takes the place of the next handler's response
)

// replacedResponse is what is left of a response that the page replaces.
type replacedResponse struct {
	cause    report.Outcome
	header   http.Header // as it was when the response began
	drained  int64       // bytes of the body
	deadline time.Time   // from when on a write fails
}

// enter begins the exchange. It returns false if a handler of the same group is already running.
func (x *exchange) enter(h *Handler, w http.ResponseWriter, r *http.Request) bool {
	x.ResponseWriter, x.handler, x.request = w, h, newRequest(r, w.Header())
	if h.URI != "" { // before a rewrite changes the query that it may come in
		x.request.client.uri = new(h.pages.ExpandURI(x.request.replacer))
	}
	shared, _ := x.request.replacer.Get(decisionKey)
	if x.decision, _ = shared.(*decision); x.decision == nil {
		x.decision = &x.own
		x.request.replacer.Map(x.own.placeholder)
	}
	return x.decision.enter(x)
}

// judge decides what becomes of the response with a status that the next handler writes. It returns whether the status
// is sent.
func (x *exchange) judge(status int) (isSent bool) {
	switch x.state {
	case bare, replaced:
		return false // as net/http, which takes the first status
	case pending:
		switch {
		case status == 0 && x.request.isUnhandled():
			// What follows is made of nothing. intercept and vulcain write the status that they recorded, over which
			// net/http would panic; vulcain writes a body, too.
			x.replace(report.Unanswered)
			return false
		case status == http.StatusOK && x.isUnanswered():
			return false
		case status == http.StatusNotFound && x.isBareStatus():
			x.state = bare
			return false
		case status == http.StatusNotFound && x.judge404():
			x.replace(report.Response)
			return false
		}
	}
	if status < 100 || status > 199 || status == http.StatusSwitchingProtocols {
		x.state = passed
	}
	return true
}

// judgeBare judges a bare status as a response, because more follows it. It returns whether the status is sent.
func (x *exchange) judgeBare() (isSent bool) {
	if x.state != bare {
		return false
	}
	x.request.failed.header, x.state = nil, pending
	return x.judge(http.StatusNotFound)
}

// judge404 decides whether the page takes the place of a 404 response. If it does not, the response passes all other
// not_found handlers on its way, too: of one inside another the inner one decides.
func (x *exchange) judge404() (isReplaced bool) {
	x.isForProgram = !isForPeople(x.request.Method, x.Header())
	if x.decision.isDecided() {
		x.passed404, x.passedAs = true, report.Passed
		return false
	}
	switch reason := x.reasonToPass(); {
	case x.handler.DryRun && reason == "":
		x.logPassed("dry_run")
		return true // but for the dry run
	case reason == "":
		return true
	default:
		x.logPassed(reason)
		if x.passed404, x.passedAs = true, report.Passed; reason == reasonMode {
			x.passedAs = report.Replaceable
		}
	}
	if !x.handler.DryRun {
		x.decision.decide(report.Passed)
	}
	return false
}

// reasonMode is the reason why a 404 response passes that `replace pages` would have replaced.
const reasonMode = "replace none"

// reasonToPass returns why a 404 response passes. It returns nothing if the page takes its place.
func (x *exchange) reasonToPass() string {
	switch mode := x.handler.Replace; {
	case x.isKept(x.Header()):
		return "keep"
	case mode == replaceAll:
		return ""
	case x.isForProgram:
		return "media type"
	case x.request.client.isScript:
		return "script"
	case mode == replaceNone:
		return reasonMode
	default:
		return ""
	}
}

// logPassed logs why a 404 response passes.
func (x *exchange) logPassed(reason string) {
	e := x.handler.logger.Check(zapcore.DebugLevel, "a 404 response passes")
	if e == nil || !x.decision.claimLog() {
		return
	}
	asked := x.request.asked()
	e.Write(
		zap.String("reason", reason),
		zap.String("method", asked.Method),
		zap.String("uri", x.handler.pages.URI(&asked, x.request.replacer)),
		zap.String("content_type", x.Header().Get("Content-Type")),
	)
}

// isKept reports whether a 404 response with this header is never replaced.
func (x *exchange) isKept(header http.Header) bool {
	return slices.ContainsFunc(x.handler.Keep, func(m caddyhttp.ResponseMatcher) bool {
		return m.Match(http.StatusNotFound, header)
	})
}

// isForPeople reports whether a response with these header fields is something that people look at, or nothing at
// all, rather than an answer for a program.
func isForPeople(method string, header http.Header) bool {
	mediaType, _, _ := strings.Cut(header.Get("Content-Type"), ";")
	switch mediaType = strings.ToLower(strings.TrimSpace(mediaType)); mediaType {
	case "", "text/html", "application/xhtml+xml", "text/plain":
		return true
	}
	// Nothing at all. gRPC has its answer in the header or the trailers. A response to HEAD has no body, and a middleware
	// may have counted that: its type says what GET gets.
	return header.Get("Content-Length") == "0" && method != http.MethodHead && !strings.HasPrefix(mediaType, "application/grpc")
}

// isUnanswered reports whether a 200 means that nothing answered: templates and replace-response write one for an empty
// buffer. A body that follows implies the 200.
func (x *exchange) isUnanswered() bool {
	length := x.Header().Get("Content-Length")
	return (length == "" || length == "0") && x.request.isUnhandled()
}

// isBareStatus reports whether a 404 is what Caddy itself writes at the end of an error route: the status of the handled
// error, with nothing about a body but what the handler that failed has left. What keep matches only now is an answer.
func (x *exchange) isBareStatus() bool {
	if x.request.failed == nil || x.request.failed.header == nil {
		return false
	}
	before, header := x.request.failed.header, x.Header()
	return slices.Equal(header["Content-Type"], before["Content-Type"]) &&
		slices.Equal(header["Content-Length"], before["Content-Length"]) &&
		(!x.isKept(header) || x.isKept(before))
}

// replace puts the page in the place of the response, which is not sent. The header is kept as it is now: what the
// handler sets later are trailers.
func (x *exchange) replace(cause report.Outcome) {
	x.state = replaced
	x.replaced = &replacedResponse{cause: cause, header: x.Header().Clone(), deadline: time.Now().Add(maxDrainTime)}
}

// cause returns why the page answers, if it does. err is what the next handler has returned.
func (x *exchange) cause(err error) (cause report.Outcome, isPage bool) {
	failed := x.request.failed
	switch {
	case x.state == passed:
		return 0, false
	case x.state == replaced: // whatever the error is
		return x.replaced.cause, true
	case x.state == bare:
		return report.Error, true
	case failed != nil && !isNotFound(failed.err):
		return 0, false
	case isNotFound(err), err != nil && failed != nil:
		return report.Error, true
	case err != nil || !x.reachedEnd():
		return 0, false
	case failed != nil:
		return report.Error, true
	default:
		return report.Unanswered, true
	}
}

// reachedEnd reports whether the request reached the end of the chain, where Caddy marks it. The response routes
// of intercept have an end of their own, without the mark.
func (x *exchange) reachedEnd() bool {
	return x.request.isUnhandled() || x.request.isIntercepted()
}
