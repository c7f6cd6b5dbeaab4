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

// TestDocumentedCurlStartsOver runs the curl lines of docs/report.md, over TCP and over a Unix socket.
func TestDocumentedCurlStartsOver(t *testing.T) {
	lines := regexp.MustCompile(`(?m)^curl .*-X DELETE.*$`).FindAllString(readFile(t, "../docs/report.md"), -1)
	if len(lines) != 2 {
		t.Fatalf("the document has the lines %q, want two", lines)
	}
	for _, line := range lines {
		admin, documented := "127.0.0.1:"+testcaddy.FreePort(t), "localhost:2019"
		if strings.Contains(line, "--unix-socket") {
			admin, documented = filepath.Join(t.TempDir(), "admin.sock"), "/run/caddy/admin.sock"
		}
		address := admin
		if documented != "localhost:2019" {
			address = "unix/" + admin
		}
		s := startNotFound(t, "--report", "--admin", address)
		s.Get(t, "http://a.test/x")
		curl := exec.Command("sh", "-c", strings.Replace(line, documented, admin, 1))
		curl.Dir = t.TempDir()
		if out, err := curl.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", curl, err, out)
		}
		if before := prints(t, reportCommand(t, filepath.Join(curl.Dir, "before.json"))); !strings.Contains(before, "a.test/x") {
			t.Errorf("%s: got\n%s", curl, before)
		}
		if after := prints(t, reportCommand(t, "--address", address)); !strings.HasPrefix(after, "0 404s since ") {
			t.Errorf("after %s: got\n%s", curl, after)
		}
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

// TestDocumentedJqOfTheAccessLog runs the jq line of examples/monitoring/README.md on Caddy's access log.
func TestDocumentedJqOfTheAccessLog(t *testing.T) {
	_, script, _ := strings.Cut(readFile(t, "../examples/monitoring/README.md"), "```\njq ")
	script, _, _ = strings.Cut(script, "```")
	dir := t.TempDir()
	s := testcaddy.Start(t, "http://a.test:0 {\nlog {\noutput file "+filepath.Join(dir, "access.log")+"\n}\nlog_append not_found {http.not_found.cause}\nnot_found\nrespond /fine fine\n}")
	s.Get(t, "http://a.test/x?$(id)", "Referer: http://b.test/")
	s.Get(t, "http://a.test/x?$(id)", "Referer: http://b.test/")
	s.Get(t, "http://a.test/fine")
	eventually(t, "jq counts the pages", func() bool {
		jq := exec.Command("sh", "-c", "jq "+script)
		jq.Dir = dir
		out, err := jq.CombinedOutput()
		return err == nil && strings.TrimSpace(string(out)) == "2 unanswered\ta.test/x?$(id)\thttp://b.test/"
	})
}
