package notfound

import (
	"crypto/tls"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// TestAddressIsWhatTheClientAddressed sends requests byte for byte.
func TestAddressIsWhatTheClientAddressed(t *testing.T) {
	s := startCaddy(t, `
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
	local := s.addr
	long := strings.Repeat("/a%20b", 2000)

	tests := map[string]struct{ request, method, uri string }{
		"path and query":         {"GET /docs/nothing?x=1 HTTP/1.1\nHost: a.test", "GET", "http://a.test/docs/nothing?x=1"},
		"root":                   {"GET / HTTP/1.1\nHost: a.test", "GET", "http://a.test/"},
		"empty query":            {"GET /x? HTTP/1.1\nHost: a.test", "GET", "http://a.test/x?"},
		"double slashes":         {"GET //evil.test//x HTTP/1.1\nHost: a.test", "GET", "http://a.test//evil.test//x"},
		"dots":                   {"GET /a/../b/./c HTTP/1.1\nHost: a.test", "GET", "http://a.test/a/../b/./c"},
		"a port":                 {"GET /x HTTP/1.1\nHost: a.test:8443", "GET", "http://a.test:8443/x"},
		"IPv6":                   {"GET /x HTTP/1.1\nHost: [2001:db8::1]", "GET", "http://[2001:db8::1]/x"},
		"IPv6 and a port":        {"GET /x HTTP/1.1\nHost: [2001:db8::1]:8080", "GET", "http://[2001:db8::1]:8080/x"},
		"upper case":             {"GET /X HTTP/1.1\nHost: A.Test", "GET", "http://A.Test/X"},
		"rewritten":              {"GET /strip/xx?a=b HTTP/1.1\nHost: a.test", "GET", "http://a.test/strip/xx?a=b"},
		"prefix stripped":        {"GET /prefix/x?a=b HTTP/1.1\nHost: a.test", "GET", "http://a.test/prefix/x?a=b"},
		"Host changed":           {"GET /host HTTP/1.1\nHost: a.test", "GET", "http://a.test/host"},
		"absolute-form":          {"GET http://b.test:81/x?y HTTP/1.1\nHost: a.test", "GET", "http://b.test:81/x?y"},
		"absolute-form, no path": {"GET http://b.test HTTP/1.1\nHost: a.test", "GET", "http://b.test"},
		"absolute-form, user":    {"GET http://me:secret@b.test/x@y HTTP/1.1\nHost: a.test", "GET", "http://b.test/x@y"},
		"absolute-form, https":   {"GET https://b.test/x HTTP/1.1\nHost: a.test", "GET", "https://b.test/x"},
		"absolute-form, no host": {"GET http:///x HTTP/1.1\nHost: a.test", "GET", "http://a.test/x"},
		"absolute-form, IPv6":    {"GET http://[::1]:8080/x HTTP/1.1\nHost: a.test", "GET", "http://[::1]:8080/x"},
		"no authority":           {"GET urn:x?y=http://me@b.test/ HTTP/1.1\nHost: a.test", "GET", "urn:x?y=http://me@b.test/"},
		"HTTP/1.0":               {"GET /x HTTP/1.0", "GET", "http://" + local + "/x"},
		"HTTP/1.0 with Host":     {"GET /x HTTP/1.0\nHost: a.test", "GET", "http://a.test/x"},
		"an asterisk":            {"GET * HTTP/1.1\nHost: a.test:80", "GET", "http://a.test:80"},
		"CONNECT":                {"CONNECT b.test:443 HTTP/1.1\nHost: b.test:443", "CONNECT", "http://b.test:443"},
		"CONNECT to IPv6":        {"CONNECT [::1]:443 HTTP/1.1\nHost: [::1]:443", "CONNECT", "http://[::1]:443"},

		// what is no authority is not echoed
		"a broken Host":                   {"GET /x HTTP/1.1\nHost: a[b]:c:d", "GET", "http://" + local + "/x"},
		"a Host with a percent":           {"GET /x HTTP/1.1\nHost: a%zz", "GET", "http://" + local + "/x"},
		"a Host with a bad port":          {"GET /x HTTP/1.1\nHost: a.test:80a", "GET", "http://" + local + "/x"},
		"a Host of a port":                {"GET /x HTTP/1.1\nHost: :80", "GET", "http://" + local + "/x"},
		"a Host with a zone":              {"GET /x HTTP/1.1\nHost: [fe80::1%25eth0]", "GET", "http://" + local + "/x"},
		"a Host that is IPv4 in brackets": {"GET /x HTTP/1.1\nHost: [127.0.0.1]", "GET", "http://" + local + "/x"},
		"a Host with half a bracket":      {"GET /x HTTP/1.1\nHost: [::1", "GET", "http://" + local + "/x"},

		// what no URI may have is percent-encoded, and nothing else
		"markup":           {`GET /<script>alert("x")</script>?'q' HTTP/1.1` + "\nHost: a.test", "GET", "http://a.test/%3Cscript%3Ealert(%22x%22)%3C/script%3E?'q'"},
		"a template":       {"GET /{{.}}?{{env `HOME`}} HTTP/1.1\nHost: a.test", "", ""}, // a space ends the target
		"braces":           {"GET /{{.}}?{http.request.host} HTTP/1.1\nHost: a.test", "GET", "http://a.test/%7B%7B.%7D%7D?%7Bhttp.request.host%7D"},
		"UTF-8":            {"GET /ü?ö=€ HTTP/1.1\nHost: a.test", "GET", "http://a.test/%C3%BC?%C3%B6=%E2%82%AC"},
		"not UTF-8":        {"GET /\xff\xfe?\x80 HTTP/1.1\nHost: a.test", "GET", "http://a.test/%FF%FE?%80"},
		"%00":              {"GET /a%00b HTTP/1.1\nHost: a.test", "GET", "http://a.test/a%00b"},
		"encoded line end": {"GET /a%0D%0ASet-Cookie:%20x HTTP/1.1\nHost: a.test", "GET", "http://a.test/a%0D%0ASet-Cookie:%20x"},
		"lower case %xx":   {"GET /%c3%bc HTTP/1.1\nHost: a.test", "GET", "http://a.test/%c3%bc"},
		"broken %zz":       {"GET /x?%zz&%4&% HTTP/1.1\nHost: a.test", "GET", "http://a.test/x?%25zz&%254&%25"},
		"backslash, caret": {`GET /a\b^c|d` + "`e HTTP/1.1\nHost: a.test", "GET", "http://a.test/a%5Cb%5Ec%7Cd%60e"},
		"brackets, hash":   {"GET /a[1]?b[]=2#c HTTP/1.1\nHost: a.test", "GET", "http://a.test/a%5B1%5D?b%5B%5D=2%23c"},
		"all delimiters":   {"GET /-._~!$&'()*+,;=:@?/?-._~!$&'()*+,;=:@ HTTP/1.1\nHost: a.test", "GET", "http://a.test/-._~!$&'()*+,;=:@?/?-._~!$&'()*+,;=:@"},
		"long":             {"GET " + long + " HTTP/1.1\nHost: a.test", "GET", "http://a.test" + long},

		// the method is the client's
		"POST":    {"POST /x HTTP/1.1\nHost: a.test\nContent-Length: 0", "POST", "http://a.test/x"},
		"PUT":     {"PUT /x HTTP/1.1\nHost: a.test\nContent-Length: 0", "PUT", "http://a.test/x"},
		"DELETE":  {"DELETE /x HTTP/1.1\nHost: a.test", "DELETE", "http://a.test/x"},
		"PATCH":   {"PATCH /x HTTP/1.1\nHost: a.test\nContent-Length: 0", "PATCH", "http://a.test/x"},
		"OPTIONS": {"OPTIONS /x HTTP/1.1\nHost: a.test", "OPTIONS", "http://a.test/x"},
		"unknown": {"BR3W!#$%&'*+-.^_`|~ /x HTTP/1.1\nHost: a.test", "BR3W!#$%&'*+-.^_`|~", "http://a.test/x"},
	}
	delete(tests, "a template")

	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request := strings.ReplaceAll(tt.request, "\n", "\r\n") + "\r\nConnection: close\r\n\r\n"
			s.raw(t, tt.method, request).wantPage(t, tt.method, tt.uri, "")
		})
	}
}

