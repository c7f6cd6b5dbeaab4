package main

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
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
	plan
	dir      string // The folder has all files.
	caddy    string // the path of the program
	version  string // of Caddy
	upstream string // the address of the upstream
	running  sync.WaitGroup
}

// newBench builds Caddy with the module.
func newBench(ctx context.Context, p plan) (*bench, error) {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	b := &bench{
		plan:     p,
		dir:      dir,
		caddy:    filepath.Join(dir, "caddy"),
		upstream: "127.0.0.1:1", // Nothing listens there until the upstream runs.
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", b.caddy, "github.com/caddy-notfound/notfound/cmd/caddy")
	out, err := build.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("building Caddy: %w\n%s", err, out)
	}
	out, err = exec.CommandContext(ctx, b.caddy, "version").Output()
	if err != nil {
		return nil, fmt.Errorf("asking Caddy for its version: %w", err)
	}
	version := strings.TrimSpace(string(out))
	b.version, _, _ = strings.Cut(version, " ")
	return b, b.writeCertificate()
}

// footer returns the last line of the page.
func (b *bench) footer() string { return "Powered by Caddy " + b.version }

// certificate returns the path of the file that has the certificate and its key.
func (b *bench) certificate() string {
	return filepath.Join(b.dir, "cert.pem")
}

// close removes the files when the servers have ended with their context.
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
	certificate := pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}
	privateKey := pem.Block{Type: "PRIVATE KEY", Bytes: key}
	file := pem.EncodeToMemory(&certificate)
	file = append(file, pem.EncodeToMemory(&privateKey)...)
	return os.WriteFile(b.certificate(), file, 0o600)
}

// runningSite is a site on a server of its own, with one address in clear text and one with TLS.
type runningSite struct {
	site
	group *group
	addrs [2]string
	pid   int
	log   string       // the path of the file
	asked atomic.Int64 // how many requests there were, if they are for many addresses
}

func (s *runningSite) plain() string { return "http://" + s.addrs[0] }

func (s *runningSite) secure() string { return "https://" + s.addrs[1] }

// start runs a site on a core until ctx ends.
func (b *bench) start(ctx context.Context, g *group, s site, core string) (*runningSite, error) {
	dir, err := os.MkdirTemp(b.dir, "site")
	if err != nil {
		return nil, err
	}
	addrs, err := freeAddrs()
	if err != nil {
		return nil, err
	}
	rs := &runningSite{
		site:  s,
		group: g,
		addrs: addrs,
		log:   filepath.Join(dir, "log"),
	}
	file := filepath.Join(dir, "Caddyfile")
	config := []byte(b.config(rs))
	err = os.WriteFile(file, config, 0o600)
	if err != nil {
		return nil, err
	}

	log, err := os.Create(rs.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	args := []string{"-c", core, b.caddy, "run", "--config", file}
	cmd := exec.CommandContext(ctx, "taskset", args...)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"),
		"GOMAXPROCS=1",
		"HOME=" + dir,
		"XDG_DATA_HOME=" + dir,
		"XDG_CONFIG_HOME=" + dir,
	}
	cmd.Stderr = log
	err = cmd.Start()
	if err != nil {
		return nil, err
	}
	rs.pid = cmd.Process.Pid
	// The end of ctx kills the server. If it ends by itself, its log says why.
	b.running.Go(func() { _ = cmd.Wait() })

	for _, addr := range rs.addrs {
		err := awaitListener(addr)
		if err != nil {
			logged := rs.logged()
			return nil, fmt.Errorf("starting %s: %w\n%s", s.name, err, logged)
		}
	}
	rs.logged() // What Caddy logs when it starts is no error.
	return rs, nil
}

func awaitListener(addr string) (err error) {
	for range 500 {
		var conn net.Conn
		conn, err = net.Dial("tcp", addr)
		if err == nil {
			return conn.Close()
		}
		time.Sleep(20 * time.Millisecond)
	}
	return err
}

// logged returns what the server has logged since the last call. The server logs errors only.
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
	pattern := fmt.Sprintf("/proc/%d/task/*/schedstat", s.pid)
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		return 0, fmt.Errorf("reading the CPU time of process %d: it has no threads", s.pid)
	}
	for _, file := range files {
		statistics, err := os.ReadFile(file)
		if err != nil {
			return 0, err
		}
		var onCPU time.Duration // The first number is in nanoseconds.
		_, err = fmt.Sscan(string(statistics), &onCPU)
		if err != nil {
			return 0, err
		}
		total += onCPU
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
