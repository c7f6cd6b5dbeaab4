package report

import (
	"net/http"
	"strings"

	"github.com/caddy-notfound/notfound/internal/uri"
)

// NewMiss describes a request for a missing address. The address is the one on the page, and may begin with another
// authority than the client addressed. Method and Referer are as the client sent them.
func NewMiss(address, authority, method, referer string) Miss {
	_, host, target, ok := uri.Split(address)
	if !ok { // as in urn:x
		target = address
	}
	m := Miss{
		Host: host,
		Path: target,
		Link: linkOf(referer, host, target, authority),
	}
	if m.Link != NoLink {
		m.Referer = referer
	}
	isIcon := target == "/favicon.ico" // browsers request it on their own
	if isIcon || !isOfLink(method) {
		m.Link = NoLink
	}
	return m
}

// isOfLink reports whether a link or a form may use the method. WebDAV clients send a Referer with other methods.
func isOfLink(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodPost
}

// linkOf returns the kind of link of a Referer. The host and the target, a path with its query, are those of the
// missing address as they are on the page; addressed is the host that the client addressed. Anybody can forge a
// Referer.
//
//   - A Referer is no link if it is not an http or https URL with a host.
//   - With the target itself, it is no link, whatever its host: scanners send it, and so do programs that follow a
//     redirect, as to www. But the root of another host is a link, because browsers send no more of another site's
//     address.
//   - With either host, it is an own link. Ports 80 and 443 count as none, whatever the scheme: a proxy in front may
//     have changed that.
func linkOf(referer, host, target, addressed string) Link {
	_, from, path, ok := splitReferer(referer)
	isOwn := sameHost(from, host) || sameHost(from, addressed)
	isRoot := strings.Trim(target, "/?") == ""
	switch {
	case !ok || sameTarget(target, path) && (isOwn || !isRoot):
		return NoLink
	case isOwn:
		return OwnLink
	}
	return OtherLink
}

// splitReferer splits a Referer into its scheme, its authority without user information, and its path and query. It
// returns false if the Referer is no link. Browsers read a backslash as a slash, so one in the origin would begin the
// path.
func splitReferer(referer string) (scheme, authority, target string, ok bool) {
	scheme, authority, target, ok = uri.Split(referer)
	if !ok || !uri.IsHTTP(scheme) || !uri.ValidAuthority(authority) {
		return "", "", "", false
	}
	isTooLong := len(scheme)+len("://")+len(authority) > maxLink
	origin := strings.TrimSuffix(referer, target)
	return scheme, authority, target, !isTooLong && !strings.Contains(origin, `\`)
}

// sameHost reports whether two authorities are the same, whatever the case and but for a default port.
func sameHost(a, b string) bool {
	return strings.EqualFold(withoutPort(a), withoutPort(b))
}

// withoutPort returns an authority without a default port.
func withoutPort(authority string) string {
	for _, port := range [...]string{":80", ":443", ":"} {
		if host, ok := strings.CutSuffix(authority, port); ok {
			return host
		}
	}
	return authority
}

// sameTarget reports whether a path and a query on a page are those of a Referer, but for a slash at the end of the
// path, which a redirect may have added or taken away. The request and the Referer may each have a fragment.
func sameTarget(onPage, target string) bool {
	pathOnPage, queryOnPage, _ := strings.Cut(onPage, "?")
	pathOnPage = strings.TrimSuffix(pathOnPage, "/")
	same := func(target string) bool { // encoding shortens nothing
		path, query, _ := strings.Cut(target, "?")
		path = strings.TrimSuffix(path, "/")
		isLonger := len(path) > len(pathOnPage) || len(query) > len(queryOnPage)
		return !isLonger && uri.EncodePath(path) == pathOnPage && uri.EncodeTarget(query) == queryOnPage
	}
	alone, _, cut := strings.Cut(target, "#")
	return same(target) || cut && same(alone)
}

// appendLink appends a Referer without its query, fragment and user information, or nothing if it is no link.
func appendLink(b []byte, referer string) []byte {
	scheme, authority, path, ok := splitReferer(referer)
	if !ok {
		return b
	}
	b = append(b, scheme...)
	b = append(b, "://"...)
	b = append(b, authority...)
	room := maxLink - len(b)
	path = uri.CutEncoded(withoutQuery(path), room) // or encoding a long one would allocate as much
	path = uri.CutEncoded(uri.EncodePath(path), room)
	return append(b, path...)
}

// appendKey appends a host, a space and a path without its query and fragment. Addresses that differ in the case of the
// host or of percent-encoding are the same (RFC 3986, section 6.2.2.1).
func appendKey(b []byte, host, path string) []byte {
	for _, c := range []byte(host[:min(len(host), maxKey-1)]) {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		b = append(b, c)
	}
	b = append(b, ' ')
	path = uri.CutEncoded(withoutQuery(path), maxKey-len(b))
	encoded := 0 // how many bytes of a %XX are still to come
	for _, c := range []byte(path) {
		if c == '%' {
			encoded = 3
		} else if encoded > 0 && 'a' <= c && c <= 'f' {
			c -= 'a' - 'A'
		}
		encoded--
		b = append(b, c)
	}
	return b
}

// withoutQuery returns a path without its query and fragment. On a page, a # is encoded as %23, so a path is cut
// there as well: it may be a fragment, with a secret.
func withoutQuery(path string) string {
	for _, begins := range [...]string{"?", "#", "%23"} {
		path, _, _ = strings.Cut(path, begins)
	}
	return path
}
