package notfound

import (
	"bufio"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// responseWriter passes a response on as it comes, unless it is a 404 page: then it writes its own page in
// that one's place, and drains and discards what follows. It buffers nothing.
//
// A handler may keep its writer after it returned, so there is a new one for each request.
type responseWriter struct {
	caddyhttp.ResponseWriterWrapper
	handler *Handler // its configuration
	request clientRequest
	context cancelableContext
	state   state

	// whether a 404 response passed that is to be counted, and whether it is a page
	kept, keptPage bool

	// what the header fields were before the next handler, which a replaced response gives back
	server, csp []string

	// the values of a page's header fields; they can't be shared between responses, for Caddy's header handler
	// changes values in place
	values [6]string

	replaced *replacedResponse // nil unless the page replaces a response
}

// replacedResponse is what is left of a response once the page replaces it.
type replacedResponse struct {
	sent      http.Header // the header of the page
	cancel    *time.Timer // which cancels the exchange with the upstream
	deadline  time.Time   // when it does at the latest
	discarded int         // bytes of the body
}

// state is what has become of a response.
type state uint8

const (
	pending    state = iota // nothing was written yet
	statusless              // the status 0 was written, for no answer
	passed                  // the next handler answers
	replaced                // the page takes the place of the next handler's response
)

func newResponseWriter(w http.ResponseWriter, r *http.Request, h *Handler) *responseWriter {
	header := w.Header()
	rw := &responseWriter{
		ResponseWriterWrapper: caddyhttp.ResponseWriterWrapper{ResponseWriter: w},
		handler:               h,
		request:               newClientRequest(r),
		context:               cancelableContext{Context: r.Context()},
		server:                header["Server"],
		csp:                   header["Content-Security-Policy"],
	}
	if referer := r.Header["Referer"]; h.Report && len(referer) > 0 {
		rw.request.referer = referer[0]
	}
	rw.request.replacer.Map(noCause)
	// assign in place: Caddy's replacer holds this *http.Request
	*r = *r.WithContext(&rw.context)
	return rw
}

// serve calls the next handler. Once the page has replaced its response, nothing that it does can cost the
// client the page: not the trailers that it adds, not the error that it returns, and not the panic by which
// reverse_proxy aborts a response that it cannot copy to the end.
func (rw *responseWriter) serve(next caddyhttp.Handler) (err error) {
	defer func() {
		if rw.kept {
			rw.countKept()
		}
		if rw.state != replaced {
			return
		}
		rw.replaced.cancel.Stop()
		rw.context.release()
		if p := recover(); p != nil && (p != http.ErrAbortHandler || rw.replaced.sent == nil) {
			panic(p)
		}
		header := rw.Header()
		clear(header)
		maps.Copy(header, rw.replaced.sent)
		err = nil
	}()
	return next.ServeHTTP(rw, rw.request.Request)
}

// isAnswered reports whether the client has, or will have, a response.
func (rw *responseWriter) isAnswered() bool { return rw.state == passed || rw.state == replaced }

// WriteHeader decides what becomes of the response.
func (rw *responseWriter) WriteHeader(status int) {
	if rw.state == replaced || rw.state == statusless {
		return
	}
	if rw.state == pending {
		if rw.isUnanswered(status) {
			if status == 0 {
				rw.state = statusless
			}
			return
		}
		if status == http.StatusNotFound && rw.request.cause() == "" { // no page from further down the chain
			if c, ok := rw.replaces(); ok {
				rw.replace(c)
				return
			}
			rw.kept = rw.handler.Report
			rw.keptPage = rw.kept && rw.isReplaceablePage()
		}
	}
	if status < 100 || status > 199 || status == http.StatusSwitchingProtocols {
		rw.state = passed
	}
	rw.ResponseWriter.WriteHeader(status)
}

// isUnanswered reports whether a status stands for no answer at all. Two kinds of middlewares turn no answer
// into a status. intercept and vulcain write the status 0 that they recorded, which net/http would panic over;
// whatever follows is made of an empty buffer. templates and others write a 200 for theirs; a body that follows
// implies it.
func (rw *responseWriter) isUnanswered(status int) bool {
	switch status {
	case 0:
	case http.StatusOK:
		if length := rw.Header()["Content-Length"]; len(length) > 0 && length[0] != "" && length[0] != "0" {
			return false
		}
	default:
		return false
	}
	return rw.request.isUnhandled()
}

// reachedEnd reports whether the request reached the end of the chain, where Caddy marks it. The response routes
// of intercept have an end of their own, without the mark.
func (rw *responseWriter) reachedEnd() bool {
	if rw.request.isUnhandled() {
		return true
	}
	_, intercepted := rw.request.replacer.Get("http.intercept.status_code")
	return intercepted
}

// replaces reports whether the page takes the place of a 404 response, and the cause that it is then written for.
func (rw *responseWriter) replaces() (cause, bool) {
	// At the end of an error route Caddy writes the bare status of the error. What arrives here is still that
	// error, not a response.
	handled, _ := rw.context.Value(caddyhttp.ErrorCtxKey).(error)
	if isNotFound(handled) && rw.Header().Get("Content-Type") == "" {
		return causeError, true
	}

	switch rw.handler.Replace {
	case replaceAll:
		return causeResponse, !rw.isKept()
	case replaceNone:
		return 0, false
	default:
		return causeResponse, rw.isReplaceablePage()
	}
}

// isReplaceablePage reports whether `replace pages` replaces a 404 response.
func (rw *responseWriter) isReplaceablePage() bool {
	return !rw.isKept() && isPage(rw.request.Method, rw.Header())
}

// isKept reports whether a 404 response is never replaced.
func (rw *responseWriter) isKept() bool {
	return rw.handler.Keep != nil && rw.handler.Keep.Match(http.StatusNotFound, rw.Header())
}

// countKept counts a 404 response that passed in the report, once the other handlers that it passes had the choice: one
// before this one may replace it, and one after this one may have counted it.
func (rw *responseWriter) countKept() {
	if _, counted := rw.request.replacer.Get(keptPlaceholder); counted || rw.request.cause() != "" {
		return
	}
	rw.request.replacer.Set(keptPlaceholder, true)
	p := rw.handler.page.newPage(&rw.request)
	defer p.free()
	missed.addKept(p.uri, rw.request.referer, rw.keptPage)
}

// keptPlaceholder is set once a 404 response that passed is counted.
const keptPlaceholder = "http.not_found.kept"

// isPage reports whether a response with these header fields is something that people look at, or nothing at
// all, rather than an answer for a program.
func isPage(method string, header http.Header) bool {
	contentType := header.Get("Content-Type")
	if header.Get("Content-Length") == "0" && !isGRPC(contentType) && method != http.MethodHead {
		// Nothing at all. A response of gRPC has its answer in the header or the trailers. One to HEAD may have the
		// length of the body that it does not have, from a middleware that counted: its type says what GET gets.
		return true
	}
	mediaType, _, _ := strings.Cut(contentType, ";")
	switch strings.ToLower(strings.TrimSpace(mediaType)) {
	case "", "text/html", "application/xhtml+xml", "text/plain":
		return true
	}
	return false
}

// isGRPC reports whether a Content-Type is one of gRPC's: application/grpc, application/grpc+proto,
// application/grpc-web.
func isGRPC(contentType string) bool {
	return hasPrefixFold(contentType, "application/grpc")
}

// hasPrefixFold is strings.HasPrefix for any case of ASCII letters.
func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// replace writes the page in place of the next handler's response.
func (rw *responseWriter) replace(c cause) {
	rw.state = replaced
	rw.replaced = &replacedResponse{
		cancel:   time.AfterFunc(maxStall, rw.context.cancel),
		deadline: time.Now().Add(maxDrainTime),
	}

	rw.answer(c, nil)
	// The client need not wait until the old body is drained. A gRPC client must: a flush leaves an empty last
	// DATA frame, which grpc-go takes for a stream without its trailers.
	if !rw.request.grpc {
		_ = http.NewResponseController(rw.ResponseWriter).Flush()
	}
	rw.replaced.sent = maps.Clone(rw.Header())
}

// We drain a replaced body so that the upstream connection can be reused. The client has its page by then, but
// over HTTP/1.1 its next request waits. So the exchange is canceled when the body is too long (net/http has the
// same limit for the rest of a request's body), makes no progress, or takes too long in all.
const (
	maxDiscarded = 256 << 10 // bytes
	maxStall     = 800 * time.Millisecond
	maxDrainTime = 3 * time.Second
)

var errReplaced = errors.New("the 404 page replaced this response")

// discard counts n bytes of the body, and fails when there are too many.
func (r *replacedResponse) discard(n int) (int, error) {
	if r.discarded += n; r.discarded > maxDiscarded {
		return 0, errReplaced
	}
	r.cancel.Reset(min(maxStall, time.Until(r.deadline)))
	return n, nil
}

func (rw *responseWriter) Write(p []byte) (int, error) {
	switch {
	case rw.state == replaced:
		return rw.replaced.discard(len(p))
	case rw.state == statusless:
		return len(p), nil
	case rw.state == pending && len(p) == 0 && rw.request.isUnhandled():
		return 0, nil // from a middleware whose buffer is empty
	}
	rw.state = passed
	return rw.ResponseWriter.Write(p)
}

// ReadFrom implements io.ReaderFrom, down to the connection where Caddy does.
func (rw *responseWriter) ReadFrom(r io.Reader) (int64, error) {
	if rw.state == replaced || rw.state == statusless || rw.state == pending && rw.request.isUnhandled() {
		return io.Copy(writerFunc(rw.Write), r) // a writer without ReadFrom, which would call itself
	}
	rw.state = passed
	return rw.ResponseWriterWrapper.ReadFrom(r)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// Flush implements http.Flusher, which older handlers look for.
func (rw *responseWriter) Flush() { _ = rw.FlushError() }

// FlushError implements the flushing of http.ResponseController. Like Write, it implies a 200.
func (rw *responseWriter) FlushError() error {
	if rw.state == replaced || rw.state == statusless {
		return nil
	}
	rw.state = passed
	return http.NewResponseController(rw.ResponseWriter).Flush()
}

// Hijack implements http.Hijacker.
func (rw *responseWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if rw.state == replaced {
		return nil, nil, errReplaced
	}
	conn, buf, err := http.NewResponseController(rw.ResponseWriter).Hijack()
	if err == nil {
		rw.state = passed
	}
	return conn, buf, err
}

// Interface guards
var (
	_ http.ResponseWriter = (*responseWriter)(nil)
	_ http.Flusher        = (*responseWriter)(nil)
	_ http.Hijacker       = (*responseWriter)(nil)
	_ http.Pusher         = (*responseWriter)(nil)
	_ io.ReaderFrom       = (*responseWriter)(nil)
)
