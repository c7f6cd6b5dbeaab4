package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A server has one core for itself. What loads it has another, together with the backend.
const (
	serverCore = 0
	loadCore   = 1
)

// protocol is how a server is spoken to.
type protocol struct {
	name string
	tls  bool
	http int // major version
}

var protocols = []protocol{
	{"HTTP/1.1", false, 1},
	{"HTTP/1.1, TLS", true, 1},
	{"HTTP/2, TLS", true, 2},
}

// packages says which Debian package the programs come in.
var packages = map[string]string{
	"h2load":  "nghttp2-client",
	"nginx":   "nginx-light",
	"taskset": "util-linux",
	"wrk":     "wrk",
}

// bench is what the servers and their load have in common.
type bench struct {
	dir       string            // of all files, and removed in the end
	programs  map[string]string // paths
	caddy     string            // its version
	cert, key string            // files
	trusted   *x509.CertPool
	backend   string // its address

	servers int
	running sync.WaitGroup
}

// newBench looks for the programs, and builds Caddy.
func newBench(ctx context.Context) (*bench, error) {
	if runtime.GOOS != "linux" || runtime.NumCPU() < 2 {
		return nil, errors.New("the load needs Linux and two cores, one of them for the server")
	}
	b := &bench{programs: make(map[string]string)}
	var missing []string
	for program, pkg := range packages {
		path, err := exec.LookPath(program)
		if err != nil {
			path, err = exec.LookPath("/usr/sbin/" + program) // which is not in everybody's PATH
		}
		if err != nil {
			missing = append(missing, pkg)
		}
		b.programs[program] = path
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return nil, fmt.Errorf("programs are missing; on Debian: apt-get install %s", strings.Join(missing, " "))
	}

	var err error
	if b.dir, err = os.MkdirTemp("", "bench"); err != nil {
		return nil, err
	}
	if err := b.prepare(ctx); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func (b *bench) prepare(ctx context.Context) error {
	b.programs["caddy"] = filepath.Join(b.dir, "caddy")
	build := exec.CommandContext(ctx, "go", "build", "-o", b.programs["caddy"], "github.com/caddy-notfound/notfound/cmd/caddy")
	build.Env = append(os.Environ(), "GOTMPDIR="+b.dir)
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building Caddy: %w\n%s", err, out)
	}
	out, err := exec.CommandContext(ctx, b.programs["caddy"], "version").Output()
	if err != nil {
		return fmt.Errorf("asking Caddy for its version: %w", err)
	}
	b.caddy, _, _ = strings.Cut(strings.TrimSpace(string(out)), " ")
	return b.writeCert()
}

// footer is the last line of the page.
func (b *bench) footer() string { return "Powered by Caddy " + b.caddy }

// close removes the files, once the context of the servers has ended and they have too.
func (b *bench) close() {
	b.running.Wait()
	os.RemoveAll(b.dir)
}

// writeCert makes the certificate of all servers.
func (b *bench) writeCert() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return err
	}
	b.trusted = x509.NewCertPool()
	b.trusted.AddCert(cert)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if b.cert, err = b.write("cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))); err != nil {
		return err
	}
	b.key, err = b.write("key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})))
	return err
}

// write writes a file, and gives its path.
func (b *bench) write(name, content string) (string, error) {
	path := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	return path, os.WriteFile(path, []byte(content), 0o600)
}

// pinned is a command that runs on one core.
func (b *bench) pinned(ctx context.Context, core int, program string, args ...string) *exec.Cmd {
	args = append([]string{"-c", strconv.Itoa(core), b.programs[program]}, args...)
	return exec.CommandContext(ctx, b.programs["taskset"], args...)
}

// server is a contender that runs.
type server struct {
	contender
	group         *group
	plain, secure *site
	pid           int
	log           string // file
	read          int    // of the log
	stop          func() // and wait until it has stopped

	runs map[string][]sample // by protocol
}

