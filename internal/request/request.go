// Package request describes a request as the client sent it, and what Caddy's context says about it. The next handlers
// may change the request for an upstream, as request_header and rewrite do. So whatever the handler, its judge and its
// page need is copied before they run.
package request

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/accept"
	"github.com/caddy-notfound/notfound/internal/page"
	"github.com/caddy-notfound/notfound/internal/uri"
)

// Request is a request that Caddy passes to a handler.
type Request struct {
	Replacer     *caddy.Replacer
	HandledError error // the error that an error route handles; nil: the request is in no error route

	URI    string // the expanded option uri, which the handler sets; empty: none
	Method string

	Accept, AcceptEncoding string // all lines of the field, up to maxAccepted

	IsScript  bool // sent by fetch or XMLHttpRequest: only the script sees the response
	Navigates bool // sent to open a page, perhaps through a service worker

	ctx       context.Context
	vars      map[string]any // Caddy's variables
	authority string         // Host, or X-Forwarded-Host of a trusted proxy; a URL may not allow it
	isHTTPS   bool
	hasBody   bool // EndBody may have to end it
	isHTTP3   bool
	awaits100 bool // the client holds the body back until it gets a 100 (Continue)
}

// Read reads a request before a next handler changes it. What a proxy says of the client counts if Caddy trusts it.
func (r *Request) Read(from *http.Request) {
	r.ctx = from.Context()
	r.Replacer = r.ctx.Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	r.vars, _ = r.ctx.Value(caddyhttp.VarsCtxKey).(map[string]any)
	r.HandledError, _ = r.ctx.Value(caddyhttp.ErrorCtxKey).(error)

	r.Method = from.Method
	r.Accept = accepted(from.Header["Accept"])
	r.AcceptEncoding = accepted(from.Header["Accept-Encoding"])
	r.authority = from.Host
	r.hasBody = from.ProtoMajor != 2 && from.ContentLength != 0
	r.isHTTP3 = from.ProtoMajor == 3
	r.awaits100 = r.hasBody && strings.EqualFold(from.Header.Get("Expect"), "100-continue")
	r.isHTTPS = from.TLS != nil
	if trusted, _ := r.vars[caddyhttp.TrustedProxyVarKey].(bool); trusted {
		r.readForwarded(from.Header)
	}

	// Browsers send both fields (Fetch Metadata Request Headers, section 2), and node's fetch sends the mode alone. The
	// mode no-cors is not a script's: a link may prefetch a page with it, which may then be shown. A service worker that
	// forwards a navigation sends navigate in Chromium and WebKit. In Firefox, it sends same-origin, as for a fetch of its
	// own, but Upgrade-Insecure-Requests tells them apart: only a request that opens a page has that field.
	mode := from.Header.Get("Sec-Fetch-Mode")
	r.Navigates = mode == "navigate" || from.Header.Get("Upgrade-Insecure-Requests") == "1"
	isCORS := mode == "cors" || mode == "same-origin"
	if isCORS && !r.Navigates {
		dest := from.Header.Get("Sec-Fetch-Dest")
		r.IsScript = dest == "" || dest == "empty"
	}
}

// maxAccepted is how many bytes of Accept and of Accept-Encoding count. The longest field of a known client has 145.
// Over HTTP/2, a client can repeat a field of 16 kB, with thousands of members, in a few bytes.
const maxAccepted = 1 << 10

// accepted returns the list in all lines of a field (RFC 9110, section 5.3).
func accepted(lines []string) string {
	list := strings.Join(lines, ",")
	if len(list) <= maxAccepted {
		return list
	}
	list = list[:maxAccepted]
	return list[:max(0, strings.LastIndexByte(list, ','))] // or half a member could refuse what the whole one accepts
}

// readForwarded reads what a trusted proxy says of the origin that the client addressed.
func (r *Request) readForwarded(header http.Header) {
	if host := forwarded(header["X-Forwarded-Host"]); uri.ValidAuthority(host) {
		r.authority = host
	}
	if proto := forwarded(header["X-Forwarded-Proto"]); uri.IsHTTP(proto) {
		r.isHTTPS = strings.EqualFold(proto, "https")
	}
}

// forwarded returns the value of a field that a proxy has set. Of several lines, the last one counts, as in
// reverse_proxy; of a list, the first member counts.
func forwarded(values []string) string {
	if len(values) == 0 {
		return ""
	}
	last := values[len(values)-1]
	member, _, _ := strings.Cut(last, ",")
	return strings.TrimSpace(member)
}

// VaryByClient is the Vary of a response that depends on IsScript or OpensPage. Sec-Fetch-Dest is not among them:
// nobody sees the 404 of a request with the mode of a script and another destination, such as a font.
const VaryByClient = "Accept, Sec-Fetch-Mode, Upgrade-Insecure-Requests"

// OpensPage reports whether the client is a browser that opens a page, or another client that asks for HTML by name.
func (r *Request) OpensPage() bool {
	return r.Navigates || accept.Names(r.Accept, "text/html")
}

// Asked returns what the client asked for, before any rewrite, for the address on the page.
func (r *Request) Asked() page.Asked {
	orig, _ := r.ctx.Value(caddyhttp.OriginalRequestCtxKey).(http.Request)
	asked := page.Asked{
		Method:    orig.Method,
		Target:    orig.RequestURI,
		Scheme:    "http",
		Authority: r.authority,
		URI:       r.URI,
	}
	if r.isHTTPS {
		asked.Scheme = "https"
	}
	if !uri.ValidAuthority(asked.Authority) {
		asked.Authority = "localhost" // not the address of the connection, which is internal
	}
	return asked
}

// IsIntercepted reports whether intercept is running its response routes, or has run them. At their end,
// Intercept.ServeHTTP does not set the variable `unhandled`. If nothing answered the request, intercept itself has set
// the status to 0.
func (r *Request) IsIntercepted() bool {
	status, _ := r.Replacer.Get("http.intercept.status_code")
	return status != nil && status != 0
}

// unhandledVar is the variable that Caddy sets at the end of the chain, in caddyhttp's emptyHandler.
const unhandledVar = "unhandled"

// IsUnhandled reports whether the request reached the end of the chain.
func (r *Request) IsUnhandled() bool {
	unhandled, _ := r.vars[unhandledVar].(bool)
	return unhandled
}

// SetHandled clears the variable `unhandled`, for which the access log would say NOP. It only writes to the variables,
// which have no lock, if Caddy has done so: after a proxied request, a dial may still read them.
func (r *Request) SetHandled() {
	if r.IsUnhandled() {
		r.vars[unhandledVar] = false
	}
}

// IsNotFound reports whether an error asks for a 404 response.
func IsNotFound(err error) bool {
	if err == nil { // fast, for most requests
		return false
	}
	he, ok := errors.AsType[caddyhttp.HandlerError](err)
	return ok && he.StatusCode == http.StatusNotFound
}
