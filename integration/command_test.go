package integration

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// command returns a caddy command with its own home directory. It is killed when the test ends, or after a minute.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = home
	cmd.Env = append(os.Environ(), runsAsCaddy+"=1", "GORACE=atexit_sleep_ms=0") // or with -race it exits after a second
	setHome(cmd, home)
	return cmd
}

// setHome has a command use a folder for whatever it stores.
func setHome(cmd *exec.Cmd, dir string) {
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "TMPDIR"} {
		cmd.Env = append(cmd.Env, name+"="+dir)
	}
}

// run runs a caddy command to its end. Its output may go elsewhere.
func run(t *testing.T, cmd *exec.Cmd) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout = cmp.Or[io.Writer](cmd.Stdout, &out)
	cmd.Stderr = &errs
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// prints runs a caddy command that must succeed and log nothing, and returns its output.
func prints(t *testing.T, cmd *exec.Cmd) (stdout string) {
	t.Helper()
	stdout, stderr, code := run(t, cmd)
	if code != 0 || stderr != "" {
		t.Fatalf("got the exit code %d and\n%s", code, stderr)
	}
	return stdout
}

// fails runs a caddy command that must fail and print only why.
func fails(t *testing.T, cmd *exec.Cmd, why string) (stderr string) {
	t.Helper()
	stdout, stderr, code := run(t, cmd)
	if code != 1 || stdout != "" || !strings.Contains(stderr, why) || strings.ContainsAny(stderr, "\x1b\x00") {
		t.Fatalf("got the exit code %d, %q and\n%q\nwant 1 and %s", code, stdout, stderr, why)
	}
	return stderr
}

// running is a running caddy not-found.
type running struct {
	*testcaddy.Client
	addr, admin string // admin: the default address of its admin API
	log         string // a file
	cmd         *exec.Cmd
}

// startNotFound runs caddy not-found with flags until the test ends.
func startNotFound(t *testing.T, flags ...string) *running {
	t.Helper()
	r := &running{
		addr:  "127.0.0.1:" + testcaddy.FreePort(t),
		admin: "127.0.0.1:" + testcaddy.FreePort(t),
	}
	r.Client = testcaddy.HTTP11(t, r.addr)
	r.cmd = command(t, append([]string{"not-found", "--listen", r.addr}, flags...)...)
	r.cmd.Env = append(r.cmd.Env, "CADDY_ADMIN="+r.admin)
	r.log = startLogging(t, r.cmd)
	// a mere listener may be another test that looks for a free port
	eventually(t, "caddy not-found answers at "+r.addr, func() bool {
		conn, err := net.Dial("tcp", r.addr)
		if err != nil {
			return false
		}
		defer conn.Close()
		io.WriteString(conn, "GET / HTTP/1.1\r\nConnection: close\r\n\r\n") // no handler sees it without a Host
		answer, _ := io.ReadAll(conn)
		return strings.HasPrefix(string(answer), "HTTP/1.1 400 ")
	})
	return r
}

// startLogging starts a command that logs to a file, until the test ends.
func startLogging(t *testing.T, cmd *exec.Cmd) (log string) {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cmd.Stderr = file
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Wait() // the context has killed it by now
		if t.Failed() {
			t.Log(readFile(t, file.Name()))
		}
	})
	return file.Name()
}

// wantNoListener checks that nothing listens at an address.
func wantNoListener(t *testing.T, addr string) {
	t.Helper()
	if conn, err := net.Dial("tcp", addr); err == nil {
		conn.Close()
		t.Errorf("something listens at %s", addr)
	}
}

func TestNotFoundCommandAnswersEveryRequest(t *testing.T) {
	t.Parallel()
	s := startNotFound(t)
	for _, method := range []string{"GET", "POST"} {
		for _, path := range []string{"/", "/docs/nothing?x=1", "/healthz", "/not_found/report"} {
			url := "http://a.test" + path
			s.Do(t, method, url, "X-Forwarded-Host: other.test").WantPage(t, method, url, "")
		}
	}
	wantNoListener(t, s.admin) // without --report
	if log := readFile(t, s.log); strings.Contains(log, "handled request") || strings.Contains(log, `"level":"debug"`) {
		t.Errorf("without --access-log and --debug, it logs\n%s", log)
	}
	if files, err := os.ReadDir(s.cmd.Dir); err != nil || len(files) > 0 {
		t.Errorf("it left %v in its home directory, %v", files, err)
	}
}

