package notfound

import (
	"bufio"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/report"
)

// responseWriter passes a response on as it comes, unless it is a 404 page: then nothing of it leaves, and the page is
// written in its place once the next handler has returned. It buffers nothing. A handler may keep its writer after it
// returned, so there is a new one for each request.
type responseWriter struct {
	caddyhttp.ResponseWriterWrapper
	handler *Handler // its configuration
	request clientRequest
	outer   *responseWriter // of the not_found around this one

	replaced *replacedResponse // nil until there is one
	state    state

	passed404     bool // a 404 response passed that is to be counted
	isForProgram  bool // a 404 response came whose type `replace pages` lets pass
	isReplaceable bool // a 404 response came that `replace pages` replaces

	siteHeader  [len(siteFields)]string // their values on entry, as one line, because header changes values in place
	errorHeader http.Header             // on entry, if an error route is for a 404

	decision *decision // of all not_found handlers of the request
	own      decision  // which it is in the first of them
}

// state is what has become of a response.
type state uint8

const (
	pending  state = iota // nothing has left
	bare                  // nothing but the status of the error that an error route is for, and that has not left
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

// newResponseWriter returns the writer for a request.
func newResponseWriter(w http.ResponseWriter, r *http.Request, h *Handler) *responseWriter {
	rw := &responseWriter{
		ResponseWriterWrapper: caddyhttp.ResponseWriterWrapper{ResponseWriter: w},
		handler:               h,
		request:               newClientRequest(r),
	}
	repl := rw.request.replacer()
	shared, _ := repl.Get(decisionKey)
	if rw.decision, _ = shared.(*decision); rw.decision == nil {
		rw.decision = &rw.own
		repl.Map(rw.own.placeholder)
	}
	for i, field := range siteFields {
		rw.siteHeader[i] = strings.Join(w.Header()[field], ", ")
	}
	if isNotFound(errorOfRoute(r)) {
		rw.errorHeader = maps.Clone(w.Header())
	}
	if h.URI != "" { // before a rewrite changes the query that it may come in
		uri := h.pages.ExpandURI(repl)
		rw.request.uri = &uri
	}
	return rw
}

// serve calls the next handler. Once its response is replaced, the client gets the page, even if reverse_proxy cannot copy
// the old response to the end, and panics to abort it.
func (rw *responseWriter) serve(next caddyhttp.Handler) error {
	defer func() {
		rw.decision.leave(rw)
		if rw.passed404 {
			rw.countPassed()
		}
		if rw.state != replaced {
			return
		}
		if p := recover(); p != nil && p != http.ErrAbortHandler {
			panic(p)
		}
	}()
	return next.ServeHTTP(rw.forNext(), rw.request.Request)
}

// WriteHeader decides what becomes of the response.
func (rw *responseWriter) WriteHeader(status int) {
	switch rw.state {
	case bare, replaced:
		return // as net/http, which takes the first status
	case pending:
		switch {
		case status == 0 && rw.request.isUnhandled():
			// What follows is made of nothing. intercept and vulcain write the status that they recorded, over which
			// net/http would panic; vulcain writes a body, too.
			rw.replace(report.Unanswered)
			return
		case status == http.StatusOK && rw.isUnanswered():
			return
		case status == http.StatusNotFound && rw.isBareStatus():
			rw.state = bare
			return
		case status == http.StatusNotFound && rw.replaces():
			rw.replace(report.Response)
			return
		}
	}
	if status < 100 || status > 199 || status == http.StatusSwitchingProtocols {
		rw.state = passed
	}
	rw.ResponseWriter.WriteHeader(status)
}

// isUnanswered reports whether a 200 stands for no answer at all: templates and replace-response write one for an empty
// buffer. A body that follows implies it.
func (rw *responseWriter) isUnanswered() bool {
	length := rw.Header().Get("Content-Length")
	return (length == "" || length == "0") && rw.request.isUnhandled()
}

// reachedEnd reports whether the request reached the end of the chain, where Caddy marks it. The response routes
// of intercept have an end of their own, without the mark.
func (rw *responseWriter) reachedEnd() bool {
	return rw.request.isUnhandled() || rw.request.isIntercepted()
}

// isBareStatus reports whether a 404 is what Caddy itself writes at the end of an error route: the status of the handled
// error, and nothing about a content but what the handler that failed has left.
func (rw *responseWriter) isBareStatus() bool {
	before, header := rw.errorHeader, rw.Header()
	return before != nil && slices.Equal(header["Content-Type"], before["Content-Type"]) &&
		slices.Equal(header["Content-Length"], before["Content-Length"])
}

// begin makes a bare status a response, because more follows it.
func (rw *responseWriter) begin() {
	if rw.state == bare {
		rw.errorHeader, rw.state = nil, pending
		rw.WriteHeader(http.StatusNotFound)
	}
}

// replaces reports whether the page takes the place of a 404 response. If it does not, the response passes all other
// not_found handlers on its way, too: of one inside another the inner one decides.
func (rw *responseWriter) replaces() bool {
	mode, kept := rw.handler.Replace, rw.isKept()
	rw.isForProgram = !isForPeople(rw.request.Method, rw.Header())
	rw.isReplaceable = !kept && !rw.isForProgram
	if !rw.decision.isDecided(rw) {
		if mode == replaceAll && !kept || mode != replaceNone && rw.isReplaceable {
			return true
		}
		rw.decision.decide(rw, report.Passed)
	}
	rw.passed404 = rw.handler.Report
	return false
}

// isKept reports whether a 404 response is never replaced.
func (rw *responseWriter) isKept() bool {
	return slices.ContainsFunc(rw.handler.Keep, func(m caddyhttp.ResponseMatcher) bool {
		return m.Match(http.StatusNotFound, rw.Header())
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

// replace makes the page take the place of the response, of which nothing leaves from now on. The header is kept as it is
// now, because what the handler sets later are trailers.
func (rw *responseWriter) replace(cause report.Outcome) {
	rw.state = replaced
	rw.replaced = &replacedResponse{cause: cause, header: rw.Header().Clone(), deadline: time.Now().Add(maxDrainTime)}
}

// A replaced body is drained, so that the connection to the upstream can be reused. The client waits for that, so it
// may neither be too long (net/http has the same limit for the rest of a request's body) nor go on for too long.
const (
	maxDrained   = 256 << 10 // bytes
	maxDrainTime = 2 * time.Second
)

var errReplaced = errors.New("the 404 page replaced this response")

// drain takes n bytes of the body.
func (r *replacedResponse) drain(n int) (int, error) {
	r.drained += int64(n)
	if r.drained > maxDrained || time.Now().After(r.deadline) {
		return 0, errReplaced
	}
	return n, nil
}

func (rw *responseWriter) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil // nothing written is nothing written, and a 404 error may follow
	}
	rw.begin()
	if rw.state == replaced {
		return rw.replaced.drain(len(p))
	}
	rw.state = passed
	return rw.ResponseWriter.Write(p)
}

// ReadFrom implements io.ReaderFrom, down to the connection where Caddy does.
func (rw *responseWriter) ReadFrom(r io.Reader) (int64, error) {
	rw.begin()
	if rw.state == replaced {
		return io.Copy(struct{ io.Writer }{rw}, r) // without ReadFrom, which would call itself
	}
	rw.state = passed
	return rw.ResponseWriterWrapper.ReadFrom(r)
}

// FlushError implements the flushing of http.ResponseController. Like Write, it implies a 200.
func (rw *responseWriter) FlushError() error {
	rw.begin()
	if rw.state == replaced {
		return nil
	}
	rw.state = passed
	return http.NewResponseController(rw.ResponseWriter).Flush()
}

func (rw *responseWriter) hijack() (net.Conn, *bufio.ReadWriter, error) {
	rw.begin()
	if rw.state == replaced {
		return nil, nil, errReplaced
	}
	conn, buf, err := http.NewResponseController(rw.ResponseWriter).Hijack()
	if err == nil {
		rw.state = passed
	}
	return conn, buf, err
}

// forNext returns the writer as the next handler has it: an http.Flusher, and an http.Hijacker, exactly where it would be
// one without not_found. Caddy's own writers lack both by default, and an early flush costs an HTTP/1.1 client the rest of
// its request's body. With both idle timeouts off they are net/http's, and plugins such as durable-streams assert them.
func (rw *responseWriter) forNext() http.ResponseWriter {
	_, isFlusher := rw.ResponseWriter.(http.Flusher)
	_, isHijacker := rw.ResponseWriter.(http.Hijacker)
	switch {
	case isFlusher && isHijacker:
		return flushingHijackingWriter{flushingWriter{rw}}
	case isFlusher:
		return flushingWriter{rw}
	case isHijacker:
		return hijackingWriter{rw}
	default:
		return rw
	}
}

type (
	flushingWriter          struct{ *responseWriter }
	hijackingWriter         struct{ *responseWriter }
	flushingHijackingWriter struct{ flushingWriter }
)

func (w flushingWriter) Flush() { _ = w.FlushError() }

func (w hijackingWriter) Hijack() (net.Conn, *bufio.ReadWriter, error)         { return w.hijack() }
func (w flushingHijackingWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) { return w.hijack() }

// Interface guards
var (
	_ http.ResponseWriter = (*responseWriter)(nil)
	_ http.Pusher         = (*responseWriter)(nil)
	_ io.ReaderFrom       = (*responseWriter)(nil)
	_ http.Flusher        = flushingWriter{}
	_ http.Hijacker       = hijackingWriter{}
	_ http.Flusher        = flushingHijackingWriter{}
	_ http.Hijacker       = flushingHijackingWriter{}
)
