// Package uri splits URIs, checks the bytes of their parts (RFC 3986), and percent-encodes the others.
package uri

import (
	"net/netip"
	"strings"
)

// Bytes is a set of bytes.
type Bytes [256]bool

// BytesOf returns the set of the bytes of a string.
func BytesOf(members string) (set Bytes) {
	for i := range len(members) {
		set[members[i]] = true
	}
	return set
}

const (
	// Digits and Letters are those of ASCII.
	Digits  = "0123456789"
	Letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

	unreserved = Letters + Digits + "-._~"      // RFC 3986, section 2.3
	subDelims  = "!$&'()*+,;="                  // RFC 3986, section 2.2
	pathChars  = unreserved + subDelims + ":@/" // RFC 3986, section 3.3
)

var (
	pathBytes   = BytesOf(pathChars)
	targetBytes = BytesOf(pathChars + "?")
	hostBytes   = BytesOf(unreserved + subDelims)
	digitBytes  = BytesOf(Digits)
	hexBytes    = BytesOf(Digits + "abcdefABCDEF")
)

// EncodePath is Encode for a path (RFC 3986, section 3.3).
func EncodePath(path string) string { return Encode(path, &pathBytes) }

// EncodeTarget is Encode for a path with a query.
func EncodeTarget(target string) string { return Encode(target, &targetBytes) }

// Encode returns s with every byte that is not allowed percent-encoded. What is already percent-encoded stays as it is.
func Encode(s string, allowed *Bytes) string {
	first := 0
	for first < len(s) && stays(s[first:], allowed) {
		first++
	}
	if first == len(s) {
		return s
	}
	b := make([]byte, 0, len("%XX")*len(s))
	b = append(b, s[:first]...)
	for i := first; i < len(s); i++ {
		c := s[i]
		if stays(s[i:], allowed) {
			b = append(b, c)
		} else {
			b = append(b, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(b)
}

const hex = "0123456789ABCDEF"

// stays reports whether the first byte of s needs no percent-encoding.
func stays(s string, allowed *Bytes) bool {
	if allowed[s[0]] {
		return true
	}
	isEncoded := len(s) > 2 && hexBytes[s[1]] && hexBytes[s[2]]
	return s[0] == '%' && isEncoded
}

// CutEncoded cuts s to n bytes, but not within a percent-encoded one.
func CutEncoded(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = s[:n]
	if i := strings.LastIndexByte(s, '%'); i >= max(0, n-2) {
		return s[:i]
	}
	return s
}

// Split splits a URI that has an authority, as in scheme://user@authority/path?query#fragment. The user information is
// cut, and the target is what follows the authority. It is not ok if there is no authority, as in urn:x.
func Split(uri string) (scheme, authority, target string, ok bool) {
	scheme, rest, _ := strings.Cut(uri, ":")
	rest, ok = strings.CutPrefix(rest, "//")
	if !ok {
		return "", "", "", false
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority = rest[:end]
	user := strings.LastIndexByte(authority, '@')
	return scheme, authority[user+1:], rest[end:], true
}

// IsHTTP reports whether a scheme is http or https.
func IsHTTP(scheme string) bool {
	return strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https")
}

// ValidAuthority reports whether s is a host with an optional port (RFC 3986, section 3.2). It refuses
// percent-encoding, which has no use in a Host but to hide something.
func ValidAuthority(s string) bool {
	if bracketed, ok := strings.CutPrefix(s, "["); ok {
		return validIPv6(bracketed)
	}
	host, port, _ := strings.Cut(s, ":")
	return host != "" && consistsOf(host, &hostBytes) && consistsOf(port, &digitBytes)
}

// validIPv6 reports whether s is an IPv6 address without a zone, a closing bracket and an optional port.
func validIPv6(s string) bool {
	host, port, ok := strings.Cut(s, "]")
	addr, err := netip.ParseAddr(host)
	if !ok || err != nil || !addr.Is6() || addr.Zone() != "" {
		return false
	}
	digits, hasPort := strings.CutPrefix(port, ":")
	return port == "" || hasPort && consistsOf(digits, &digitBytes)
}

func consistsOf(s string, set *Bytes) bool {
	for i := range len(s) {
		if !set[s[i]] {
			return false
		}
	}
	return true
}
