package notfound

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// responseWriter passes a response on as it comes, unless it is a 404 page: then nothing of it is sent, and the page is
// written in its place once the next handler has returned. It buffers nothing. A handler may keep its writer after it
// returned, so there is a new one for each request.
type responseWriter struct {
	exchange
	siteHeader [len(siteFields)]string // on entry, each field as one line: header changes values in place
}

// serve calls the next handler. If its response is replaced, the client gets the page, even if reverse_proxy cannot copy
// the old response to the end, and panics to abort it.
func (rw *responseWriter) serve(next caddyhttp.Handler) error {
	for i, field := range siteFields {
		rw.siteHeader[i] = strings.Join(rw.Header()[field], ", ")
	}
	rw.handler.pages.ExpandRequestID(rw.request.replacer)
	defer func() {
		rw.decision.leave(&rw.exchange)
		if rw.passed404 && rw.handler.Report {
			rw.countWithoutPage(rw.passedAs)
		}
		if rw.state != replaced {
			return
		}
		if p := recover(); p != nil && p != http.ErrAbortHandler {
			panic(p)
		}
	}()
	return next.ServeHTTP(withInterfacesOf(rw.ResponseWriter, rw), rw.request.Request)
}

func (rw *responseWriter) WriteHeader(status int) {
	if rw.judge(status) {
		rw.ResponseWriter.WriteHeader(status)
	}
}

// begin makes a bare status a response, because more follows it.
func (rw *responseWriter) begin() {
	if rw.judgeBare() {
		rw.ResponseWriter.WriteHeader(http.StatusNotFound)
	}
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
	if len(p) == 0 {
		return 0, nil // a 404 error may follow
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

// A handlerWriter is a writer that a handler gives to the next one.
type handlerWriter interface {
	http.ResponseWriter
	http.Pusher
	io.ReaderFrom
	Unwrap() http.ResponseWriter
	FlushError() error
	hijack() (net.Conn, *bufio.ReadWriter, error)
}

// withInterfacesOf returns a writer that is an http.Flusher, and an http.Hijacker, exactly where the one below is. Caddy's
// own writers lack both by default, and an early flush costs an HTTP/1.1 client the rest of its request's body. With both
// idle timeouts off they are net/http's, and plugins such as durable-streams assert them.
func withInterfacesOf(below http.ResponseWriter, w handlerWriter) http.ResponseWriter {
	_, isFlusher := below.(http.Flusher)
	_, isHijacker := below.(http.Hijacker)
	switch {
	case isFlusher && isHijacker:
		return flushingHijackingWriter{flushingWriter{w}}
	case isFlusher:
		return flushingWriter{w}
	case isHijacker:
		return hijackingWriter{w}
	default:
		return w
	}
}

type (
	flushingWriter          struct{ handlerWriter }
	hijackingWriter         struct{ handlerWriter }
	flushingHijackingWriter struct{ flushingWriter }
)

func (w flushingWriter) Flush() { _ = w.FlushError() }

func (w hijackingWriter) Hijack() (net.Conn, *bufio.ReadWriter, error)         { return w.hijack() }
func (w flushingHijackingWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) { return w.hijack() }

// Interface guards
var (
	_ handlerWriter = (*responseWriter)(nil)
	_ handlerWriter = (*dryRunWriter)(nil)
	_ http.Flusher  = flushingWriter{}
	_ http.Hijacker = hijackingWriter{}
	_ http.Flusher  = flushingHijackingWriter{}
	_ http.Hijacker = flushingHijackingWriter{}
)
