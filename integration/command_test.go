package integration

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// command returns a caddy command with a home of its own. It is killed when the test ends, or after a minute, so that one
// that should not have started does not run for ever.
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
		"GORACE=atexit_sleep_ms=0") // or a program with the race detector takes a second to exit
	return cmd
}

// run runs a caddy command to its end.
func run(t *testing.T, cmd *exec.Cmd) (stdout, stderr string, code int) {
	t.Helper()
	var out bytes.Buffer
	stderr, code = runInto(t, cmd, &out)
	return out.String(), stderr, code
}

func runInto(t *testing.T, cmd *exec.Cmd, stdout io.Writer) (stderr string, code int) {
	t.Helper()
	var errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = stdout, &errs
	if err := cmd.Run(); err != nil {
		if _, ok := errors.AsType[*exec.ExitError](err); !ok {
			t.Fatal(err)
		}
	}
	return errs.String(), cmd.ProcessState.ExitCode()
}

// runIntoFull runs a caddy command whose output does not fit.
func runIntoFull(t *testing.T, cmd *exec.Cmd) (stderr string, code int) {
	t.Helper()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("only Linux has /dev/full")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	return runInto(t, cmd, full)
}

// safeBuffer is a buffer that is read while it is written to.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// running is a caddy not-found that runs.
type running struct {
	*testcaddy.Client
	addr, admin string // the latter is the default of the admin API
	log         *safeBuffer
	cmd         *exec.Cmd
}

// startNotFound runs caddy not-found with flags until the test ends.
func startNotFound(t *testing.T, flags ...string) *running {
	t.Helper()
	r := &running{addr: "127.0.0.1:" + testcaddy.FreePort(t), admin: "127.0.0.1:" + testcaddy.FreePort(t), log: new(safeBuffer)}
	r.Client = testcaddy.HTTP11(t, r.addr)
	cmd := command(t, append([]string{"not-found", "--listen", r.addr}, flags...)...)
	r.cmd = cmd
	cmd.Env = append(cmd.Env, "CADDY_ADMIN="+r.admin)
	cmd.Stderr = r.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Wait() // it is killed by then, if it has not ended
		if t.Failed() {
			t.Log(r.log)
		}
	})
	awaitListener(t, "caddy not-found", r.addr)
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
	if log := s.log.String(); strings.Contains(log, "handled request") || strings.Contains(log, `"level":"debug"`) {
		t.Errorf("without --access-log and --debug, it logs\n%s", log)
	}
}

