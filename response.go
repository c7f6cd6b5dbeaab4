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
// place, and drains and discards what follows of the old one. It buffers nothing.
//
// A handler may keep it after it returned, so there is a new one for each request.
type responseWriter struct {
	caddyhttp.ResponseWriterWrapper
	handler  *Handler
	request  *http.Request
	replacer *caddy.Replacer
	state    state
	received received
	exchange exchange

	// the header fields that a replaced response gives back
	server, policy []string

	// the values of the header fields of a page; header manipulation changes values in place, so
	// they can't be shared between responses
	values [6]string

	// once replaced: what cancels the exchange, when at the latest, and how much was discarded
	cancel    *time.Timer
	deadline  time.Time
	discarded int

	// the header map as it was sent; nil until the whole page is out
	sent http.Header
}

// received is what the client sent of what the page needs. The next handlers may change it in the request, for an
// upstream: request_header does so.
type received struct {
	host, accept                  string
	forwardedHost, forwardedProto string
	grpc                          bool
}

func newReceived(r *http.Request) received {
	// strings, not slices: header manipulation changes values in place
	f := received{
		host:           r.Host,
		forwardedHost:  last(r.Header["X-Forwarded-Host"]),
		forwardedProto: last(r.Header["X-Forwarded-Proto"]),
		grpc:           r.ProtoMajor >= 2 && isGRPC(last(r.Header["Content-Type"])),
	}
	if accept := r.Header["Accept"]; len(accept) == 1 {
		f.accept = accept[0]
	} else {
		f.accept = strings.Join(accept, ",") // which is the same (RFC 9110, section 5.3)
	}
	return f
}

func last(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[len(values)-1]
}

// state is what has become of a response.
type state int

const (
	pending  state = iota // nothing was written yet
	passed                // the next handler answers
	replaced              // the page takes the place of the next handler's response
)

func newResponseWriter(w http.ResponseWriter, r *http.Request, h *Handler, repl *caddy.Replacer) *responseWriter {
	header := w.Header()
	rw := &responseWriter{
		ResponseWriterWrapper: caddyhttp.ResponseWriterWrapper{ResponseWriter: w},
		handler:               h,
		request:               r,
		replacer:              repl,
		received:              newReceived(r),
		server:                header["Server"],
		policy:                header["Content-Security-Policy"],
		exchange:              exchange{Context: r.Context()},
	}
	// assign in place: Caddy's replacer holds this *http.Request
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
		rw.cancel.Stop()
		rw.exchange.release()
		if p := recover(); p != nil && (p != http.ErrAbortHandler || rw.sent == nil) {
			panic(p)
		}
		header := rw.Header()
		clear(header)
		maps.Copy(header, rw.sent)
		err = nil
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
			rw.replace(c)
			return
		}
	}
	if status < 100 || status > 199 || status == http.StatusSwitchingProtocols {
		rw.state = passed
	}
	rw.ResponseWriter.WriteHeader(status)
}

// replace writes the page in place of the next handler's response, and sees to it that the old body ends.
func (rw *responseWriter) replace(c cause) {
	rw.state = replaced
	rw.deadline = time.Now().Add(maxDrainTime)
	rw.cancel = time.AfterFunc(maxStall, rw.exchange.derive().cancel)

	rw.handler.answer(rw, c, nil)
	// The client need not wait for the end of the old body. A gRPC client must: a flush would leave an empty last
	// frame, which grpc-go takes for a stream without its trailers.
	if !rw.received.grpc {
		_ = http.NewResponseController(rw.ResponseWriter).Flush()
	}
	rw.sent = maps.Clone(rw.Header())
}

// isUnanswered reports whether a status stands for no answer at all: the request reached the end of the chain,
// and a middleware makes a status of that. intercept writes the status 0 that it recorded, which would panic further
// up; templates, and others that buffer, write a 200 for their empty buffer. Should a body follow all the same, it
// implies the 200.
func (rw *responseWriter) isUnanswered(status int) bool {
	switch status {
	case 0:
	case http.StatusOK:
		if length := rw.Header().Get("Content-Length"); length != "" && length != "0" {
			return false
		}
	default:
		return false
	}
	return isUnhandled(varsOf(rw.exchange.Context))
}

// reachedEnd reports whether the request reached the end of the chain, where Caddy marks it. The response routes
// of intercept have an end of their own, without the mark.
func (rw *responseWriter) reachedEnd() bool {
	if isUnhandled(varsOf(rw.exchange.Context)) {
		return true
	}
	_, intercepted := rw.replacer.Get("http.intercept.status_code")
	return intercepted
}

// We drain a replaced body so that the upstream connection can be reused. The client has its page by then, but over
// HTTP/1.1 its next request waits. So the exchange is canceled when the body is too long (the limit is the one
// that net/http has for the rest of a request's body), when it makes no progress, or when it takes too long in all.
const (
	maxDiscarded = 256 << 10 // bytes
	maxStall     = 800 * time.Millisecond
	maxDrainTime = 3 * time.Second
)

var errReplaced = errors.New("the 404 page replaced this response")