// TestNotFoundCommandFlags has the flags that are no options of the handler. Those that are, the tests of
// internal/command pass on.
func TestNotFoundCommandFlags(t *testing.T) {
	t.Parallel()
	s := startNotFound(t,
		"--context-path=/app//", "--trusted-proxies=private_ranges", "--health-path=/healthz", "--report",
		"--access-log", "--debug")
	res := s.Get(t, "http://a.test/x", "X-Forwarded-Host: www.example.com", "X-Forwarded-Proto: https")
	res.WantPage(t, "GET", "https://www.example.com/x", "/app")
	s.Get(t, "http://a.test/healthz").Want(t, http.StatusOK, "")
	s.Do(t, "HEAD", "http://a.test/healthz").Want(t, http.StatusOK, "")
	s.Do(t, "POST", "http://a.test/healthz").WantPage(t, "POST", "http://a.test/healthz", "/app")
	s.Get(t, "http://a.test/healthz/x").WantPage(t, "GET", "http://a.test/healthz/x", "/app")

	report := testcaddy.HTTP11(t, s.admin).Get(t, "http://"+s.admin+"/not_found/report").Content
	if !strings.Contains(report, `"none":{"count":3,`) || !strings.Contains(report, `"path":"/x"`) {
		t.Errorf("got the report %s", report)
	}
	for _, message := range []string{`"msg":"handled request"`, `"msg":"wrote the 404 page"`} {
		eventually(t, "the log has "+message, func() bool { return strings.Contains(readFile(t, s.log), message) })
	}
}

// TestExportTemplateCommandPrintsThePage exports two formats, changes them, and has a server use both.
func TestExportTemplateCommandPrintsThePage(t *testing.T) {
	t.Parallel()
	html := prints(t, command(t, "not-found", "export-template"))
	json := prints(t, command(t, "not-found", "export-template", "json"))
	fails(t, command(t, "not-found", "export-template", "yaml"), `unknown format "yaml"; the formats are text, html, `)

	ofHTML := testcaddy.TempFile(t, "a=404.html", html+"<hr>")
	ofJSON := testcaddy.TempFile(t, "404.json", strings.Replace(json, "footer", "from", 1))
	s := startNotFound(t, "--template=json="+ofJSON, "--template="+ofHTML)
	for format, want := range map[string]string{"html": "</html>\n<hr>", "json": `"from":"Powered by Caddy`} {
		page := s.Get(t, "http://a.test/x", "Accept: application/"+format+", text/"+format).Content
		if !strings.Contains(page, want) {
			t.Errorf("got\n%s\nwant %s in it", page, want)
		}
	}
}

