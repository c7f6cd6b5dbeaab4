package notfound

import (
	"errors"
	"maps"
	"net/http"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/page"
	"github.com/caddy-notfound/notfound/internal/uri"
)

// request is a request that Caddy passes to a handler. What its context holds is looked up once.
type request struct {
	*http.Request // the next handlers may change it

	replacer   *caddy.Replacer
	vars       map[string]any // Caddy's variables
	errorRoute *errorRoute    // that the request is in; nil: in none
	client     client
}

// errorRoute is a route of handle_errors.
type errorRoute struct {
	err    error       // that it handles
	header http.Header // of the response on entry, if the error is a 404; nil: no bare status follows
}

// client has what the client sent. The next handlers may change a request for an upstream, as request_header does, and
// header changes values in place, so the page and the report rely on these copies.
type client struct {
	authority       string // that it addressed, perhaps none that a URL can have
	accept, referer string
	uri             *string // that the option uri says. A pointer holds the size of responseWriter; nil: it is not set
	isHTTPS         bool
	isScript        bool // fetch or XMLHttpRequest, whose response nobody sees but the script
	isFollowed      bool // perhaps somebody followed a link
}

// newRequest reads a request before any of the next handlers changes it. The header is that of the response.
func newRequest(r *http.Request, header http.Header) request {
	ctx := r.Context()
	req := request{Request: r, replacer: ctx.Value(caddy.ReplacerCtxKey).(*caddy.Replacer)}
	req.vars, _ = ctx.Value(caddyhttp.VarsCtxKey).(map[string]any)
	if err, ok := ctx.Value(caddyhttp.ErrorCtxKey).(error); ok {
		req.errorRoute = &errorRoute{err: err}
		if isNotFound(err) {
			req.errorRoute.header = maps.Clone(header)
		}
	}
	trusted, _ := req.vars[caddyhttp.TrustedProxyVarKey].(bool)
	req.client = newClient(r, trusted)
	return req
}

// newClient reads a request as the client sent it. What a proxy says of it counts if the proxy is trusted.
func newClient(r *http.Request, trusted bool) client {
	c := client{
		authority: r.Host,
		isHTTPS:   r.TLS != nil,
		accept:    strings.Join(r.Header["Accept"], ","), // several lines are one list (RFC 9110, section 5.3)
		referer:   first(r.Header["Referer"]),
	}
	if trusted {
		if host := forwarded(r.Header["X-Forwarded-Host"]); uri.ValidAuthority(host) {
			c.authority = host
		}
		if proto := forwarded(r.Header["X-Forwarded-Proto"]); uri.IsHTTP(proto) {
			c.isHTTPS = strings.EqualFold(proto, "https")
		}
	}

	// Fetch Metadata Request Headers, section 2: browsers send both fields, and node's fetch sends the mode alone. With
	// navigate, a service worker passes a navigation on; with no-cors, a link prefetches a page. Both may be shown.
	mode, dest := first(r.Header["Sec-Fetch-Mode"]), first(r.Header["Sec-Fetch-Dest"])
	c.isScript = (mode == "cors" || mode == "same-origin") && (dest == "empty" || dest == "")
	c.isFollowed = dest != "empty" || mode == "navigate" || c.namesHTML()
	return c
}

// namesHTML reports whether the client asks for HTML by name, as browsers do where they open a page.
func (c *client) namesHTML() bool { return strings.Contains(strings.ToLower(c.accept), "text/html") }

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// forwarded returns the value of a proxy's field: of several lines the last, as reverse_proxy takes it, and of a list
// its first member.
func forwarded(values []string) string {
	if len(values) == 0 {
		return ""
	}
	member, _, _ := strings.Cut(values[len(values)-1], ",")
	return strings.TrimSpace(member)
}

// asked returns what the client asked for, before any rewrite.
func (r *request) asked() page.Asked {
	orig, _ := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request)
	asked := page.Asked{Method: orig.Method, Target: orig.RequestURI, Scheme: "http", Authority: r.client.authority}
	if r.client.uri != nil {
		asked.URI = *r.client.uri
	}
	if r.client.isHTTPS {
		asked.Scheme = "https"
	}
	if !uri.ValidAuthority(asked.Authority) {
		asked.Authority = "localhost" // the connection has an address, but it is an internal one
	}
	return asked
}

// isIntercepted reports whether intercept runs its response routes, or ran them: they have an end of their own, without
// Caddy's mark. Where nothing answered, it sets the status 0.
func (r *request) isIntercepted() bool {
	status, _ := r.replacer.Get("http.intercept.status_code")
	return status != nil && status != 0
}

// unhandledVar is the variable that Caddy sets at the end of the chain.
const unhandledVar = "unhandled"

// isUnhandled reports whether the request reached the end of the chain.
func (r *request) isUnhandled() bool {
	unhandled, _ := r.vars[unhandledVar].(bool)
	return unhandled
}

// setHandled clears Caddy's mark, or the access log says NOP. It writes the variables, which have no lock, only where
// Caddy has: after a proxied request the transport may still be dialing, and reads them.
func (r *request) setHandled() {
	if r.isUnhandled() {
		r.vars[unhandledVar] = false
	}
}

// handledError returns the error that an error route is for, or nil in any other route.
func (r *request) handledError() error {
	if r.errorRoute == nil {
		return nil
	}
	return r.errorRoute.err
}

// isNotFound reports whether err asks for a 404 response.
func isNotFound(err error) bool {
	if err == nil { // as for most requests, which need not look for more
		return false
	}
	he, ok := errors.AsType[caddyhttp.HandlerError](err)
	return ok && he.StatusCode == http.StatusNotFound
}
