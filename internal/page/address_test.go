package page

import (
	"net/url"
	"strings"
	"testing"

	"github.com/caddy-notfound/notfound/internal/uri"
)

// TestAddressOfAsteriskForm covers OPTIONS requests that net/http passes to handlers, which it does not do by default.
func TestAddressOfAsteriskForm(t *testing.T) {
	if got := addressOf("OPTIONS", "*"); got != "http://a.test" {
		t.Errorf("got the address %q, want http://a.test", got)
	}
}

// addressOf returns the address of a request to a.test.
func addressOf(method, target string) string {
	return string(appendAddress(nil, Asked{Method: method, Target: target, Scheme: "http", Authority: "a.test"}, ""))
}

// TestAddressStaysTheSameWhenDecoded checks, for every byte that a request target can have, that the address is a URL,
// has only bytes that a URI can have, and means what was sent.
func TestAddressStaysTheSameWhenDecoded(t *testing.T) {
	const uriBytes = uri.Letters + uri.Digits + "-._~!$&'()*+,;=:/?@%"
	for c := 0x21; c < 0x100; c++ {
		for _, target := range []string{"/" + string([]byte{byte(c)}), "/a" + string([]byte{byte(c)}) + "0?" + string([]byte{byte(c), byte(c)})} {
			address := addressOf("GET", target)
			if i := strings.IndexFunc(address, func(r rune) bool { return !strings.ContainsRune(uriBytes, r) }); i >= 0 {
				t.Errorf("target %q: the address %q has %q", target, address, address[i])
			}
			u, err := url.Parse(address)
			if err != nil || u.Host != "a.test" || u.Fragment != "" {
				t.Errorf("target %q: the address %q is parsed as %#v, %v", target, address, u, err)
			}
			decoded, err := url.PathUnescape(strings.TrimPrefix(address, "http://a.test"))
			if err != nil || decoded != target {
				t.Errorf("target %q: the address %q is decoded as %q, %v", target, address, decoded, err)
			}
		}
	}
}
