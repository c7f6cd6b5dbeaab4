package request

import (
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// maxDiscarded is how many bytes of a request's body net/http discards before a response, and one more, which shows
// whether the body goes on.
const maxDiscarded = 256<<10 + 1

// EndBody ends the body of a request before the page is sent. If the body does not end, its connection is closed after
// the page; otherwise, what the client sends next would be taken for another request. What is read depends on the
// request:
//
//   - In general, up to maxDiscarded bytes are discarded. net/http cannot do this itself, because it does not know
//     Caddy's reader, and it sets no deadline once a page exceeds its buffer. Caddy's reader sets deadlines.
//   - If the request was proxied, nothing is: the transport may still read, and the upstream would miss a part.
//   - If the client awaits a 100 (Continue), nothing is: a read would ask for the body (RFC 9110, section 10.1.1).
//   - If Caddy has no reader, because its timeout is off, net/http ends the body. But in full duplex, net/http leaves
//     the body alone before a response, so the connection always ends.
//   - Over HTTP/2, net/http does all of this.
//   - Over HTTP/3, bytes are discarded as well, or a browser may never get the page. The connection, which carries
//     other streams, stays.
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
			endConnection(w)
		}
	case r.awaits100:
		endConnection(w)
	default:
		// A read of no bytes returns the reader's last error (IdleTimeoutReader.Read, caddyserver/caddy#8103). The
		// transport may read at the same time, because the reader has a lock. The read then waits for the transport's
		// or, within a chunked body, for the next chunk, but no longer than Caddy's timeouts.
		if _, err := reader.Read(nil); err != io.EOF {
			endConnection(w)
		}
	}
}

// endConnection makes net/http close the connection half a second after the response, as it does when a body exceeds
// the limit of a MaxBytesReader. A client that is still sending gets the response first. The field Connection alone
// would not do, because a handler may change it. Because of the deadline, neither a transport nor net/http waits for
// more of the body after the handler.
func endConnection(w http.ResponseWriter) {
	w.Header()["Connection"] = []string{"close"} // in case a plugin's writer hides that of net/http
	_ = http.NewResponseController(w).SetReadDeadline(time.Now())
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