// TestAsteriskForm shows that `OPTIONS *` is answered by net/http itself over HTTP/1.1 and HTTP/2, whatever
// handler there is, and that the address of one that gets through is the base alone.
func TestAsteriskForm(t *testing.T) {
	s := startCaddy(t, `
http://a.test:0 {
	respond "a handler" 418
}
http://b.test:0 {
	not_found
}`, "servers {\nprotocols h1 h2c\n}")
	for _, host := range []string{"a.test", "b.test"} {
		res := s.raw(t, "OPTIONS", "OPTIONS * HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n")
		res.want(t, http.StatusOK, "")
	}

	s.Transport.(*http.Transport).Protocols = new(http.Protocols)
	s.Transport.(*http.Transport).Protocols.SetUnencryptedHTTP2(true)
	req, err := http.NewRequest("OPTIONS", "http://b.test", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.URL.Opaque = "*"
	res := s.send(t, req)
	res.want(t, http.StatusOK, "")
	if res.ProtoMajor != 2 {
		t.Errorf("got %s", res.Proto)
	}

	if got := addressOf("OPTIONS", "*"); got != "http://a.test" {
		t.Errorf("got the address %q, want http://a.test", got)
	}
}

// addressOf returns the address of a request to a.test.
func addressOf(method, target string) string {
	r := &clientRequest{Request: new(http.Request), host: "a.test"}
	return string(r.appendAddress(nil, method, target, ""))
}

func TestAddressOverTLS(t *testing.T) {
	storage := t.TempDir()
	s := startCaddy(t, `
https://localhost:0 {
	tls internal
	not_found
}`, "storage file_system "+storage, "auto_https disable_redirects")
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		transport := s.Transport.(*http.Transport).Clone()
		transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}}
		if proto == "HTTP/2.0" {
			transport.TLSClientConfig.NextProtos = []string{"h2"}
			transport.ForceAttemptHTTP2 = true
		}
		client := &server{Client: http.Client{Transport: transport}}
		defer client.CloseIdleConnections()
		awaitTLS(t, s.addr, "localhost")
		res := client.get(t, "https://localhost/x?y")
		res.wantPage(t, "GET", "https://localhost/x?y", "")
		if res.Proto != proto {
			t.Errorf("got %s, want %s", res.Proto, proto)
		}
	}
}

