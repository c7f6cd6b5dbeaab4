package integration

import (
	"strings"
	"testing"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestAddressIsWhatTheClientAddressed sends raw requests to a site that rewrites some of them, one of them before
// not_found.
func TestAddressIsWhatTheClientAddressed(t *testing.T) {
	s := testcaddy.Start(t, `
:0 {
	not_found
	handle_path /strip/* {
		uri replace x y
		rewrite * /rewritten?q=1
	}
	handle /changed {
		request_header Host internal.test
		method POST
	}
	handle /before {
		route {
			request_header Host www.example.com
			request_header Accept text/plain
			not_found
		}
	}
}`)
	for name, tt := range map[string]struct {
		request string // without Connection: close
		uri     string // on the page
	}{
		"rewritten": {
			request: "GET /strip/xx?a=b HTTP/1.1\r\nHost: a.test",
			uri:     "http://a.test/strip/xx?a=b",
		},
		"Host and method": {
			request: "GET /changed HTTP/1.1\r\nHost: [2001:db8::1]:8443",
			uri:     "http://[2001:db8::1]:8443/changed",
		},
		"before not_found": {
			request: "GET /before HTTP/1.1\r\nHost: a.test\r\nAccept: text/xml",
			uri:     "http://www.example.com/before",
		},
		"HTTP/1.0": {
			request: "GET /x HTTP/1.0",
			uri:     "http://localhost/x",
		},
		"a broken Host": {
			request: "GET /x HTTP/1.1\r\nHost: a[b]:c:d",
			uri:     "http://localhost/x",
		},
		"an asterisk": {
			request: "GET * HTTP/1.1\r\nHost: a.test:80",
			uri:     "http://a.test:80",
		},
		"CONNECT": {
			request: "CONNECT b.test:443 HTTP/1.1\r\nHost: b.test:443",
			uri:     "http://b.test:443",
		},
		"an unknown method": {
			request: "BR3W!#$%&'*+-.^_`|~ /x HTTP/1.1\r\nHost: a.test",
			uri:     "http://a.test/x",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			method, _, _ := strings.Cut(tt.request, " ")
			page := s.Only(t, method, tt.request+"\r\nConnection: close\r\n\r\n")
			page.WantPage(t, method, tt.uri, "")
		})
	}
}

// TestForwardedFieldsCountFromTrustedProxiesOnly sends the same fields to a Caddy that trusts this client, and to one
// that does not. Some proxies and frameworks read others, but only X-Forwarded-Host and X-Forwarded-Proto count. What
// request_header makes of them is for a backend.
func TestForwardedFieldsCountFromTrustedProxiesOnly(t *testing.T) {
	forwarded := []string{
		"X-Forwarded-Proto: https",
		"X-Forwarded-Host: www.example.com",
	}
	others := []string{
		"X-Original-URL: /evil", "X-Rewrite-URL: /evil", "X-Original-URI: /evil", "X-Envoy-Original-Path: /evil",
		"X-Forwarded-Prefix: /evil", "X-Forwarded-Uri: /evil", "X-Script-Name: /evil", "X-Forwarded-Method: EVIL",
		"Forwarded: for=192.0.2.1;host=evil.test;proto=https", "X-Host: evil.test", "X-Forwarded-Server: evil.test",
		"X-Forwarded-Port: 666", "X-Forwarded-Scheme: https", "X-Forwarded-Ssl: on", "Front-End-Https: on",
		"X-HTTP-Method-Override: DELETE", "Origin: https://evil.test", "Referer: https://evil.test/",
	}
	const own = "http://a.test/x?y"
	for network, want := range map[string]string{
		"127.0.0.0/8":  "https://www.example.com/x?y",
		"192.0.2.0/24": own,
	} {
		t.Run("trusting "+network, func(t *testing.T) {
			const changes = "request_header X-Forwarded-Host internal.test\nrequest_header +X-Forwarded-Proto https"
			s := startSite(t, "not_found\n"+changes, "servers {\ntrusted_proxies static "+network+"\n}")
			page := s.Get(t, own, forwarded...)
			page.WantPage(t, "GET", want, "")
			getPage(t, s.Client, own, others...)
		})
	}
}