// start runs a contender, until it is stopped or ctx ends.
func (b *bench) start(ctx context.Context, g *group, c contender, core int) (*server, error) {
	addrs, err := freeAddrs(2)
	if err != nil {
		return nil, err
	}
	b.servers++
	dir := strconv.Itoa(b.servers)
	newSite := func(name, scheme, addr string) (*site, error) {
		s := &site{addr: addr, base: scheme + "://" + addr, footer: b.footer(), cert: b.cert, key: b.key, backend: b.backend}
		s.page = g.body(s.base, s.footer)
		file, err := b.write(filepath.Join(dir, name, "404.html"), s.page)
		s.root = filepath.Dir(file)
		return s, err
	}
	s := &server{contender: c, group: g, runs: make(map[string][]sample)}
	if s.plain, err = newSite("plain", "http", addrs[0]); err != nil {
		return nil, err
	}
	if s.secure, err = newSite("secure", "https", addrs[1]); err != nil {
		return nil, err
	}
	config, err := b.write(filepath.Join(dir, "config"), c.config(s.plain, s.secure))
	if err != nil {
		return nil, err
	}
	dir = filepath.Dir(config)

	args := []string{"caddy", "run", "--adapter", "caddyfile", "--config", config}
	if c.nginx != "" {
		args = []string{"nginx", "-c", config, "-p", dir}
	}
	ctx, cancel := context.WithCancel(ctx)
	cmd := b.pinned(ctx, core, args[0], args[1:]...)
	cmd.Env = []string{"GOMAXPROCS=1", "HOME=" + dir, "XDG_DATA_HOME=" + dir, "XDG_CONFIG_HOME=" + dir}
	s.log = filepath.Join(dir, "log")
	log, err := os.Create(s.log)
	if err != nil {
		cancel()
		return nil, err
	}
	defer log.Close()
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, err
	}
	s.pid = cmd.Process.Pid
	exited := make(chan struct{})
	b.running.Go(func() {
		_ = cmd.Wait() // killed, or what the log says
		close(exited)
	})
	s.stop = func() { cancel(); <-exited }

	for _, addr := range addrs {
		if err := dial(ctx, addr, exited); err != nil {
			s.stop()
			return nil, fmt.Errorf("starting %s: %w\n%s", c.name, err, s.logged())
		}
	}
	s.logged() // what Caddy says when it starts
	return s, nil
}

// dial waits until a server listens.
func dial(ctx context.Context, addr string, exited <-chan struct{}) error {
	deadline := time.After(15 * time.Second)
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-exited:
			return errors.New("it exited")
		case <-deadline:
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// logged gives what a server has logged since it was asked last. They log errors only.
func (s *server) logged() string {
	b, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	defer func() { s.read = len(b) }()
	return string(b[s.read:])
}

func (s *server) base(p protocol) string {
	if p.tls {
		return s.secure.base
	}
	return s.plain.base
}

// startVerified is start, and makes sure that the contender does the work of its group.
func (b *bench) startVerified(ctx context.Context, g *group, c contender) (*server, error) {
	s, err := b.start(ctx, g, c, serverCore)
	if err != nil {
		return nil, err
	}
	for _, p := range protocols {
		base := s.base(p)
		if err := b.verify(ctx, p, base+g.target, g.status, g.body(base, b.footer())); err != nil {
			s.stop()
			return nil, fmt.Errorf("%s: %w\n%s", c.name, err, s.logged())
		}
	}
	return s, nil
}

// verify makes sure that a response is the wanted one.
func (b *bench) verify(ctx context.Context, p protocol, url string, status int, body string) error {
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: b.trusted}, Protocols: new(http.Protocols)}
	transport.Protocols.SetHTTP1(p.http == 1)
	transport.Protocols.SetHTTP2(p.http == 2)
	defer transport.CloseIdleConnections()

	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("reading %s: %w", url, err)
	}
	if resp.ProtoMajor != p.http || resp.StatusCode != status || string(got) != body {
		return fmt.Errorf("%s answers with HTTP/%d, status %d and\n%s\nwanted: HTTP/%d, status %d and\n%s",
			url, resp.ProtoMajor, resp.StatusCode, got, p.http, status, body)
	}
	return nil
}

// startBackend runs the backend.
func (b *bench) startBackend(ctx context.Context) error {
	b.backend = "127.0.0.1:1" // its own configuration has a place for one
	s, err := b.start(ctx, &group{}, backend, loadCore)
	if err != nil {
		return err
	}
	b.backend = s.plain.addr
	for target, status := range map[string]int{"/found": http.StatusOK, "/docs/apis?x=1": http.StatusNotFound} {
		if err := b.verify(ctx, protocols[0], s.plain.base+target, status, backendPage); err != nil {
			return fmt.Errorf("the backend: %w", err)
		}
	}
	return nil
}

// freeAddrs gives n loopback addresses that nobody listens on.
func freeAddrs(n int) ([]string, error) {
	var addrs []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		addrs = append(addrs, l.Addr().String())
	}
	return addrs, nil
}
