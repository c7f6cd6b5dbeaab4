package integration

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestHandlerThatWritesNothingHasAnswered puts such a handler wherever a page might take its place.
func TestHandlerThatWritesNothingHasAnswered(t *testing.T) {
	directive := testcaddy.Directive(t, silent)
	app := testcaddy.Backend(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusGone) })
	const all = "not_found {\nreplace all\n}\n"
	s, hosts := testcaddy.StartSites(t, "&(silent) {\n"+directive+"\n}\n", map[string]string{
		"in a route":        all + "route {\n" + directive + "\nrespond no\n}",
		"in a named route":  all + "invoke silent",
		"after encode":      all + "encode\n" + directive,
		"after templates":   all + "templates\n" + directive,
		"after intercept":   all + "encode\nintercept {\n@x status 418\nhandle_response @x {\nrespond no\n}\n}\n" + directive, // which writes the status 0
		"in a buffer":       all + buffering(t, echo) + "\nhandle {\n" + directive + "\n}",
		"in a counted one":  all + buffering(t, countingLength) + "\nhandle {\n" + directive + "\n}",
		"after a fallback":  all + "handle /other {\nrespond no\n}\n" + directive,
		"in handle_errors":  "error 404\nhandle_errors {\n" + all + directive + "\n}",
		"in response route": "reverse_proxy " + app + " {\n@gone status 410\nhandle_response @gone {\n" + all + directive + "\n}\n}",
	})
	for name, host := range hosts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, method := range []string{"GET", "HEAD", "OPTIONS", "PUT"} {
				res := s.Do(t, method, "http://"+host+"/x")
				res.Want(t, http.StatusOK, "")
				res.WantHeader(t, "Allow", "OPTIONS, GET")
				res.WantHeader(t, "Content-Type", "")
			}
		})
	}
}

// silent returns without writing, as caddy-webdav does for OPTIONS and caddy-s3-proxy for PUT. net/http sends an empty 200.
func silent(w http.ResponseWriter, _ *http.Request, _ caddyhttp.Handler) error {
	w.Header().Set("Allow", "OPTIONS, GET")
	return nil
}

// TestAnswersWhenNothingElseDoes has nothing answer, a 404 error and a 404 response, with the handlers that may hide which of
// them it is.
func TestAnswersWhenNothingElseDoes(t *testing.T) {
	root := "root " + filepath.Dir(testcaddy.TempFile(t, "file.txt", "a file")) + "\n"
	const intercept = "intercept {\n@x status 418\nhandle_response @x {\nrespond no\n}\n}\n"
	handles := func(handler string) string {
		return handler + " {\nhandle_response {\nnot_found\nrespond /other no\n}\n}\n"
	}
	gone := "reverse_proxy " + testcaddy.Backend(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "br")
		w.WriteHeader(http.StatusGone)
		io.WriteString(w, "theirs")
	})
	wrapped := func(http.ResponseWriter, *http.Request, caddyhttp.Handler) error {
		return fmt.Errorf("looking it up: %w", caddyhttp.Error(http.StatusNotFound, nil))
	}
	tests := map[string]struct{ site, cause string }{
		"nothing":                 {"", "unanswered"},
		"handle without an end":   {"handle /other {\nrespond no\n}", "unanswered"},
		"before intercept":        {"intercept {\nhandle_response {\nrespond no\n}\n}", "unanswered"},
		"before all of them":      {"encode\n" + intercept + "templates", "unanswered"},
		"before a rewrite":        {"rewrite /elsewhere", "unanswered"},
		"before a buffer":         {buffering(t, echo), "unanswered"},
		"before a counted buffer": {buffering(t, countingLength), "unanswered"},
		"in a response route":     {handles(gone), "unanswered"},
		"in intercept's":          {handles("intercept") + gone, "unanswered"},
		"error":                   {"error 404", "error"},
		"error in a handle block": {"handle {\nerror 404\n}", "error"},
		"error in a named route":  {"invoke broken", "error"},
		"error in a buffer":       {buffering(t, echo) + "\nerror 404", "error"},
		"wrapped error":           {testcaddy.Directive(t, wrapped), "error"},
		"file_server":             {root + "file_server", "error"},
		"file_server, encoded":    {root + "encode\ntemplates\n" + intercept + "file_server {\nprecompressed gzip\n}", "error"},
		"try_files":               {root + "try_files {path} =404\nfile_server", "error"},
		"page":                    {`respond "<h1>nope</h1>" 404`, "response"},
		"empty 404":               {"respond 404", "response"},
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
			get, head := s.Get(t, uri), s.Do(t, "HEAD", uri)
			get.WantPage(t, "GET", uri, "")
			get.WantHeader(t, "Content-Encoding", "")
			head.Want(t, http.StatusNotFound, "")
			if got, want := head.Undated(), get.Undated(); !reflect.DeepEqual(got, want) {
				t.Errorf("HEAD has the header %v, GET has %v", got, want)
			}
			for _, entry := range s.Logs.WaitForHost(t, "handled request", hosts[name], 2) {
				if entry["cause"] != tt.cause {
					t.Errorf("the access log has the cause %v, want %s", entry["cause"], tt.cause)
				}
			}
		})
	}
}

// buffering returns a directive that records the response of the next handlers, and then writes it.
func buffering(t *testing.T, write func(http.ResponseWriter, caddyhttp.ResponseRecorder) error) string {
	return testcaddy.Directive(t, func(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
		rec := caddyhttp.NewResponseRecorder(w, new(bytes.Buffer), func(int, http.Header) bool { return true })
		if err := next.ServeHTTP(rec, r); err != nil {
			return err
		}
		return write(w, rec)
	})
}

// echo writes the status, if there is one, and the buffer, as caddyserver/replace-response does.
func echo(w http.ResponseWriter, rec caddyhttp.ResponseRecorder) error {
	if rec.Status() > 0 {
		w.WriteHeader(rec.Status())
	}
	_, err := w.Write(rec.Buffer().Bytes())
	return err
}

// countingLength writes the response with the length of the buffer.
func countingLength(_ http.ResponseWriter, rec caddyhttp.ResponseRecorder) error {
	rec.Header().Set("Content-Length", fmt.Sprint(rec.Buffer().Len()))
	return rec.WriteResponse()
}
