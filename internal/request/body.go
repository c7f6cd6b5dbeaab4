package request

import (
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// maxDiscarded is how many bytes of a request's body net/http discards before a response, and one to find that more
// follow.
const maxDiscarded = 256<<10 + 1

// EndBody ends the body of a request before the page is sent. If the body does not end, its connection ends with the
// page, or what the client sends next would be taken for another request:
//
//   - By default, as much is discarded as net/http discards before a response. net/http cannot do so itself, because it
//     looks at Caddy's reader, and has no deadline once a page exceeds its buffer. Caddy's reader has deadlines.
//   - Of a proxied request, nothing is discarded: the transport may still read, and the upstream would miss a part.
//   - If the client holds its body back, nothing is read, which would ask for the body (RFC 9110, section 10.1.1).
//   - If Caddy has no reader, because its timeout is off, net/http looks at its own, and is left to it. But in full
//     duplex, net/http looks at no body before a response, so the connection always ends.
//   - Over HTTP/2, net/http does all of this. Over HTTP/3, a browser may never get the page unless as much is
//     discarded. The connection stays, because it has other streams.
//
// A read of no bytes tells whether the body is at its end: Caddy's reader keeps its last error (IdleTimeoutReader.Read,
// caddyserver/caddy#8103), and has locks. Such a read waits for one of the transport's and, within a chunked body, for
// the next chunk: at most as long as Caddy's timeouts allow.
func (r *Request) EndBody(w http.ResponseWriter) {
	if !r.hasBody {
		return
	}
	reader, _ := caddyhttp.IdleTimeoutsFromContext(r.ctx)
	_, isProxied := r.Replacer.Get("http.reverse_proxy.upstream.hostport")
	if reader != nil && !r.awaits100 && !isProxied {
		_, _ = io.CopyN(io.Discard, reader, maxDiscarded) // an error is no reason to send no page
	}
	switch {
	case r.isHTTP3:
	case reader == nil:
		server, _ := r.ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
		if server != nil && server.EnableFullDuplex {
			endConnection(w, http.NoBody)
		}
	case r.awaits100:
		endConnection(w, reader)
	default:
		if _, err := reader.Read(nil); err != io.EOF {
			endConnection(w, reader)
		}
	}
}

// endConnection makes net/http close the connection after the response, as it does when a body exceeds the limit of a
// MaxBytesReader: whatever a handler does to the field Connection, and half a second late, so that a client that is
// still sending gets the response before it is told that nobody reads.
//
// The body is closed now. After the handler, net/http would wait for some of the rest, without a deadline if a
// transport reads at the same time.
func endConnection(w http.ResponseWriter, body io.Closer) {
	w.Header()["Connection"] = []string{"close"} // also where a plugin's writer hides that of net/http
	err := http.NewResponseController(w).SetReadDeadline(time.Now())
	if err == nil { // nothing waits for the client any more
		_ = body.Close()
	}
	lowest := w
	for {
		wrapper, ok := lowest.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			break
		}
		lowest = wrapper.Unwrap()
	}
	// A MaxBytesReader that reaches its limit calls a method of the lowest writer that only net/http can name.
	tooLarge := io.NopCloser(strings.NewReader("x"))
	_, _ = io.Copy(io.Discard, http.MaxBytesReader(lowest, tooLarge, 0))
}
