package report

import (
	"bytes"

	"github.com/caddy-notfound/notfound/internal/uri"
)

// What is kept of an address and of a link has bounds, so that a Counter has one: 1 MiB in all.
const (
	maxKey  = 250 // bytes of a host and a path
	maxLink = 250 // bytes
)

// encodedHash is how the fragment of a request target or of a Referer begins on a page, where a # cannot stand. A path
// may have it as well, and is cut there, too: what looks like a fragment may be as secret as one.
const encodedHash = "%23"

// splitAddress splits an address on a page into its authority, which is empty if it has none, and the rest. An address
// on a page has no user information.
func splitAddress(address []byte) (authority, rest []byte) {
	i := bytes.IndexByte(address, ':')
	if i < 1 || !bytes.HasPrefix(address[i:], []byte("://")) {
		return nil, address
	}
	rest = address[i+len("://"):]
	end := 0
	for end < len(rest) && rest[end] != '/' && rest[end] != '?' {
		end++
	}
	return rest[:end], rest[end:]
}

// appendKey appends the host of an address, a space and its path, without the query and the fragment.
func appendKey(b, address []byte) []byte {
	authority, path := splitAddress(address)
	for _, c := range authority[:min(len(authority), maxKey-1)] {
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
