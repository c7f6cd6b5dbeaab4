package notfound

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/caddyserver/caddy/v2"
)

// base is what an address begins with: a scheme and an authority, or a base_url and nothing more.
type base struct {
	prefix, authority string
	configured        bool // by base_url
}

// base finds what the address of a request begins with. trusted tells whether the client is a trusted proxy.
func (h *Handler) base(r *http.Request, sent *received, trusted bool, repl *caddy.Replacer) base {
	if h.baseURL.perRequest {
		if url, err := parseBaseURL(text{value: h.baseURL.resolve(repl)}); err == nil {
			return base{url, "", true}
		}
	} else if h.baseURL.value != "" {
		return base{h.baseURL.value, "", true}
	}

	b := base{prefix: "http://", authority: sent.host}
	if r.TLS != nil {
		b.prefix = "https://"
	}
	if trusted {
		switch proto := firstMember(sent.forwardedProto); {
		case strings.EqualFold(proto, "https"):
			b.prefix = "https://"
		case strings.EqualFold(proto, "http"):
			b.prefix = "http://"
		}
		if host := firstMember(sent.forwardedHost); validAuthority(host) {
			b.authority = host
		}
	}
	if !validAuthority(b.authority) {
		b.authority = localAuthority(r)
	}
	return b
}

// appendAddress appends the absolute URL that a client addressed by a request target (RFC 9112,
// section 3.2). What is valid there stays as it was sent; the rest is percent-encoded.
func appendAddress(b []byte, method, target string, base base) []byte {
	switch {
	case strings.HasPrefix(target, "/"): // origin-form
		b = base.append(b)

	case target == "", target == "*", method == http.MethodConnect: // asterisk-form, authority-form
		return base.append(b)

	default: // absolute-form
		scheme, rest, _ := strings.Cut(target, ":")
		authority, hasAuthority := "", strings.HasPrefix(rest, "//")
		if hasAuthority {
			rest = rest[len("//"):]
			end := strings.IndexAny(rest, "/?#")
			if end < 0 {
				end = len(rest)
			}
			userinfo := strings.LastIndexByte(rest[:end], '@') + 1
			authority, rest = rest[userinfo:end], rest[end:]
		}
		switch {
		case !hasAuthority && !base.configured:
			return appendEncoded(b, target, &targetBytes) // urn:x is an address as it is
		case validAuthority(authority) && !base.configured:
			b = appendEncoded(b, scheme, &targetBytes)
			b = append(b, "://"...)
			b = append(b, authority...)
		default:
			b = base.append(b)
		}
		if rest != "" && rest[0] != '/' && rest[0] != '?' {
			b = append(b, '/') // or the host would go on
		}
		target = rest
	}
	return appendEncoded(b, target, &targetBytes)
}

func (a base) append(b []byte) []byte {
	b = append(b, a.prefix...)
	return append(b, a.authority...)
}

// firstMember returns the first member of a list.
func firstMember(value string) string {
	first, _, _ := strings.Cut(value, ",")
	return strings.TrimSpace(first)
}

// localAuthority returns the local address of a request's connection. A zone means nothing to anybody
// else (RFC 6874, section 4), and a Unix socket has no address that a URL could have.
func localAuthority(r *http.Request) string {
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		if addr, err := netip.ParseAddrPort(local.String()); err == nil {
			return netip.AddrPortFrom(addr.Addr().WithZone(""), addr.Port()).String()
		}
	}
	return "localhost"
}

// parseBaseURL checks a base URL, and returns it without the slash at its end. Of one with placeholders it sees only how
// it begins; for each request the rest is checked, and an invalid one is not used.
func parseBaseURL(t text) (string, error) {
	s := t.value
	if t.perRequest {
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
		return "", fmt.Errorf("%q has user information, which would be shown to everybody; leave it out", u.Redacted())
	case strings.ContainsAny(s, "?#"):
		return "", fmt.Errorf("%q has a query or a fragment; leave it out", s)
	}
	if path := u.EscapedPath(); string(appendEncoded(nil, path, &pathBytes)) != path || !strings.HasSuffix(s, path) {
		return "", fmt.Errorf("%q has characters that the path of a URL cannot have; percent-encode them, as in %q", s, u)
	}
	return strings.TrimRight(s, "/"), nil
}

// hasHTTPScheme reports whether s begins as an http or https URL does.
func hasHTTPScheme(s string) bool {
	scheme, _, ok := strings.Cut(s, "://")
	return ok && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"))
}

// validAuthority reports whether s is a host with an optional port (RFC 3986, section 3.2). Percent-encoding is
// not accepted in it: in a Host it can only hide something.
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

// appendEncoded appends s with every byte that is not in the set percent-encoded. What is
// percent-encoded already stays as it is.
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
