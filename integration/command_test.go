package integration

import (
	"bytes"
	"cmp"
	"context"
	"io"
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
	return commandIn(t, t.TempDir(), args...)
}

// commandIn returns a caddy command that uses a folder for whatever it stores.
func commandIn(t *testing.T, home string, args ...string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = home
	cmd.Env = append(os.Environ(), runsAsCaddy+"=1", "GORACE=atexit_sleep_ms=0") // or with -race it exits after a second
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "TMPDIR"} {
		cmd.Env = append(cmd.Env, name+"="+home)
	}
	return cmd
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
func fails(t *testing.T, cmd *exec.Cmd, why string) {
	t.Helper()
	stdout, stderr, code := run(t, cmd)
	hasFailed := code == 1 && stdout == ""
	isPrintable := !strings.ContainsAny(stderr, "\x1b\x00")
	if !hasFailed || !isPrintable || !strings.Contains(stderr, why) {
		t.Fatalf("got the exit code %d, %q and\n%q\nwant 1 and %s", code, stdout, stderr, why)
	}
}

// running is a running caddy not-found.
type running struct {
	*testcaddy.Client
	addr   string
	socket string // of its admin API, by default
	log    string // a file
	cmd    *exec.Cmd
}

// startNotFound runs caddy not-found with flags until the test ends. The first exchange waits for it, or fails once it
// has ended.
func startNotFound(t *testing.T, flags ...string) *running {
	t.Helper()
	listener, addr := testcaddy.Listen(t)
	r := &running{
		Client: testcaddy.HTTP11(t, addr),
		addr:   addr,
		socket: shortDir(t) + "/s",
		cmd:    command(t, "not-found", "--listen=fd/3"),
	}
	r.cmd.Args = append(r.cmd.Args, flags...)
	r.cmd.Env = append(r.cmd.Env, "CADDY_ADMIN=unix/"+r.socket)
	r.log = startLogging(t, r.cmd, listener)
	return r
}

// awaitLog waits until a log file has what a pattern matches, and returns the last submatch.
func awaitLog(t *testing.T, file, pattern string) string {
	t.Helper()
	var match []string
	eventually(t, pattern+" in the log", func() bool {
		match = regexp.MustCompile(pattern).FindStringSubmatch(readFile(t, file))
		return match != nil
	})
	return match[len(match)-1]
}

// startLogging starts a command that logs to a file, until the test ends. Its listeners are fd/3 and so on.
func startLogging(t *testing.T, cmd *exec.Cmd, listeners ...*os.File) (log string) {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cmd.Stderr = file
	cmd.ExtraFiles = listeners
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, listener := range listeners { // or clients would wait for a command that has ended
		listener.Close()
	}
	t.Cleanup(func() {
		_ = cmd.Wait() // the context has killed it by now
		if t.Failed() {
			t.Log(readFile(t, file.Name()))
		}
	})
	return file.Name()
}

func TestNotFoundCommandAnswersEveryRequest(t *testing.T) {
	t.Parallel()
	s := startNotFound(t)
	for _, path := range []string{"/", "/docs/nothing?x=1", "/healthz", "/not_found/report"} {
		getPage(t, s.Client, "http://a.test"+path, "X-Forwarded-Host: other.test")
	}
	posted := s.Do(t, "POST", "http://a.test/x")
	posted.WantPage(t, "POST", "http://a.test/x", "")
	if _, err := os.Stat(s.socket); err == nil {
		t.Error("without --report, it has an admin API")
	}
	log := readFile(t, s.log)
	if strings.Contains(log, "handled request") || strings.Contains(log, `"level":"debug"`) {
		t.Errorf("without --access-log and --debug, it logs\n%s", log)
	}
	if files, err := os.ReadDir(s.cmd.Dir); len(files) > 0 {
		t.Errorf("it left %v in its home directory, %v", files, err)
	}
}

// TestNotFoundCommandEndsAtASignal has several chances, because Caddy begins to trap signals in the background, and
// nothing says when.
func TestNotFoundCommandEndsAtASignal(t *testing.T) {
	t.Parallel()
	for seconds := range 5 {
		s := startNotFound(t)
		getPage(t, s.Client, "http://a.test/x")
		time.Sleep(time.Duration(seconds) * time.Second)
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
		if s.cmd.Wait() == nil {
			return
		}
	}
	t.Error("a signal ends it before it stops")
}

// TestNotFoundCommandFlags has the flags that are no options of the handler. Those that are, the tests of
// internal/command pass on.
func TestNotFoundCommandFlags(t *testing.T) {
	t.Parallel()
	s := startNotFound(t,
		"--context-path=/app//", "--trusted-proxies=private_ranges", "--health-path=/healthz", "--report",
		"--access-log", "--debug")
	const health = "http://a.test/healthz"
	res := s.Get(t, "http://a.test/x", "X-Forwarded-Host: www.example.com", "X-Forwarded-Proto: https")
	res.WantPage(t, "GET", "https://www.example.com/x", "/app")
	s.Get(t, health).Want(t, http.StatusOK, "")
	s.Do(t, "HEAD", health).Want(t, http.StatusOK, "")
	posted := s.Do(t, "POST", health)
	posted.WantPage(t, "POST", health, "/app")
	within := s.Get(t, health+"/x")
	within.WantPage(t, "GET", health+"/x", "/app")

	wantReported(t, s, "3 404s since ", " www.example.com/x\n")
	awaitLog(t, s.log, `"msg":"handled request"`)
	awaitLog(t, s.log, `"msg":"wrote the 404 page"`)
}

