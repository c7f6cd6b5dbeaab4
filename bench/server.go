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
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// bench is what all servers share.
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
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", b.caddy, "github.com/caddy-notfound/notfound/cmd/caddy").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building Caddy: %w\n%s", err, out)
	}
	out, err := exec.CommandContext(ctx, b.caddy, "version").Output()
	if err != nil {
		return nil, fmt.Errorf("asking Caddy for its version: %w", err)
	}
	b.version, _, _ = strings.Cut(strings.TrimSpace(string(out)), " ")
	return b, b.writeCertificate()
}

// footer is that of the page.
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
	pems := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...)
	return os.WriteFile(b.certificate(), pems, 0o600)
}

// server is a process with some sites.
type server struct {
	pid int
	log *os.File
}

// runningSite is a site of a server, with one address in clear text and one with TLS.
type runningSite struct {
	site
	*server
	group *group
	addrs [2]string
	asked atomic.Int64 // requests for its addresses
}

func (s *runningSite) plain() string  { return "http://" + s.addrs[0] }
func (s *runningSite) secure() string { return "https://" + s.addrs[1] }

// start runs the sites of a group in one process until ctx ends.
func (b *bench) start(ctx context.Context, g *group) (sites []*runningSite, err error) {
	for _, s := range g.sites {
		rs := &runningSite{site: s, group: g}
		if rs.addrs, err = freeAddrs(); err != nil {
			return nil, err
		}
		sites = append(sites, rs)
	}
	dir := filepath.Join(b.dir, g.name)
	file := filepath.Join(dir, "Caddyfile")
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(file, []byte(b.config(g, sites)), 0o600)); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "taskset", "-c", g.cores, b.caddy, "run", "--config", file)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GOMAXPROCS=" + strconv.Itoa(1+strings.Count(g.cores, ",")), "HOME=" + dir, "XDG_DATA_HOME=" + dir, "XDG_CONFIG_HOME=" + dir}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	b.running.Go(func() { _ = cmd.Wait() }) // it is killed, or its log says why it ended
	s := &server{pid: cmd.Process.Pid, log: log}
	for _, site := range sites {
		site.server = s
		for _, addr := range site.addrs {
			if err := awaitListener(addr); err != nil {
				return nil, fmt.Errorf("starting %s: %w\n%s", site.name, err, s.logged())
			}
		}
	}
	s.logged() // what Caddy logs when it starts
	return sites, nil
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
func (s *server) logged() string {
	b, _ := os.ReadFile(s.log.Name())
	_ = s.log.Truncate(0)
	return string(bytes.Trim(b, "\x00"))
}

// cpu returns the CPU time of the server, of all its threads.
func (s *server) cpu() (total time.Duration, err error) {
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