func TestNotFoundCommandFlags(t *testing.T) {
	t.Parallel()
	t.Run("all but the base URL", func(t *testing.T) {
		t.Parallel()
		template := testcaddy.TempFile(t, "404.html", "<p>{{.Message}}")
		s := startNotFound(t, "--context-path=/app/", "--footer", "Powered by us", "--formats=text,html", "--template", template,
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

		report := testcaddy.HTTP11(t, s.admin).Get(t, "http://"+s.admin+"/not_found/report?limit=1").Content
		if !strings.Contains(report, `"count":4,`) || !strings.Contains(report, `"path":"/`) {
			t.Errorf("got the report %s", report)
		}
		for _, message := range []string{`"msg":"handled request"`, `"msg":"wrote the 404 page"`} {
			eventually(t, "the log has "+message, func() bool { return strings.Contains(s.log.String(), message) })
		}
	})
	t.Run("base URL", func(t *testing.T) {
		t.Parallel()
		s := startNotFound(t, "--base-url", "https://www.example.com/app", "--trusted-proxies", "10.0.0.0/8")
		s.Get(t, "http://a.test/x?y", "X-Forwarded-Host: other.test").WantPage(t, "GET", "https://www.example.com/app/x?y", "")
	})
	t.Run("URI", func(t *testing.T) {
		t.Parallel()
		s := startNotFound(t, "--uri={http.request.uri.query.url}")
		s.Get(t, "http://a.test/404?url=https%3A%2F%2Fshop.example%2Fa%2520b%3Fx").WantPage(t, "GET", "https://shop.example/a%20b?x", "")
		s.Get(t, "http://a.test/404").WantPage(t, "GET", "http://a.test/404", "")
	})
	t.Run("URI, as ingress-nginx says it", func(t *testing.T) {
		t.Parallel()
		s := startNotFound(t, "--uri={http.request.header.X-Original-URI}", "--base-url=https://{http.request.hostport}")
		s.Do(t, "POST", "http://a.test:8443/", "X-Original-URI: /x?y").WantPage(t, "POST", "https://a.test:8443/x?y", "")
		s.Get(t, "http://a.test/x?y").WantPage(t, "GET", "https://a.test/x?y", "")
	})
	t.Run("trusted proxies are not others", func(t *testing.T) {
		t.Parallel()
		s := startNotFound(t, "--trusted-proxies", "10.0.0.0/8,::1")
		s.Get(t, "http://a.test/x", "X-Forwarded-Host: other.test").WantPage(t, "GET", "http://a.test/x", "")
	})
	t.Run("bad value", func(t *testing.T) {
		t.Parallel()
		stdout, stderr, code := run(t, command(t, "not-found", "--listen=127.0.0.1:0", "--formats=pdf"))
		if code != 1 || stdout != "" || !strings.Contains(stderr, "formats: unknown format") {
			t.Errorf("got the exit code %d, %q and\n%s", code, stdout, stderr)
		}
	})
}

func TestExportTemplateCommandPrintsThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../internal/page/page.html")
	if err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code := run(t, command(t, "not-found", "export-template"))
	if code != 0 || stdout != string(page) {
		t.Errorf("got the exit code %d, %q and\n%s", code, stderr, stdout)
	}
	s := startNotFound(t, "--template", testcaddy.TempFile(t, "404.html", stdout))
	res := s.Get(t, "http://a.test/x", "Accept: text/html")
	if got := testcaddy.FieldsOf(t, res).URI; got != "http://a.test/x" {
		t.Errorf("as a template, it renders the URI %q", got)
	}
}

