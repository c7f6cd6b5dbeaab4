// Package judge decides what becomes of a response, and whether the page answers a request. It implements the
// options replace and keep, and decides which of several not_found handlers of one request answers. The handler creates
// a [Judge] for each request, and the response's writer asks it. A [DryRun] only observes.
package judge

import (
	"bytes"
	"net/http"
	"slices"
	"strings"

	"github.com/caddy-notfound/notfound/internal/accept"
	"github.com/caddy-notfound/notfound/internal/request"
	"github.com/caddy-notfound/notfound/internal/response"
)

// Judge judges the response to one request, for one handler.
type Judge struct {
	options *Options
	request *request.Request

	shared *shared // all not_found handlers of the request share that of the first one
	own    shared  // unused by all later handlers
	outer  *Judge  // of the handler around this one

	before       http.Header // in an error route for a 404, the response's header on entry; otherwise nil
	reason       Reason      // why a 404 response passes
	cause        Cause       // why the page takes the place of the response; NoCause: it does not
	isBare       bool        // the response is only the status of the handled error
	isForProgram bool        // the 404 response is an answer for a program
	mayBeJSON    bool        // the first bytes of its body decide whether it passes
}

// Enter begins a request at a handler, with the header of its response. It returns false if a handler of the same group
// is already running.
func (j *Judge) Enter(options *Options, r *request.Request, header http.Header) bool {
	j.options = options
	j.request = r
	j.shared = sharedBy(r, &j.own)
	if request.IsNotFound(r.HandledError) {
		j.before = header.Clone() // the header handler changes values in place
	}
	return j.shared.push(j)
}

// Restart discards an earlier decision, before the next handler runs.
func (j *Judge) Restart() { j.shared.restart() }

// Leave ends the request at the handler, whose next handler has returned.
func (j *Judge) Leave() { j.shared.remove(j) }

// Status implements [response.Rules].
func (j *Judge) Status(status int, header http.Header) response.Verdict {
	verdict := j.judgeStatus(status, header)
	j.passOuter()
	return verdict
}

// Body implements [response.Rules].
func (j *Judge) Body(first []byte, header http.Header) (passes bool) {
	j.judgeBody(first, header)
	j.passOuter()
	return j.reason != noReason
}

// passOuter tells the not_found handlers around this one to pass what it passes, because the innermost one decides.
func (j *Judge) passOuter() {
	if j.reason.IsOwn() {
		j.shared.record(NoCause, nil, j.reason)
	}
}

// judgeStatus judges the status of a response.
func (j *Judge) judgeStatus(status int, header http.Header) response.Verdict {
	switch status {
	case 0:
		// Nothing answered: intercept and vulcain write the status that they recorded, which is 0. Vulcain also writes
		// a body. The page replaces both.
		if j.request.IsUnhandled() {
			j.cause = Unanswered
			return response.Hold
		}
	case http.StatusOK:
		if j.isEmpty200(header) {
			return response.Ignore
		}
	case http.StatusNotFound:
		if j.isBareStatus(header) {
			j.isBare = true
			j.cause = Error
			return response.Hold
		}
		j.judge404(header)
		if j.reason == noReason {
			return response.Hold
		}
	}
	return response.Pass
}

// judgeBody judges what follows a status. JSON passes, whatever its media type. The first byte decides, because a write
// may consist of `{` alone.
func (j *Judge) judgeBody(first []byte, header http.Header) {
	if j.isBare { // no longer, because more than the status follows
		j.isBare = false
		j.judge404(header)
	}
	if j.mayBeJSON {
		text := bytes.TrimLeft(first, " \t\r\n")
		if bytes.HasPrefix(text, []byte("{")) {
			j.isForProgram = true
			j.pass(reasonJSON)
		}
	}
}

// judge404 decides by the header whether a 404 response passes, and for which reason, or whether the page replaces it.
func (j *Judge) judge404(header http.Header) {
	j.isForProgram = !isForPeople(j.request.Method, header)
	why := j.reasonToPass(header)
	j.mayBeJSON = j.bodyDecides(why, header)
	if why == noReason {
		j.cause = Response
	} else {
		j.pass(why)
	}
}

// reasonToPass returns why a 404 response with this header passes.
func (j *Judge) reasonToPass(header http.Header) Reason {
	mode := j.options.Mode
	if j.shared.hasDecided() {
		return reasonInner
	}
	if j.options.keeps(header) {
		return reasonKeep
	}
	if mode != All {
		switch {
		case j.isForProgram:
			return reasonType
		case j.request.IsScript:
			return reasonScript
		case mode == Browsers && !j.request.OpensPage():
			return reasonNoBrowser
		case mode == None:
			return reasonReplaceNone
		}
	}
	return noReason
}

