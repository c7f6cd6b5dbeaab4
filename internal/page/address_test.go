package page

import (
	"net/url"
	"strings"
	"testing"

	"github.com/caddy-notfound/notfound/internal/uri"
)

// addressOf returns the address of a request to a.test, with the option uri, unless that is empty.
func addressOf(method, target, uri string) string {
	return new(Maker).URI(&Asked{Method: method, Target: target, URI: uri, Scheme: "http", Authority: "a.test"}, nil)
}

// TestAddressOfEveryForm covers the forms of a request target, some of which net/http answers itself by default. A
// base URL replaces what the client addressed.
func TestAddressOfEveryForm(t *testing.T) {
	based := newMaker(t, Options{BaseURL: "https://w.test/app/"})
	for request, want := range map[string]struct{ address, behindBase string }{
		"GET /":                              {"http://a.test/", "/"},
		"GET /x?y":                           {"http://a.test/x?y", "/x?y"},
		"GET //b.test/x":                     {"http://a.test//b.test/x", "//b.test/x"},
		"OPTIONS *":                          {"http://a.test", ""},
		"GET http://me:secret@b.test/x?y@z":  {"http://b.test/x?y@z", "/x?y@z"},
		"GET HTTPS://b.test":                 {"HTTPS://b.test", ""},
		"GET http://b.test?y":                {"http://b.test?y", "?y"},
		"GET http://b%41.test/x":             {"http://a.test/x", "/x"},
		"GET http:///x":                      {"http://a.test/x", "/x"},
		"GET http:.b.test/x":                 {"http:.b.test/x", "/.b.test/x"},
		"GET urn:x?y=http://b.test":          {"urn:x?y=http://b.test", "/x?y=http://b.test"},
		"GET http:me:secret@b.test//x?y@z":   {"http:b.test//x?y@z", "/b.test//x?y@z"},
		"GET javascript:secret@//alert(1)?@": {"javascript:alert(1)?@", "/alert(1)?@"},
		"GET a<b:c":                          {"a%3Cb:c", "/c"},
		"CONNECT a.test:443":                 {"http://a.test", ""},
	} {
		method, target, _ := strings.Cut(request, " ")
		if got := addressOf(method, target, ""); got != want.address {
			t.Errorf("%s: got the address %q, want %q", request, got, want.address)
		}
		got := based.URI(&Asked{Method: method, Target: target, Scheme: "http", Authority: "a.test"}, nil)
		if got != "https://w.test/app"+want.behindBase {
			t.Errorf("%s with a base URL: got the address %q, want %q", request, got, want.behindBase)
		}
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
		"/docs/nothing?x=1":     "http://a.test/docs/nothing?x=1",
		"//b.test/x":            "http://a.test//b.test/x",
		"/{{.}}?<b>&%zz":        "http://a.test/%7B%7B.%7D%7D?%3Cb%3E&%25zz",
		"HTTPS://me:secret@shop.test:81/x@y?z@#me": "HTTPS://shop.test:81/x@y?z@",
	} {
		if got := addressOf("GET", target, uri); got != want {
			t.Errorf("the uri %q: got the address %q, want %q", uri, got, want)
		}
	}
}

// TestAddressStaysTheSameWhenDecoded checks, for every byte that a request target can have, that the address is a URL,
// has only bytes that a URI can have, and means what was sent: by the client, or by the option uri.
func TestAddressStaysTheSameWhenDecoded(t *testing.T) {
	const uriBytes = uri.Letters + uri.Digits + "-._~!$&'()*+,;=:/?@%"
	for c := 0x21; c < 0x100; c++ {
		sign := string([]byte{byte(c)})
		for _, target := range []string{"/" + sign, "/a" + sign + "0?" + sign + sign} {
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
