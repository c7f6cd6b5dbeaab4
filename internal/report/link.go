package report

import (
	"bytes"
	"strings"

	"github.com/caddy-notfound/notfound/internal/uri"
)

// LinkOf says what a Referer makes of a request for an address, of which it takes the host, and the path with the query, as
// they are on the page. Anybody can forge it. It is an own link if it has that host, or one of the other hosts by which
// clients reach the same site. Ports 80 and 443 count as none, whatever the scheme: a proxy in front may have changed that.
// A Referer that is the address itself is not a link: scanners send it. Neither is one that is not an http or https URL with
// a host.
func LinkOf(referer string, host, target []byte, others ...string) Link {
	if referer == "" {
		return None
	}
	_, from, path, ok := splitReferer(referer)
	if !ok {
		return None
	}
	own := sameHost(from, host)
	for _, other := range others {
		own = own || sameHost(from, other)
	}
	switch {
	case own && !sameTarget(target, path):
		return Own
	case !own && uri.ValidAuthority(from):
		return Other
	}
	return None
}

// splitReferer splits a Referer into its scheme, its authority without user information, and its path and query. It
// returns false if that is no link, whatever the authority is. A backslash in it would be a slash to a browser.
func splitReferer(referer string) (scheme, authority, target string, ok bool) {
	colon := strings.IndexByte(referer, ':')
	if colon < 0 || !strings.HasPrefix(referer[colon:], "://") || !uri.IsHTTP(referer[:colon]) {
		return "", "", "", false
	}
	scheme, rest := referer[:colon], referer[colon+len("://"):]
	from, end := 0, 0
	for ; end < len(rest) && rest[end] != '/' && rest[end] != '?' && rest[end] != '#'; end++ {
		switch rest[end] {
		case '@':
			from = end + 1
		case '\\':
			return "", "", "", false
		}
	}
	authority = rest[from:end]
	return scheme, authority, rest[end:], len(scheme)+len("://")+len(authority) <= maxLink
}

// sameHost reports whether two authorities are the same, whatever the case and but for a default port.
func sameHost[T string | []byte](a string, b T) bool {
	a, b = a[:withoutPort(a)], b[:withoutPort(b)]
	if len(a) == 0 || len(a) != len(b) {
		return false
	}
	if a == string(b) { // as most hosts are
		return true
	}
	for i := range len(a) {
		if lower(a[i]) != lower(b[i]) {
			return false
		}
	}
	return true
}

// withoutPort returns the length of an authority without a default port.
func withoutPort[T string | []byte](authority T) int {
	for _, port := range [...]string{":80", ":443", ":"} {
		if i := len(authority) - len(port); i >= 0 && string(authority[i:]) == port {
			return i
		}
	}
	return len(authority)
}

// sameTarget reports whether a path and a query on a page are those of a Referer. An empty path is the root. A fragment
// may have been sent with the path, or only with the Referer.
func sameTarget(onPage []byte, target string) bool {
	onPage, target = bytes.TrimPrefix(onPage, []byte("/")), strings.TrimPrefix(target, "/")
	alone, _, cut := strings.Cut(target, "#")
	return uri.EqualTarget(onPage, target) || cut && uri.EqualTarget(onPage, alone)
}

// appendLink appends a Referer without its query, fragment and user information. It appends nothing where LinkOf finds no
// link.
func appendLink(b []byte, referer string) []byte {
	scheme, authority, path, ok := splitReferer(referer)
	if !ok || !uri.ValidAuthority(authority) {
		return b
	}
	b = append(b, scheme...)
	b = append(b, "://"...)
	b = append(b, authority...)
	path, _, _ = strings.Cut(path, "?")
	path, _, _ = strings.Cut(path, "#")
	path, _, _ = strings.Cut(path, encodedHash)
	b = uri.AppendPath(b, path[:min(len(path), maxLink-len(b))])
	return uri.CutEncoded(b, maxLink)
}

// encodedHash is how the fragment of a request target or of a Referer begins on a page, where a # cannot stand. A path
// may have it as well, and is cut there, too: what looks like a fragment may be as secret as one.
const encodedHash = "%23"

// appendKey appends a host, a space and a path without its query and fragment.
func appendKey(b, host, path []byte) []byte {
	for _, c := range host[:min(len(host), maxKey-1)] {
		b = append(b, lower(c))
	}
	b = append(b, ' ')
	path, _, _ = bytes.Cut(path, []byte("?"))
	path, _, _ = bytes.Cut(path, []byte(encodedHash))
	return append(b, uri.CutEncoded(path, maxKey-len(b))...)
}

// lower is for hosts, which have no case.
func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}
