//go:build unix

package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestStartWithTemplatesThatCannotBeUsed starts Caddy as a user that may not read everything, with templates that are missing,
// broken, unreadable and good. All sites answer. Once the files are mended, they are used without a restart.
func TestStartWithTemplatesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	const unusable = "the template cannot be used; the built-in page is sent until it can"
	dir := unprivilegedDir(t)
	states := []string{"missing", "broken", "unreadable", "good"}
	file := func(state string) string { return filepath.Join(dir, state+".html") }
	write := func(state, content string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(file(state), []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file(state), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("broken", "{{.Uri}}", 0o644)
	write("unreadable", "<p>unreadable", 0)
	write("good", "<p>good", 0o644)
	addr := "127.0.0.1:" + testcaddy.FreePort(t)
	sites := ""
	for _, state := range states {
		sites += "handle /" + state + " {\nnot_found {\ntemplate " + file(state) + "\n}\n}\n"
	}
	config := filepath.Join(dir, "Caddyfile")
	if err := os.WriteFile(config, []byte(testcaddy.Caddyfile("http://"+addr+" {\n"+sites+"}")), 0o644); err != nil {
		t.Fatal(err)
	}

	cmd := unprivileged(t, dir, "validate", "--config", config)
	if _, stderr, code := run(t, cmd); code != 0 || strings.Count(stderr, unusable) != 3 {
		t.Errorf("caddy validate: got the exit code %d and\n%s", code, stderr)
	}

	cmd = unprivileged(t, dir, "run", "--config", config)
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() })
	awaitListener(t, "Caddy", addr)
	client := testcaddy.HTTP11(t, addr)
	for _, state := range states {
		page := client.Get(t, "http://"+addr+"/"+state, "Accept: text/html")
		if got := page.Content == "<p>"+state; got != (state == "good") {
			t.Errorf("%s: got the page\n%s", state, page.Content)
		}
	}
	logged := readFile(t, log.Name())
	for state, why := range map[string]string{
		"missing":    "no such file or directory; for the built-in page to begin with, run caddy not-found export-template html",
		"broken":     "can't evaluate field Uri",
		"unreadable": "permission denied",
	} {
		if strings.Count(logged, `"template":"`+file(state)+`"`) != 1 || !strings.Contains(logged, why) {
			t.Errorf("%s: got the log\n%s", state, logged)
		}
		write(state, "<p>"+state, 0o644)
		eventually(t, state+" is mended", func() bool {
			return client.Get(t, "http://"+addr+"/"+state, "Accept: text/html").Content == "<p>"+state
		})
	}
}

const nobody = 65534

// unprivilegedDir returns a new folder that belongs to the user of unprivileged.
func unprivilegedDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "not_found")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if os.Getuid() != 0 {
		return dir
	}
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	return dir
}

// unprivileged returns a caddy command that runs in a folder, as a user that is not root.
func unprivileged(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := command(t, args...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Env, "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_DATA_HOME="+dir, "TMPDIR="+dir)
	if os.Getuid() != 0 {
		return cmd
	}
	// the program is in a folder of root's
	program := filepath.Join(dir, "caddy")
	content, err := os.ReadFile(cmd.Path)
	if err == nil {
		err = os.WriteFile(program, content, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd.Path = program
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	return cmd
}
