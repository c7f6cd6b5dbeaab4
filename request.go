package notfound

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/page"
	"github.com/caddy-notfound/notfound/internal/uri"
)

// clientRequest is a request as the client sent it. The next handlers may change the request for an upstream, as
// request_header does, so what the page needs of it is kept.
type clientRequest struct {
	*http.Request
	replacer *caddy.Replacer
	vars     map[string]any // Caddy's variables, see caddyhttp.GetVar

	host, accept, referer         string
	fetchDest                     string // Sec-Fetch-Dest
	forwardedHost, forwardedProto string // of a trusted proxy: the last line, as reverse_proxy takes it

	uri *string // what the option uri says; nil: it is not set
}

func newClientRequest(r *http.Request) clientRequest {
	ctx := r.Context()
	c := clientRequest{Request: r, replacer: ctx.Value(caddy.ReplacerCtxKey).(*caddy.Replacer), host: r.Host}
	c.vars, _ = ctx.Value(caddyhttp.VarsCtxKey).(map[string]any)

	// strings, not slices: Caddy's header handler changes values in place
	if trusted, _ := c.vars[caddyhttp.TrustedProxyVarKey].(bool); trusted {
		c.forwardedHost = last(r.Header["X-Forwarded-Host"])
		c.forwardedProto = last(r.Header["X-Forwarded-Proto"])
	}
	if accept := r.Header["Accept"]; len(accept) == 1 {
		c.accept = accept[0]
	} else {
		c.accept = strings.Join(accept, ",") // several lines are one list (RFC 9110, section 5.3)
	}
	if referer := r.Header["Referer"]; len(referer) > 0 {
		c.referer = referer[0]
	}
	if dest := r.Header["Sec-Fetch-Dest"]; len(dest) > 0 {
		c.fetchDest = dest[0]
	}
	return c
}

func last(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[len(values)-1]
}

// asked returns what the client asked for, before any rewrite.
func (r *clientRequest) asked() page.Asked {
	asked := page.Asked{Method: r.Method, Target: r.RequestURI}
	if orig, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok {
		asked.Method, asked.Target = orig.Method, orig.RequestURI
	}
	if r.uri != nil {
		asked.URI = *r.uri
	}
	asked.Scheme, asked.Authority = r.origin()
	return asked
}

// origin returns the scheme and the authority that the client addressed, if need be as a trusted proxy says.
func (r *clientRequest) origin() (scheme, authority string) {
	scheme, authority = "http", r.host
	if r.TLS != nil {
		scheme = "https"
	}
	switch proto := firstMember(r.forwardedProto); {
	case strings.EqualFold(proto, "https"):
		scheme = "https"
	case strings.EqualFold(proto, "http"):
		scheme = "http"
	}
	if host := firstMember(r.forwardedHost); uri.ValidAuthority(host) {
		authority = host
	}
	if !uri.ValidAuthority(authority) {
		authority = localAuthority(r.Context())
	}
	return scheme, authority
}

// firstMember returns the first member of a list.
func firstMember(value string) string {
	first, _, _ := strings.Cut(value, ",")
	return strings.TrimSpace(first)
}

// localAuthority returns the local address of a connection. A zone means nothing to another host (RFC 6874,
// section 4), and a Unix socket has no address that a URL could have.
func localAuthority(ctx context.Context) string {
	if local, ok := ctx.Value(http.LocalAddrContextKey).(net.Addr); ok {
		if addr, err := netip.ParseAddrPort(local.String()); err == nil {
			return netip.AddrPortFrom(addr.Addr().WithZone(""), addr.Port()).String()
		}
	}
	return "localhost"
}

// What a not_found decides about a 404 stands in the replacer, for the log and for the other not_found handlers that the
// response passes on its way.
const (
	// causePlaceholder holds the cause of the page that was written. Where none was, it is empty: a string before anything
	// is decided, and passes once a response passes.
	causePlaceholder = "http.not_found.cause"

	// inRoutePlaceholder is set once something was decided in a response route of intercept.
	inRoutePlaceholder = "http.not_found.in_response_route"

	// countedPlaceholder is set once a 404 response that passed is counted.
	countedPlaceholder = "http.not_found.counted"
)

type passes string

// noCause makes the placeholder of the cause known, and empty, until it is set.
func noCause(key string) (any, bool) {
	if key == causePlaceholder {
		return "", true
	}
	return nil, false
}

// decide says that a 404 becomes a page, with the name of its cause, or passes, with passes("").
func (r *clientRequest) decide(cause any) {
	r.replacer.Set(causePlaceholder, cause)
	if r.isIntercepted() {
		r.replacer.Set(inRoutePlaceholder, true)
	}
}

// isDecided reports whether another not_found further down the chain has decided about the 404 that arrives. If
// intercept has made a response of its own since, nobody has.
func (r *clientRequest) isDecided() bool {
	if cause, _ := r.replacer.Get(causePlaceholder); cause == "" {
		return false
	}
	_, inRoute := r.replacer.Get(inRoutePlaceholder)
	return inRoute || !r.isIntercepted()
}

// forget forgets what was decided.
func (r *clientRequest) forget() { r.replacer.Delete(causePlaceholder) }

// cause returns the name of the cause of the page that was written for the request; it is empty if none was.
func (r *clientRequest) cause() string {
	cause, _ := r.replacer.Get(causePlaceholder)
	name, _ := cause.(string)
	return name
}

// isIntercepted reports whether intercept has taken a response, and runs its response routes or ran them.
func (r *clientRequest) isIntercepted() bool {
	status, _ := r.replacer.Get("http.intercept.status_code")
	return status != nil && status != 0 // which it sets where nothing answered
}

// isHandledResponse reports whether a handler has taken a response, as intercept and reverse_proxy do for their response
// routes, where its header fields may still be set. forward_auth goes on after a 2xx, of which it sets none.
func (r *clientRequest) isHandledResponse() bool {
	status, _ := r.replacer.Get("http.reverse_proxy.status_code")
	code, _ := status.(int)
	return code >= 300 || r.isIntercepted()
}

// unhandledVar is the variable that Caddy sets at the end of the chain.
const unhandledVar = "unhandled"

func (r *clientRequest) isUnhandled() bool {
	unhandled, _ := r.vars[unhandledVar].(bool)
	return unhandled
}

// markHandled clears Caddy's unhandled variable, or the access log says NOP. It writes it only where it is set: after
// a proxied request the transport may still be dialing, and reads the variables, which have no lock.
func (r *clientRequest) markHandled() {
	if r.isUnhandled() {
		r.vars[unhandledVar] = false
	}
}

// handledError returns the error that an error route handles.
func handledError(r *http.Request) error {
	err, _ := r.Context().Value(caddyhttp.ErrorCtxKey).(error)
	return err
}

// isNotFound reports whether err asks for a 404 response.
func isNotFound(err error) bool {
	if err == nil {
		return false
	}
	he, ok := errors.AsType[caddyhttp.HandlerError](err)
	return ok && he.StatusCode == http.StatusNotFound
}
