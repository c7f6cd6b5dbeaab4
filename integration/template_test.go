package integration

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestReloadWithTemplates reloads a config whose forty sites import one template.
func TestReloadWithTemplates(t *testing.T) {
	shared := testcaddy.TempFile(t, "404.html", "{{.Uri}}")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	config := func(logs *testcaddy.Logs, more string) []byte {
		sites := "(page) {\nnot_found {\ntemplate " + shared + "\n}\n}\n"
		for i := range 40 {
			sites += fmt.Sprintf("http://site%d.test:0 {\nimport page\n}\n", i)
		}
		return testcaddy.Adapt(t, testcaddy.Caddyfile(sites+more, "log default {\n"+logs.Output+"\n}"))
	}
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(shared, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	wantLogged := func(logs *testcaddy.Logs, want int) {
		t.Helper()
		entries := logs.Select(t, func(e testcaddy.Entry) bool { return e["template"] == shared })
		if len(entries) != want {
			t.Errorf("got %d log entries, want %d: %v", len(entries), want, entries)
		}
	}

	// forty sites start with a broken template, and a reload adds another
	logs := testcaddy.NewLogs(t)
	s := testcaddy.StartConfig(t, config(logs, ""))
	s.Get(t, "http://site7.test/x").WantPage(t, "GET", "http://site7.test/x", "")
	wantLogged(logs, 1)
	reloaded := testcaddy.NewLogs(t)
	s.Reload(t, config(reloaded, "http://new.test:0 {\nimport page\n}"))
	s.Get(t, "http://new.test/x").WantPage(t, "GET", "http://new.test/x", "")
	wantLogged(reloaded, 0)

	// the template is mended; reloads fail after sites have taken it
	write("<p>mended")
	eventually(t, "the template is mended", func() bool {
		return s.Get(t, "http://site7.test/x", "Accept: text/html").Content == "<p>mended"
	})
	missing := filepath.Join(t.TempDir(), "404.json")
	for more, want := range map[string]string{
		"http://zz.test:0 {\nnot_found {\ntemplate " + shared + "\ntemplate json " + missing + "\n}\n}": "caddy not-found export-template json",
		"http://" + taken.Addr().String() + " {\nimport page\n}":                                        "bind: ",
	} {
		if err := caddy.Load(config(logs, more), true); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got the error %v, want %s", err, want)
		}
	}

	// it is still known as one that runs, and once no site runs it, as a new one
	write("{{.Broken}}")
	s.Reload(t, config(logs, ""))
	s.Reload(t, testcaddy.Adapt(t, testcaddy.Caddyfile("http://:0 {\nnot_found\n}")))
	if err := caddy.Load(config(logs, ""), true); err == nil || !strings.Contains(err.Error(), "can't evaluate field Broken") {
		t.Errorf("loading a new template that is broken: got the error %v", err)
	}
	s.Get(t, "http://a.test/x").WantPage(t, "GET", "http://a.test/x", "")
}
