package integration

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
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
	cmd.Env = append(os.Environ(), runsAsCaddy+"=1", "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_DATA_HOME="+home, "TMPDIR="+home,
		"GORACE=atexit_sleep_ms=0") // or with -race it takes a second to exit
	return cmd
}

// run runs a caddy command to its end. Its output may go elsewhere.
func run(t *testing.T, cmd *exec.Cmd) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = cmp.Or[io.Writer](cmd.Stdout, &out), &errs
	if err := cmd.Run(); err != nil {
		if _, ok := errors.AsType[*exec.ExitError](err); !ok {
			t.Fatal(err)
		}
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
	r := &running{addr: "127.0.0.1:" + testcaddy.FreePort(t), admin: "127.0.0.1:" + testcaddy.FreePort(t), log: testcaddy.TempFile(t, "log", "")}
	r.Client = testcaddy.HTTP11(t, r.addr)
	cmd := command(t, append([]string{"not-found", "--listen", r.addr}, flags...)...)
	r.cmd = cmd
	cmd.Env = append(cmd.Env, "CADDY_ADMIN="+r.admin)
	log, err := os.OpenFile(r.log, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Wait() // the context has killed it by now
		if t.Failed() {
			t.Log(readFile(t, r.log))
		}
	})
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

func TestNotFoundCommandAnswersEveryRequest(t *testing.T) {
	t.Parallel()
	s := startNotFound(t)
	for _, method := range []string{"GET", "POST", "DELETE"} {
		for _, path := range []string{"/", "/docs/nothing?x=1", "/healthz", "/not_found/report"} {
			s.Do(t, method, "http://a.test"+path, "X-Forwarded-Host: other.test").WantPage(t, method, "http://a.test"+path, "")
		}
	}
	for _, f := range testcaddy.Formats {
		s.Get(t, "http://a.test/", "Accept: "+f.MediaType).WantHeader(t, "Content-Type", f.ContentType)
	}
	if conn, err := net.Dial("tcp", s.admin); err == nil {
		conn.Close()
		t.Error("the admin API listens without --report")
	}
	if log := readFile(t, s.log); strings.Contains(log, "handled request") || strings.Contains(log, `"level":"debug"`) {
		t.Errorf("without --access-log and --debug, it logs\n%s", log)
	}
	if files, err := os.ReadDir(s.cmd.Dir); err != nil || len(files) > 0 {
		t.Errorf("it left %v in its home directory, %v", files, err)
	}
}

func TestNotFoundCommandFlags(t *testing.T) {
	t.Parallel()
	t.Run("most flags", func(t *testing.T) {
		t.Parallel()
		template := testcaddy.TempFile(t, "404.html", "<p>{{.Message}}")
		s := startNotFound(t, "--context-path=/app//", "--footer", "Powered by us", "--formats=text,html", "--template", template,
			"--trusted-proxies=10.0.0.0/8,private_ranges", "--health-path=/healthz", "--report", "--access-log", "--debug")
		const message = "No endpoint GET /app/missing.html."
		s.Get(t, "http://a.test/x", "Accept: application/json", "X-Forwarded-Host: www.example.com", "X-Forwarded-Proto: https").
			Want(t, http.StatusNotFound, "HTTP ERROR 404 "+message+"\nURI: https://www.example.com/x\nSTATUS: 404\nMESSAGE: "+message+"\nPowered by us\n")
		s.Get(t, "http://a.test/x", "Accept: text/html").Want(t, http.StatusNotFound, "<p>"+message)
		s.Get(t, "http://a.test/healthz").Want(t, http.StatusOK, "")
		s.Do(t, "HEAD", "http://a.test/healthz").Want(t, http.StatusOK, "")
		for _, tt := range [][2]string{{"POST", "/healthz"}, {"GET", "/healthz/x"}} {
			if res := s.Do(t, tt[0], "http://a.test"+tt[1]); res.StatusCode != http.StatusNotFound {
				t.Errorf("%s: got %s", tt, res.Status)
			}
		}

		report := testcaddy.HTTP11(t, s.admin).Get(t, "http://"+s.admin+"/not_found/report").Content
		if !strings.Contains(report, `"none":{"count":4,`) || !strings.Contains(report, `"path":"/`) {
			t.Errorf("got the report %s", report)
		}
		for _, message := range []string{`"msg":"handled request"`, `"msg":"wrote the 404 page"`} {
			eventually(t, "the log has "+message, func() bool { return strings.Contains(readFile(t, s.log), message) })
		}
	})
	t.Run("for ingress-nginx", func(t *testing.T) {
		t.Parallel()
		s := startNotFound(t, "--uri={http.request.header.X-Original-URI}", "--base-url=https://{http.request.hostport}", "--trusted-proxies", "10.0.0.0/8")
		s.Do(t, "POST", "http://a.test:8443/", "X-Original-URI: /x?y").WantPage(t, "POST", "https://a.test:8443/x?y", "")
		s.Get(t, "http://a.test/x?y", "X-Forwarded-Host: other.test").WantPage(t, "GET", "https://a.test/x?y", "")
	})
}

// TestExportTemplateCommandPrintsThePage exports two formats, changes them, and has a server use both.
func TestExportTemplateCommandPrintsThePage(t *testing.T) {
	t.Parallel()
	html := prints(t, command(t, "not-found", "export-template"))
	json := prints(t, command(t, "not-found", "export-template", "json"))
	if html != readFile(t, "../internal/page/page.html") {
		t.Errorf("got\n%s", html)
	}
	fails(t, command(t, "not-found", "export-template", "yaml"), `unknown format "yaml"; the formats are text, html, `)

	ofHTML := testcaddy.TempFile(t, "a=404.html", html+"<!-- ours -->")
	ofJSON := testcaddy.TempFile(t, "404.json", strings.Replace(json, "footer", "from", 1))
	s := startNotFound(t, "--template=json="+ofJSON, "--template="+ofHTML)
	res := s.Get(t, "http://a.test/x", "Accept: text/html")
	if got := testcaddy.FieldsOf(t, res).URI; got != "http://a.test/x" {
		t.Errorf("as a template, it renders the URI %q", got)
	}
	if res := s.Get(t, "http://a.test/x", "Accept: application/json"); !strings.Contains(res.Content, `"from":"Powered by Caddy`) {
		t.Errorf("got %s", res.Content)
	}
}

