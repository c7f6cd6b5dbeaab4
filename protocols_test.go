package notfound

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// everyProtocol is a Caddy that serves the same sites over every version of HTTP, with a client for each.
type everyProtocol struct {
	*server
	clients []*protocolClient
}

// protocolClient speaks one version of HTTP, whatever host it is asked for.
type protocolClient struct {
	name   string // as in Response.Proto, and what tells TLS from clear text
	scheme string
	server
}

// startEveryProtocol runs a Caddy with the given sites, by their names. They are served in clear text, on a
// port of the kernel's choice, and over TLS on a port that was free a moment ago: HTTP/3 has no way to tell
// the one that it would be given.
func startEveryProtocol(t *testing.T, sites map[string]string) *everyProtocol {
	t.Helper()
	port := freePort(t)
	var caddyfile bytes.Buffer
	for name, site := range sites {
		fmt.Fprintf(&caddyfile, "http://%s:0 {\n%s\n}\n", name, site)
		fmt.Fprintf(&caddyfile, "https://%s:%s {\ntls internal\n%s\n}\n", name, port, site)
	}
	s := &everyProtocol{server: startCaddy(t, caddyfile.String(),
		"storage file_system "+t.TempDir(), "auto_https disable_redirects", "servers {\nprotocols h1 h2 h2c h3\n}")}
	tlsAddr := "127.0.0.1:" + port
	for _, addr := range listeners(t) {
		if addr != tlsAddr {
			s.addr = addr
		}
	}
	for name := range sites {
		awaitTLS(t, tlsAddr, name)
	}

	s.clients = protocolClients(t, s.addr, tlsAddr)
	for _, c := range s.clients {
		c.CheckRedirect = s.CheckRedirect
	}
	return s
}

// protocolClients makes a client for each version of HTTP, none of which shares a connection with another.
func protocolClients(t *testing.T, addr, tlsAddr string) (clients []*protocolClient) {
	t.Helper()
	dial := func(addr string) func(context.Context, string, string) (net.Conn, error) {
		return func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", addr)
		}
	}
	add := func(name, scheme string, transport http.RoundTripper) {
		c := &protocolClient{name: name, scheme: scheme}
		c.Transport = transport
		clients = append(clients, c)
	}
	clearText := func(set func(*http.Protocols)) *http.Transport {
		transport := &http.Transport{DialContext: dial(addr), DisableCompression: true, Protocols: new(http.Protocols)}
		set(transport.Protocols)
		t.Cleanup(transport.CloseIdleConnections)
		return transport
	}
	overTLS := clearText(func(p *http.Protocols) { p.SetHTTP2(true) })
	overTLS.DialContext = dial(tlsAddr)
	overTLS.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	overQUIC := &http3.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		Dial: func(ctx context.Context, _ string, tlsConfig *tls.Config, config *quic.Config) (*quic.Conn, error) {
			return quic.DialAddr(ctx, tlsAddr, tlsConfig, config)
		},
	}
	overQUIC.DisableCompression = true
	t.Cleanup(func() { overQUIC.Close() })

	add("HTTP/1.0", "http", &http10{addr})
	add("HTTP/1.1", "http", clearText(func(p *http.Protocols) { p.SetHTTP1(true) }))
	add("HTTP/2.0 in clear text", "http", clearText(func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) }))
	add("HTTP/2.0", "https", overTLS)
	add("HTTP/3.0", "https", overQUIC)
	return clients
}

// h2cBackend starts a backend that speaks HTTP/2 in clear text.
func h2cBackend(t testing.TB, h http.HandlerFunc) (hostport string) {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetUnencryptedHTTP2(true)
	srv.Start()
	t.Cleanup(srv.Close)
	return srv.Listener.Addr().String()
}

func freePort(t testing.TB) string {
	t.Helper()
	for range 100 {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := ln.Addr().(*net.TCPAddr).Port
		udp, err := net.ListenPacket("udp", ln.Addr().String())
		ln.Close()
		if err == nil {
			udp.Close()
			return strconv.Itoa(port)
		}
	}
	t.Fatal("no port is free for both TCP and UDP")
	return ""
}

// http10 sends requests as HTTP/1.0, each over a connection of its own.
type http10 struct{ addr string }

func (c *http10) RoundTrip(req *http.Request) (*http.Response, error) {
	conn, err := new(net.Dialer).DialContext(req.Context(), "tcp", c.addr)
	if err != nil {
		return nil, err
	}
	var header bytes.Buffer
	fmt.Fprintf(&header, "%s %s HTTP/1.0\r\nHost: %s\r\n", req.Method, req.URL.RequestURI(), req.URL.Host)
	if req.Body != nil {
		req.Header.Set("Content-Length", strconv.FormatInt(req.ContentLength, 10))
	}
	_ = req.Header.Write(&header)
	header.WriteString("\r\n")
	if _, err := conn.Write(header.Bytes()); err != nil {
		return nil, err
	}
	if req.Body != nil {
		go io.Copy(conn, req.Body)
	}
	stop := context.AfterFunc(req.Context(), func() { conn.Close() })
	r := bufio.NewReader(conn)
	res, err := http.ReadResponse(r, req)
	for err == nil && res.StatusCode < 200 { // net/http sends them to HTTP/1.0 clients as well
		res, err = http.ReadResponse(r, req)
	}
	if err != nil {
		return nil, err
	}
	res.Body = &closeBoth{res.Body, func() { stop(); conn.Close() }}
	return res, nil
}

type closeBoth struct {
	io.ReadCloser
	close func()
}

func (c *closeBoth) Close() error {
	defer c.close()
	return c.ReadCloser.Close()
}
