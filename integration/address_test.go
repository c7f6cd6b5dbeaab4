package integration

import (
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestAddressIsWhatTheClientAddressed sends requests byte for byte, to a site that rewrites some of them.
func TestAddressIsWhatTheClientAddressed(t *testing.T) {
	s := testcaddy.Start(t, `
:0 {
	not_found
	handle_path /strip/* {
		uri replace x y
		rewrite * /rewritten?q=1
	}
	handle /prefix/* {
		uri strip_prefix /prefix
	}
	handle /host {
		request_header Host internal.test
	}
}`)
	local := s.Addr

	tests := map[string]struct{ request, method, uri string }{
		// every form of a request target, and of Host
		"path and query":         {"GET /docs/nothing?x=1 HTTP/1.1\nHost: a.test", "GET", "http://a.test/docs/nothing?x=1"},
		"empty query":            {"GET /x? HTTP/1.1\nHost: a.test", "GET", "http://a.test/x?"},
		"double slashes":         {"GET //evil.test//x HTTP/1.1\nHost: a.test", "GET", "http://a.test//evil.test//x"},
		"a port":                 {"GET /x HTTP/1.1\nHost: a.test:8443", "GET", "http://a.test:8443/x"},
		"IPv6 and a port":        {"GET /x HTTP/1.1\nHost: [2001:db8::1]:8080", "GET", "http://[2001:db8::1]:8080/x"},
		"rewritten":              {"GET /strip/xx?a=b HTTP/1.1\nHost: a.test", "GET", "http://a.test/strip/xx?a=b"},
		"prefix stripped":        {"GET /prefix/x?a=b HTTP/1.1\nHost: a.test", "GET", "http://a.test/prefix/x?a=b"},
		"Host changed":           {"GET /host HTTP/1.1\nHost: a.test", "GET", "http://a.test/host"},
		"absolute-form":          {"GET http://b.test:81/x?y HTTP/1.1\nHost: a.test", "GET", "http://b.test:81/x?y"},
		"absolute-form, user":    {"GET http://me:secret@b.test/x@y HTTP/1.1\nHost: a.test", "GET", "http://b.test/x@y"},
		"absolute-form, no host": {"GET http:///x HTTP/1.1\nHost: a.test", "GET", "http://a.test/x"},
		"no authority, user":     {"GET http:me:secret@b.test/x?y@z HTTP/1.1\nHost: a.test", "GET", "http:b.test/x?y@z"},
		"HTTP/1.0":               {"GET /x HTTP/1.0", "GET", "http://" + local + "/x"},
		"HTTP/1.0 with Host":     {"GET /x HTTP/1.0\nHost: a.test", "GET", "http://a.test/x"},
		"an asterisk":            {"GET * HTTP/1.1\nHost: a.test:80", "GET", "http://a.test:80"},
		"CONNECT":                {"CONNECT b.test:443 HTTP/1.1\nHost: b.test:443", "CONNECT", "http://b.test:443"},

		// a Host that is not an authority is not echoed
		"a broken Host":                   {"GET /x HTTP/1.1\nHost: a[b]:c:d", "GET", "http://" + local + "/x"},
		"a Host with a percent":           {"GET /x HTTP/1.1\nHost: a%zz", "GET", "http://" + local + "/x"},
		"a Host that is IPv4 in brackets": {"GET /x HTTP/1.1\nHost: [127.0.0.1]", "GET", "http://" + local + "/x"},

		// what a URI cannot have is percent-encoded, and nothing else
		"markup":     {`GET /<script>alert("x")</script>?'q' HTTP/1.1` + "\nHost: a.test", "GET", "http://a.test/%3Cscript%3Ealert(%22x%22)%3C/script%3E?'q'"},
		"braces":     {"GET /{{.}}?{http.request.host} HTTP/1.1\nHost: a.test", "GET", "http://a.test/%7B%7B.%7D%7D?%7Bhttp.request.host%7D"},
		"UTF-8":      {"GET /ü?ö=€ HTTP/1.1\nHost: a.test", "GET", "http://a.test/%C3%BC?%C3%B6=%E2%82%AC"},
		"not UTF-8":  {"GET /\xff\xfe?\x80 HTTP/1.1\nHost: a.test", "GET", "http://a.test/%FF%FE?%80"},
		"broken %zz": {"GET /x?%zz&%4&% HTTP/1.1\nHost: a.test", "GET", "http://a.test/x?%25zz&%254&%25"},

		// the method is the client's
		"POST":    {"POST /x HTTP/1.1\nHost: a.test\nContent-Length: 0", "POST", "http://a.test/x"},
		"OPTIONS": {"OPTIONS /x HTTP/1.1\nHost: a.test", "OPTIONS", "http://a.test/x"},
		"unknown": {"BR3W!#$%&'*+-.^_`|~ /x HTTP/1.1\nHost: a.test", "BR3W!#$%&'*+-.^_`|~", "http://a.test/x"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request := strings.ReplaceAll(tt.request, "\n", "\r\n") + "\r\nConnection: close\r\n\r\n"
			s.Raw(t, tt.method, request).WantPage(t, tt.method, tt.uri, "")
		})
	}
}

