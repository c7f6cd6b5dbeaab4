// Package uri knows which bytes a URI and its parts may have (RFC 3986), and makes what a client sends safe to write
// into one.
package uri

import (
	"bytes"
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
)

// AppendPath appends a path, percent-encoding every byte that a path cannot have (RFC 3986, section 3.3). What is
// percent-encoded already stays as it is.
func AppendPath(b []byte, path string) []byte { return AppendEncoded(b, path, &pathBytes) }

// AppendTarget is AppendPath for a path with a query.
func AppendTarget(b []byte, target string) []byte { return AppendEncoded(b, target, &targetBytes) }

// AppendEncoded appends s, percent-encoding every byte that is not allowed. What is percent-encoded already stays as it
// is.
func AppendEncoded(b []byte, s string, allowed *Bytes) []byte {
	done := 0
	for i := range len(s) {
		if !stays(s, i, allowed) {
			b = append(b, s[done:i]...)
			b = append(b, '%', hex[s[i]>>4], hex[s[i]&15])
			done = i + 1
		}
	}
	return append(b, s[done:]...)
}

const hex = "0123456789ABCDEF"

// stays reports whether the byte of s at i needs no percent-encoding.
func stays(s string, i int, allowed *Bytes) bool {
	return allowed[s[i]] || s[i] == '%' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2])
}

// EqualTarget reports whether b is what AppendTarget makes of a target.
func EqualTarget(b []byte, target string) bool {
	for i := range len(target) {
		switch c := target[i]; {
		case stays(target, i, &targetBytes):
			if len(b) == 0 || b[0] != c {
				return false
			}
			b = b[1:]
		default:
			if len(b) < len("%XX") || b[0] != '%' || b[1] != hex[c>>4] || b[2] != hex[c&15] {
				return false
			}
			b = b[len("%XX"):]
		}
	}
	return len(b) == 0
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// IsHTTP reports whether a scheme is http or https.
func IsHTTP(scheme string) bool {
	return scheme == "https" || scheme == "http" || strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https")
}

// HasHTTPScheme reports whether s begins as an http or https URL does.
func HasHTTPScheme(s string) bool {
	scheme, _, ok := strings.Cut(s, "://")
	return ok && IsHTTP(scheme)
}

// ValidAuthority reports whether s is a host with an optional port (RFC 3986, section 3.2). It may not have
// percent-encoding, which in a Host can only hide something.
func ValidAuthority(s string) bool {
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

func consistsOf(s string, set *Bytes) bool {
	for i := range len(s) {
		if !set[s[i]] {
			return false
		}
	}
	return true
}

// CutEncoded cuts b to n bytes, but not within a percent-encoded one.
func CutEncoded(b []byte, n int) []byte {
	if len(b) <= n {
		return b
	}
	if i := bytes.LastIndexByte(b[:n], '%'); i >= 0 && i > n-len("%XX") {
		n = i
	}
	return b[:n]
}