// TestNotFoundCommandLeavesOtherServersAlone starts a second server at an address of the first.
func TestNotFoundCommandLeavesOtherServersAlone(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "") // a socket's path has to be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := "unix/" + dir + "/s"
	first := startNotFound(t, "--report")
	second := startNotFound(t, "--report", "--admin", socket)
	if conn, err := net.Dial("tcp", second.admin); err == nil {
		conn.Close()
		t.Error("with --admin, the admin API listens at the default address, too")
	}

	// if it started, it would get a share of the first one's connections
	for _, tt := range []struct{ flag, at, env, instead string }{
		{"--report", first.admin, first.admin, "--admin localhost:2020 or --admin unix//run/not-found.sock"},
		{"--admin", first.admin, second.admin, "--admin localhost:2020"},
		{"--admin", socket + "|0220", first.admin, "--admin localhost:2020"},
		{"--listen", first.addr, second.admin, "--listen :8081"},
		{"--listen", "tcp/" + first.addr, second.admin, "--listen :8081"},
	} {
		cmd, what := command(t, "not-found", "--listen=127.0.0.1:0", "--report"), strings.TrimPrefix(tt.flag, "--")
		if what == "report" {
			what = "admin"
		} else {
			cmd.Args = append(cmd.Args, tt.flag, tt.at)
		}
		cmd.Env = append(cmd.Env, "CADDY_ADMIN="+tt.env)
		fails(t, cmd, what+": at "+tt.at+", something answers already, such as another Caddy; use another address, as in "+tt.instead)
	}

	reports := func(address, path string) {
		t.Helper()
		stdout := prints(t, command(t, "not-found", "report", "--address", address))
		if !strings.HasPrefix(stdout, "1 404 since ") || !strings.Contains(stdout, " a.test"+path+"\n") {
			t.Errorf("got\n%s\nwant the address a.test%s alone", stdout, path)
		}
	}
	first.Get(t, "http://a.test/first")
	second.Get(t, "http://a.test/second")
	reports(first.admin, "/first")
	reports(socket, "/second")

	if err := second.cmd.Process.Kill(); err != nil { // which leaves the socket behind
		t.Fatal(err)
	}
	_ = second.cmd.Wait()
	if _, err := os.Stat(dir + "/s"); err != nil {
		t.Fatal(err)
	}
	third := startNotFound(t, "--report", "--admin", socket)
	third.Get(t, "http://a.test/third")
	reports(socket, "/third")
}

// TestNotFoundCommandDoesNotWaitForStalledClients has clients stall in a header and in a body.
func TestNotFoundCommandDoesNotWaitForStalledClients(t *testing.T) {
	t.Parallel()
	stall := func(t *testing.T, s *running, request string) net.Conn {
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatal(err)
		}
		s.Get(t, "http://a.test/another") // by now the stalled one has arrived
		if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	const inHeader, inBody = "GET /x HTTP/1.1\r\nHost: a", "POST /x HTTP/1.1\r\nHost: a.test\r\nContent-Length: 10\r\n\r\nx"
	t.Run("until the read timeout", func(t *testing.T) {
		t.Parallel()
		s := startNotFound(t)
		header, body := stall(t, s, inHeader), stall(t, s, inBody)
		testcaddy.ReadResponse(t, bufio.NewReader(body), "POST", "the stalled request").WantPage(t, "POST", "http://a.test/x", "")
		if _, err := io.ReadAll(header); err != nil {
			t.Errorf("a connection that stalls in the header is not closed: %v", err)
		}
	})
	t.Run("SIGTERM", func(t *testing.T) {
		t.Parallel()
		s := startNotFound(t)
		stall(t, s, inBody)
		begin := time.Now()
		if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		// the read timeout alone would end it after 10 seconds
		if err, took := s.cmd.Wait(), time.Since(begin); err != nil || took > 9*time.Second || took < time.Second {
			t.Errorf("it ended after %s, %v, want about 5 seconds", took, err)
		}
	})
}

// TestUpstreamOfTheExamples runs the command that examples/README.md has for an upstream.
func TestUpstreamOfTheExamples(t *testing.T) {
	t.Parallel()
	args := regexp.MustCompile(`go run ./cmd/caddy (respond --listen )127.0.0.1:8081 (.+) '(.+)' '(.+)'`).FindStringSubmatch(readFile(t, "../examples/README.md"))
	if args == nil {
		t.Fatal("the command is missing")
	}
	addr := "127.0.0.1:" + testcaddy.FreePort(t)
	cmd := command(t, append(strings.Fields(args[1]+addr+" "+args[2]), args[3:]...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() })
	awaitListener(t, "the upstream", addr)
	res := testcaddy.HTTP11(t, addr).Get(t, "http://"+addr+"/x")
	res.Want(t, http.StatusNotFound, "<h1>Nothing here</h1>")
	res.WantHeader(t, "Content-Type", "text/html")
}

// TestCommandOfTheKubernetesExample runs the command of the manifest.
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
	s.Get(t, "http://10.0.0.1/x", "X-Forwarded-Proto: https", "X-Forwarded-Host: a.test").WantPage(t, "GET", "https://a.test/x", "")
}
