package page

import (
	"net/http"
	"strings"

	"github.com/caddy-notfound/notfound/internal/uri"
)

// Asked is a request as the client sent it.
type Asked struct {
	Method string
	Target string // the request target, in any of its forms (RFC 9112, section 3.2)

	// URI is what the option uri says, see ExpandURI. An http or https URL with a host, or a path with its query,
	// counts instead of the target, whatever the method is.
	URI string

	// Scheme and Authority are the origin that the client addressed. The target and URI override them if they have one.
	Scheme, Authority string
}

// appendAddress appends the absolute URL that was asked for. It begins with baseURL, unless that is empty. What is valid
// in it stays as it was sent; the rest is percent-encoded.
func appendAddress(b []byte, asked Asked, baseURL string) []byte {
	scheme, authority, rest, ok := splitURI(asked.URI)
	if !ok {
		scheme, authority, rest = splitTarget(asked.Method, asked.Target)
	}
	switch {
	case baseURL != "":
		b = append(b, baseURL...)
	case authority != "":
		b = uri.AppendTarget(b, scheme)
		b = append(b, "://"...)
		b = append(b, authority...)
	case scheme != "":
		b = uri.AppendTarget(b, scheme)
		b = append(b, ':')
		return uri.AppendTarget(b, rest)
	default:
		b = append(b, asked.Scheme...)
		b = append(b, "://"...)
		b = append(b, asked.Authority...)
	}
	if rest != "" && rest[0] != '/' && rest[0] != '?' {
		b = append(b, '/') // or it would belong to the authority
	}
	return uri.AppendTarget(b, rest)
}

// splitURI splits an address without its fragment as splitTarget splits a request target. It is an http or https URL
// with a host or a path, or it is not ok.
func splitURI(address string) (scheme, authority, rest string, ok bool) {
	address, _, _ = strings.Cut(address, "#")
	isPath := strings.HasPrefix(address, "/")
	if !isPath && !uri.HasHTTPScheme(address) {
		return "", "", "", false
	}
	scheme, authority, rest = splitTarget("", address)
	return scheme, authority, rest, isPath || authority != ""
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
	if !uri.ValidAuthority(authority) {
		return "", "", rest
	}
	return scheme, authority, rest
}
