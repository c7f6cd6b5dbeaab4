package testcaddy

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// StartAllProtocols runs a Caddy with the given sites, by their hosts, in clear text and over TLS, and returns a
// client for each version of HTTP.
func StartAllProtocols(t testing.TB, sites map[string]string) (*Server, []*Client) {
	t.Helper()
	var caddyfile bytes.Buffer
	for host, site := range sites {
		fmt.Fprintf(&caddyfile, "http://%s:0 {\n%s\n}\n", host, site)
		fmt.Fprintf(&caddyfile, "https://%s:443 {\ntls internal\n%s\n}\n", host, site)
	}
	s := Start(t, caddyfile.String(),
		"storage file_system "+Quote(t.TempDir()), "auto_https disable_redirects", "servers {\nprotocols h1 h2 h2c h3\n}")
	addrTLS := s.Addrs["443"]
	addrQUIC := ""
	for host := range sites {
		addrQUIC = AwaitTLS(t, addrTLS, host)
	}
	return s, []*Client{
		Once(s.Addr, "HTTP/1.0"),
		s.Client,
		H2C(t, s.Addr),
		HTTP2(t, addrTLS),
		HTTP3(t, addrQUIC),
	}
}

// AwaitTLS waits until Caddy has a certificate for a host, which it makes in the background, and returns the address
// that it names for HTTP/3. It asks for a host that no site has.
func AwaitTLS(t testing.TB, addr, host string) (addrQUIC string) {
	t.Helper()
	c := HTTP2(t, addr)
	c.HTTP.Transport.(*http.Transport).TLSClientConfig.ServerName = host
	retry(t, func() error {
		res, err := c.HTTP.Get("https://none.test/")
		if err == nil {
			res.Body.Close()
			_, err = fmt.Sscanf(res.Header.Get("Alt-Svc"), `h3=":%5s`, &addrQUIC)
			addrQUIC = "127.0.0.1:" + addrQUIC
		}
		return err
	})
	return addrQUIC
}

// Once returns a client that speaks HTTP/1.0, or HTTP/1.1 as curl does: it uses a connection once, without Connection:
// close, and closes it with the body of the response, even if more is to come.
func Once(addr, version string) *Client {
	return newClient(version, "http", http1{addr, version})
}

// HTTP11 returns a client that speaks HTTP/1.1 in clear text.
func HTTP11(t testing.TB, addr string) *Client {
	transport := transportTo(t, addr)
	transport.Protocols.SetHTTP1(true)
	return newClient("HTTP/1.1", "http", transport)
}

// H2C returns a client that speaks HTTP/2 in clear text.
func H2C(t testing.TB, addr string) *Client {
	transport := transportTo(t, addr)
	transport.Protocols.SetUnencryptedHTTP2(true)
	return newClient("HTTP/2.0 in clear text", "http", transport)
}

// HTTP2 returns a client that speaks HTTP/2 over TLS.
func HTTP2(t testing.TB, addr string) *Client {
	transport := transportTo(t, addr)
	transport.Protocols.SetHTTP2(true)
	return newClient("HTTP/2.0", "https", transport)
}

// HTTP3 returns a client that speaks HTTP/3.
func HTTP3(t testing.TB, addr string) *Client {
	dial := func(ctx context.Context, _ string, tlsConfig *tls.Config, config *quic.Config) (*quic.Conn, error) {
		// As in net/http, a client that leaves ends no handshake. A server waits five seconds for the rest of one.
		return quic.DialAddr(context.WithoutCancel(ctx), addr, tlsConfig, config)
	}
	transport := &http3.Transport{
		Dial:               dial,
		DisableCompression: true,
		TLSClientConfig:    &tls.Config{InsecureSkipVerify: true},
	}
	t.Cleanup(func() { transport.Close() })
	return newClient("HTTP/3.0", "https", transport)
}

func newClient(name, scheme string, transport http.RoundTripper) *Client {
	client := &http.Client{
		Transport:     transport,
		CheckRedirect: followNone,
		Timeout:       patience,
	}
	return &Client{Name: name, Scheme: scheme, HTTP: client}
}

func followNone(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// transportTo returns a transport whose connections all lead to one address. It speaks no protocol yet.
func transportTo(t testing.TB, addr string) *http.Transport {
	var dialer net.Dialer
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", addr)
		},
		DisableCompression: true,
		Protocols:          new(http.Protocols),
		TLSClientConfig:    &tls.Config{InsecureSkipVerify: true},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// http1 is a transport with a connection for each request. It speaks HTTP/1.0, too, unlike net/http's.
type http1 struct{ addr, version string }

func (c http1) RoundTrip(req *http.Request) (*http.Response, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(req.Context(), "tcp", c.addr)
	if err != nil {
		return nil, err
	}
	var request strings.Builder
	if err := req.Write(&request); err != nil {
		return nil, err
	}
	sent := strings.Replace(request.String(), "HTTP/1.1", c.version, 1)
	go io.WriteString(conn, sent)
	context.AfterFunc(req.Context(), func() { conn.Close() })
	r := bufio.NewReader(conn)
	res, err := http.ReadResponse(r, req)
	for err == nil && res.StatusCode < 200 { // net/http sends these to HTTP/1.0 clients, too
		res, err = http.ReadResponse(r, req)
	}
	if err != nil {
		return nil, err
	}
	res.Body = closing{res.Body, conn}
	return res, nil
}

// closing is a body that closes its connection without reading the rest.
type closing struct {
	io.Reader
	io.Closer
}