func TestForwardedFieldsCountFromTrustedProxiesOnly(t *testing.T) {
	const site = "http://a.test:0, http://b.test:0 {\nnot_found\n}"
	tests := []struct {
		name    string
		fields  []string
		trusted string
	}{
		{"both", []string{"X-Forwarded-Proto: https", "X-Forwarded-Host: www.example.com"}, "https://www.example.com/x"},
		{"the protocol", []string{"X-Forwarded-Proto: HTTPS"}, "https://a.test/x"},
		{"the host", []string{"X-Forwarded-Host: www.example.com:8443"}, "http://www.example.com:8443/x"},
		{"IPv6", []string{"X-Forwarded-Host: [2001:db8::1]:1"}, "http://[2001:db8::1]:1/x"},
		{"lists", []string{"X-Forwarded-Proto: https, http", "X-Forwarded-Host: one.test , two.test"}, "https://one.test/x"},
		{"lines", []string{"X-Forwarded-Proto: http", "X-Forwarded-Proto: https", "X-Forwarded-Host: one.test", "X-Forwarded-Host: two.test"}, "https://two.test/x"},
		{"lines of lists", []string{"X-Forwarded-Proto: http, http", "X-Forwarded-Proto: https, http", "X-Forwarded-Host: one.test, two.test", "X-Forwarded-Host: three.test, four.test"}, "https://three.test/x"},
		{"an invalid last line", []string{"X-Forwarded-Proto: https", "X-Forwarded-Proto: ftp", "X-Forwarded-Host: one.test", "X-Forwarded-Host: <b>"}, "http://a.test/x"},
		{"another protocol", []string{"X-Forwarded-Proto: gopher", "X-Forwarded-Host: www.example.com"}, "http://www.example.com/x"},
		{"no protocol", []string{"X-Forwarded-Proto: ,https"}, "http://a.test/x"},
		{"a path", []string{"X-Forwarded-Host: evil.test/x?"}, "http://a.test/x"},
		{"a user", []string{"X-Forwarded-Host: me@evil.test"}, "http://a.test/x"},
		{"markup", []string{`X-Forwarded-Host: "><script>`}, "http://a.test/x"},
		{"UTF-8", []string{"X-Forwarded-Host: bücher.test"}, "http://a.test/x"},
		{"an empty host", []string{"X-Forwarded-Host: "}, "http://a.test/x"},
	}
	for _, peer := range []string{"trusted", "other"} {
		t.Run(peer, func(t *testing.T) {
			network := map[string]string{"trusted": "127.0.0.0/8", "other": "192.0.2.0/24"}[peer]
			s := startCaddy(t, site, "servers {\ntrusted_proxies static "+network+"\n}")
			for _, tt := range tests {
				t.Run(tt.name, func(t *testing.T) {
					want := "http://a.test/x"
					if peer == "trusted" {
						want = tt.trusted
					}
					s.get(t, "http://a.test/x", tt.fields...).wantPage(t, "GET", want, "")
				})
			}
		})
	}
}

