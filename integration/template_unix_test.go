//go:build unix

package integration

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestStartWithTemplatesThatCannotBeUsed starts Caddy as a user that may not read everything, with templates that are
// missing, broken, unreadable and good. All sites answer. Once the files are mended, they are used without a restart.
func TestStartWithTemplatesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir+"/broken", "{{.Uri}}")
	writeFile(t, dir+"/unreadable", "<p>unreadable")
	writeFile(t, dir+"/good", "<p>good")
	if err := os.Chmod(dir+"/unreadable", 0); err != nil {
		t.Fatal(err)
	}
	listener, addr := testcaddy.Listen(t)
	whys := map[string]string{
		"missing":    "no such file or directory",
		"broken":     "can't evaluate field Uri",
		"unreadable": "permission denied",
		"good":       "",
	}
	site := "http://" + addr + " {\nbind fd/3\n"
	for file := range whys {
		site += "handle /" + file + " {\nnot_found {\ntemplate " + testcaddy.Quote(dir+"/"+file) + "\n}\n}\n"
	}
	writeFile(t, dir+"/Caddyfile", testcaddy.Caddyfile(site+"}"))

	const unusable = "the file of a page cannot be used; another page is sent until it can"
	_, stderr, code := run(t, unprivileged(commandIn(t, dir, "validate")))
	if code != 0 || strings.Count(stderr, unusable) != 3 {
		t.Errorf("caddy validate: got the exit code %d and\n%s", code, stderr)
	}

	log := startLogging(t, unprivileged(commandIn(t, dir, "run")), listener)
	client := testcaddy.HTTP11(t, addr)
	hasTemplate := func(file string) bool {
		page := client.Get(t, "http://"+addr+"/"+file, "Accept: text/html")
		return page.Content == "<p>"+file
	}
	for file, why := range whys {
		if got := hasTemplate(file); got != (why == "") {
			t.Errorf("%s: the page is made by the template: %v", file, got)
		}
		if logged := readFile(t, log); !strings.Contains(logged, why) {
			t.Errorf("%s: got the log\n%s", file, logged)
		}
		_ = os.Remove(dir + "/" + file) // or the new one would be as unreadable
		writeFile(t, dir+"/"+file, "<p>"+file)
	}
	for file := range whys {
		eventually(t, "page of the mended template "+file, func() bool { return hasTemplate(file) })
	}
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
