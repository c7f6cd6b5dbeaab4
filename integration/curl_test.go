//go:build backends

package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestDocumentedCurlStartsOver runs the curl line of docs/report.md.
func TestDocumentedCurlStartsOver(t *testing.T) {
	line := regexp.MustCompile(`(?m)^curl .*-X DELETE.*$`).FindString(readFile(t, "../docs/report.md"))
	s := startNotFound(t, "--report")
	s.Get(t, "http://a.test/x")
	curl := exec.Command("sh", "-c", strings.Replace(line, "localhost:2019", s.admin, 1))
	curl.Dir = t.TempDir()
	if out, err := curl.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", curl, err, out)
	}
	if before := readFile(t, filepath.Join(curl.Dir, "before.json")); !strings.Contains(before, `"path":"/x"`) {
		t.Errorf("%s: got\n%s", curl, before)
	}
	if after := prints(t, reportCommand(t, "--address", s.admin)); !strings.HasPrefix(after, "0 404s since ") {
		t.Errorf("after %s: got\n%s", curl, after)
	}
}

// TestDocumentedQuestions runs the lines that ask a binary for its version, and a site as a browser does.
func TestDocumentedQuestions(t *testing.T) {
	s := testcaddy.Start(t, "http://127.0.0.1:0 {\nnot_found\n}")
	caddy := command(t)
	here := strings.NewReplacer("sudo ", "", "$(pidof -s caddy)", strconv.Itoa(os.Getpid()), "caddy build-info", caddy.Path+" build-info",
		"https://www.example.com/", "http://"+s.Addr+"/", "<address>", "http://"+s.Addr+"/x")
	page := readFile(t, "../docs/no-page.md") + readFile(t, "../docs/applications.md")
	for question, want := range map[string]string{`.* build-info .*`: "\tgithub.com/caddy-notfound/notfound", `curl .*text/html,.*`: "404 Not Found"} {
		lines := regexp.MustCompile(`(?m)^ *`+question+`$`).FindAllString(page, -1)
		if len(lines) != 2 {
			t.Errorf("the documents have the lines %q, want two", lines)
		}
		for _, line := range lines {
			cmd := exec.Command("sh", "-c", here.Replace(line))
			cmd.Env = caddy.Env
			if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
				t.Errorf("%s: %v\n%s", cmd, err, out)
			}
		}
	}
}
