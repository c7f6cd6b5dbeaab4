package notfound

import (
	"bufio"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// responseWriter passes a response on as it comes, unless it is a 404 page: then it writes ours in its
// place, and what follows of the old one is read off and dropped. It buffers nothing.
//
// A handler may keep it after it returned, so there is a new one for each request.
type responseWriter struct {
	caddyhttp.ResponseWriterWrapper
	handler  *Handler
	request  *http.Request
	replacer *caddy.Replacer
	state    state

	// the request's Host before the next handlers could change it
	host string

	// the header fields that a page takes back to what they were before the next handler ran
	server, policy []string

	// the values of the header fields of a page; header manipulation changes values in place, so
	// they can't be shared between responses
	values [6]string

	// once replaced: the header map as it was sent, the length of the old body since, and what ends
	// the exchange that it comes from
	sent     http.Header
	dropped  int64
	cut      *time.Timer
	exchange exchange
}

// state is what has become of a response.
type state int

const (
	pending  state = iota // nothing was written yet
	passed                // the next handler answers
	replaced              // the page was written in place of the next handler's response
)

func newResponseWriter(w http.ResponseWriter, r *http.Request, h *Handler, repl *caddy.Replacer) *responseWriter {
	header := w.Header()
	rw := &responseWriter{
		ResponseWriterWrapper: caddyhttp.ResponseWriterWrapper{ResponseWriter: w},
		handler:               h,
		request:               r,
		replacer:              repl,
		host:                  r.Host,
		server:                header["Server"],
		policy:                header["Content-Security-Policy"],
		exchange:              exchange{Context: r.Context()},
	}
	// in place, for Caddy's placeholders know the request by its address
	*r = *r.WithContext(&rw.exchange)
	return rw
}

// serve calls the next handler. Once the page has replaced its response, nothing that it does can cost
// the client the page: not the trailers that it adds, not the error that it returns, and not the panic
// by which reverse_proxy gives up a response that it cannot copy to the end.
func (rw *responseWriter) serve(next caddyhttp.Handler) (err error) {
	defer func() {
		if rw.state != replaced {
			return
		}
		rw.cut.Stop()
		header := rw.Header()
		clear(header)
		maps.Copy(header, rw.sent)
		err = nil
		if p := recover(); p != nil && p != http.ErrAbortHandler {
			panic(p)
		}
	}()
	return next.ServeHTTP(rw, rw.request)
}

// WriteHeader decides what becomes of the response.
func (rw *responseWriter) WriteHeader(status int) {
	switch {
	case rw.state == replaced:
		return
	case rw.state == pending && rw.isUnanswered(status):
		return
	case rw.state == pending && status == http.StatusNotFound:
		if c, ok := rw.handler.replaces(rw.exchange.Context, rw.replacer, rw.Header()); ok {
			rw.handler.answer(rw, c, nil)
			rw.state = replaced
			rw.sent = maps.Clone(rw.Header())
			_ = http.NewResponseController(rw.ResponseWriter).Flush()
			rw.cut = time.AfterFunc(maxDropTime, rw.exchange.cut)
			return
		}
	}
	if status < 100 || status > 199 || status == http.StatusSwitchingProtocols {
		rw.state = passed
	}
	rw.ResponseWriter.WriteHeader(status)
}

// isUnanswered reports whether a status stands for no answer at all. Two of Caddy's handlers make one
// of it: intercept writes the status 0 that it recorded, which would panic further up; templates
// renders the empty buffer and sends it as a 200. They differ from a wanted 200, and from a backend's
// invalid status, in that the end of the chain was reached. Should a body follow all the same, it
// implies the 200.
func (rw *responseWriter) isUnanswered(status int) bool {
	switch status {
	case 0:
	case http.StatusOK:
		length := rw.Header().Get("Content-Length")
		if length != "0" && (length != "" || rw.request.Method != http.MethodHead) {
			return false
		}
	default:
		return false
	}
	return isUnhandled(varsOf(rw.exchange.Context))
}

// A replaced body is read off for the sake of the backend's connection, which can be used again only when
// the body is at its end. The client has its page by then, but its connection waits. So there is a limit
// to the length, the one that net/http has for what is left of a request, and one to the time.
const (
	maxDropped  = 256 << 10
	maxDropTime = 100 * time.Millisecond
)

var errReplaced = errors.New("the 404 page replaced this response")

// drop counts n bytes of a replaced body, and fails when there are too many.
func (rw *responseWriter) drop(n int) (int, error) {
	if rw.dropped += int64(n); rw.dropped > maxDropped {
		return 0, errReplaced
	}
	return n, nil
}

func (rw *responseWriter) Write(p []byte) (int, error) {
	if rw.state == replaced {
		return rw.drop(len(p))
	}
	rw.state = passed
	return rw.ResponseWriter.Write(p)
}

// ReadFrom implements io.ReaderFrom, down to the connection where Caddy has it.
func (rw *responseWriter) ReadFrom(r io.Reader) (int64, error) {
	if rw.state == replaced {
		return io.Copy(writerFunc(rw.Write), r) // a writer without ReadFrom, which would call itself
	}
	rw.state = passed
	return rw.ResponseWriterWrapper.ReadFrom(r)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// FlushError implements the flushing of http.ResponseController. Like Write, it implies a 200.
func (rw *responseWriter) FlushError() error {
	if rw.state == replaced {
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

// send writes the page. policy is the Content-Security-Policy that it needs, if any, and vary tells
// whether other requests for the same address get other representations.
func (rw *responseWriter) send(p *page, f *format, policy string, vary bool) {
	header := rw.Header()
	for field := range header {
		if describesContent(field) {
			delete(header, field)
		}
	}
	restore(header, "Server", rw.server)
	restore(header, "Content-Security-Policy", rw.policy)

	rw.setHeader(0, "Content-Type", f.contentType)
	rw.setHeader(1, "Content-Length", strconv.Itoa(len(p.body)))
	rw.setHeader(2, "X-Content-Type-Options", "nosniff")
	rw.setHeader(3, "Cache-Control", "no-store")
	if policy != "" && rw.policy == nil {
		rw.setHeader(4, "Content-Security-Policy", policy)
	}
	if values := header["Vary"]; !vary || variesByAccept(values) {
		// nothing to add
	} else if values == nil {
		rw.setHeader(5, "Vary", "Accept")
	} else {
		header["Vary"] = append(slices.Clip(values), "Accept")
	}

	rw.ResponseWriter.WriteHeader(http.StatusNotFound)
	if p.method != http.MethodHead {
		// a client that is gone needs no error
		_, _ = rw.ResponseWriter.Write(p.body)
	}
}

// setHeader sets a header field to the i-th of rw's values.
func (rw *responseWriter) setHeader(i int, field, value string) {
	rw.values[i] = value
	rw.Header()[field] = rw.values[i : i+1 : i+1]
}

// restore sets a header field to what it was.
func restore(header http.Header, field string, values []string) {
	if values == nil {
		delete(header, field)
	} else {
		header[field] = values
	}
}

// describesContent reports whether a header field speaks of the content that a page replaces, its
// freshness included (RFC 9110, section 8; RFC 9530; RFC 9111, section 5), or of its framing.
//
// What tells one kind of cache how long that content is fresh goes as well, for such a cache then ignores
// Cache-Control (RFC 9213, section 2.2), and would keep a page that echoes an address. By convention
// these fields end in -Cache-Control; the others are older.
func describesContent(field string) bool {
	switch field = http.CanonicalHeaderKey(field); field {
	case "Content-Length", "Content-Encoding", "Content-Type", "Content-Language", "Content-Location",
		"Content-Disposition", "Content-Range", "Content-Md5",
		"Content-Digest", "Repr-Digest", "Digest", "Etag", "Last-Modified", "Accept-Ranges",
		"Cache-Control", "Expires", "Pragma", "Age",
		"Surrogate-Control", "Edge-Control", "X-Accel-Expires",
		"Trailer", "Transfer-Encoding", "Refresh":
		return true
	}
	return strings.HasSuffix(field, "-Cache-Control") || strings.HasPrefix(field, http.TrailerPrefix)
}

// variesByAccept reports whether a Vary field has Accept, or *, among its members.
func variesByAccept(values []string) bool {
	for _, value := range values {
		for member := range strings.SplitSeq(value, ",") {
			if member = strings.TrimSpace(member); member == "*" || strings.EqualFold(member, "Accept") {
				return true
			}
		}
	}
	return false
}

// isPage reports whether a response with these header fields is something that people look at, or
// nothing at all, rather than an answer meant for a program.
func isPage(header http.Header) bool {
	if header.Get("Content-Length") == "0" {
		return true
	}
	mediaType, _, _ := strings.Cut(header.Get("Content-Type"), ";")
	switch strings.ToLower(strings.TrimSpace(mediaType)) {
	case "", "text/html", "application/xhtml+xml", "text/plain":
		return true
	}
	return false
}

// Interface guards
var (
	_ http.ResponseWriter = (*responseWriter)(nil)
	_ http.Hijacker       = (*responseWriter)(nil)
	_ http.Pusher         = (*responseWriter)(nil)
	_ io.ReaderFrom       = (*responseWriter)(nil)
)