// TestNotFoundCommandLeavesOtherServersAlone starts a second one where the first one listens, or has its admin API.
func TestNotFoundCommandLeavesOtherServersAlone(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "") // the path of a socket has to be short
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

	refused := func(t *testing.T, at, env string, flags ...string) {
		t.Helper()
		cmd := command(t, append([]string{"not-found", "--listen=127.0.0.1:0", "--report"}, flags...)...)
		cmd.Env = append(cmd.Env, "CADDY_ADMIN="+env)
		want := "admin: at " + at + ", something answers already, such as another Caddy; use another address, as in --admin localhost:2020 or --admin unix//run/not-found.sock"
		if _, stderr, code := run(t, cmd); code != 1 || !strings.Contains(stderr, want) {
			t.Fatalf("got the exit code %d and\n%s\nwant 1 and %s", code, stderr, want)
		}
	}
	refused(t, first.admin, first.admin)
	refused(t, first.admin, second.admin, "--admin", first.admin)
	refused(t, "tcp/"+first.admin, second.admin, "--admin", "tcp/"+first.admin)
	refused(t, socket, first.admin, "--admin", socket)
	refused(t, socket+"|0666", first.admin, "--admin", socket+"|0666")

	// nor does it take a part of another server's connections
	for _, flags := range [][]string{{"--listen=" + first.addr}, {"--listen=tcp/" + first.addr, "--health-path=/healthz"}} {
		want := "listen: at " + strings.TrimPrefix(flags[0], "--listen=") + ", something answers already, such as another Caddy; use another address, as in --listen :8081"
		if _, stderr, code := run(t, command(t, append([]string{"not-found"}, flags...)...)); code != 1 || !strings.Contains(stderr, want) {
			t.Fatalf("got the exit code %d and\n%s\nwant 1 and %s", code, stderr, want)
		}
	}

	reports := func(address, path string) {
		t.Helper()
		stdout, stderr, code := run(t, command(t, "not-found", "report", "--address", address))
		if code != 0 || strings.Count(stdout, "\n") != 4 || !strings.HasSuffix(stdout, " a.test"+path+"\n") {
			t.Errorf("got the exit code %d, %s and\n%s\nwant the address a.test%s alone", code, stderr, stdout, path)
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

// TestNotFoundCommandDoesNotWaitForStalledClients has clients that stall in the body of a request.
func TestNotFoundCommandDoesNotWaitForStalledClients(t *testing.T) {
	t.Parallel()
	stall := func(t *testing.T, s *running) net.Conn {
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if _, err := io.WriteString(conn, "POST /x HTTP/1.1\r\nHost: a.test\r\nContent-Length: 10\r\n\r\nx"); err != nil {
			t.Fatal(err)
		}
		s.Get(t, "http://a.test/another") // it has the first request by then
		return conn
	}
	t.Run("until the read timeout", func(t *testing.T) {
		t.Parallel()
		conn := stall(t, startNotFound(t))
		if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		testcaddy.ReadResponse(t, bufio.NewReader(conn), "POST", "the stalled request").WantPage(t, "POST", "http://a.test/x", "")
	})
	t.Run("SIGTERM", func(t *testing.T) {
		t.Parallel()
		s := startNotFound(t)
		stall(t, s)
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

// reportOf returns a report of one address without a host, in JSON.
func reportOf(count uint64, path string) string {
	return fmt.Sprintf(`{"since":"2026-01-02T03:04:05Z","count":%d,"capacity":1000,"floor":0,"addresses":[`+
		`{"host":"","path":"%s","count":%[1]d,"overcount":0,"outcomes":{"error":%[1]d},"first":"2026-01-02T03:04:06Z","last":"2026-01-02T03:04:07Z"}]}`, count, path)
}

// TestReportCommand prints the report of the Caddy that runs in this process.
func TestReportCommand(t *testing.T) {
	s := startReporting(t, "http://:0 {\nnot_found {\nreport\n}\nerror /error 404\n}")
	for i := range 20 {
		s.miss(t, "GET", "http://c.test/"+strconv.Itoa(i))
	}
	for range 3 {
		s.miss(t, "GET", "http://a.test/x?y")
	}
	s.miss(t, "GET", "http://b.test/error")
	s.miss(t, "GET", "http://b.test/error", "Referer: http://b.test/blog?q")
	s.miss(t, "GET", "http://d.test:81/x", "Referer: https://search.example/?q")
	s.miss(t, "GET", "http://[::1]:81/x")
	config := testcaddy.TempFile(t, "Caddyfile", "{\nadmin "+s.admin+"\n}\n")
	report := func(t *testing.T, flags ...string) *exec.Cmd {
		return command(t, append([]string{"not-found", "report"}, flags...)...)
	}
	const (
		first  = "3 unanswered 0 0 - a.test/x"
		second = "2 error 1 0 http://b.test/blog b.test/error"
		third  = "1 unanswered 0 1 https://search.example/ d.test:81/x"
	)

	t.Run("table", func(t *testing.T) {
		for name, tt := range map[string]struct {
			flags []string
			rows  int
			first string
		}{
			"limit by default": {nil, 20, first},
			"limit":            {[]string{"--limit=2"}, 2, first},
			"no limit":         {[]string{"-n", "0"}, 24, first},
			"linked":           {[]string{"--link=any"}, 2, second},
			"host":             {[]string{"--host=B.test"}, 1, second},
			"host on a port":   {[]string{"--host=d.test"}, 1, third},
			"host and port":    {[]string{"--host=d.test:81"}, 1, third},
			"own links":        {[]string{"--link=own"}, 1, second},
			"other links":      {[]string{"--link=other"}, 1, third},
			"IPv6":             {[]string{"--host=::1"}, 1, "1 unanswered 0 0 - [::1]:81/x"},
			"IPv6 in brackets": {[]string{"--host=[::1]"}, 1, "1 unanswered 0 0 - [::1]:81/x"},
			"host and limit":   {[]string{"--host=c.test", "--limit=7"}, 7, ""},
			"address":          {[]string{"--address=tcp/" + s.admin, "--limit=1"}, 1, ""},
			"config":           {[]string{"--config", config, "--limit=2"}, 2, first},
			"config, adapter":  {[]string{"-c", config, "-a", "caddyfile", "-n", "2"}, 2, first},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				cmd := report(t, tt.flags...)
				if !strings.Contains(strings.Join(tt.flags, ""), config) && name != "address" {
					cmd.Env = append(cmd.Env, "CADDY_ADMIN="+s.admin)
				}
				stdout, stderr, code := run(t, cmd)
				lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
				if code != 0 || len(lines) != tt.rows+3 {
					t.Fatalf("got the exit code %d, %s and\n%s", code, stderr, stdout)
				}
				if since := s.report(t, "").Since.Local().Format(time.DateTime); lines[0] != "27 404s since "+since || lines[1] != "" {
					t.Errorf("got %q and %q, want the count, the time %s and a blank line", lines[0], lines[1], since)
				}
				cells := func(line string) string { return strings.Join(strings.Fields(line), " ") }
				if cells(lines[2]) != "COUNT WHY OWN OTHER LAST LINK ADDRESS" || tt.first != "" && cells(lines[3]) != tt.first {
					t.Errorf("got the table\n%s\nwant its first row to be %s", strings.Join(lines[2:], "\n"), tt.first)
				}
			})
		}
	})

	t.Run("nothing matches", func(t *testing.T) {
		for _, host := range []string{"nowhere.test", "d.test:8"} {
			stdout, stderr, code := run(t, report(t, "--address", s.admin, "--host", host))
			if code != 0 || !strings.HasPrefix(stdout, "27 404s since ") || !strings.HasSuffix(stdout, "\n\nNo address matches.\n") {
				t.Errorf("%s: got the exit code %d, %s and\n%s", host, code, stderr, stdout)
			}
		}
		stdout, stderr, code := run(t, report(t, "--address", s.admin, "--host=nowhere.test", "--json"))
		if code != 0 || !strings.HasSuffix(stdout, "\t\"addresses\": []\n}\n") {
			t.Errorf("as JSON: got the exit code %d, %s and\n%s", code, stderr, stdout)
		}
	})

	t.Run("JSON", func(t *testing.T) {
		stdout, stderr, code := run(t, report(t, "--address", s.admin, "--json", "--limit=0", "--link=own", "--host=b.test"))
		var want bytes.Buffer
		if err := json.Indent(&want, []byte(s.ask(t, "GET", "/not_found/report?link=own").Content), "", "\t"); err != nil {
			t.Fatal(err)
		}
		if code != 0 || stdout != want.String() {
			t.Errorf("got the exit code %d, %s and\n%s\nwant\n%s", code, stderr, stdout, &want)
		}
	})

	// fails runs the command, which must say why it fails, and print nothing else.
	fails := func(t *testing.T, cmd *exec.Cmd, why string) {
		t.Helper()
		stdout, stderr, code := run(t, cmd)
		if code != 1 || stdout != "" || !strings.Contains(stderr, why) || strings.ContainsAny(stderr, "\x1b\x00") {
			t.Errorf("got the exit code %d, %q and\n%q\nwant 1 and %s", code, stdout, stderr, why)
		}
	}
	t.Run("mistakes", func(t *testing.T) {
		nobody := "127.0.0.1:" + testcaddy.FreePort(t)
		whole, huge := testcaddy.TempFile(t, "whole.json", reportOf(1, "/x")), testcaddy.TempFile(t, "huge.json", reportOf(math.MaxUint64, "/x"))
		hostile := testcaddy.TempFile(t, "hostile.json", reportOf(1, `/\u001b[2J\u0007\n\u009b`))
		partial := testcaddy.TempFile(t, "partial.json", strings.Replace(reportOf(1, "/x"), "{", `{"partial":true,`, 1))
		t.Cleanup(func() {
			if r := s.report(t, ""); r.Count != 27 {
				t.Errorf("after a mistake, the report has %d misses, want 27 as before", r.Count)
			}
		})
		for name, tt := range map[string]struct {
			flags []string
			why   string
		}{
			"no Caddy there":   {[]string{"--address=" + nobody}, "asking the admin API at " + nobody + ", which a Caddy with not_found should serve: "},
			"no address":       {[]string{"--address=:port"}, `address: \":port\" is not an address: invalid start port`},
			"empty address":    {[]string{"--address="}, `address: \"\" is not an address; write it as host:port, or as in unix//run/caddy.sock`},
			"URL":              {[]string{"--address=http://localhost:2019"}, `address: \"http://localhost:2019\" is not an address; write it as host:port, or as in unix//run/caddy.sock`},
			"no config":        {[]string{"--config=/nowhere/Caddyfile"}, "determining the address of the admin API: "},
			"limit":            {[]string{"--limit=-1"}, "limit: -1 is negative; 0 is all addresses"},
			"limit of words":   {[]string{"--limit=ten"}, `invalid argument "ten"`},
			"host":             {[]string{"--host="}, `host: \"\" is not a host; write it as in www.example.com, localhost:8080 or ::1`},
			"host of a URL":    {[]string{"--host=http://a.test"}, `host: \"http://a.test\" is not a host`},
			"link":             {[]string{"--link=yes"}, `link: \"yes\" is not a kind of link; it is own, other or any`},
			"reset of a host":  {[]string{"--reset", "--host=a.test"}, "reset: it prints the whole report, because what it left out would be lost; leave out --limit, --link and --host"},
			"reset of links":   {[]string{"--reset", "--link=own"}, "reset: it prints the whole report"},
			"reset of some":    {[]string{"--reset", "--limit=20"}, "reset: it prints the whole report"},
			"no file":          {[]string{"/nowhere/old.json"}, "reading a report: open /nowhere/old.json: no such file or directory"},
			"no report":        {[]string{config}, "the report in " + config + ": invalid character"},
			"partial report":   {[]string{partial}, "the report in " + partial + ": it is partial, because a limit or a filter left addresses out; give the whole report"},
			"hostile report":   {[]string{hostile}, `\"/\\x1b[2J\\a\\n\\u009b\" is not an address as a report has it`},
			"one of several":   {[]string{whole, "/nowhere/old.json"}, "reading a report: open /nowhere/old.json"},
			"too many":         {[]string{huge, whole}, "merging the reports: the counts of the reports add up to too large a number"},
			"file twice":       {[]string{whole, whole}, `is given twice, and would be counted twice; give it once`},
			"address twice":    {[]string{"--address=" + s.admin, "--address=" + s.admin}, `is given twice`},
			"empty input":      {[]string{"-"}, "the report in standard input: unexpected end of JSON input"},
			"reset of a file":  {[]string{"--reset", whole}, "is a file, which cannot begin again; leave it out"},
			"reset of two":     {[]string{"--reset", "--address=" + s.admin, "--address=" + nobody}, "asking the admin API at " + nobody},
			"unknown flag":     {[]string{"--sort"}, "unknown flag: --sort"},
			"not of not_found": {[]string{"--address=" + testcaddy.Backend(t, http.NotFound)}, "404 page not found"},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				cmd := report(t, tt.flags...)
				cmd.Env = append(cmd.Env, "CADDY_ADMIN="+s.admin)
				fails(t, cmd, tt.why)
			})
		}
	})
	t.Run("hostile answers", func(t *testing.T) {
		answers := func(status int, body string) (address string) {
			return testcaddy.Backend(t, func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(status)
				io.WriteString(w, body)
			})
		}
		broken := answers(200, "{\"\x1b[2J\x00\":1}")
		fails(t, report(t, "--address", broken), `invalid character`)
		fails(t, report(t, "--address", broken, "--json"), `invalid character`)
		fails(t, report(t, "--address", answers(500, "\x1b[2J\x00")), "HTTP 500")
		failing := answers(500, `{"error":"\u001b[2J\u0000"}`)
		fails(t, report(t, "--address", failing), "the admin API at "+failing+": ?[2J?")
		strange := answers(200, reportOf(1, `/\u001b[2J\u0007\n\u009b`))
		fails(t, report(t, "--address", strange), `the report of `+strange+`: \"/\\x1b[2J\\a\\n\\u009b\" is not an address as a report has it`)
	})

	t.Run("output that fails", func(t *testing.T) {
		for _, args := range [][]string{{"report"}, {"report", "--json"}, {"export-template"}} {
			t.Run(strings.Join(args, " "), func(t *testing.T) {
				cmd := command(t, append([]string{"not-found"}, args...)...)
				cmd.Env = append(cmd.Env, "CADDY_ADMIN="+s.admin)
				if stderr, code := runIntoFull(t, cmd); code != 1 || !strings.Contains(stderr, "no space left on device") || strings.Contains(stderr, ".json") {
					t.Errorf("got the exit code %d and\n%s", code, stderr)
				}
			})
		}
	})

	t.Run("reset", func(t *testing.T) {
		before := s.report(t, "")
		stdout, stderr, code := run(t, report(t, "--address", s.admin, "--reset"))
		if code != 0 || strings.Count(stdout, "\n") != 3+len(before.Addresses) || !strings.Contains(stdout, "a.test/x\n") {
			t.Errorf("got the exit code %d, %s and\n%s\nwant all %d addresses", code, stderr, stdout, len(before.Addresses))
		}
		if r := s.report(t, ""); r.Count != 0 || !r.Since.After(before.Since) {
			t.Errorf("after it, the report is %+v", r)
		}
		if stdout, _, code := run(t, report(t, "--address", s.admin)); code != 0 || !strings.HasPrefix(stdout, "0 404s since ") || strings.Count(stdout, "\n") != 1 {
			t.Errorf("got the exit code %d and\n%s", code, stdout)
		}
	})
	t.Run("reset as JSON", func(t *testing.T) {
		s.miss(t, "GET", "http://a.test/1")
		s.miss(t, "GET", "http://a.test/2")
		var want bytes.Buffer
		if err := json.Indent(&want, []byte(s.ask(t, "GET", "/not_found/report").Content), "", "\t"); err != nil {
			t.Fatal(err)
		}
		stdout, stderr, code := run(t, report(t, "--address", s.admin, "--reset", "--json", "--limit=0"))
		if code != 0 || stdout != want.String() {
			t.Errorf("got the exit code %d, %s and\n%s\nwant\n%s", code, stderr, stdout, &want)
		}
		s.want(t, "")
	})

	// saves runs the command with --reset and an output that fails. The report has to be in a file that the error names.
	saves := func(t *testing.T, address, why, want string, run func(*exec.Cmd) (stderr string, code int), flags ...string) {
		t.Helper()
		cmd := report(t, append(flags, "--address", address, "--reset")...)
		stderr, code := run(cmd)
		name := regexp.MustCompile(`at ` + regexp.QuoteMeta(address) + `, counting has begun again, and what was counted before is in (` + regexp.QuoteMeta(cmd.Dir) + `/not-found-report-\w+\.json)`).FindStringSubmatch(stderr)
		if code != 1 || !strings.Contains(stderr, why) || name == nil {
			t.Fatalf("got the exit code %d and\n%s\nwant 1, %s, and the name of a file", code, stderr, why)
		}
		saved, err := os.ReadFile(name[1])
		if err != nil || string(saved) != want {
			t.Errorf("the file has\n%s\n%v, want\n%s", saved, err, want)
		}
	}
	t.Run("reset that cannot be printed", func(t *testing.T) {
		full := func(cmd *exec.Cmd) (string, int) { return runIntoFull(t, cmd) }
		for _, flags := range [][]string{nil, {"--json"}} {
			s.miss(t, "GET", "http://a.test/x")
			saves(t, s.admin, "no space left on device", s.ask(t, "GET", "/not_found/report").Content, full, flags...)
			s.want(t, "")
		}

		s.miss(t, "GET", "http://a.test/x")
		saves(t, s.admin, "broken pipe", s.ask(t, "GET", "/not_found/report").Content, func(cmd *exec.Cmd) (string, int) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			r.Close()
			defer w.Close()
			return runInto(t, cmd, w)
		})

		s.miss(t, "GET", "http://a.test/x")
		cmd := report(t, "--address", s.admin, "--reset")
		cmd.Env = append(cmd.Env, "TMPDIR=/nowhere")
		if stderr, code := full(cmd); code != 1 || !strings.Contains(stderr, "no space left on device; saving the report of "+s.admin+", now that counting has begun again: open /nowhere/") {
			t.Errorf("got the exit code %d and\n%s", code, stderr)
		}
	})
	t.Run("reset that breaks off", func(t *testing.T) {
		breaks := testcaddy.Backend(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == "GET" {
				io.WriteString(w, reportOf(1, "/x"))
				return
			}
			io.WriteString(w, `{"count":1,`) // to DELETE
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		})
		printed := func(cmd *exec.Cmd) (string, int) {
			stdout, stderr, code := run(t, cmd)
			if stdout != "" {
				t.Errorf("it printed %q", stdout)
			}
			return stderr, code
		}
		saves(t, breaks, "reading the report of "+breaks+": unexpected EOF", `{"count":1,`, printed)
	})
	t.Run("no handler reports", func(t *testing.T) {
		s.Reload(t, testcaddy.Adapt(t, testcaddy.Caddyfile("http://:0 {\nnot_found\n}", "admin "+s.admin)))
		fails(t, report(t, "--address", s.admin), "the admin API at "+s.admin+": no not_found handler has report enabled; give one the option report")
	})
}

