package page

import (
	"net/url"
	"strings"
	"testing"

	"github.com/caddy-notfound/notfound/internal/uri"
)

// addressOf returns the address of a request to a.test, for which the option uri says something, or nothing.
func addressOf(method, target, uri string) string {
	return new(Maker).URI(&Asked{Method: method, Target: target, URI: uri, Scheme: "http", Authority: "a.test"}, nil)
}

// TestAddressOfEveryForm covers the forms of a request target, some of which net/http answers itself by default.
func TestAddressOfEveryForm(t *testing.T) {
	for target, want := range map[string]string{
		"/":                              "http://a.test/",
		"/x?y":                           "http://a.test/x?y",
		"//b.test/x":                     "http://a.test//b.test/x",
		"*":                              "http://a.test",
		"http://me:secret@b.test/x?y@z":  "http://b.test/x?y@z",
		"HTTPS://b.test":                 "HTTPS://b.test",
		"http://b.test?y":                "http://b.test?y",
		"http://b%41.test/x":             "http://a.test/x",
		"http:///x":                      "http://a.test/x",
		"urn:x?y=http://b.test":          "urn:x?y=http://b.test",
		"http:me:secret@b.test//x?y@z":   "http:b.test//x?y@z",
		"javascript:secret@//alert(1)?@": "javascript:alert(1)?@",
		"a<b:c":                          "a%3Cb:c",
	} {
		if got := addressOf("GET", target, ""); got != want {
			t.Errorf("%s: got the address %q, want %q", target, got, want)
		}
	}
	for _, uri := range []string{"http://b%41.test/x", "http:///x", "ftp://b.test/x", "x"} {
		if got := addressOf("GET", "/404", uri); got != "http://a.test/404" {
			t.Errorf("with the uri %s: got the address %q", uri, got)
		}
	}
	if got := addressOf("CONNECT", "a.test:443", ""); got != "http://a.test" {
		t.Errorf("CONNECT: got the address %q", got)
	}
	if got := newMaker(t, Options{BaseURL: "https://w.test"}).URI(&Asked{Method: "GET", Target: "http:.b.test/x"}, nil); got != "https://w.test/.b.test/x" {
		t.Errorf("with a base URL: got the address %q", got)
	}
}

// TestURICountsForEveryMethod covers the methods and the forms of a request target that mean something else without the
// option uri.
func TestURICountsForEveryMethod(t *testing.T) {
	for _, request := range [][2]string{
		{"GET", "/404"}, {"POST", "/404?x"}, {"OPTIONS", "*"}, {"CONNECT", "b.test:443"}, {"GET", "http://me:secret@b.test/x"}, {"GET", "urn:x"},
	} {
		for uri, want := range map[string]string{
			"/docs/nothing?x=1":            "http://a.test/docs/nothing?x=1",
			"https://me@shop.test:81/x?y#": "https://shop.test:81/x?y",
		} {
			if got := addressOf(request[0], request[1], uri); got != want {
				t.Errorf("%s: got the address %q, want %q", request, got, want)
			}
		}
	}
}

// TestAddressStaysTheSameWhenDecoded checks, for every byte that a request target can have, that the address is a URL,
// has only bytes that a URI can have, and means what was sent: by the client, or by the option uri.
func TestAddressStaysTheSameWhenDecoded(t *testing.T) {
	const uriBytes = uri.Letters + uri.Digits + "-._~!$&'()*+,;=:/?@%"
	for c := 0x21; c < 0x100; c++ {
		for _, target := range []string{"/" + string([]byte{byte(c)}), "/a" + string([]byte{byte(c)}) + "0?" + string([]byte{byte(c), byte(c)})} {
			address := addressOf("GET", target, "")
			if fromURI := addressOf("GET", "/404", target); c != '#' && fromURI != address {
				t.Errorf("uri %q: got the address %q, want %q", target, fromURI, address)
			}
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
