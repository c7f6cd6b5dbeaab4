package notfound

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"reflect"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/page"
	"github.com/caddy-notfound/notfound/internal/uri"
)

// clientRequest is a request as the client sent it. The next handlers may change the request for an upstream, as
// request_header does, so what the page needs of it is kept, as strings: Caddy's header handler changes values in place.
type clientRequest struct {
	*http.Request
	authority       string // that the client addressed, perhaps none that a URL can have
	accept, referer string
	isHTTPS         bool
	isEmptyDest     bool    // Sec-Fetch-Dest is empty: a script asks, and not for an element of its page
	uri             *string // what the option uri says; nil: it is not set
}

func newClientRequest(r *http.Request) clientRequest {
	c := clientRequest{Request: r, authority: r.Host, isHTTPS: r.TLS != nil}
	if trusted, _ := caddyhttp.GetVar(r.Context(), caddyhttp.TrustedProxyVarKey).(bool); trusted {
		if host := forwarded(r.Header["X-Forwarded-Host"]); uri.ValidAuthority(host) {
			c.authority = host
		}
		if proto := forwarded(r.Header["X-Forwarded-Proto"]); uri.IsHTTP(proto) {
			c.isHTTPS = len(proto) == len("https")
		}
	}
	c.accept = strings.Join(r.Header["Accept"], ",") // several lines are one list (RFC 9110, section 5.3)
	if referer := r.Header["Referer"]; len(referer) > 0 {
		c.referer = referer[0]
	}
	if dest := r.Header["Sec-Fetch-Dest"]; len(dest) > 0 {
		c.isEmptyDest = dest[0] == "empty"
	}
	return c
}

// forwarded returns the value of a trusted proxy's field: of several lines the last, as reverse_proxy takes it, and of
// a list its first member.
func forwarded(values []string) string {
	if len(values) == 0 {
		return ""
	}
	first, _, _ := strings.Cut(values[len(values)-1], ",")
	return strings.TrimSpace(first)
}

func (r *clientRequest) replacer() *caddy.Replacer {
	return r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
}

// asked returns what the client asked for, before any rewrite.
func (r *clientRequest) asked() page.Asked {
	asked := page.Asked{Method: r.Method, Target: r.RequestURI, Scheme: "http", Authority: r.authority}
	if orig, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok {
		asked.Method, asked.Target = orig.Method, orig.RequestURI
	}
	if r.isHTTPS {
		asked.Scheme = "https"
	}
	if !uri.ValidAuthority(asked.Authority) {
		asked.Authority = localAuthority(r.Context())
	}
	if r.uri != nil {
		asked.URI = *r.uri
	}
	return asked
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

// isOfChain reports whether r and other are of one chain of handlers. Chains that run at once have variables of their own,
// which have no lock.
func (r *clientRequest) isOfChain(other *clientRequest) bool {
	variables := func(r *clientRequest) uintptr {
		return reflect.ValueOf(r.Context().Value(caddyhttp.VarsCtxKey)).Pointer()
	}
	return variables(r) == variables(other)
}

// isIntercepted reports whether intercept has taken a response, and runs its response routes or ran them. Where nothing
// answered, it sets the status 0.
func (r *clientRequest) isIntercepted() bool {
	status, _ := r.replacer().Get("http.intercept.status_code")
	return status != nil && status != 0
}

// unhandledVar is the variable that Caddy sets at the end of the chain.
const unhandledVar = "unhandled"

// isUnhandled reports whether the request reached the end of the chain.
func (r *clientRequest) isUnhandled() bool {
	unhandled, _ := caddyhttp.GetVar(r.Context(), unhandledVar).(bool)
	return unhandled
}

// setHandled clears Caddy's mark, or the access log says NOP. It writes the variables, which have no lock, only where
// Caddy has: after a proxied request the transport may still be dialing, and reads them.
func (r *clientRequest) setHandled() {
	if r.isUnhandled() {
		caddyhttp.SetVar(r.Context(), unhandledVar, false)
	}
}
