package integration

import (
	"fmt"
	"net"
	"net/http"
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

// TestPagesOfSites sends a site's own page for each cause, in a nested handler, and in folders that map and vars name.
// HEAD has its length, and a dry run sends what comes.
func TestPagesOfSites(t *testing.T) {
	dir := t.TempDir()
	const page = "<p>a has no {{.URI}}"
	writeFile(t, dir+"/404.html", page)
	config := func(options string) []byte {
		return testcaddy.Adapt(t, testcaddy.Caddyfile(`http://:0 {
			vars site `+testcaddy.Quote(dir)+`
			map {host} {folder} {
				default .
			}
			not_found {
				template {vars.site}/404.html
				`+options+`
			}
			handle /nested/* {
				not_found {
					template `+testcaddy.Quote(dir+"/{folder}/404.html")+`
				}
			}
			error /error 404
			respond /response "theirs" 404
			handle /file {
				root nowhere
				file_server
			}
		}`))
	}
	s := testcaddy.StartConfig(t, config(""))
	for _, path := range []string{"/unanswered", "/error", "/file", "/response", "/nested/x"} {
		s.Get(t, "http://a.test"+path, "Accept: text/html").Want(t, http.StatusNotFound, page)
	}
	s.Do(t, "HEAD", "http://a.test/x", "Accept: text/html").WantHeader(t, "Content-Length", fmt.Sprint(len(page)))
	writeFile(t, dir+"/404.html", "") // which no reload refuses
	s.Reload(t, config("dry_run"))
	s.Get(t, "http://a.test/response").Want(t, http.StatusNotFound, "theirs")
}