// bodyDecides reports whether the first byte of a 404 response decides, because the body may be JSON under another
// media type. A browser gets the page whatever that byte is, because the body may be markup that a client has had
// reflected.
func (j *Judge) bodyDecides(why Reason, header http.Header) bool {
	if j.options.Mode == All {
		return false
	}
	wouldBeReplaced := why == noReason || why.IsReplaceNone()
	isReadable := j.request.Method != http.MethodHead && header.Get("Content-Encoding") == ""
	return wouldBeReplaced && isReadable && !j.request.OpensPage()
}

// pass records why a 404 response passes.
func (j *Judge) pass(why Reason) {
	j.cause = NoCause
	j.reason = why
}

// Sending implements [response.Rules]. It adds a Vary if other clients get the page. With replace none, nobody does.
func (j *Judge) Sending(header http.Header) {
	if reasons[j.reason].varies && j.options.Mode != None {
		accept.AddToVary(header, request.VaryByClient)
	}
}

// isForPeople reports whether a response with these header fields is something that people look at, or nothing at
// all, rather than an answer for a program.
func isForPeople(method string, header http.Header) bool {
	mediaType := mediaTypeOf(header)
	switch mediaType {
	case "", "text/html", "application/xhtml+xml", "text/plain":
		return true
	}
	if strings.HasPrefix(mediaType, "application/grpc") {
		return false // the answer is in the header or the trailers
	}
	// A response to HEAD has no body, so a middleware may have set the length 0. The type says what GET would get.
	return header.Get("Content-Length") == "0" && method != http.MethodHead
}

// ContentType returns the Content-Type of a response. If there are several lines, the last one counts, as in browsers:
// reverse_proxy adds the upstream's line to the site's.
func ContentType(header http.Header) string {
	lines := header["Content-Type"]
	if len(lines) == 0 {
		return ""
	}
	return lines[len(lines)-1]
}

// mediaTypeOf returns the media type of a response. White space ends it, too, because browsers show `text/html
// charset=UTF-8`, which old PHP sends, as HTML.
func mediaTypeOf(header http.Header) string {
	mediaType := strings.TrimSpace(ContentType(header))
	if end := strings.IndexAny(mediaType, "; \t"); end >= 0 {
		mediaType = mediaType[:end]
	}
	return strings.ToLower(mediaType)
}

// isEmpty200 reports whether a 200 means that nothing answered: templates and replace-response write a 200 for an empty
// buffer. If a body follows after all, it implies the 200.
func (j *Judge) isEmpty200(header http.Header) bool {
	length := header.Get("Content-Length")
	return (length == "" || length == "0") && j.request.IsUnhandled()
}

// isBareStatus reports whether a 404 is what Caddy itself writes at the end of an error route: the status of the
// handled error, without fields of a body other than those that the failed handler has left. A 404 is not bare if the
// error route itself has answered, that is, if keep matches now but did not on entry, or if a not_found handler inside
// this one has decided.
func (j *Judge) isBareStatus(header http.Header) bool {
	if j.before == nil || j.shared.hasDecided() {
		return false
	}
	for _, field := range []string{"Content-Type", "Content-Length"} {
		if !slices.Equal(header[field], j.before[field]) {
			return false
		}
	}
	return !j.options.keeps(header) || j.options.keeps(j.before)
}

// Decide returns why the page answers the request, or NoCause. It is called once the next handler has returned err.
func (j *Judge) Decide(err error, hasAnswered bool) Cause {
	handled := j.request.HandledError
	switch {
	case j.reason != noReason:
		return NoCause
	case j.cause != NoCause: // whatever the error is
		return j.cause
	case hasAnswered:
		return NoCause
	case handled != nil && !request.IsNotFound(handled):
		return NoCause // Caddy sends the status of the handled error
	case err != nil && handled == nil && !request.IsNotFound(err):
		return NoCause
	case err != nil:
		return Error
	case !j.request.IsUnhandled() && !j.request.IsIntercepted():
		return NoCause
	case handled != nil:
		return Error
	default:
		return Unanswered
	}
}

// RecordPage records that the page is sent, and why. err is what the next handler returned. The page only answers it if
// the cause is an error.
func (j *Judge) RecordPage(cause Cause, err error) {
	if cause != Error {
		err = nil
	}
	j.shared.record(cause, err, noReason)
}

// VariesByClient reports whether a page for a cause takes the place of a response that other clients get.
func (j *Judge) VariesByClient(cause Cause) bool {
	return cause == Response && j.options.Mode != All
}

// ClaimCount claims the right to count the request in the report. It returns false if an inner handler has claimed it.
func (j *Judge) ClaimCount() bool { return j.shared.claimCount() }

// Reason returns why a 404 response passes.
func (j *Judge) Reason() Reason { return j.reason }

// IsForProgram reports whether the next handler wrote a 404 response that is an answer for a program.
func (j *Judge) IsForProgram() bool { return j.isForProgram }
