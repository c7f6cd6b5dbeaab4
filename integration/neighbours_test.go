package integration

import (
	"net/http"
	"path/filepath"
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
	root := "root " + filepath.Dir(testcaddy.TempFile(t, "file.txt", "a file")) + "\n"
	app := "reverse_proxy " + testcaddy.Backend(t, application)
	buffers := "encode\n" + interceptNone + "templates\n"
	tests := map[string]struct{ site, cause string }{
		"nothing":             {"", "unanswered"},
		"nothing in a block":  {"handle /other {\nrespond no\n}", "unanswered"},
		"nothing in buffers":  {buffers, "unanswered"},
		"a response route":    {app + handleAll, "unanswered"},
		"intercept's":         {"intercept" + handleAll + "respond gone 410", "unanswered"},
		"an error":            {"invoke broken", "error"},
		"an error in buffers": {root + buffers + "file_server {\nprecompressed gzip\n}", "error"},
		"try_files":           {root + "try_files {path} =404\nfile_server", "error"},
		"a page":              {`respond "<h1>nope</h1>" 404`, "response"},
		"a page in buffers":   {buffers + `respond "<h1>nope</h1>" 404`, "response"},
		"an empty 404":        {"respond 404", "response"},
	}
	sites := make(map[string]string)
	for name, tt := range tests {
		sites[name] = tt.site
	}
	s, hosts := testcaddy.StartSites(t, "&(broken) {\nerror 404\n}\n", sites)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			uri := "http://" + hosts[name] + "/docs/nothing?x=1"
			res := s.Get(t, uri)
			res.WantPage(t, "GET", uri, "")
			res.WantHeader(t, "Content-Encoding", "")
			entry := s.Logs.WaitForHost(t, "handled request", hosts[name], 1)[0]
			if entry["cause"] != tt.cause {
				t.Errorf("the access log has the cause %v, want %s", entry["cause"], tt.cause)
			}
		})
	}
}

// TestEmptyWriteSendsTheHeader has a handler answer with an empty write, and the site's deferred header wait for that.
func TestEmptyWriteSendsTheHeader(t *testing.T) {
	writesNothing := testcaddy.Directive(t, func(w http.ResponseWriter, _ *http.Request, _ caddyhttp.Handler) error {
		_, err := w.Write(nil)
		return err
	})
	s := testcaddy.Start(t, "http://a.test:0 {\nheader >X-Deferred yes\nnot_found\n"+writesNothing+"\n}")
	s.Get(t, "http://a.test/").WantHeader(t, "X-Deferred", "yes")
}
