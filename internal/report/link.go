package report

import (
	"bytes"
	"strings"

	"github.com/caddy-notfound/notfound/internal/uri"
)

// Link says what led to a missing address, as far as the Referer tells. Anybody can forge it.
type Link uint8

const (
	NoLink    Link = iota // nothing, or what is not a link
	OwnLink               // a page of the same host, which has a broken link
	OtherLink             // a page of another host
	NumLinks
)

var linkNames = [NumLinks]string{"none", "own", "other"}

// String returns none, own or other.
func (l Link) String() string { return linkNames[l] }

// LinkOf says what a Referer makes of a request for an address, as it is on the page. It is an own link if it has the
// host of the address, or one of the other hosts by which clients reach the same site. Ports 80 and 443 count as none,
// whatever the scheme: a proxy in front may have changed that. A Referer that is the address itself is not a link:
// scanners send it. Neither is one that is not an http or https URL with a host.
func LinkOf(referer string, address []byte, others ...string) Link {
	if referer == "" {
		return NoLink
	}
	_, host, target, ok := splitReferer(referer)
	if !ok {
		return NoLink
	}
	addressHost, addressTarget := splitAddress(address)
	own := sameHost(host, addressHost)
	for _, other := range others {
		own = own || sameHost(host, other)
	}
	switch {
	case own && !sameTarget(addressTarget, target):
		return OwnLink
	case !own && uri.ValidAuthority(host):
		return OtherLink
	}
	return NoLink
}

// splitReferer splits a Referer into its scheme, its authority without user information, and its path and query. It
// returns false if the scheme is neither http nor https, or if the authority is too long to be one.
func splitReferer(referer string) (scheme, authority, target string, ok bool) {
	colon := strings.IndexByte(referer, ':')
	if colon < 0 || !strings.HasPrefix(referer[colon:], "://") || !uri.IsHTTP(referer[:colon]) {
		return "", "", "", false
	}
	scheme, rest := referer[:colon], referer[colon+len("://"):]
	from, end := 0, 0
	for ; end < len(rest) && rest[end] != '/' && rest[end] != '?' && rest[end] != '#'; end++ {
		if rest[end] == '@' {
			from = end + 1
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
	n := len(authority)
	if n > 0 && authority[n-1] > ':' { // as most hosts end
		return n
	}
	for _, port := range [...]string{":80", ":443", ":"} {
		if i := n - len(port); i >= 0 && string(authority[i:]) == port {
			return i
		}
	}
	return n
}

// sameTarget reports whether a path and a query on a page are those of a Referer. An empty path is the root. A fragment
// may have been sent with the path, or only with the Referer.
func sameTarget(onPage []byte, target string) bool {
	onPage, target = bytes.TrimPrefix(onPage, []byte("/")), strings.TrimPrefix(target, "/")
	alone, _, cut := strings.Cut(target, "#")
	return string(onPage) == target || uri.EqualTarget(onPage, target) || cut && uri.EqualTarget(onPage, alone)
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