// TestLongAddress asks for an address of 64 KiB.
func TestLongAddress(t *testing.T) {
	s := testcaddy.Start(t, "http://a.test:0 {\nnot_found\n}", "servers {\nmax_header_size 256KB\n}")
	target := "/" + strings.Repeat("x<%7A\u00fc", 64<<10/7)
	want := "http://a.test" + strings.NewReplacer("<", "%3C", "\u00fc", "%C3%BC").Replace(target)
	for _, f := range testcaddy.Formats {
		res := s.Raw(t, "GET", "GET "+target+" HTTP/1.1\r\nHost: a.test\r\nAccept: "+f.MediaType+"\r\nConnection: close\r\n\r\n")
		if uri := testcaddy.FieldsOf(t, res).URI; uri != want {
			t.Errorf("%s: got an address of %d bytes, %.100s, want %d, %.100s", f.Name, len(uri), uri, len(want), want)
		}
	}
}

func TestAddressOverTLS(t *testing.T) {
	s := testcaddy.Start(t, `
https://localhost:0 {
	tls internal
	not_found
}`, "storage file_system "+t.TempDir(), "auto_https disable_redirects")
	testcaddy.AwaitTLS(t, s.Addr, "localhost")
	for _, version := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			c := testcaddy.HTTP2(t, s.Addr)
			if version == "HTTP/1.1" {
				c.HTTP.Transport.(*http.Transport).Protocols = new(http.Protocols)
				c.HTTP.Transport.(*http.Transport).Protocols.SetHTTP1(true)
			}
			res := c.Get(t, "https://localhost/x?y")
			res.WantPage(t, "GET", "https://localhost/x?y", "")
			if res.Proto != version {
				t.Errorf("got %s", res.Proto)
			}
		})
	}
}

// TestForwardedFieldsCountFromTrustedProxiesOnly sends the same fields to a Caddy that trusts this client, and to one
// that does not.
func TestForwardedFieldsCountFromTrustedProxiesOnly(t *testing.T) {
	tests := []struct {
		name    string
		fields  []string
		trusted string
	}{
		{"both", []string{"X-Forwarded-Proto: https", "X-Forwarded-Host: www.example.com"}, "https://www.example.com/x"},
		{"the host", []string{"X-Forwarded-Host: www.example.com:8443"}, "http://www.example.com:8443/x"},
		{"IPv6", []string{"X-Forwarded-Host: [2001:db8::1]:1"}, "http://[2001:db8::1]:1/x"},
		{"lines of lists", []string{"X-Forwarded-Proto: http, http", "X-Forwarded-Proto: https, http", "X-Forwarded-Host: one.test, two.test", "X-Forwarded-Host: three.test, four.test"}, "https://three.test/x"},
		{"an invalid last line", []string{"X-Forwarded-Proto: https", "X-Forwarded-Proto: ftp", "X-Forwarded-Host: one.test", "X-Forwarded-Host: <b>"}, "http://a.test/x"},
		{"another protocol", []string{"X-Forwarded-Proto: gopher", "X-Forwarded-Host: www.example.com"}, "http://www.example.com/x"},
		{"a user", []string{"X-Forwarded-Host: me@evil.test"}, "http://a.test/x"},
		{"markup", []string{`X-Forwarded-Host: "><script>`}, "http://a.test/x"},
		{"an empty host", []string{"X-Forwarded-Host: "}, "http://a.test/x"},
	}
	for _, peer := range []string{"trusted", "other"} {
		t.Run(peer, func(t *testing.T) {
			network := map[string]string{"trusted": "127.0.0.0/8", "other": "192.0.2.0/24"}[peer]
			s := testcaddy.Start(t, "http://a.test:0 {\nnot_found\n}", "servers {\ntrusted_proxies static "+network+"\n}")
			for _, tt := range tests {
				t.Run(tt.name, func(t *testing.T) {
					t.Parallel()
					want := "http://a.test/x"
					if peer == "trusted" {
						want = tt.trusted
					}
					s.Get(t, "http://a.test/x", tt.fields...).WantPage(t, "GET", want, "")
				})
			}
		})
	}
}
