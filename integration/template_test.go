package integration

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestReloadWithTemplates reloads a config whose forty sites import one template. A file never stops a config.
func TestReloadWithTemplates(t *testing.T) {
	shared := testcaddy.TempFile(t, "404.html", "{{.Uri}}")
	alsoBroken := testcaddy.TempFile(t, "404.html", "{{")
	logs := testcaddy.NewLogs(t)
	sites := "(page) {\nnot_found {\ntemplate " + testcaddy.Quote(shared) + "\n}\n}\n"
	for i := range 40 {
		sites += fmt.Sprintf("http://site%d.test:0 {\nimport page\n}\n", i)
	}
	log := "log default {\n" + logs.Output + "\n}"
	config := func(more string) []byte {
		return testcaddy.Adapt(t, testcaddy.Caddyfile(sites+more, log))
	}
	wantLogged := func(template string) {
		t.Helper()
		logged := logs.Select(t, func(e testcaddy.Entry) bool {
			return e["template"] == template
		})
		if len(logged) != 1 {
			t.Errorf("got the log entries %v, want one a minute", logged)
		}
	}

	// forty sites start with a broken template, and a reload adds another
	s := testcaddy.StartConfig(t, config(""))
	getPage(t, s.Client, "http://site7.test/x", "Accept: text/plain")
	s.Reload(t, config("http://new.test:0 {\nnot_found {\ntemplate "+testcaddy.Quote(alsoBroken)+"\n}\n}"))
	getPage(t, s.Client, "http://new.test/x", "Accept: text/plain")
	wantLogged(shared)
	wantLogged(alsoBroken)

	// the template is mended, it breaks again, and the last good page outlasts a reload
	const mended = "<p>mended"
	writeFile(t, shared, mended)
	eventually(t, "page of the mended template", func() bool {
		return s.Get(t, "http://site7.test/x", "Accept: text/html").Content == mended
	})
	writeFile(t, shared, "{{.Broken}}")
	s.Reload(t, config(""))
	s.Get(t, "http://site7.test/x", "Accept: text/html").Want(t, http.StatusNotFound, mended)
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
	writeFile(t, dir+"/404.html", "")
	s.Reload(t, config("dry_run"))
	s.Get(t, "http://a.test/response").Want(t, http.StatusNotFound, "theirs")
}

// TestPrecompressedPage sends the sidecar of a page for each cause. HEAD has its header, which holds against a deferred
// header. An encode around not_found sends it as it is. What a handler makes of Accept-Encoding meanwhile does not
// count.
func TestPrecompressedPage(t *testing.T) {
	dir := t.TempDir()
	page := strings.Repeat("<p>There is nothing here.", 100)
	writeFile(t, dir+"/404.html", page)
	writeFile(t, dir+"/404.html.br", "br")
	within := testcaddy.Directive(t, func(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
		r.Header.Set("Accept-Encoding", "zstd")
		return next.ServeHTTP(w, r)
	})
	s := startSite(t, `
		root `+testcaddy.Quote(dir)+`
		header >Content-Encoding zstd
		header >Vary Origin
		route {
			encode /encode/* gzip
			not_found {
				template {vars.root}/404.html
				precompressed
			}
			`+within+`
			error /error 404
			respond /response "theirs" 404
		}`)
	for path, vary := range map[string]string{
		"/unanswered": "Origin, Accept, Accept-Encoding",
		"/error":      "Origin, Accept, Accept-Encoding",
		"/response":   "Origin, Accept, Sec-Fetch-Mode, Upgrade-Insecure-Requests, Accept-Encoding",
	} {
		for method, content := range map[string]string{"GET": "br", "HEAD": ""} {
			res := s.Do(t, method, "http://a.test"+path, "Accept: text/html", "Accept-Encoding: gzip, br")
			res.Want(t, http.StatusNotFound, content)
			res.WantHeader(t, "Content-Encoding", "br")
			res.WantHeader(t, "Content-Length", "2")
			res.WantHeader(t, "Vary", vary)
		}
	}
	s.Get(t, "http://a.test/x", "Accept: text/html", "Accept-Encoding: gzip", "Accept-Encoding: br").
		Want(t, http.StatusNotFound, "br")
	plain := s.Get(t, "http://a.test/x", "Accept: text/html", "Accept-Encoding: gzip")
	plain.Want(t, http.StatusNotFound, page)
	plain.WantHeader(t, "Content-Encoding", "")
	plain.WantHeader(t, "Vary", "Origin, Accept, Accept-Encoding")
	builtIn := s.Get(t, "http://a.test/x", "Accept: text/plain", "Accept-Encoding: br")
	builtIn.WantHeader(t, "Vary", "Origin, Accept")
	s.Get(t, "http://a.test/encode/x", "Accept: text/html", "Accept-Encoding: br, gzip").Want(t, http.StatusNotFound, "br")
}