func TestBaseURL(t *testing.T) {
	t.Setenv("NOT_FOUND_TEST_HOST", "env.example.com")
	s := startCaddy(t, `
http://:0 {
	not_found {
		base_url https://www.example.com/app/
	}
}
http://env.test:0 {
	not_found {
		base_url https://{env.NOT_FOUND_TEST_HOST}:8443
	}
}
http://request.test:0 {
	not_found {
		base_url {http.request.header.X-Base}
	}
}`, "servers {\ntrusted_proxies static 127.0.0.0/8\n}")
	forwarded := "X-Forwarded-Host: other.test"
	s.get(t, "http://a.test/x?y", forwarded).wantPage(t, "GET", "https://www.example.com/app/x?y", "")
	s.get(t, "http://env.test/x", forwarded).wantPage(t, "GET", "https://env.example.com:8443/x", "")
	// it is what every form of a target begins with
	for target, want := range map[string]string{
		"GET http://evil.example/x?y":        "https://www.example.com/app/x?y",
		"GET http://me:secret@evil.example":  "https://www.example.com/app",
		"GET https://evil.example?y":         "https://www.example.com/app?y",
		"GET http:///x":                      "https://www.example.com/app/x",
		"GET urn:x?y=http://evil.example":    "https://www.example.com/app/x?y=http://evil.example",
		"GET javascript:alert(1)":            "https://www.example.com/app/alert(1)",
		"CONNECT evil.example:443":           "https://www.example.com/app",
		"GET *":                              "https://www.example.com/app",
		"GET //evil.example/x":               "https://www.example.com/app//evil.example/x",
		"GET http://evil.example/a/../b/%2e": "https://www.example.com/app/a/../b/%2e",
	} {
		method, _, _ := strings.Cut(target, " ")
		host := "a.test"
		if method == "CONNECT" {
			host = "evil.example:443"
		}
		s.raw(t, method, target+" HTTP/1.1\r\nHost: "+host+"\r\nX-Forwarded-Host: other.test\r\nConnection: close\r\n\r\n").wantPage(t, method, want, "")
	}
	for base, want := range map[string]string{
		"https://b.test/":         "https://b.test/x",
		"HTTP://b.test:81/a/b":    "HTTP://b.test:81/a/b/x",
		"":                        "http://request.test/x",
		"ftp://b.test":            "http://request.test/x",
		"javascript:alert(1)//":   "http://request.test/x",
		"https://me@b.test":       "http://request.test/x",
		"https://b.test?q":        "http://request.test/x",
		"https://b.test#f":        "http://request.test/x",
		"https://b.test/<script>": "http://request.test/x",
		"https://":                "http://request.test/x",
		"https://b%zz/":           "http://request.test/x",
	} {
		s.get(t, "http://request.test/x", "X-Base: "+base).wantPage(t, "GET", want, "")
	}
}

// TestAddressStaysTheSameWhenDecoded checks, for every byte that a request target may have, that the
// address is a URL, has only bytes that a URI may have, and means what was sent.
func TestAddressStaysTheSameWhenDecoded(t *testing.T) {
	const uriBytes = unreserved + subDelims + ":/?@%"
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

func TestLongAddress(t *testing.T) {
	s := startCaddy(t, "http://a.test:0 {\nnot_found\n}", "servers {\nmax_header_size 256KB\n}")
	target := "/" + strings.Repeat("x<%7A\u00fc", 64<<10/7)
	want := "http://a.test" + strings.NewReplacer("<", "%3C", "\u00fc", "%C3%BC").Replace(target)
	for _, accept := range []string{"text/plain", "text/html", "application/json", "application/problem+json", "application/xml"} {
		res := s.raw(t, "GET", "GET "+target+" HTTP/1.1\r\nHost: a.test\r\nAccept: "+accept+"\r\nConnection: close\r\n\r\n")
		if uri := fieldsOf(t, res).URI; uri != want {
			t.Errorf("%s: got an address of %d bytes, %.100s, want %d, %.100s", accept, len(uri), uri, len(want), want)
		}
	}
}

func TestAppendEncodedLeavesShortEscapes(t *testing.T) {
	for s, want := range map[string]string{"": "", "%": "%25", "%4": "%254", "%41": "%41", "a%4": "a%254", "%%41": "%25%41"} {
		if got := string(appendEncoded([]byte("x"), s, &targetBytes)); got != "x"+want {
			t.Errorf("%q: got %q, want %q", s, got, "x"+want)
		}
	}
	if !slices.Equal(appendEncoded(nil, "", &targetBytes), nil) {
		t.Error("nothing became something")
	}
}
