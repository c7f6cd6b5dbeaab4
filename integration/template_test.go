package integration

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestReloadWithTemplates reloads a config whose forty sites import one template.
func TestReloadWithTemplates(t *testing.T) {
	shared := testcaddy.TempFile(t, "404.html", "{{.Uri}}")
	logs := testcaddy.NewLogs(t)
	sites := "(page) {\nnot_found {\ntemplate " + testcaddy.Quote(shared) + "\n}\n}\n"
	for i := range 40 {
		sites += fmt.Sprintf("http://site%d.test:0 {\nimport page\n}\n", i)
	}
	log := "log default {\n" + logs.Output + "\n}"
	config := func(more string) []byte {
		return testcaddy.Adapt(t, testcaddy.Caddyfile(sites+more, log))
	}

	// forty sites start with a broken template, and a reload adds another
	s := testcaddy.StartConfig(t, config(""))
	getPage(t, s.Client, "http://site7.test/x")
	s.Reload(t, config("http://new.test:0 {\nimport page\n}"))
	getPage(t, s.Client, "http://new.test/x")
	logged := logs.Select(t, func(e testcaddy.Entry) bool {
		return e["template"] == shared
	})
	if len(logged) != 2 {
		t.Errorf("got %d log entries, want one for each config: %v", len(logged), logged)
	}

	// the template is mended; a reload fails after sites have taken it
	writeFile(t, shared, "<p>mended")
	eventually(t, "page of the mended template", func() bool {
		page := s.Get(t, "http://site7.test/x", "Accept: text/html")
		return page.Content == "<p>mended"
	})
	taken := testcaddy.AcceptTCP(t, func(net.Conn) {})
	err := caddy.Load(config("http://"+taken+" {\nbind 127.0.0.1\nimport page\n}"), true)
	if err == nil || !strings.Contains(err.Error(), "bind: ") {
		t.Errorf("got the error %v, want that the port is taken", err)
	}

	// it is still known as one that runs, and once no site runs it, as a new one
	writeFile(t, shared, "{{.Broken}}")
	s.Reload(t, config(""))
	s.Reload(t, testcaddy.Adapt(t, testcaddy.Caddyfile("http://:0 {\nnot_found\n}")))
	err = caddy.Load(config(""), true)
	if err == nil || !strings.Contains(err.Error(), "can't evaluate field Broken") {
		t.Errorf("loading a new template that is broken: got the error %v", err)
	}
	getPage(t, s.Client, "http://a.test/x")

	// a config without sites is not one that they are reloaded from
	withoutSites := []byte(`{"admin": {"disabled": true, "config": {"persist": false}}}`)
	if err := caddy.Load(withoutSites, true); err != nil {
		t.Fatal(err)
	}
	s.Reload(t, config(""))
}

// TestPagesOfSites sends a site's own page wherever the page at a fixed path would be sent: for each cause, whatever
// names the folder, in a nested handler and in one of a group.
func TestPagesOfSites(t *testing.T) {
	dir := t.TempDir()
	site := func(name, format, page string) {
		if err := os.MkdirAll(dir+"/"+name, 0o700); err != nil {
			t.Fatal(err)
		}
		writeFile(t, dir+"/"+name+"/404."+format, page)
	}
	site("a", "html", "<p>a has no {{.URI}}")
	site("a", "json", `{"site": "a"}`)
	site("b", "html", "<p>b")
	site("fixed", "html", "<p>fixed")
	template := "template " + testcaddy.Quote(dir+"/fixed/404.html")
	config := func(options string) []byte {
		return testcaddy.Adapt(t, testcaddy.Caddyfile(`http://*.test:0 {
			root `+testcaddy.Quote(dir+"/{labels.1}")+`
			map {labels.1} {folder} {
				b b
			}
			@fixed host fixed.test
			not_found @fixed {
				`+template+`
			}
			not_found {
				template {vars.root}/404.html
				template json {vars.root}/404.json
				`+options+`
			}
			handle /nested/* {
				not_found {
					template `+testcaddy.Quote(dir+"/{folder}/404.html")+`
				}
			}
			handle /fixed/* {
				not_found {
					`+template+`
				}
			}
			error /error 404
			respond /response "theirs" 404
			file_server /file
		}`))
	}
	s := testcaddy.StartConfig(t, config(""))
	const page = "<p>a has no {{.URI}}"
	for url, want := range map[string]string{
		"http://a.test/unanswered":     page,
		"http://b.test/unanswered":     "<p>b",
		"http://c.test/unanswered":     "HTTP ERROR 404",
		"http://a.test/error":          page,
		"http://a.test/response":       page,
		"http://a.test/file":           page,
		"http://a.test/fixed/x":        "<p>fixed",
		"http://b.test/nested/x":       "<p>b",
		"http://fixed.test/unanswered": "<p>fixed",
		"http://a.test/nested/x":       "HTTP ERROR 404", // the folder is not known
	} {
		res := s.Get(t, url, "Accept: text/html")
		if res.StatusCode != 404 || !strings.Contains(res.Content, want) {
			t.Errorf("%s: got %d and\n%s\nwant %s", url, res.StatusCode, res.Content, want)
		}
	}
	head := s.Do(t, "HEAD", "http://a.test/x", "Accept: text/html")
	head.WantHeader(t, "Content-Length", fmt.Sprint(len(page)))
	if json := s.Get(t, "http://a.test/x", "Accept: application/json"); json.Content != `{"site": "a"}` {
		t.Errorf("got\n%s", json.Content)
	}

	site("b", "html", "")
	s.Reload(t, config("dry_run"))
	if res := s.Get(t, "http://a.test/response"); res.Content != "theirs" {
		t.Errorf("a dry run sent\n%s", res.Content)
	}
}
