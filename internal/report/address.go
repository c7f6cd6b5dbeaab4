package report

import (
	"bytes"
	"strings"

	"github.com/caddy-notfound/notfound/internal/uri"
)

const (
	maxKey  = 300 // bytes of a host and a path
	maxLink = 300 // bytes
)

// encodedHash is how the fragment of a request target or of a Referer begins on a page, where a # cannot stand. A path
// may have it as well, and is cut there, too: what looks like a fragment may be as secret as one.
const encodedHash = "%23"

// appendKey appends the host of an address, a space and its path, without the query and the fragment. An address on a
// page has no user information.
func appendKey(b, address []byte) []byte {
	address, _, _ = bytes.Cut(address, []byte("?"))
	address, _, _ = bytes.Cut(address, []byte(encodedHash))
	path := address
	if i := bytes.IndexByte(address, ':'); i >= 0 && bytes.HasPrefix(address[i:], []byte("://")) {
		path = address[i+len("://"):]
		end := bytes.IndexByte(path, '/')
		if end < 0 {
			end = len(path)
		}
		from := len(b)
		b = append(b, path[:min(end, maxKey-1)]...)
		for i := from; i < len(b); i++ {
			if 'A' <= b[i] && b[i] <= 'Z' {
				b[i] += 'a' - 'A' // a host has no case
			}
		}
		path = path[end:]
	}
	b = append(b, ' ')
	return append(b, uri.CutEncoded(path, maxKey-len(b))...)
}

// appendLink appends a Referer without its query, fragment and user information. It appends nothing if that is not an
// http or https URL with a host, or if its host is too long to be one.
func appendLink(b []byte, referer string) []byte {
	referer, _, _ = strings.Cut(referer, "?")
	referer, _, _ = strings.Cut(referer, "#")
	referer, _, _ = strings.Cut(referer, encodedHash)
	scheme, rest, ok := strings.Cut(referer, "://")
	if !ok || !uri.IsHTTP(scheme) {
		return b
	}
	authority, path := rest, ""
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	authority = authority[strings.LastIndexByte(authority, '@')+1:]
	if !uri.ValidAuthority(authority) || len(scheme)+len("://")+len(authority) > maxLink {
		return b
	}
	b = append(b, scheme...)
	b = append(b, "://"...)
	b = append(b, authority...)
	b = uri.AppendPath(b, path[:min(len(path), maxLink)])
	return uri.CutEncoded(b, maxLink)
}
