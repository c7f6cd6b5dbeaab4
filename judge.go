package notfound

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/report"
)

// reason is why a 404 response passes.
type reason uint8

const (
	noReason      reason = iota // the page takes its place
	reasonInner                 // a not_found inside this one has decided, and logs why
	reasonKeep                  // the option keep
	reasonType                  // its media type is a program's
	reasonScript                // a script asks
	reasonJSON                  // its body is JSON, whatever its media type
	reasonReplace               // replace none, and nothing else
	reasonDryRun                // dry_run, and nothing else
)

// String returns the reason for the log.
func (r reason) String() string {
	return [...]string{"", "", "keep", "media type", "script", "JSON", "replace none", "dry_run"}[r]
}

// countsAs returns the outcome of a 404 response that passes.
func (r reason) countsAs() report.Outcome {
	if r == reasonReplace || r == reasonDryRun {
		return report.Replaceable
	}
	return report.Passed
}

// judge decides what becomes of what the next handler writes, by its status. It returns whether the status is sent. In a
// dry run it always is.
func (rw *responseWriter) judge(status int) (isSent bool) {
	switch {
	case rw.replaced != nil:
		return false // net/http takes the first status, too
	case rw.isPassed:
		return true
	case status == 0 && rw.request.isUnhandled() && rw.handler.DryRun:
		rw.countWithoutPage(report.Unanswered) // now, because net/http panics over it
	case status == 0 && rw.request.isUnhandled():
		// What follows is made of nothing: intercept and vulcain write the status that they recorded. vulcain writes a
		// body, too.
		rw.replace(report.Unanswered)
		return false
	case status == http.StatusOK && rw.isUnanswered():
		return false
	case status == http.StatusNotFound && rw.isBareStatus():
		rw.replace(report.Error)
		rw.replaced.isBare = true
		return false
	case status == http.StatusNotFound && !rw.passes404():
		rw.replace(report.Response)
		return false
	}
	if status < 100 || status > 199 || status == http.StatusSwitchingProtocols {
		rw.isPassed = true
	}
	return true
}

// passes404 decides whether a 404 response passes, as far as its header says.
func (rw *responseWriter) passes404() bool {
	rw.isForProgram = !isForPeople(rw.request.Method, rw.Header())
	why := rw.reasonToPass()
	rw.mayBeJSON = (why == noReason || why.countsAs() == report.Replaceable) && rw.handler.Replace != replaceAll &&
		rw.request.Method != http.MethodHead && rw.Header().Get("Content-Encoding") == "" && !rw.request.client.namesHTML()
	rw.pass(why)
	return why != noReason
}

// passesAsJSON decides whether a 404 response passes because of the first bytes of its body: JSON does, whatever its media
// type. One byte decides, because `{` may come alone.
func (rw *responseWriter) passesAsJSON(p []byte) bool {
	if !rw.mayBeJSON || !bytes.HasPrefix(bytes.TrimLeft(p, " \t\r\n"), []byte("{")) {
		rw.mayBeJSON = false
		return false
	}
	rw.mayBeJSON, rw.isForProgram = false, true
	rw.pass(reasonJSON)
	return true
}

// pass has a 404 response pass, if there is a reason, and then all not_found handlers around this one: of one inside another
// the inner one decides. A dry run does not.
func (rw *responseWriter) pass(why reason) {
	if rw.reason = why; why != noReason && why != reasonInner && !rw.handler.DryRun {
		rw.decision.decide(report.Passed)
	}
}

// reasonToPass returns why a 404 response with this header passes.
func (rw *responseWriter) reasonToPass() reason {
	switch mode := rw.handler.Replace; {
	case rw.decision.isDecided():
		return reasonInner
	case rw.isKept(rw.Header()):
		return reasonKeep
	case mode == replaceAll: // whatever it is
	case rw.isForProgram:
		return reasonType
	case rw.request.client.isScript:
		return reasonScript
	case mode == replaceNone:
		return reasonReplace
	}
	if rw.handler.DryRun {
		return reasonDryRun
	}
	return noReason
}

// isKept reports whether a 404 response with this header is never replaced.
func (rw *responseWriter) isKept(header http.Header) bool {
	return slices.ContainsFunc(rw.handler.Keep, func(m caddyhttp.ResponseMatcher) bool {
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
func (rw *responseWriter) isUnanswered() bool {
	length := rw.Header().Get("Content-Length")
	return (length == "" || length == "0") && rw.request.isUnhandled()
}

// isBareStatus reports whether a 404 is what Caddy itself writes at the end of an error route: the status of the handled
// error, with nothing about a body but what the handler that failed has left. If keep matches now but did not on entry, the
// error route has answered.
func (rw *responseWriter) isBareStatus() bool {
	if rw.request.errorRoute == nil || rw.request.errorRoute.header == nil {
		return false
	}
	before, header := rw.request.errorRoute.header, rw.Header()
	return slices.Equal(header["Content-Type"], before["Content-Type"]) &&
		slices.Equal(header["Content-Length"], before["Content-Length"]) &&
		(!rw.isKept(header) || rw.isKept(before))
}

// replace puts the page in the place of the response, which is not sent. The header is kept as it is now: what the
// handler sets later are trailers.
func (rw *responseWriter) replace(cause report.Outcome) {
	rw.replaced = &replacedResponse{cause: cause, header: rw.Header().Clone(), deadline: time.Now().Add(maxDrainTime)}
}

// cause returns why the page answers, if it does. err is what the next handler has returned.
func (rw *responseWriter) cause(err error) (cause report.Outcome, isPage bool) {
	route := rw.request.errorRoute
	switch {
	case rw.replaced != nil: // whatever the error is
		return rw.replaced.cause, true
	case rw.isPassed:
		return 0, false
	case route != nil && !isNotFound(route.err):
		return 0, false
	case isNotFound(err), err != nil && route != nil:
		return report.Error, true
	case err != nil, !rw.request.isUnhandled() && !rw.request.isIntercepted():
		return 0, false
	case route != nil:
		return report.Error, true
	default:
		return report.Unanswered, true
	}
}