// wantReported checks that the report begins with a count, and has an address.
func wantReported(t *testing.T, s *running, count, address string) {
	t.Helper()
	stdout := prints(t, reportCommand(t, "--address", "unix/"+s.socket))
	if !strings.HasPrefix(stdout, count) || !strings.Contains(stdout, address) {
		t.Errorf("got\n%s\nwant %q and %q", stdout, count, address)
	}
}

// TestExportTemplateCommandPrintsThePage exports two formats, changes them, and has a server use both.
func TestExportedTemplateIsValid(t *testing.T) {
	t.Parallel()
	html := prints(t, command(t, "not-found", "export-template"))
	json := prints(t, command(t, "not-found", "export-template", "json"))
	fails(t, command(t, "not-found", "export-template", "yaml"), `unknown format "yaml"; the formats are text, html, `)

	json = strings.Replace(json, "footer", "from", 1)
	ofHTML := testcaddy.TempFile(t, "a=404.html", html+"<hr>")
	ofJSON := testcaddy.TempFile(t, "404.json", json)
	for _, args := range [][]string{{ofHTML}, {"json", ofJSON}} {
		args = append([]string{"not-found", "check-template"}, args...)
		if got := prints(t, command(t, args...)); got != "Valid template\n" {
			t.Errorf("%q: got %q", args, got)
		}
	}
	broken := testcaddy.TempFile(t, "404.html", `{{.Placeholder "vars.x"}}`)
	for file, why := range map[string]string{
		broken:                `"vars.x" is a shorthand, which only a Caddyfile has; write {{.Placeholder "http.vars.x"}}`,
		broken + "x":          "no such file",
		"{http.vars.x}/a.txt": "/{http.vars.x}/a.txt: no such file",
	} {
		fails(t, command(t, "not-found", "check-template", file), why)
	}
	fails(t, command(t, "not-found", "check-template", "json", ofHTML), "the page is not valid JSON")
	fails(t, command(t, "not-found", "check-template", "yaml", ofHTML), "the format yaml is not on offer")

	s := startNotFound(t, "--template=json="+ofJSON, "--template="+ofHTML)
	for mediaType, want := range map[string]string{
		"text/html":        "</html>\n<hr>",
		"application/json": `"from":"Powered by Caddy`,
	} {
		page := s.Get(t, "http://a.test/x", "Accept: "+mediaType).Content
		if !strings.Contains(page, want) {
			t.Errorf("got\n%s\nwant %s in it", page, want)
		}
	}
}

// TestNotFoundCommandLeavesOtherServersAlone starts a second server at an address of the first. If it started, it
// would get a share of the first one's connections.
func TestNotFoundCommandLeavesOtherServersAlone(t *testing.T) {
	t.Parallel()
	s := startNotFound(t, "--report")
	getPage(t, s.Client, "http://a.test/first")
	admin := "unix/" + s.socket
	const (
		why        = ", something answers already, such as another Caddy; use another address, as in "
		otherAdmin = why + "--admin localhost:2020 or --admin unix//run/not-found.sock"
	)
	for flag, want := range map[string]string{
		"--report":                   "admin: at " + admin + otherAdmin, // the default
		"--admin=" + admin + "|0220": "admin: at " + admin + "|0220" + otherAdmin,
		"--listen=tcp/" + s.addr:     "listen: at tcp/" + s.addr + why + "--listen :8081",
	} {
		cmd := command(t, "not-found", "--listen=127.0.0.1:0", "--report", flag)
		cmd.Env = append(cmd.Env, "CADDY_ADMIN="+admin)
		fails(t, cmd, want)
	}

	wantReported(t, s, "1 404 since ", " a.test/first\n")
	if err := s.cmd.Process.Kill(); err != nil { // which leaves the socket behind
		t.Fatal(err)
	}
	_ = s.cmd.Wait()
	if _, err := os.Stat(s.socket); err != nil {
		t.Fatal(err)
	}
	again := startNotFound(t, "--report", "--admin="+admin)
	getPage(t, again.Client, "http://a.test/second")
	wantReported(t, s, "1 404 since ", " a.test/second\n")
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

// TestUpstreamOfTheExamples runs the command that examples/README.md has for an upstream.
func TestUpstreamOfTheExamples(t *testing.T) {
	t.Parallel()
	const line = `go run ./cmd/caddy respond --listen 127.0.0.1:8081 --status (\d+) --header '(.+)' '(.+)'`
	args := regexp.MustCompile(line).FindStringSubmatch(readFile(t, "../examples/README.md"))
	if args == nil {
		t.Fatal("the command is missing")
	}
	listener, addr := testcaddy.Listen(t)
	status, header, body := args[1], args[2], args[3]
	upstream := command(t, "respond", "--listen", "fd/3", "--status", status, "--header", header, body)
	startLogging(t, upstream, listener)
	res := testcaddy.HTTP11(t, addr).Get(t, "http://a.test/x")
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
