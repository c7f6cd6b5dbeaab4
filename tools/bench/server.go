package main

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// bench is shared by all servers.
type bench struct {
	dir      string // of all files
	caddy    string // the program
	version  string // of Caddy
	upstream string // its address
	running  sync.WaitGroup
}

// newBench builds Caddy with the module.
func newBench(ctx context.Context) (*bench, error) {
	b := &bench{upstream: "127.0.0.1:1"}
	var err error
	if b.dir, err = os.MkdirTemp("", "bench"); err != nil {
		return nil, err
	}
	b.caddy = filepath.Join(b.dir, "caddy")
	build := exec.CommandContext(ctx, "go", "build", "-o", b.caddy, "github.com/caddy-notfound/notfound/cmd/caddy")
	out, err := build.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("building Caddy: %w\n%s", err, out)
	}
	out, err = exec.CommandContext(ctx, b.caddy, "version").Output()
	if err != nil {
		return nil, fmt.Errorf("asking Caddy for its version: %w", err)
	}
	b.version, _, _ = strings.Cut(strings.TrimSpace(string(out)), " ")
	return b, b.writeCertificate()
}

// footer is the page's.
func (b *bench) footer() string { return "Powered by Caddy " + b.version }

// certificate is the file of the certificate and its key.
func (b *bench) certificate() string { return filepath.Join(b.dir, "cert.pem") }

// close removes the files, once the servers have ended with their context.
func (b *bench) close() {
	b.running.Wait()
	os.RemoveAll(b.dir)
}

// writeCertificate writes the certificate that net/http has for tests.
func (b *bench) writeCertificate() error {
	srv := httptest.NewTLSServer(nil)
	defer srv.Close()
	key, err := x509.MarshalPKCS8PrivateKey(srv.TLS.Certificates[0].PrivateKey)
	if err != nil {
		return err
	}
	file := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	file = append(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...)
	return os.WriteFile(b.certificate(), file, 0o600)
}

// runningSite is a site on a server of its own, with one address in clear text and one with TLS.
type runningSite struct {
	site
	group *group
	addrs [2]string
	pid   int
	log   string
	asked atomic.Int64 // requests for its addresses
}

func (s *runningSite) plain() string  { return "http://" + s.addrs[0] }
func (s *runningSite) secure() string { return "https://" + s.addrs[1] }

// start runs a site on a core until ctx ends.
func (b *bench) start(ctx context.Context, g *group, s site, core string) (*runningSite, error) {
	dir, err := os.MkdirTemp(b.dir, "site")
	if err != nil {
		return nil, err
	}
	rs := &runningSite{site: s, group: g, log: filepath.Join(dir, "log")}
	if rs.addrs, err = freeAddrs(); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "Caddyfile")
	if err := os.WriteFile(file, []byte(b.config(rs)), 0o600); err != nil {
		return nil, err
	}
	log, err := os.Create(rs.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, "taskset", "-c", core, b.caddy, "run", "--config", file)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"),
		"GOMAXPROCS=1",
		"HOME=" + dir,
		"XDG_DATA_HOME=" + dir,
		"XDG_CONFIG_HOME=" + dir,
	}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	rs.pid = cmd.Process.Pid
	b.running.Go(func() { _ = cmd.Wait() }) // it is killed, or its log says why it ended
	for _, addr := range rs.addrs {
		if err := awaitListener(addr); err != nil {
			return nil, fmt.Errorf("starting %s: %w\n%s", s.name, err, rs.logged())
		}
	}
	rs.logged() // what Caddy logs when it starts
	return rs, nil
}

func awaitListener(addr string) (err error) {
	for range 500 {
		var conn net.Conn
		if conn, err = net.Dial("tcp", addr); err == nil {
			return conn.Close()
		}
		time.Sleep(20 * time.Millisecond)
	}
	return err
}

// logged returns what the server has logged since the last call. It logs errors only.
func (s *runningSite) logged() string {
	b, _ := os.ReadFile(s.log)
	_ = os.Truncate(s.log, 0)
	return string(bytes.Trim(b, "\x00"))
}

// loggedError returns what the server has logged as an error.
func (s *runningSite) loggedError() error {
	if logged := s.logged(); logged != "" {
		return fmt.Errorf("the server logged an error:\n%.1000s", logged)
	}
	return nil
}

// cpu returns the CPU time of the server, of all its threads.
func (s *runningSite) cpu() (total time.Duration, err error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", s.pid))
	if err != nil || len(files) == 0 {
		return 0, fmt.Errorf("reading the CPU time of process %d: it has no threads", s.pid)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		var ns time.Duration
		if _, scanErr := fmt.Sscan(string(b), &ns); err != nil || scanErr != nil {
			return 0, errors.Join(err, scanErr)
		}
		total += ns
	}
	return total, nil
}

// freeAddrs returns two loopback addresses that nothing listens on.
func freeAddrs() (addrs [2]string, err error) {
	for i := range addrs {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return addrs, err
		}
		defer l.Close()
		addrs[i] = l.Addr().String()
	}
	return addrs, nil
}
