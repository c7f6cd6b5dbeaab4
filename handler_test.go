package notfound

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAnswersWhenNothingElseDoes(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "file.txt"), []byte("a file"), 0o600); err != nil {
		t.Fatal(err)
	}

	sites := map[string]string{
		"nothing":              ``,
		"handle without end":   "handle /other {\nrespond no\n}",
		"below intercept":      "intercept {\nhandle_response {\nrespond no\n}\n}",
		"below templates":      `templates`,
		"below encode":         `encode`,
		"below all of them":    "encode\nintercept {\n@x status 418\nhandle_response @x {\nrespond no\n}\n}\ntemplates",
		"below a rewrite":      `rewrite /elsewhere`,
		"error":                `error 404`,
		"error with message":   `error "gone fishing" 404`,
		"file_server":          `root ` + root + "\nfile_server",
		"file_server, encoded": `root ` + root + "\nencode\ntemplates\nintercept {\n@x status 418\nhandle_response @x {\nrespond no\n}\n}\nfile_server {\nprecompressed gzip\n}",
		"try_files":            `root ` + root + "\ntry_files {path} =404\nfile_server",
		"error in a handle":    "handle {\nerror 404\n}",
		"error in an invoked":  `invoke broken`,
		"page":                 `respond "<h1>nope</h1>" 404`,
		"empty 404":            `respond 404`,
	}
	want := map[string]string{
		"nothing": "unanswered", "handle without end": "unanswered", "below intercept": "unanswered",
		"below templates": "unanswered", "below encode": "unanswered", "below all of them": "unanswered",
		"below a rewrite": "unanswered",
		"error":           "error", "error with message": "error", "file_server": "error",
		"file_server, encoded": "error", "try_files": "error", "error in a handle": "error",
		"error in an invoked": "error",
		"page":                "response", "empty 404": "response",
	}

	s, hosts := startSites(t, "&(broken) {\nerror 404\n}\n", sites)

	for name := range sites {
		t.Run(name, func(t *testing.T) {
			uri := "http://" + hosts[name] + "/docs/nothing?x=1"
			get := s.get(t, uri)
			get.wantPage(t, "GET", uri, "")

			head := s.do(t, "HEAD", uri)
			if head.body != "" {
				t.Errorf("HEAD has the body %q", head.body)
			}
			get.Header.Del("Date")
			head.Header.Del("Date")
			if got, want := fmt.Sprint(head.Header), fmt.Sprint(get.Header); got != want {
				t.Errorf("HEAD has the header %s, GET has %s", got, want)
			}

			entries := s.logs.waitForHost(t, "handled request", hosts[name], 2)
			for _, entry := range entries {
				if entry["cause"] != want[name] {
					t.Errorf("the access log has the cause %v, want %s", entry["cause"], want[name])
				}
			}
		})
	}
}

func TestPassesEverythingElse(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "file.txt"), []byte("a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	app := backend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, `{"status":404}`)
	})

	empty := backend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "0")
	})

	tests := map[string]struct {
		site   string
		status int
		body   string
	}{
		"empty 200 of a backend":   {"templates\nreverse_proxy " + empty, 200, ""},
		"200":                      {`respond "hello"`, 200, "hello"},
		"empty 200":                {`respond 200`, 200, ""},
		"empty 200 with templates": {"templates\nrespond 200", 200, ""},
		"204":                      {`respond 204`, 204, ""},
		"301":                      {`redir * /elsewhere permanent`, 301, ""},
		"403":                      {`error 403`, 403, ""},
		"405":                      {`respond "only GET" 405`, 405, "only GET"},
		"410":                      {`respond "gone" 410`, 410, "gone"},
		"418":                      {`respond "teapot" 418`, 418, "teapot"},
		"500":                      {`error 500`, 500, ""},
		"502 of a dead backend":    {`reverse_proxy 127.0.0.1:1`, 502, ""},
		"a file":                   {"root " + root + "\nfile_server", 200, "a file"},
		"a rendered file":          {"root " + root + "\ntemplates\nfile_server", 200, "a file"},
		"an API's 404":             {"reverse_proxy " + app, 404, `{"status":404}`},
		"handled 500":              {"error 500\nhandle_errors {\nrespond \"sorry\" 500\n}", 500, "sorry"},
	}
	sites := make(map[string]string)
	for name, tt := range tests {
		sites[name] = tt.site
	}
	s, hosts := startSites(t, "", sites)

	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.get(t, "http://"+hosts[name]+"/file.txt").want(t, tt.status, tt.body)
			s.do(t, "HEAD", "http://"+hosts[name]+"/file.txt").want(t, tt.status, "")
			entry := s.logs.waitForHost(t, "handled request", hosts[name], 1)[0]
			if entry["cause"] != "" {
				t.Errorf("the access log has the cause %v, want none", entry["cause"])
			}
		})
	}
}

func TestReplaceModes(t *testing.T) {
	app := backend(t, func(w http.ResponseWriter, r *http.Request) {
		if contentType := r.URL.Query().Get("type"); contentType != "" {
			w.Header().Set("Content-Type", contentType)
		} else {
			w.Header()["Content-Type"] = nil
		}
		if r.URL.Path == "/empty" {
			w.Header().Set("Content-Length", "0")
		}
		w.WriteHeader(http.StatusNotFound)
		if r.URL.Path != "/empty" {
			io.WriteString(w, "theirs")
		}
	})
	s := startCaddy(t, strings.ReplaceAll(`
http://default.test:0 {
	not_found
	reverse_proxy APP
}
http://pages.test:0 {
	not_found {
		replace pages
	}
	reverse_proxy APP
}
http://all.test:0 {
	not_found {
		replace all
	}
	reverse_proxy APP
}
http://none.test:0 {
	not_found {
		replace none
	}
	handle /error {
		error 404
	}
	handle /unanswered {
	}
	handle {
		reverse_proxy APP
	}
}`, "APP", app))

	pages := []string{
		"", "text/html", "TEXT/HTML; charset=utf-8", "text/html;charset=latin1", "application/xhtml+xml",
		"text/plain", " text/plain ;x=y", ";",
	}
	answers := []string{
		"application/json", "application/problem+json; charset=utf-8", "APPLICATION/VND.API+JSON",
		"application/xml", "text/xml", "image/png", "application/grpc", "text/css", "text/event-stream",
		"application/octet-stream", "text/htmlx",
	}
	for _, contentType := range append(pages, answers...) {
		t.Run(contentType, func(t *testing.T) {
			t.Parallel()
			isAnswer := false
			for _, answer := range answers {
				isAnswer = isAnswer || contentType == answer
			}
			for host, replaced := range map[string]bool{"default": !isAnswer, "pages": !isAnswer, "all": true, "none": false} {
				req, _ := http.NewRequest("GET", "http://"+host+".test/x", nil)
				q := req.URL.Query()
				q.Set("type", contentType)
				req.URL.RawQuery = q.Encode()
				if res := s.send(t, req); replaced {
					res.wantPage(t, "GET", req.URL.String(), "")
				} else {
					res.want(t, 404, "theirs")
				}
			}
			if contentType == "application/json" {
				// an answer without a body is no answer
				uri := "http://pages.test/empty?type=application/json"
				s.get(t, uri).wantPage(t, "GET", uri, "")
			}
		})
	}
	t.Run("none still answers", func(t *testing.T) {
		for _, uri := range []string{"http://none.test/error", "http://none.test/unanswered"} {
			s.get(t, uri).wantPage(t, "GET", uri, "")
		}
	})
}
