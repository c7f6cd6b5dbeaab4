package notfound

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// clientRequest is a request as the client sent it. The next handlers may change the request for an upstream, as
// request_header does, so what the page needs of it is kept.
type clientRequest struct {
	*http.Request
	replacer *caddy.Replacer
	vars     map[string]any // Caddy's variables, see caddyhttp.GetVar

	host, accept                  string
	forwardedHost, forwardedProto string // of a trusted proxy: the last line, as reverse_proxy takes it
	referer                       string // only for the report
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
	return c
}

func last(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[len(values)-1]
}

// original returns the method and the target that the client sent, before any rewrite.
func (r *clientRequest) original() (method, target string) {
	if orig, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok {
		return orig.Method, orig.RequestURI
	}
	return r.Method, r.RequestURI
}

// cause returns the name of the cause of the page that was written for the request; it is empty if none was.
func (r *clientRequest) cause() string {
	name, _ := r.replacer.GetString(causePlaceholder)
	return name
}

// A not_found that decides about a 404 says so to the others that its response passes on its way, in the replacer.
const (
	// decidedPlaceholder is set once it was decided, to whether that was in a response route of intercept.
	decidedPlaceholder = "http.not_found.decided"

	// countedPlaceholder is set once a 404 response that passed is counted.
	countedPlaceholder = "http.not_found.counted"
)

// decide says that a 404 is a page, with a name of a cause, or a response that passes, with nil.
func (r *clientRequest) decide(cause any) {
	r.replacer.Set(decidedPlaceholder, r.isIntercepted())
	if cause != nil {
		r.replacer.Set(causePlaceholder, cause)
	}
}

// isDecided reports whether another not_found further down the chain has decided about the 404 that arrives. If
// intercept has made a response of its own since, nobody has.
func (r *clientRequest) isDecided() bool {
	inRoute, decided := r.replacer.Get(decidedPlaceholder)
	if decided && inRoute == false && r.isIntercepted() {
		r.forget()
		return false
	}
	return decided
}

