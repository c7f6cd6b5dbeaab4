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

// responseWriter passes a response on as it comes, unless it is a 404 page: then nothing of it is sent, and the page is
// written in its place once the next handler has returned. It buffers nothing. In a dry run it passes everything on. A
// handler may keep its writer after it returned, so there is a new one for each request.
//
// It has 256 bytes, one of the sizes that Go allocates. With the next, 288, a response that passes takes more than its
// budget, 300 bytes. TestAllocationsAreFew holds both.
type responseWriter struct {
	caddyhttp.ResponseWriterWrapper
	handler *Handler // its configuration
	request request

	isPassed     bool              // the next handler answers
	reason       reason            // why a 404 response passes
	isForProgram bool              // the 404 response is an answer for a program
	mayBeJSON    bool              // the first bytes of its body decide
	replaced     *replacedResponse // nil: the page replaces no response

	decision *decision       // of all not_found handlers of the request
	own      decision        // which it is in the first of them
	outer    *responseWriter // of the handler around this one

	siteHeader [len(siteFields)]string // on entry, each field as one line: header changes values in place
}

// replacedResponse is what is left of a response that the page replaces.
type replacedResponse struct {
	cause     report.Outcome
	isBare    bool        // the handled error's status alone, which only a dry run sends
	isFlushed bool        // by the handler, before the body
	header    http.Header // as it was when the response began
	drained   int64       // bytes of the body
	deadline  time.Time   // from when on a write fails
}

// enter begins a request at a handler. It returns false if a handler of the same group is already running.
func (rw *responseWriter) enter(h *Handler, w http.ResponseWriter, r *http.Request) bool {
	rw.ResponseWriter, rw.handler, rw.request = w, h, newRequest(r, w.Header())
	if h.URI != "" { // before a rewrite changes the query that it may come in
		rw.request.client.uri = new(h.pages.ExpandURI(rw.request.replacer))
	}
	shared, _ := rw.request.replacer.Get(decisionKey)
	if rw.decision, _ = shared.(*decision); rw.decision == nil {
		rw.decision = &rw.own
		rw.request.replacer.Map(rw.own.placeholder)
	}
	return rw.decision.enter(rw)
}

// callNext calls the next handler. If its response is replaced, the client gets the page, even if reverse_proxy cannot
// copy the old response to the end, and panics to abort it.
func (rw *responseWriter) callNext(next caddyhttp.Handler) error {
	for i, field := range siteFields {
		rw.siteHeader[i] = strings.Join(rw.Header()[field], ", ")
	}
	rw.handler.pages.ExpandRequestID(rw.request.replacer)
	defer func() {
		rw.decision.leave(rw)
		if rw.replaced != nil && !rw.handler.DryRun {
			if p := recover(); p != nil && p != http.ErrAbortHandler {
				panic(p)
			}
		}
	}()
	return next.ServeHTTP(withInterfacesOf(rw.ResponseWriter, rw), rw.request.Request)
}

func (rw *responseWriter) WriteHeader(status int) {
	if rw.judge(status) || rw.handler.DryRun {
		rw.ResponseWriter.WriteHeader(status)
	}
}

// begin makes a bare status a response, because more follows it.
func (rw *responseWriter) begin() {
	if held := rw.replaced; held != nil && held.isBare {
		rw.request.errorRoute.header, rw.replaced = nil, nil
		rw.withHeader(held.header, func() {
			if rw.judge(http.StatusNotFound) && !rw.handler.DryRun {
				rw.ResponseWriter.WriteHeader(http.StatusNotFound)
			}
		})
	}
}

// resume sends what was held of a response that passes after all.
func (rw *responseWriter) resume() {
	held := rw.replaced
	rw.replaced = nil
	rw.withHeader(held.header, func() { rw.ResponseWriter.WriteHeader(http.StatusNotFound) })
	if held.isFlushed { // or net/http would guess a Content-Type
		_ = rw.FlushError()
	}
}

// withHeader has a response begin with the header that was held. What the handler has changed since are its trailers.
func (rw *responseWriter) withHeader(held http.Header, begin func()) {
	header := rw.Header()
	later := maps.Clone(header)
	clear(header)
	maps.Copy(header, held)
	begin()
	maps.DeleteFunc(header, func(field string, _ []string) bool { return held[field] != nil && later[field] == nil })
	maps.DeleteFunc(later, func(field string, values []string) bool { return slices.Equal(values, held[field]) })
	maps.Copy(header, later)
}

// A replaced body is drained, so that the connection to the upstream can be reused. The client waits meanwhile, so a
// write fails past these limits (net/http has the same for the rest of a request's body). A body that stalls writes
// nothing, and is not bounded by them.
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
	if len(p) == 0 && !rw.handler.DryRun {
		return 0, nil // a 404 error may follow
	}
	if len(p) > 0 {
		rw.begin()
		if rw.passesAsJSON(p) && rw.replaced != nil {
			rw.resume()
		}
		if rw.replaced != nil {
			return rw.replaced.drain(len(p))
		}
		rw.isPassed = true
	}
	return rw.ResponseWriter.Write(p)
}

// ReadFrom implements io.ReaderFrom, down to the connection where Caddy does. An empty reader is an answer, unlike an empty
// Write, because Caddy's recorder sends a 200 for one. What comes is not looked into: the type decides.
func (rw *responseWriter) ReadFrom(r io.Reader) (int64, error) {
	rw.begin()
	rw.mayBeJSON = false
	if rw.replaced != nil {
		return io.Copy(struct{ io.Writer }{rw}, r) // without ReadFrom, which would call itself
	}
	rw.isPassed = true
	return rw.ResponseWriterWrapper.ReadFrom(r)
}

// FlushError implements the flushing of http.ResponseController. Like Write, it implies a 200.
func (rw *responseWriter) FlushError() error {
	rw.begin()
	if rw.replaced != nil {
		rw.replaced.isFlushed = true
		return nil
	}
	rw.isPassed = true
	return http.NewResponseController(rw.ResponseWriter).Flush()
}

func (rw *responseWriter) hijack() (net.Conn, *bufio.ReadWriter, error) {
	rw.begin()
	if rw.replaced != nil {
		return nil, nil, errReplaced
	}
	conn, buf, err := http.NewResponseController(rw.ResponseWriter).Hijack()
	if err == nil {
		rw.isPassed = true
	}
	return conn, buf, err
}

// withInterfacesOf returns a writer that is an http.Flusher, and an http.Hijacker, exactly where the one below is. Caddy's
// own writers lack both by default, and an early flush costs an HTTP/1.1 client the rest of its request's body. Without
// Caddy's idle timeouts, the writer is net/http's own, which has both, and plugins such as durable-streams assert them.
func withInterfacesOf(below http.ResponseWriter, rw *responseWriter) http.ResponseWriter {
	_, isFlusher := below.(http.Flusher)
	_, isHijacker := below.(http.Hijacker)
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
	_ http.Flusher  = flushingHijackingWriter{}
	_ http.Hijacker = flushingHijackingWriter{}
)
