//go:build unix

package integration

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestDefaultBackend runs the ConfigMap of examples/kubernetes, which is examples/proxies/default-backend.Caddyfile, as
// a user whose folders are read-only. Clients that stall have 10 seconds, and less once Caddy has to stop.
func TestDefaultBackend(t *testing.T) {
	t.Parallel()
	caddyfile := configMap(t, "../examples/kubernetes/manifest.yaml")
	if want := readFile(t, "../examples/proxies/default-backend.Caddyfile"); caddyfile != want {
		t.Errorf("the ConfigMap has\n%s\nwant\n%s", caddyfile, want)
	}
	listener, addr := testcaddy.Listen(t)
	_, port, _ := net.SplitHostPort(addr)
	dir := shortDir(t)
	home := dir + "/home"
	writeFile(t, dir+"/Caddyfile", strings.Replace(caddyfile, "\n:8080 {\n", "\n:"+port+" {\n\tbind fd/3\n", 1))
	for folder, mode := range map[string]os.FileMode{home: 0o555, dir: 0o755} {
		_ = os.Mkdir(folder, mode)
		if err := os.Chmod(folder, mode); err != nil {
			t.Fatal(err)
		}
	}
	cmd := unprivileged(commandIn(t, home, "run", "--config", dir+"/Caddyfile"))
	log := startLogging(t, cmd, listener)
	client := testcaddy.HTTP11(t, addr)

	// The page, behind an ingress that says what the client addressed
	res := client.Get(t, "http://10.0.0.1/x?y", "X-Forwarded-Proto: https", "X-Forwarded-Host: a.test")
	res.WantPage(t, "GET", "https://a.test/x?y", "")

	// The probes, which have only two methods
	const health = "http://10.0.0.1/healthz"
	client.Get(t, health).Want(t, http.StatusOK, "")
	client.Do(t, "HEAD", health).Want(t, http.StatusOK, "")
	posted := client.Do(t, "POST", health)
	posted.WantPage(t, "POST", health, "")

	// ingress-nginx, which asks for / whatever the status is
	for code, want := range map[string]int{
		"404": 404, "401": 401, "429": 429, "503": 503, "5": 404, "5000": 404, "5x": 404,
	} {
		res := client.Get(t, "http://www.example.com/", "X-Code: "+code, "X-Original-URI: /shop/x?y")
		if want == http.StatusNotFound {
			res.WantPage(t, "GET", "https://www.example.com/shop/x?y", "")
		} else {
			res.Want(t, want, "")
		}
	}

	inHeader := dial(t, addr, "GET /x HTTP/1.1\r\nHost: a.test\r\n")
	inBody := dial(t, addr, "POST /x HTTP/1.1\r\nHost: a.test\r\nContent-Length: 7\r\n\r\n1")
	if _, err := io.ReadAll(inHeader); err != nil { // EOF, or the deadline
		t.Errorf("a client that stalls in its header is not turned away: %v", err)
	}
	if res, err := http.ReadResponse(bufio.NewReader(inBody), nil); err != nil || res.StatusCode != http.StatusNotFound {
		t.Errorf("a client that stalls in its body got %v, %v, want the page", res, err)
	}

	dial(t, addr, "POST /x HTTP/1.1\r\nHost: a.test\r\nContent-Length: 7\r\n\r\n1")
	getPage(t, client, "http://a.test/last") // which comes after the stalled request
	if logged := readFile(t, log); strings.Contains(logged, `"level":"error"`) {
		t.Errorf("it logs an error:\n%s", logged)
	}

	begun := time.Now()
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil || time.Since(begun) > 8*time.Second {
		t.Errorf("after a signal, it ended in %s: %v", time.Since(begun), err)
	}
}

// configMap returns the Caddyfile in a manifest.
func configMap(t *testing.T, name string) string {
	t.Helper()
	_, block, _ := strings.Cut(readFile(t, name), "\n  Caddyfile: |\n")
	block, _, found := strings.Cut(block, "\n---\n")
	if !found {
		t.Fatalf("%s has no Caddyfile", name)
	}
	block = strings.ReplaceAll("\n"+block, "\n    ", "\n")
	return strings.TrimPrefix(block, "\n") + "\n"
}

// dial sends the beginning of a request, and waits at most 15 seconds for what comes back.
func dial(t *testing.T, addr, begins string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(15 * time.Second))
	if _, err := io.WriteString(conn, begins); err != nil {
		t.Fatal(err)
	}
	return conn
}

const nobody = 65534

// unprivileged has a caddy command run as a user that is not root.
func unprivileged(cmd *exec.Cmd) *exec.Cmd {
	if os.Getuid() == 0 {
		cmd.Path = "/proc/self/exe" // the program itself is in a folder of root's
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Credential: &syscall.Credential{Uid: nobody, Gid: nobody},
		}
	}
	return cmd
}

// shortDir returns a new folder, whose path is short enough for that of a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
