//go:build linux

package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"golang.org/x/sys/unix"
)

// server is a Caddy with one site, in clear text and with TLS.
type server struct {
	site
	group  *group
	number int
	binary string
	cmd    *exec.Cmd
	answer string       // to every request: the status and the body
	header http.Header  // of the first answer, without the date
	asked  atomic.Int64 // how many requests there were, if each is for another address
}

const options = `{
	admin off
	persist_config off
	default_bind 127.0.0.1
	skip_install_trust
	auto_https disable_redirects
	servers {
		protocols h1 h2
	}
	log {
		level ERROR
	}
}
`

// start runs the server on a core, and waits until it answers. It ends with ctx.
func (s *server) start(ctx context.Context, dir, core string) error {
	version, _ := caddy.Version()
	config := options
	for _, p := range protocols {
		origin := s.origin(p)
		// Caddy would share the address with a server that still runs, which would take some of the requests.
		_, address, _ := strings.Cut(origin, "://")
		alone, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		alone.Close()
		values := strings.NewReplacer(
			"[origin]", origin,
			"[target]", s.target(),
			"[version]", version,
			"[dir]", dir,
			"[html]", html,
		)
		config += values.Replace(origin + " {\n" + s.caddy + "\n}\n")
	}
	s.cmd = exec.CommandContext(ctx, "taskset", "-c", core, s.binary, "run", "--adapter", "caddyfile", "--config", "-")
	s.cmd.Env = []string{"HOME=" + dir, "GOMAXPROCS=1"}
	s.cmd.Stdin = strings.NewReader(config)
	s.cmd.Stderr = os.Stderr
	err := s.cmd.Start()
	if err != nil {
		return err
	}
	for range 500 {
		client := newClient(protocols[1])
		s.answer, s.header, err = s.ask(protocols[1], client)
		client.CloseIdleConnections()
		if err == nil {
			s.header.Del("Date")
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	s.stop()
	return fmt.Errorf("starting %s: %w", s.Name, err)
}

func (s *server) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// cpu returns the CPU time of all threads of the server.
func (s *server) cpu() (time.Duration, error) {
	var t unix.Timespec
	clock := ^s.cmd.Process.Pid<<3 | 2 // what clock_getcpuclockid(3) returns
	err := unix.ClockGettime(int32(clock), &t)
	return time.Duration(t.Nano()), err
}

func (s *server) target() string { return cmp.Or(s.group.target, "/docs/apis?x=1") }

func (s *server) origin(p protocol) string { return fmt.Sprintf(p.origin, s.number) }

// newClient returns a client that has one connection.
func newClient(p protocol) *http.Transport {
	t := &http.Transport{
		TLSClientConfig:    &tls.Config{InsecureSkipVerify: true},
		Protocols:          new(http.Protocols),
		DisableCompression: true,
	}
	t.Protocols.SetHTTP1(p == protocols[0])
	t.Protocols.SetHTTP2(p == protocols[1])
	return t
}

// ask sends a request. The answer is the status and the body of the response, without the request's origin and target.
func (s *server) ask(p protocol, client *http.Transport) (answer string, header http.Header, err error) {
	origin := s.origin(p)
	target := s.target()
	request, err := http.NewRequest(http.MethodGet, origin+target, nil)
	if err != nil {
		return "", nil, err
	}
	if s.group.varies {
		// Every other request is for one of 100 addresses. An own link is what the report has most to do for.
		n := s.asked.Add(1)
		if n%2 == 0 {
			n = n / 2 % 100
		}
		target = fmt.Sprintf("/docs/%09d", n)
		request.URL.Path, request.URL.RawQuery = target, ""
		request.Header.Set("Referer", origin+"/")
	}
	for field, value := range map[string]string{
		"Accept":          cmp.Or(s.accept, s.group.accept),
		"Accept-Encoding": s.group.encodings,
	} {
		if value != "" {
			request.Header.Set(field, value)
		}
	}
	response, err := client.RoundTrip(request)
	if err != nil {
		return "", nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	text := strings.ReplaceAll(string(body), origin, "")
	return response.Status + "\n" + strings.ReplaceAll(text, target, ""), response.Header, err
}
