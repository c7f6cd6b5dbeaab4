package notfound

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/report"
)

// responseWriter passes a response on as it comes, unless it is a 404 page: then nothing of it leaves, and the page is
// written in its place once the next handler has returned. It buffers nothing.
//
// A handler may keep its writer after it returned, so there is a new one for each request.
type responseWriter struct {
	caddyhttp.ResponseWriterWrapper
	handler *Handler // its configuration
	request clientRequest
	state   state

	// whether a 404 response passed that is to be counted, and whether `replace pages` would have replaced it
	passed404, replaceable bool

	// what the next handlers may overwrite, and a replaced response gives back
	server   []string
	policies *policies // nil: none

	// the header when the error route began, if the handled error is a 404
	errorHeader http.Header

	replaced *replacedResponse // nil unless the page replaces a response
}

// policies are the values of the header fields of the same names.
type policies struct{ contentSecurityPolicy, contentSecurityPolicyReportOnly []string }

// replacedResponse is what is left of a response that the page replaces.
type replacedResponse struct {
	header   http.Header // as it was when the response began, but for what describes its content
	length   string      // the Content-Length that it declared
	drained  int64       // bytes of the body
	deadline time.Time   // from when on a write fails
}

// state is what has become of a response.
type state uint8

const (
	pending     state = iota // nothing was written yet
	empty                    // an empty write implied a 200, but nothing has left
	statusless               // a middleware wrote status 0: nothing answered
	errorStatus              // the status of the handled error was written, and nothing else; nothing has left
	passed                   // the next handler answers
	replaced                 // the page takes the place of the next handler's response
)

// newResponseWriter returns the writer for a request. handled is the error that an error route handles, if it is one.
func newResponseWriter(w http.ResponseWriter, r *http.Request, h *Handler, handled error) *responseWriter {
	header := w.Header()
	rw := &responseWriter{
		ResponseWriterWrapper: caddyhttp.ResponseWriterWrapper{ResponseWriter: w},
		handler:               h,
		request:               newClientRequest(r),
		server:                header["Server"],
	}
	csp, reportOnly := header["Content-Security-Policy"], header["Content-Security-Policy-Report-Only"]
	if csp != nil || reportOnly != nil {
		rw.policies = &policies{csp, reportOnly}
	}
	if isNotFound(handled) {
		rw.errorHeader = maps.Clone(header)
	}
	if h.URI != "" { // before a rewrite changes the query that it may come in
		uri := h.pages.ExpandURI(rw.request.replacer)
		rw.request.uri = &uri
	}
	rw.request.forget() // what a not_found decided that is not inside this one
	rw.request.replacer.Map(noCause)
	return rw
}

