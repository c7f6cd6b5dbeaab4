package page

import (
	"net/http"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-notfound/notfound/internal/uri"
)

// Asked is a request as the client sent it.
type Asked struct {
	Method string
	Target string // the request target, in any of its forms (RFC 9112, section 3.2)

	// URI is the option uri, see ExpandURI. An http or https URL with a host, or a path with its query, replaces the
	// target, whatever the method.
	URI string

	// Scheme and Authority are the origin that the client addressed. The target and URI override them if they name one.
	Scheme, Authority string
}

// ExpandURI expands the option uri, for Asked.
func (m *Maker) ExpandURI(placeholders *caddy.Replacer) string { return m.uri.expand(placeholders) }

// URI returns the absolute URL that was asked for, as a page shows it. It begins with the base URL, if there is one.
// What is valid in it stays as it was sent; the rest is percent-encoded.
func (m *Maker) URI(asked *Asked, placeholders *caddy.Replacer) string {
	scheme, authority, target, ok := splitURI(asked.URI)
	if !ok {
		scheme, authority, target = splitTarget(asked.Method, asked.Target)
	}
	scheme, target = uri.EncodeTarget(scheme), uri.EncodeTarget(target)
	separator := "://"
	switch baseURL := m.baseURL.expand(placeholders); {
	case baseURL != "":
		scheme, separator, authority = "", "", baseURL
	case authority != "":
	case scheme != "":
		return scheme + ":" + target
	default:
		scheme, authority = asked.Scheme, asked.Authority
	}
	if target != "" && target[0] != '/' && target[0] != '?' {
		target = "/" + target // or it would belong to the authority
	}
	return scheme + separator + authority + target
}

// splitURI splits an address as splitTarget splits a request target, and drops its fragment. It is not ok unless the
// address is a path, or an http or https URL with a host.
func splitURI(address string) (scheme, authority, target string, ok bool) {
	address, _, _ = strings.Cut(address, "#")
	if strings.HasPrefix(address, "/") {
		return "", "", address, true
	}
	scheme, authority, target, ok = uri.Split(address)
	return scheme, authority, target, ok && uri.IsHTTP(scheme) && uri.ValidAuthority(authority)
}

// splitTarget splits a request target. An origin-form consists of a path and a query only, an asterisk-form or an
// authority-form of nothing, and an absolute-form also of a scheme and an authority, without user information. If that
// authority is invalid, the target counts as an origin-form. A target like urn:x has no authority; what precedes an @
// in its path is taken for user information, as in http:user:password@www.example.com.
func splitTarget(method, target string) (scheme, authority, rest string) {
	switch {
	case strings.HasPrefix(target, "/"):
		return "", "", target
	case target == "*", method == http.MethodConnect:
		return "", "", ""
	}
	if scheme, authority, rest, ok := uri.Split(target); ok {
		if !uri.ValidAuthority(authority) {
			return "", "", rest
		}
		return scheme, authority, rest
	}
	scheme, rest, _ = strings.Cut(target, ":")
	path := rest[:strings.IndexAny(rest+"?", "?#")]
	if at := strings.LastIndexByte(path, '@'); at >= 0 {
		rest = strings.TrimLeft(rest[at+1:], "/") // two of them would begin an authority
	}
	return scheme, "", rest
}