// TestNotFoundCommandLeavesOtherServersAlone starts a second server at an address of the first. If it started, it
// would get a share of the first one's connections.
func TestNotFoundCommandLeavesOtherServersAlone(t *testing.T) {
	t.Parallel()
	first := startNotFound(t, "--report")
	socket := shortDir(t) + "/s"
	second := startNotFound(t, "--report", "--admin=unix/"+socket)
	wantNoListener(t, second.admin) // but at the socket
	for _, tt := range []struct {
		flags   string
		env     string // the default address of the admin API
		at      string
		instead string
	}{
		{env: first.admin, at: "admin: at " + first.admin, instead: "--admin localhost:2020 or --admin unix//run/not-found.sock"},
		{flags: "--admin=" + first.admin, at: "admin: at " + first.admin, instead: "--admin localhost:2020"},
		{
			flags:   "--admin=unix/" + socket + "|0220",
			at:      "admin: at unix/" + socket + "|0220",
			instead: "--admin localhost:2020",
		},
		{flags: "--listen=" + first.addr, at: "listen: at " + first.addr, instead: "--listen :8081"},
		{flags: "--listen=tcp/" + first.addr, at: "listen: at tcp/" + first.addr, instead: "--listen :8081"},
	} {
		cmd := command(t, "not-found", "--listen=127.0.0.1:0", "--report")
		cmd.Args = append(cmd.Args, strings.Fields(tt.flags)...)
		cmd.Env = append(cmd.Env, "CADDY_ADMIN="+cmp.Or(tt.env, second.admin))
		const why = ", something answers already, such as another Caddy; use another address, as in "
		fails(t, cmd, tt.at+why+tt.instead)
	}

	second.Get(t, "http://a.test/second")
	wantReported(t, "unix/"+socket, "/second")
	if err := second.cmd.Process.Kill(); err != nil { // which leaves the socket behind
		t.Fatal(err)
	}
	_ = second.cmd.Wait()
	if _, err := os.Stat(socket); err != nil {
		t.Fatal(err)
	}
	third := startNotFound(t, "--report", "--admin=unix/"+socket)
	third.Get(t, "http://a.test/third")
	wantReported(t, "unix/"+socket, "/third")
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

// wantReported checks that the report at an admin API has one path of a.test.
func wantReported(t *testing.T, admin, path string) {
	t.Helper()
	stdout := prints(t, command(t, "not-found", "report", "--address", admin))
	if !strings.HasPrefix(stdout, "1 404 since ") || !strings.Contains(stdout, " a.test"+path+"\n") {
		t.Errorf("got\n%s\nwant the address a.test%s alone", stdout, path)
	}
}

const (
	stallsInHeader = "GET /x HTTP/1.1\r\nHost: a"
	stallsInBody   = "POST /x HTTP/1.1\r\nHost: a.test\r\nContent-Length: 10\r\n\r\nx"
)

// stall sends a request and the beginning of another one at once. The first one's page shows that the server has both.
func stall(t *testing.T, s *running, request string) *bufio.Reader {
	t.Helper()
	conn := (&testcaddy.Server{Addr: s.addr}).Connect(t)
	if _, err := io.WriteString(conn, "GET /first HTTP/1.1\r\nHost: a.test\r\n\r\n"+request); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	testcaddy.ReadResponse(t, r, "GET", "the first request").WantPage(t, "GET", "http://a.test/first", "")
	return r
}

func TestNotFoundCommandDoesNotWaitForStalledClients(t *testing.T) {
	t.Parallel()
	s := startNotFound(t)
	header := stall(t, s, stallsInHeader)
	body := stall(t, s, stallsInBody)
	s.Get(t, "http://a.test/another").WantPage(t, "GET", "http://a.test/another", "")
	page := testcaddy.ReadResponse(t, body, "POST", "the stalled request")
	page.WantPage(t, "POST", "http://a.test/x", "")
	if _, err := io.ReadAll(header); err != nil {
		t.Errorf("a connection that stalls in the header is not closed: %v", err)
	}
}

func TestNotFoundCommandEndsDespiteStalledClients(t *testing.T) {
	t.Parallel()
	s := startNotFound(t)
	stall(t, s, stallsInBody)
	begin := time.Now()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	err := s.cmd.Wait()
	// the read timeout alone would end it after 10 seconds
	if took := time.Since(begin); err != nil || took > 9*time.Second || took < time.Second {
		t.Errorf("it ended after %s, %v, want about 5 seconds", took, err)
	}
}

// TestUpstreamOfTheExamples runs the command that examples/README.md has for an upstream.
func TestUpstreamOfTheExamples(t *testing.T) {
	t.Parallel()
	pattern := regexp.MustCompile(`go run ./cmd/caddy (respond --listen )127.0.0.1:8081 (.+) '(.+)' '(.+)'`)
	args := pattern.FindStringSubmatch(readFile(t, "../examples/README.md"))
	if args == nil {
		t.Fatal("the command is missing")
	}
	addr := "127.0.0.1:" + testcaddy.FreePort(t)
	startLogging(t, command(t, append(strings.Fields(args[1]+addr+" "+args[2]), args[3:]...)...))
	awaitListener(t, "the upstream", addr)
	res := testcaddy.HTTP11(t, addr).Get(t, "http://"+addr+"/x")
	res.Want(t, http.StatusNotFound, "<h1>Nothing here</h1>")
	res.WantHeader(t, "Content-Type", "text/html")
}

// TestCommandOfTheKubernetesExample runs the command of the manifest, behind ingress-nginx.
func TestCommandOfTheKubernetesExample(t *testing.T) {
	t.Parallel()
	manifest := readFile(t, "../examples/kubernetes/manifest.yaml")
	args := regexp.MustCompile(`args: \[caddy, not-found, (.+)\]`).FindStringSubmatch(manifest)
	probe := regexp.MustCompile(`readinessProbe:\s+httpGet:\s+path: (\S+)`).FindStringSubmatch(manifest)
	if args == nil || probe == nil {
		t.Fatalf("the manifest has no command or no probe:\n%s", manifest)
	}
	s := startNotFound(t, strings.Split(args[1], ", ")...)
	s.Get(t, "http://a.test"+probe[1]).Want(t, http.StatusOK, "")
	res := s.Get(t, "http://10.0.0.1/x", "X-Forwarded-Proto: https", "X-Forwarded-Host: a.test")
	res.WantPage(t, "GET", "https://a.test/x", "")
}
