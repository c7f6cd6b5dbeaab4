package page

import (
	"net/url"
	"strings"
	"testing"

	"github.com/caddy-notfound/notfound/internal/uri"
)

// ask returns what a client asks https://a.test for.
func ask(method, target string) *Asked {
	return &Asked{Method: method, Target: target, Scheme: "https", Authority: "a.test"}
}

// wantURI checks the address of a page.
func wantURI(t *testing.T, m *Maker, asked *Asked, want string) {
	t.Helper()
	if got := m.URI(asked, nil); got != want {
		t.Errorf("%+v: got the address %q, want %q", asked, got, want)
	}
}

// TestAddressOfEveryForm covers the forms of a request target, some of which net/http answers itself by default.
func TestAddressOfEveryForm(t *testing.T) {
	m := new(Maker)
	for target, want := range map[string]string{
		"/x?y":                           "https://a.test/x?y",
		"//b.test/x":                     "https://a.test//b.test/x",
		"*":                              "https://a.test",
		"http://me:secret@b.test/x?y@z":  "http://b.test/x?y@z",
		"HTTPS://b.test":                 "HTTPS://b.test",
		"http://b.test?y":                "http://b.test?y",
		"http://b%41.test/x":             "https://a.test/x",
		"http:///x":                      "https://a.test/x",
		"http:.b.test/x":                 "http:.b.test/x",
		"urn:x?y=http://b.test":          "urn:x?y=http://b.test",
		"http:me:secret@x@b.test//x?y@z": "http:b.test//x?y@z",
		"javascript:secret@//alert(1)?@": "javascript:alert(1)?@",
		"a<b:c":                          "a%3Cb:c",
	} {
		wantURI(t, m, ask("GET", target), want)
	}
	wantURI(t, m, ask("CONNECT", "a.test:443"), "https://a.test")
}

// TestBaseURLReplacesWhatTheClientAddressed covers what may follow the base URL.
func TestBaseURLReplacesWhatTheClientAddressed(t *testing.T) {
	m := newMaker(Options{BaseURL: "https://w.test/app/"})
	for target, want := range map[string]string{
		"http://b.test/x": "https://w.test/app/x",
		"http://b.test":   "https://w.test/app",
		"http://b.test?y": "https://w.test/app?y",
		"urn:x?y":         "https://w.test/app/x?y",
	} {
		wantURI(t, m, ask("GET", target), want)
	}
}

// TestOptionURIReplacesTheTarget covers what the option uri may expand to. What is no address of the web is ignored.
func TestOptionURIReplacesTheTarget(t *testing.T) {
	const target = "http://b.test/404"
	for uri, want := range map[string]string{
		"":                      target,
		"http://b%41.test/x":    target,
		"http:///x":             target,
		"ftp://b.test/x":        target,
		"x":                     target,
		"javascript:alert(1)//": target,
		"/docs/nothing?x=1":     "https://a.test/docs/nothing?x=1",
		"//b.test/x":            "https://a.test//b.test/x",
		"/{{.}}?<b>&%zz":        "https://a.test/%7B%7B.%7D%7D?%3Cb%3E&%25zz",
		"HTTPS://me:secret@shop.test:81/x@y?z@#me": "HTTPS://shop.test:81/x@y?z@",
	} {
		asked := ask("GET", target)
		asked.URI = uri
		wantURI(t, new(Maker), asked, want)
	}
}

// TestAddressStaysTheSameWhenDecoded checks, for every byte that a request target can have, that the address has only
// bytes that a URI can have, and means what was sent.
func TestAddressStaysTheSameWhenDecoded(t *testing.T) {
	const origin = "https://a.test"
	const uriBytes = uri.Letters + uri.Digits + "-._~!$&'()*+,;=:/?@%"
	for c := 0x21; c < 0x100; c++ {
		sign := string([]byte{byte(c)})
		target := "/" + sign + "0?" + sign + sign
		address := new(Maker).URI(ask("GET", target), nil)
		if strings.Trim(address, uriBytes) != "" {
			t.Errorf("target %q: the address %q has bytes that no URI has", target, address)
		}
		decoded, err := url.PathUnescape(address)
		if err != nil || decoded != origin+target {
			t.Errorf("target %q: the address %q is decoded as %q, %v", target, address, decoded, err)
		}
	}
}
