// Package request describes a request as the client sent it, and what Caddy's context says about it. The next handlers
// may change the request for an upstream, as request_header and rewrite do. So everything that the handler, its judge
// and its page need is copied before they run.
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

	IsScript  bool // fetch or XMLHttpRequest, whose response nobody sees but the script
	Navigates bool // a page is opened, by a navigation that may pass through a service worker

	ctx       context.Context
	vars      map[string]any // Caddy's variables
	authority string         // Host, or X-Forwarded-Host of a trusted proxy; a URL may not allow it
	isHTTPS   bool
	hasBody   bool // that EndBody may have to end
	isHTTP3   bool
	awaits100 bool // it holds its body back until it gets a 100 (Continue)
}

// Read reads a request before any of the next handlers changes it. What a proxy says of the client counts if Caddy
// trusts the proxy.
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

	// Fetch Metadata Request Headers, section 2: browsers send both fields, and node's fetch sends the mode alone. With
	// no-cors, a link prefetches a page, which may be shown. A service worker that passes a navigation on sends navigate
	// in Chromium and WebKit, and same-origin in Firefox, as for a fetch of its own. Firefox's navigation differs by
	// Upgrade-Insecure-Requests, which only a request that opens a page has.
	mode := from.Header.Get("Sec-Fetch-Mode")
	r.Navigates = mode == "navigate" || from.Header.Get("Upgrade-Insecure-Requests") == "1"
	isCORS := mode == "cors" || mode == "same-origin"
	if isCORS && !r.Navigates {
		dest := from.Header.Get("Sec-Fetch-Dest")
		r.IsScript = dest == "" || dest == "empty"
	}
}

// maxAccepted is how many bytes of Accept and of Accept-Encoding count. The longest that a known client sends has 145.
// Over HTTP/2, a client sends 16 kB of them, thousands of members, in a few bytes once they have been sent before.
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

// forwarded returns the value of a proxy's field: of several lines the last, as reverse_proxy takes it, and of a list
// its first member.
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
		asked.Authority = "localhost" // the connection has an address, but it is an internal one
	}
	return asked
}

// IsIntercepted reports whether intercept runs its response routes, or ran them. At their end, Intercept.ServeHTTP
// does not set the variable `unhandled`. If nothing answered the request, intercept itself has set the status to 0.
func (r *Request) IsIntercepted() bool {
	status, _ := r.Replacer.Get("http.intercept.status_code")
	return status != nil && status != 0
}

// unhandledVar is the variable that Caddy sets at the end of the chain, by the emptyHandler of caddyhttp.
const unhandledVar = "unhandled"

// IsUnhandled reports whether the request reached the end of the chain.
func (r *Request) IsUnhandled() bool {
	unhandled, _ := r.vars[unhandledVar].(bool)
	return unhandled
}

// SetHandled clears Caddy's mark, or the access log says NOP. It writes the variables, which have no lock, only where
// Caddy has: after a proxied request the transport may still be dialing, and reads them.
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
