// Package testcaddy runs a whole Caddy in a test, and talks to it as its clients and its backends do.
//
//	s := testcaddy.Start(t, `
//	http://a.test:0 {
//		not_found
//	}`)
//	s.Get(t, "http://a.test/x").WantPage(t, "GET", "http://a.test/x", "")
//
// Caddy listens on the loopback interface, at ports that the system chooses, and stops when the test ends. A process
// runs one Caddy at a time, so tests that start one cannot run in parallel. Their subtests can.
//
// The package registers Caddy's standard modules and one more, which lets a test handle requests ([Directive]). It
// does not import not_found, whose tests import it: what it checks of the page is from the specification, and it
// reads the page with parsers that the module does not use.
package testcaddy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
)

const (
	timeout  = 10 * time.Second // for what happens soon
	patience = 40 * time.Second // for whole exchanges, on a busy machine
)

// Server is a running Caddy. As a client, it speaks HTTP/1.1 in clear text.
type Server struct {
	*Client
	Addr  string            // of the sites at the port 0, or of any others
	Addrs map[string]string // by the ports in the config
	Logs  *Logs             // nil if Caddy was started without them
}

// Start runs a Caddy with the given sites until the test ends. The port in a site's address, as in http://a.test:0,
// only tells it from others: Caddy listens at another one. The options are global options of the Caddyfile.
func Start(t testing.TB, sites string, options ...string) *Server {
	t.Helper()
	logs := NewLogs(t)
	// without Caddy's events: to log one, it reads its TLS app, which may still be starting
	options = append(options, "log default {\n"+logs.Output+"\nlevel DEBUG\nexclude events\n}")
	s := StartConfig(t, Adapt(t, Caddyfile(sites, options...)))
	s.Logs = logs
	return s
}

// StartQuiet is [Start] without logs, for tests that measure.
func StartQuiet(t testing.TB, sites string, options ...string) *Server {
	t.Helper()
	options = append(options, "log default {\noutput discard\nlevel FATAL\n}")
	return StartConfig(t, Adapt(t, Caddyfile(sites, options...)))
}

// StartSites runs a Caddy with a site for each test case, and returns the hosts by the cases' names. A site without
// not_found gets it before its directives. All sites log the cause of a page. The preamble comes before the sites.
func StartSites(t testing.TB, preamble string, sites map[string]string) (*Server, map[string]string) {
	t.Helper()
	caddyfile := preamble
	hosts := make(map[string]string)
	for name, site := range sites {
		hosts[name] = fmt.Sprintf("site%d.test", len(hosts))
		if !strings.Contains(site, "not_found") {
			site = "not_found\n" + site
		}
		caddyfile += fmt.Sprintf("http://%s:0 {\nlog\nlog_append cause {http.not_found.cause}\n%s\n}\n", hosts[name], site)
	}
	return Start(t, caddyfile), hosts
}

// The network free is TCP, and UDP for HTTP/3, on the loopback interface, at a port that the system chooses, whatever
// the address says.
func init() {
	listen := func(ctx context.Context, _, _, _ string, _ uint, config net.ListenConfig) (any, error) {
		return config.Listen(ctx, "tcp", "127.0.0.1:0")
	}
	listenPacket := func(ctx context.Context, _, _, _ string, _ uint, config net.ListenConfig) (any, error) {
		return config.ListenPacket(ctx, "udp", "127.0.0.1:0")
	}
	caddy.RegisterNetwork("free", listen)
	caddy.RegisterNetwork("freeudp", listenPacket)
	caddyhttp.RegisterNetworkHTTP3("free", "freeudp")
}

// StartConfig runs a Caddy with a config in JSON until the test ends.
func StartConfig(t testing.TB, config []byte) *Server {
	t.Helper()
	s := new(Server)
	s.Reload(t, config)
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Errorf("stopping Caddy: %v", err)
		}
	})
	return s
}

// Reload has Caddy run another config, in JSON. The system chooses the ports anew.
func (s *Server) Reload(t testing.TB, config []byte) {
	t.Helper()
	if err := caddy.Load(config, true); err != nil {
		t.Fatalf("loading the config: %v\n%s", err, config)
	}
	app, err := caddy.ActiveContext().App("http")
	if err != nil {
		t.Fatal(err)
	}
	s.Addrs = make(map[string]string)
	for _, srv := range app.(*caddyhttp.App).Servers {
		s.Addr = srv.Listeners()[0].Addr().String()
		_, port, _ := net.SplitHostPort(srv.Listen[0])
		s.Addrs[port] = s.Addr
	}
	s.Addr = cmp.Or(s.Addrs["0"], s.Addr)
	s.Client = HTTP11(t, s.Addr)
}

// Listen returns a listener that a Caddy can have, as fd/3 or another number, and its address. Clients may connect at
// once: their connections wait for Caddy.
func Listen(t testing.TB) (listener *os.File, addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	listener, err = ln.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener, ln.Addr().String()
}

// Admin returns a global option that turns on the admin API, and its address. Call it before Caddy starts; it stops
// the API when the test ends.
func Admin(t testing.TB) (option, addr string) {
	t.Helper()
	listener, addr := Listen(t)
	t.Cleanup(func() {
		off := []byte(`{"admin":{"disabled":true,"config":{"persist":false}}}`)
		err := errors.Join(caddy.Load(off, true), caddy.Stop()) // Stop alone does not stop it
		if err != nil {
			t.Errorf("stopping the admin API: %v", err)
		}
	})
	return fmt.Sprintf("admin fd/%d {\norigins %s\n}", listener.Fd(), addr), addr
}

// Caddyfile returns a Caddyfile with the given sites and global options. Nothing of it is stored, and only this
// machine reaches it.
func Caddyfile(sites string, options ...string) string {
	return `{
	admin off
	persist_config off
	default_bind free/127.0.0.1
	auto_https off
	skip_install_trust
	storage_clean_interval off
	` + strings.Join(options, "\n") + "\n}\n" + sites
}

// Adapt converts a Caddyfile to JSON.
func Adapt(t testing.TB, caddyfile string) []byte {
	t.Helper()
	config, err := AdaptErr(caddyfile)
	if err != nil {
		t.Fatalf("adapting the Caddyfile: %v\n%s", err, caddyfile)
	}
	return config
}

// AdaptErr converts a Caddyfile to JSON, or says why that is impossible.
func AdaptErr(caddyfile string) ([]byte, error) {
	adapter := caddyconfig.GetAdapter("caddyfile")
	options := map[string]any{"filename": "Caddyfile"}
	config, _, err := adapter.Adapt([]byte(caddyfile), options)
	return config, err
}

// Quote returns a path as it has to be written in a Caddyfile.
func Quote(path string) string { return "`" + path + "`" }

// TempFile writes a file to a new folder, and returns its path.
func TempFile(t testing.TB, name, content string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	err := os.WriteFile(path, []byte(content), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