// forget forgets what was decided.
func (r *clientRequest) forget() {
	r.replacer.Delete(decidedPlaceholder)
	r.replacer.Delete(causePlaceholder)
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
	if host := firstMember(r.forwardedHost); validAuthority(host) {
		authority = host
	}
	if !validAuthority(authority) {
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

// appendAddress appends the absolute URL that the client asked for with a request target (RFC 9112, section 3.2).
// What is valid in it stays as it was sent; the rest is percent-encoded. The URL begins with baseURL, unless that
// is empty.
func (r *clientRequest) appendAddress(b []byte, method, target, baseURL string) []byte {
	scheme, authority, rest := splitTarget(method, target)
	switch {
	case baseURL != "":
		b = append(b, baseURL...)
	case authority != "":
		b = appendEncoded(b, scheme, &targetBytes)
		b = append(b, "://"...)
		b = append(b, authority...)
	case scheme != "":
		b = appendEncoded(b, scheme, &targetBytes)
		b = append(b, ':')
		return appendEncoded(b, rest, &targetBytes)
	default:
		scheme, authority = r.origin()
		b = append(b, scheme...)
		b = append(b, "://"...)
		b = append(b, authority...)
	}
	if rest != "" && rest[0] != '/' && rest[0] != '?' {
		b = append(b, '/') // or it would belong to the authority
	}
	return appendEncoded(b, rest, &targetBytes)
}

// splitTarget splits a request target. In origin-form it has only a rest, and in asterisk-form and authority-form
// nothing. In absolute-form it has a scheme and an authority, without user information; one whose authority is
// invalid counts as in origin-form, and one like urn:x has no authority. In its path, what stands before an @ is taken
// for user information, as in http:user:password@www.example.com.
func splitTarget(method, target string) (scheme, authority, rest string) {
	switch {
	case strings.HasPrefix(target, "/"):
		return "", "", target
	case target == "*", method == http.MethodConnect:
		return "", "", ""
	}
	scheme, rest, _ = strings.Cut(target, ":")
	if !strings.HasPrefix(rest, "//") {
		path := rest
		if end := strings.IndexAny(rest, "?#"); end >= 0 {
			path = rest[:end]
		}
		if at := strings.LastIndexByte(path, '@'); at >= 0 {
			rest = strings.TrimLeft(rest[at+1:], "/") // two of them would begin an authority
		}
		return scheme, "", rest
	}
	rest = rest[len("//"):]
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority, rest = rest[strings.LastIndexByte(rest[:end], '@')+1:end], rest[end:]
	if !validAuthority(authority) {
		return "", "", rest
	}
	return scheme, authority, rest
}

// parseBaseURL checks a base URL, and returns it without the slash at its end. If it has placeholders, only its
// beginning is checked; the rest is checked for each request, and a base URL that is invalid then is not used.
func parseBaseURL(e expandable) (string, error) {
	s := e.value
	if e.perRequest {
		if s[0] != '{' && !hasHTTPScheme(s) {
			return "", fmt.Errorf("%q does not begin with http:// or https://", s)
		}
		return s, nil
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return "", fmt.Errorf("%q is not a URL: %w; write it as in https://www.example.com", s, err)
	case !hasHTTPScheme(s) || !validAuthority(u.Host):
		return "", fmt.Errorf("%q is not an absolute http or https URL with a host; write it as in https://www.example.com", s)
	case u.User != nil:
		return "", fmt.Errorf("%q has user information, which every visitor would see; leave it out", u.Redacted())
	case strings.ContainsAny(s, "?#"):
		return "", fmt.Errorf("%q has a query or a fragment; leave it out", s)
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return "", fmt.Errorf("%q has the port %s; a port is a number from 1 to 65535", s, port)
		}
	}
	if path := u.EscapedPath(); string(appendEncoded(nil, path, &pathBytes)) != path || !strings.HasSuffix(s, path) {
		return "", fmt.Errorf("%q has characters that the path of a URL cannot have; percent-encode them, as in %q", s, u)
	}
	return strings.TrimRight(s, "/"), nil
}

// hasHTTPScheme reports whether s begins as an http or https URL does.
func hasHTTPScheme(s string) bool {
	scheme, _, ok := strings.Cut(s, "://")
	return ok && isHTTP(scheme)
}

func isHTTP(scheme string) bool {
	return strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https")
}

// validAuthority reports whether s is a host with an optional port (RFC 3986, section 3.2). It may not have
// percent-encoding, which in a Host can only hide something.
func validAuthority(s string) bool {
	if strings.HasPrefix(s, "[") {
		host, port, ok := strings.Cut(s[1:], "]")
		if addr, err := netip.ParseAddr(host); !ok || err != nil || !addr.Is6() || addr.Zone() != "" {
			return false
		}
		return port == "" || port[0] == ':' && consistsOf(port[1:], &digitBytes)
	}
	host, port, _ := strings.Cut(s, ":")
	return host != "" && consistsOf(host, &hostBytes) && consistsOf(port, &digitBytes)
}

func consistsOf(s string, set *byteSet) bool {
	for i := range len(s) {
		if !set[s[i]] {
			return false
		}
	}
	return true
}

// byteSet is a set of bytes.
type byteSet [256]bool

const (
	digits     = "0123456789"
	letters    = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	unreserved = letters + digits + "-._~"            // RFC 3986, section 2.3
	subDelims  = "!$&'()*+,;="                        // RFC 3986, section 2.2
	pathChars  = unreserved + subDelims + ":@/"       // RFC 3986, section 3.3
	tokenChars = letters + digits + "!#$%&'*+-.^_`|~" // RFC 9110, section 5.6.2
)

var (
	digitBytes  = newByteSet(digits)
	hostBytes   = newByteSet(unreserved + subDelims)
	pathBytes   = newByteSet(pathChars)
	targetBytes = newByteSet(pathChars + "?") // a path and a query
	tokenBytes  = newByteSet(tokenChars)
)

func newByteSet(members string) (set byteSet) {
	for i := range len(members) {
		set[members[i]] = true
	}
	return set
}

// appendEncoded appends s, percent-encoding every byte that is not in the set. What is percent-encoded already
// stays as it is.
func appendEncoded(b []byte, s string, set *byteSet) []byte {
	const hex = "0123456789ABCDEF"
	done := 0
	for i := range len(s) {
		if c := s[i]; !set[c] && !(c == '%' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2])) {
			b = append(b, s[done:i]...)
			b = append(b, '%', hex[c>>4], hex[c&15])
			done = i + 1
		}
	}
	return append(b, s[done:]...)
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}
