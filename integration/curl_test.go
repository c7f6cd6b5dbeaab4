//go:build backends

package integration

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestDocumentedCurlsRead runs the curl lines of docs/report.md. The last one starts over.
func TestDocumentedCurlsRead(t *testing.T) {
	lines := regexp.MustCompile(`(?m)^curl .*$`).FindAllString(readFile(t, "../docs/report.md"), -1)
	s := startReporting(t, "http://a.test:0 {\nnot_found {\nreport\n}\n}")
	s.miss(t, "GET", "http://a.test/x")
	dir := t.TempDir()
	here := strings.ReplaceAll(strings.Join(lines, "\n"), "localhost:2019", s.admin)
	printed := shell(t, dir, here)
	if !strings.Contains(printed, "1 404 in all since ") {
		t.Errorf("got\n%s", printed)
	}
	for _, file := range []string{"report.json", "before.json"} {
		if content := readFile(t, dir+"/"+file); !strings.Contains(content, `"path":"/x"`) {
			t.Errorf("%s has\n%s", file, content)
		}
	}
	if after := s.report(t); after != "" {
		t.Errorf("then the report has\n%s", after)
	}
}

// TestDocumentedQuestions runs the lines that ask a binary for its version, and a site as a browser does.
func TestDocumentedQuestions(t *testing.T) {
	s := testcaddy.Start(t, "http://127.0.0.1:0 {\nnot_found\n}")
	t.Setenv(runsAsCaddy, "1")
	here := strings.NewReplacer(
		"sudo ", "",
		"$(pidof -s caddy)", strconv.Itoa(os.Getpid()),
		"caddy build-info", strconv.Quote(command(t).Path)+" build-info",
		"https://www.example.com/", "http://"+s.Addr+"/",
		"<address>", "http://"+s.Addr+"/x",
	)
	page := readFile(t, "../docs/no-page.md") + readFile(t, "../docs/applications.md")
	for question, want := range map[string]string{
		`.* build-info .*`:    "\tgithub.com/caddy-notfound/notfound",
		`curl .*text/html,.*`: "404 Not Found",
	} {
		lines := regexp.MustCompile(`(?m)^ *`+question+`$`).FindAllString(page, -1)
		if len(lines) != 2 {
			t.Errorf("the documents have the lines %q, want two", lines)
		}
		for _, line := range lines {
			output := shell(t, t.TempDir(), here.Replace(line))
			if !strings.Contains(output, want) {
				t.Errorf("%s: got\n%s", line, output)
			}
		}
	}
}

// shell runs a script in a folder, and returns its output.
func shell(t *testing.T, dir, script string) string {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = dir
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, output)
	}
	return string(output)
}