// TestReportOfManyCaddys merges the reports of two processes, a file and standard input.
func TestReportOfManyCaddys(t *testing.T) {
	t.Parallel()
	first, second := startNotFound(t, "--report"), startNotFound(t, "--report")
	first.Get(t, "http://a.test/both", "Referer: http://a.test/blog")
	first.Get(t, "http://a.test/both")
	first.Get(t, "http://a.test/first")
	second.Get(t, "http://a.test/both", "Referer: https://search.example/?q")
	second.Get(t, "http://b.test/second", "Referer: http://b.test/blog")
	full := testcaddy.TempFile(t, "full.json", strings.Replace(reportOf(5, "urn:x"), `"capacity":1000,"floor":0`, `"capacity":1,"floor":5`, 1))
	report := func(flags ...string) *exec.Cmd {
		cmd := command(t, append([]string{"not-found", "report", "--address", first.admin}, flags...)...)
		cmd.Stdin = strings.NewReader(reportOf(1, "urn:y"))
		return cmd
	}
	const head = "COUNT WHY OWN OTHER LAST LINK ADDRESS"
	both := []string{"--address", second.admin}
	files := append(both, full, "-")
	for name, tt := range map[string]struct {
		flags []string
		want  []string
	}{
		"two addresses": {both, []string{
			"5 404s since", "", head, "3 unanswered 1 1 http://a.test/blog a.test/both", "1 unanswered 1 0 http://b.test/blog b.test/second", "1 unanswered 0 0 - a.test/first",
		}},
		"with files": {files, []string{
			"11 404s since 2026-01-02", "", head, "3-8 unanswered 1 1 http://a.test/blog a.test/both", "1-6 unanswered 1 0 http://b.test/blog b.test/second",
			"1-6 unanswered 0 0 - a.test/first", "1-6 error 0 0 - urn:y", "5 error 0 0 - urn:x",
		}},
		"limited when merged": {append(files, "--limit=1"), []string{"11 404s since", "", head, "3-8 unanswered 1 1 http://a.test/blog a.test/both"}},
		"own links":           {append(both, "--link=own", "--host=b.test"), []string{"5 404s since", "", head, "1 unanswered 1 0 http://b.test/blog b.test/second"}},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, code := run(t, report(tt.flags...))
			lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
			if code != 0 || len(lines) != len(tt.want) {
				t.Fatalf("got the exit code %d, %s and\n%s", code, stderr, stdout)
			}
			for i, line := range lines {
				if got := strings.Join(strings.Fields(line), " "); got != tt.want[i] && (i > 0 || !strings.HasPrefix(got, tt.want[0])) {
					t.Errorf("got the line %s, want %s", got, tt.want[i])
				}
			}
		})
	}

	// what is merged is a report to merge, unless something is left out
	merged, _, code := run(t, report(append(files, "--json", "--limit=0")...))
	if code != 0 || !strings.Contains(merged, "\"count\": 11,\n\t\"capacity\": 1,\n\t\"floor\": 5,\n\t\"addresses\"") {
		t.Errorf("got the exit code %d and\n%s", code, merged)
	}
	cmd := command(t, "not-found", "report", "--json", "--limit=0", "-")
	cmd.Stdin = strings.NewReader(merged)
	if again, stderr, code := run(t, cmd); code != 0 || again != merged {
		t.Errorf("got the exit code %d, %s and\n%s\nwant\n%s", code, stderr, again, merged)
	}
	for _, flag := range []string{"--limit=1", "--host=b.test", "--link=own"} {
		if partial, _, code := run(t, report("--json", flag)); code != 0 || !strings.Contains(partial, `"partial": true`) {
			t.Errorf("%s: got the exit code %d and\n%s", flag, code, partial)
		}
	}

	t.Run("one does not answer", func(t *testing.T) {
		nobody := "127.0.0.1:" + testcaddy.FreePort(t)
		for _, flags := range [][]string{{"--json"}, {"--reset"}} {
			stdout, stderr, code := run(t, report(append(flags, "--address", second.admin, "--address", nobody)...))
			if code != 1 || stdout != "" || !strings.Contains(stderr, "asking the admin API at "+nobody) {
				t.Errorf("got the exit code %d, %q and\n%s", code, stdout, stderr)
			}
		}
	})
	t.Run("reset", func(t *testing.T) {
		stdout, stderr, code := run(t, report("--address", second.admin, "--reset")) // which shows that nothing was reset above
		if code != 0 || !strings.HasPrefix(stdout, "5 404s since") || strings.Count(stdout, "\n") != 6 {
			t.Errorf("got the exit code %d, %s and\n%s", code, stderr, stdout)
		}
		if stdout, _, code := run(t, report("--address", second.admin)); code != 0 || !strings.HasPrefix(stdout, "0 404s since") {
			t.Errorf("after it, got the exit code %d and\n%s", code, stdout)
		}
	})
	t.Run("reset that cannot be printed", func(t *testing.T) {
		first.Get(t, "http://a.test/first")
		second.Get(t, "http://a.test/second")
		cmd := report("--address", second.admin, "--reset")
		stderr, code := runIntoFull(t, cmd)
		names := regexp.MustCompile(regexp.QuoteMeta(cmd.Dir)+`/not-found-report-\w+\.json`).FindAllString(stderr, -1)
		if code != 1 || len(names) != 2 || strings.Index(stderr, "at "+first.admin) > strings.Index(stderr, "at "+second.admin) {
			t.Fatalf("got the exit code %d and\n%s\nwant the names of two files", code, stderr)
		}
		stdout, stderr, code := run(t, command(t, append([]string{"not-found", "report"}, names...)...))
		if code != 0 || !strings.Contains(stdout, "a.test/first\n") || !strings.Contains(stdout, "a.test/second\n") {
			t.Errorf("got the exit code %d, %s and\n%s", code, stderr, stdout)
		}
	})
	t.Run("reset that fails for one", func(t *testing.T) {
		first.Get(t, "http://a.test/first")
		changing := testcaddy.Backend(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == "DELETE" {
				http.Error(w, "it has gone", http.StatusInternalServerError)
				return
			}
			io.WriteString(w, reportOf(1, "urn:x"))
		})
		stdout, stderr, code := run(t, report("--address", changing, "--reset"))
		name := regexp.MustCompile(`HTTP 500: it has gone.*; at ` + regexp.QuoteMeta(first.admin) + `, counting has begun again, and what was counted before is in (\S+\.json)"}`).FindStringSubmatch(stderr)
		if code != 1 || stdout != "" || name == nil {
			t.Fatalf("got the exit code %d, %q and\n%s\nwant the name of a file", code, stdout, stderr)
		}
		if saved, err := os.ReadFile(name[1]); err != nil || !strings.Contains(string(saved), `"path":"/first","count":1`) {
			t.Errorf("the file has %s, %v", saved, err)
		}
	})
}

// TestCommandOfTheKubernetesExample runs what the manifest runs.
func TestCommandOfTheKubernetesExample(t *testing.T) {
	t.Parallel()
	manifest, err := os.ReadFile("../examples/kubernetes/manifest.yaml")
	if err != nil {
		t.Fatal(err)
	}
	args := regexp.MustCompile(`args: \[caddy, not-found, (.+)\]`).FindSubmatch(manifest)
	probe := regexp.MustCompile(`readinessProbe:\s+httpGet:\s+path: (\S+)`).FindSubmatch(manifest)
	if args == nil || probe == nil {
		t.Fatalf("the manifest has no command or no probe:\n%s", manifest)
	}
	s := startNotFound(t, strings.Split(string(args[1]), ", ")...)
	s.Get(t, "http://a.test"+string(probe[1])).Want(t, http.StatusOK, "")
	s.Get(t, "http://10.0.0.1/x", "X-Forwarded-Proto: https", "X-Forwarded-Host: a.test").WantPage(t, "GET", "https://a.test/x", "")
}