// serve calls the next handler. Once its response is replaced, the client gets the page, even if reverse_proxy cannot copy
// the old response to the end, and panics to abort it.
func (rw *responseWriter) serve(next caddyhttp.Handler) error {
	defer func() {
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
	case pending:
		switch {
		case rw.isUnanswered(status):
			if status == 0 {
				rw.state = statusless
			}
			return
		case status != http.StatusNotFound:
		case rw.isErrorStatus():
			rw.state = errorStatus
			return
		case rw.replaces():
			rw.replace()
			return
		}
	case passed:
	default:
		return // as net/http, which takes the first status
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
	return rw.request.isUnhandled() || rw.request.isIntercepted()
}

// isErrorStatus reports whether a 404 is what Caddy itself writes at the end of an error route: the bare status of the
// handled error. A responder would have set a field of its own, if only to nil. reverse_proxy takes Server away and adds
// to Via.
func (rw *responseWriter) isErrorStatus() bool {
	before, header := rw.errorHeader, rw.Header()
	if before == nil || len(header["Via"]) > len(before["Via"]) || header["Server"] == nil && before["Server"] != nil {
		return false
	}
	for field := range header {
		switch _, there := before[field]; {
		case there:
		case field == "Etag", field == "Last-Modified", field == "Accept-Ranges", field == "Date", field == "Trailer",
			hasPrefixFold(field, "Content-"):
			return false
		}
	}
	return true
}

// becomeResponse makes a 404 that looked like the status of the handled error a response, because more than that is
// written or flushed.
func (rw *responseWriter) becomeResponse() {
	rw.errorHeader, rw.state = nil, pending
	rw.WriteHeader(http.StatusNotFound)
}

// replaces reports whether the page takes the place of a 404 response. If it does not, the response passes all other
// not_found handlers on its way, too: of one inside another the inner one decides.
func (rw *responseWriter) replaces() bool {
	if !rw.request.isDecided() {
		var replaces bool
		switch rw.handler.Replace {
		case replaceAll:
			replaces = !rw.isKept()
		case replaceNone:
		default:
			replaces = rw.isReplaceable()
		}
		if replaces {
			return true
		}
		rw.request.decide(passes(""))
	}
	rw.passed404 = rw.handler.Report
	rw.replaceable = rw.passed404 && rw.isReplaceable()
	return false
}

// isReplaceable reports whether `replace pages` replaces a 404 response.
func (rw *responseWriter) isReplaceable() bool {
	return !rw.isKept() && isForPeople(rw.request.Method, rw.Header())
}

// isKept reports whether a 404 response is never replaced.
func (rw *responseWriter) isKept() bool {
	return slices.ContainsFunc(rw.handler.Keep, func(m caddyhttp.ResponseMatcher) bool {
		return m.Match(http.StatusNotFound, rw.Header())
	})
}

// countPassed counts a 404 response that passed in the report, unless another not_found further down the chain has
// counted it, or wrote it.
func (rw *responseWriter) countPassed() {
	if _, counted := rw.request.replacer.Get(countedPlaceholder); counted || rw.request.cause() != "" {
		return
	}
	rw.request.replacer.Set(countedPlaceholder, true)
	asked := rw.request.asked()
	address := []byte(rw.handler.pages.URI(asked, rw.request.replacer))
	outcome := report.Passed
	if rw.replaceable {
		outcome = report.Replaceable
	}
	link := report.LinkOf(rw.request.referer, address, asked.Authority)
	missed.Add(report.Miss{Address: address, Referer: rw.request.referer, Link: link, Outcome: outcome})
}

// isForPeople reports whether a response with these header fields is something that people look at, or nothing at
// all, rather than an answer for a program.
func isForPeople(method string, header http.Header) bool {
	contentType := header.Get("Content-Type")
	if header.Get("Content-Length") == "0" && !isGRPC(contentType) && method != http.MethodHead {
		// Nothing at all. A response of gRPC has its answer in the header or the trailers. One to HEAD has no
		// body, and a middleware may have counted that: its type says what GET gets.
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

// replace makes the page take the place of the response, of which nothing leaves from now on.
func (rw *responseWriter) replace() {
	rw.state = replaced
	header := rw.Header()
	r := &replacedResponse{header: make(http.Header), length: header.Get("Content-Length"), deadline: time.Now().Add(maxDrainTime)}
	copies := make([]string, 0, len(header)) // of all values, as in http.Header.Clone
	for field, values := range header {
		if !describesContent(field) {
			start := len(copies)
			copies = append(copies, values...)
			r.header[field] = copies[start:len(copies):len(copies)]
		}
	}
	rw.replaced = r
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
	if r.drained > maxDrained || time.Now().After(r.deadline) && r.length != strconv.FormatInt(r.drained, 10) {
		return 0, errReplaced
	}
	return n, nil
}

func (rw *responseWriter) Write(p []byte) (int, error) {
	if rw.state == errorStatus && len(p) > 0 {
		rw.becomeResponse()
	}
	switch rw.state {
	case replaced:
		return rw.replaced.drain(len(p))
	case statusless:
		return len(p), nil
	case passed:
	default:
		if len(p) == 0 { // nothing written is nothing written, and a 404 error may follow
			if rw.state == pending {
				rw.state = empty
			}
			return 0, nil
		}
		rw.state = passed
	}
	return rw.ResponseWriter.Write(p)
}

// ReadFrom implements io.ReaderFrom, down to the connection where Caddy does.
func (rw *responseWriter) ReadFrom(r io.Reader) (int64, error) {
	if rw.state != passed {
		// an empty read is an empty write, but net/http would send the header for it
		var first [1]byte
		if _, err := io.ReadFull(r, first[:]); err != nil {
			_, _ = rw.Write(nil)
			if err == io.EOF {
				err = nil
			}
			return 0, err
		}
		r = io.MultiReader(bytes.NewReader(first[:]), r)
		if rw.state == errorStatus {
			rw.becomeResponse()
		}
		if rw.state == replaced || rw.state == statusless {
			return io.Copy(writerFunc(rw.Write), r) // a writer without ReadFrom, which would call itself
		}
		rw.state = passed
	}
	return rw.ResponseWriterWrapper.ReadFrom(r)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// FlushError implements the flushing of http.ResponseController. Like Write, it implies a 200.
func (rw *responseWriter) FlushError() error {
	if rw.state == errorStatus {
		rw.becomeResponse()
	}
	if rw.state == replaced || rw.state == statusless {
		return nil
	}
	rw.state = passed
	return http.NewResponseController(rw.ResponseWriter).Flush()
}

func (rw *responseWriter) hijack() (net.Conn, *bufio.ReadWriter, error) {
	if rw.state == errorStatus {
		rw.becomeResponse()
	}
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
// one without not_found. Handlers that look for these interfaces go other ways with them: Caddy's own writers lack them,
// by default, and an early flush costs an HTTP/1.1 client the rest of its request's body.
func (rw *responseWriter) forNext() http.ResponseWriter {
	_, isFlusher := rw.ResponseWriter.(http.Flusher)
	_, isHijacker := rw.ResponseWriter.(http.Hijacker)
	switch {
	case isFlusher && isHijacker:
		return flushingHijackingWriter{rw}
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
	flushingHijackingWriter struct{ *responseWriter }
)

func (w flushingWriter) Flush()          { _ = w.FlushError() }
func (w flushingHijackingWriter) Flush() { _ = w.FlushError() }

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
