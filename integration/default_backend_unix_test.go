//go:build unix

package integration

import (
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

// startDefaultBackend runs the ConfigMap of examples/kubernetes, which is examples/proxies/default-backend.Caddyfile,
// as a user whose folders are read-only.
func startDefaultBackend(t *testing.T) (cmd *exec.Cmd, client *testcaddy.Client, addr, log string) {
	t.Helper()
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
	cmd = unprivileged(commandIn(t, home, "run", "--config", dir+"/Caddyfile"))
	log = startLogging(t, cmd, listener)
	return cmd, testcaddy.HTTP11(t, addr), addr, log
}

// TestDefaultBackend has clients that stall, which have 10 seconds.
func TestDefaultBackend(t *testing.T) {
	_, client, addr, log := startDefaultBackend(t)

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

	inHeader := stall(t, addr, "GET /x HTTP/1.1\r\nHost: a.test\r\n")
	inBody := stall(t, addr, "POST /x HTTP/1.1\r\nHost: a.test\r\nContent-Length: 7\r\n\r\n1")
	t.Parallel() // only now: those clients stall while the tests run that cannot be parallel
	if err := (<-inHeader).err; err != nil {
		t.Errorf("a client that stalls in its header is not turned away: %v", err)
	}
	if got := <-inBody; got.err != nil || !strings.HasPrefix(got.answer, "HTTP/1.1 404 ") {
		t.Errorf("a client that stalls in its body got %q, %v, want the page", got.answer, got.err)
	}
	if logged := readFile(t, log); strings.Contains(logged, `"level":"error"`) {
		t.Errorf("it logs an error:\n%s", logged)
	}
}

// TestDefaultBackendStops sends a signal while a client stalls, which has less time then.
func TestDefaultBackendStops(t *testing.T) {
	cmd, client, addr, _ := startDefaultBackend(t)
	dial(t, addr, "POST /x HTTP/1.1\r\nHost: a.test\r\nContent-Length: 7\r\n\r\n1")
	getPage(t, client, "http://a.test/last") // which comes after the stalled request
	var took time.Duration
	ended := make(chan error, 1)
	go func() {
		time.Sleep(time.Second) // on a busy machine, Caddy answers before it heeds signals
		begun := time.Now()
		_ = cmd.Process.Signal(syscall.SIGTERM)
		err := cmd.Wait()
		took = time.Since(begun)
		ended <- err
	}()
	t.Parallel() // only now, as above
	if err := <-ended; err != nil || took > 8*time.Second {
		t.Errorf("after a signal, it ended in %s: %v", took, err)
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

// stalled is what a client got that stalled, until its connection ended or the deadline came.
type stalled struct {
	answer string
	err    error
}

// stall dials, and reads while the test goes on.
func stall(t *testing.T, addr, begins string) <-chan stalled {
	t.Helper()
	conn := dial(t, addr, begins)
	ended := make(chan stalled, 1)
	go func() {
		answer, err := io.ReadAll(conn)
		ended <- stalled{string(answer), err}
	}()
	return ended
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
