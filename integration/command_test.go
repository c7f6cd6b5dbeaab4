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

// command returns a caddy command with its own home directory. It is killed when the test ends, or after five minutes.
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
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
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

// TestExportedTemplateIsValid exports two formats, changes them, and has a server use both.
func TestExportedTemplateIsValid(t *testing.T) {
	html := prints(t, command(t, "not-found", "export-template"))
	json := prints(t, command(t, "not-found", "export-template", "json"))
	fails(t, command(t, "not-found", "export-template", "yaml"), `unknown format "yaml"; the formats are text, html, `)

	json = strings.Replace(json, "footer", "from", 1)
	ofHTML := testcaddy.TempFile(t, "a=404.html", html+"<hr>")
	ofJSON := testcaddy.TempFile(t, "404.json", json)
	broken := testcaddy.TempFile(t, "404.html", `{{.Placeholder "vars.x"}}`)
	const ofSite = "{vars.root}/404.html"
	const note = "{http.vars.root}/404.html: only a request names this file, which is sent as it is\n"
	for _, tt := range []struct {
		args   []string
		stdout string
		err    string // empty: the command succeeds
	}{
		{args: []string{ofHTML}, stdout: "Valid template\n"},
		{args: []string{"json", ofJSON}, stdout: "Valid template\n"},
		{args: []string{ofSite, ofHTML}, stdout: note + "Valid template\n"},
		{args: []string{ofSite}, stdout: note, err: "there is no file to check"},
		{args: []string{ofSite, ofHTML, broken}, stdout: note, err: `"vars.x" is a shorthand, which only a Caddyfile has; ` +
			`write {{.Placeholder "http.vars.x"}}`},
		{args: []string{ofHTML, broken + "x"}, err: syscall.ENOENT.Error()},
		{args: []string{"{file_match.absolute}"}, err: "may become a file of the next handlers"},
		{args: []string{"json", ofHTML}, err: "the page is not valid JSON"},
		{args: []string{"yaml", ofHTML}, err: `unknown format "yaml"`},
	} {
		args := append([]string{"not-found", "check-template"}, tt.args...)
		stdout, stderr, code := run(t, command(t, args...))
		hasFailed := code == 1 && strings.Contains(stderr, tt.err)
		hasSucceeded := code == 0 && stderr == ""
		if stdout != tt.stdout || tt.err == "" && !hasSucceeded || tt.err != "" && !hasFailed {
			t.Errorf("%q: got the exit code %d, %q and\n%s\nwant %q, %q", args, code, stdout, stderr, tt.stdout, tt.err)
		}
	}

	s := startSite(t, "not_found {\n"+
		"template json "+testcaddy.Quote(ofJSON)+"\n"+
		"template "+testcaddy.Quote(ofHTML)+"\n}")
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

// TestCommandAlonePrintsItsHelp names the subcommands, and refuses another one.
func TestCommandAlonePrintsItsHelp(t *testing.T) {
	t.Parallel()
	help := prints(t, command(t, "not-found"))
	for _, name := range []string{"export-template", "check-template"} {
		if !strings.Contains(help, "\n  "+name+" ") {
			t.Errorf("got\n%s\nwant the command %s", help, name)
		}
	}
	fails(t, command(t, "not-found", "404.html"), `unknown command "404.html"`)
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