// discard counts n bytes of a replaced body, and fails when there are too many.
func (rw *responseWriter) discard(n int) (int, error) {
	if rw.discarded += n; rw.discarded > maxDiscarded {
		return 0, errReplaced
	}
	rw.cancel.Reset(min(maxStall, time.Until(rw.deadline)))
	return n, nil
}

func (rw *responseWriter) Write(p []byte) (int, error) {
	switch {
	case rw.state == replaced:
		return rw.discard(len(p))
	case rw.state == pending && len(p) == 0 && isUnhandled(varsOf(rw.exchange.Context)):
		return 0, nil // of a middleware that buffered nothing
	}
	rw.state = passed
	return rw.ResponseWriter.Write(p)
}

// ReadFrom implements io.ReaderFrom, down to the connection where Caddy has it.
func (rw *responseWriter) ReadFrom(r io.Reader) (int64, error) {
	if rw.state == replaced || rw.state == pending && isUnhandled(varsOf(rw.exchange.Context)) {
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

// send writes the page. policy is the Content-Security-Policy that it needs, if any, replaces tells whether it
// takes the place of a response, and vary whether other requests for the same address get other representations.
func (rw *responseWriter) send(p *page, f *format, policy string, replaces, vary bool) {
	header := rw.Header()
	for field := range header {
		if describesContent(field) {
			delete(header, field)
		}
	}
	if replaces {
		restore(header, "Server", rw.server)
		restore(header, "Content-Security-Policy", rw.policy)
	}

	rw.setHeader(0, "Content-Type", f.contentType)
	rw.setHeader(1, "Content-Length", strconv.Itoa(len(p.body)))
	rw.setHeader(2, "X-Content-Type-Options", "nosniff")
	rw.setHeader(3, "Cache-Control", "no-store")
	if policy != "" && header["Content-Security-Policy"] == nil {
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

// describesContent reports whether a header field speaks of the content that a page replaces, or acts on it. Of IANA's
// registry of field names, these do:
//
//   - representation metadata and digests (RFC 9110, section 8; RFC 9530), by convention named Content-…, and older or
//     newer fields of the kind: which variant it is, of what date, in which version of a format, with which style
//   - signatures, which cover the old digest (RFC 9421)
//   - freshness (RFC 9111, section 5), also what tells one kind of cache how long the content is fresh, for such
//     a cache then ignores Cache-Control, and would keep a page that echoes an address (RFC 9213, section 2.2);
//     and what lets a client use the content for other requests (RFC 9842, No-Vary-Search)
//   - framing and delta encoding (RFC 9112; RFC 3229)
//
// Some that are not in the registry have a server in front act: nginx (X-Accel-…), Apache and lighttpd (X-Sendfile) put
// another file in the page's place, and browsers follow Refresh and look for a SourceMap.
func describesContent(field string) bool {
	switch field = http.CanonicalHeaderKey(field); field {
	case "Content-Security-Policy":
		return false // which is restored, or the site's
	case "Digest", "Repr-Digest", "Unencoded-Digest", "Etag", "Last-Modified", "Accept-Ranges", "Memento-Datetime",
		"Alternates", "Tcn", "Variant-Vary", "Uri", "Derived-From", "Default-Style", "Pics-Label", "Mime-Version",
		"Odata-Version", "Oslc-Core-Version", "Schedule-Tag", "Preference-Applied", "Cmsd-Static", "Amp-Cache-Transform",
		"Signature", "Signature-Input",
		"Cache-Control", "Expires", "Pragma", "Age", "Warning", "Surrogate-Control", "Edge-Control",
		"Use-As-Dictionary", "No-Vary-Search",
		"Trailer", "Transfer-Encoding", "Im", "Delta-Base",
		"Refresh", "Sourcemap", "X-Sourcemap", "X-Lighttpd-Send-File", "X-Reproxy-Url", "X-Archive-Files":
		return true
	}
	return strings.HasPrefix(field, "Content-") || strings.HasSuffix(field, "-Cache-Control") ||
		strings.HasPrefix(field, "X-Accel-") || strings.HasPrefix(field, "X-Sendfile") ||
		strings.HasPrefix(field, http.TrailerPrefix)
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
	contentType := header.Get("Content-Type")
	switch {
	case isGRPC(contentType):
		return false // its answer is in the header or in the trailers, so it may have no body
	case header.Get("Content-Length") == "0":
		return true
	}
	mediaType, _, _ := strings.Cut(contentType, ";")
	switch strings.ToLower(strings.TrimSpace(mediaType)) {
	case "", "text/html", "application/xhtml+xml", "text/plain":
		return true
	}
	return false
}

// isGRPC reports whether a Content-Type is one of gRPC's: application/grpc, application/grpc+proto, application/grpc-web.
func isGRPC(contentType string) bool {
	const prefix = "application/grpc"
	return len(contentType) >= len(prefix) && strings.EqualFold(contentType[:len(prefix)], prefix)
}

// Interface guards
var (
	_ http.ResponseWriter = (*responseWriter)(nil)
	_ http.Hijacker       = (*responseWriter)(nil)
	_ http.Pusher         = (*responseWriter)(nil)
	_ io.ReaderFrom       = (*responseWriter)(nil)
)
