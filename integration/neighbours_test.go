package integration

import (
	"net/http"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

const (
	interceptNone = "intercept {\n@x status 418\nhandle_response @x {\nrespond no\n}\n}\n"
	handleAll     = " {\nhandle_response {\nnot_found\nrespond /other no\n}\n}\n"
)

// TestHandlerThatWritesNothingHasAnswered puts such a handler wherever a page might take its place.
func TestHandlerThatWritesNothingHasAnswered(t *testing.T) {
	directive := testcaddy.Directive(t, silent)
	app := "reverse_proxy " + testcaddy.Backend(t, application)
	s, hosts := testcaddy.StartSites(t, "&(silent) {\n"+directive+"\n}\n", map[string]string{
		"in a named route":    replaceAll + "invoke silent",
		"after handlers":      replaceAll + "encode\ntemplates\n" + directive,
		"after intercept":     replaceAll + "encode\n" + interceptNone + directive, // which writes the status 0
		"in handle_errors":    "error 404\nhandle_errors {\n" + replaceAll + directive + "\n}",
		"in a response route": app + " {\nhandle_response {\nnot_found\n" + directive + "\n}\n}",
	})
	for name, host := range hosts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res := s.Do(t, "OPTIONS", "http://"+host+"/nothing")
			res.Want(t, http.StatusOK, "")
			res.WantHeader(t, "Allow", "OPTIONS, GET")
			res.WantHeader(t, "Content-Type", "")
		})
	}
}

// silent returns without writing, as caddy-webdav does for OPTIONS and caddy-s3-proxy for PUT. net/http sends an empty
// 200.
func silent(w http.ResponseWriter, _ *http.Request, _ caddyhttp.Handler) error {
	w.Header().Set("Allow", "OPTIONS, GET")
	return nil
}

// TestAnswersWhenNothingElseDoes has nothing answer, a 404 error and a 404 response, with the handlers that may hide
// which of them it is.
func TestAnswersWhenNothingElseDoes(t *testing.T) {
	root := "root " + testcaddy.Quote(t.TempDir()) + "\n"
	app := "reverse_proxy " + testcaddy.Backend(t, application)
	buffers := "encode\n" + interceptNone + "templates\n"
	for name, site := range map[string]string{
		"nothing":             "",
		"nothing in a block":  "handle /other {\nrespond no\n}",
		"nothing in buffers":  buffers,
		"a response route":    app + handleAll,
		"intercept's":         "intercept" + handleAll + "respond gone 410",
		"an error":            "error 404",
		"an error in buffers": root + buffers + "file_server {\nprecompressed gzip\n}",
		"try_files":           root + "try_files {path} =404\nfile_server",
		"a page":              `respond "<h1>nope</h1>" 404`,
		"a page in buffers":   buffers + `respond "<h1>nope</h1>" 404`,
		"an empty 404":        "respond 404",
	} {
		t.Run(name, func(t *testing.T) {
			s := startSite(t, "not_found\n"+site)
			page := getPage(t, s.Client, "http://a.test/docs/nothing?x=1")
			page.WantHeader(t, "Content-Encoding", "")
		})
	}
}
