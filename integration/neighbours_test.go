package integration

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestHandlerThatWritesNothingHasAnswered has such a handler wherever a page could stand in for it.
func TestHandlerThatWritesNothingHasAnswered(t *testing.T) {
	directive := testcaddy.Directive(t, silent)
	app := testcaddy.Backend(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusGone) })
	const all = "not_found {\nreplace all\n}\n"
	s, hosts := testcaddy.StartSites(t, "&(silent) {\n"+directive+"\n}\n", map[string]string{
		"in a route":        all + "route {\n" + directive + "\nrespond no\n}",
		"in a named route":  all + "invoke silent",
		"after encode":      all + "encode\n" + directive,
		"after templates":   all + "templates\n" + directive,
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

// silent answers as caddy-webdav answers OPTIONS and caddy-s3-proxy answers PUT: it returns without writing, and net/http
// makes an empty 200 of that.
func silent(w http.ResponseWriter, _ *http.Request, _ caddyhttp.Handler) error {
	w.Header().Set("Allow", "OPTIONS, GET")
	return nil
}

// buffering returns a directive that records the response of the next handlers, and then writes it in one way or another.
func buffering(t *testing.T, write func(w http.ResponseWriter, rec caddyhttp.ResponseRecorder) error) string {
	return testcaddy.Directive(t, func(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
		rec := caddyhttp.NewResponseRecorder(w, new(bytes.Buffer), func(int, http.Header) bool { return true })
		if err := next.ServeHTTP(rec, r); err != nil {
			return err
		}
		return write(w, rec)
	})
}

// countingLength writes a response with the length of what was recorded.
func countingLength(_ http.ResponseWriter, rec caddyhttp.ResponseRecorder) error {
	rec.Header().Set("Content-Length", fmt.Sprint(rec.Buffer().Len()))
	return rec.WriteResponse()
}

// TestEmptyBufferIsNotAnAnswer has middlewares buffer the response of the next handlers. What they write is empty if nothing
// answered, and must not count as an answer.
func TestEmptyBufferIsNotAnAnswer(t *testing.T) {
	rest := "handle /empty {\nrespond 200\n}\nhandle /silent {\n" + testcaddy.Directive(t, silent) + "\n}\nhandle /body {\nrespond \"a body\"\n}\nerror /error 404"
	sites := map[string]string{
		"the status if there is one, and the buffer": buffering(t, func(w http.ResponseWriter, rec caddyhttp.ResponseRecorder) error {
			if rec.Status() > 0 { // as caddyserver/replace-response does
				w.WriteHeader(rec.Status())
			}
			_, err := w.Write(rec.Buffer().Bytes())
			return err
		}),
		"the length and the response": buffering(t, countingLength),
	}
	for name := range sites {
		sites[name] += "\n" + rest
	}
	s, hosts := testcaddy.StartSites(t, "", sites)
	for name, host := range hosts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, path := range []string{"/nothing", "/error"} {
				uri := "http://" + host + path
				get, head := s.Get(t, uri), s.Do(t, "HEAD", uri)
				get.WantPage(t, "GET", uri, "")
				if got, want := head.Undated(), get.Undated(); head.StatusCode != 404 || !reflect.DeepEqual(got, want) {
					t.Errorf("HEAD %s: got %d %v, want 404 %v", path, head.StatusCode, got, want)
				}
			}
			s.Get(t, "http://"+host+"/empty").Want(t, 200, "")
			s.Get(t, "http://"+host+"/silent").Want(t, 200, "")
			s.Get(t, "http://"+host+"/body").Want(t, 200, "a body")
			for _, entry := range s.Logs.WaitForHost(t, "handled request", host, 7) {
				uri := entry["request"].(map[string]any)["uri"]
				if want := map[any]string{"/nothing": "unanswered", "/error": "error"}[uri]; entry["cause"] != want {
					t.Errorf("%s: got the cause %q, want %q", uri, entry["cause"], want)
				}
			}
		})
	}
}

// TestHEADIsJudgedByItsType has a middleware count the body of a response to HEAD, which has none.
func TestHEADIsJudgedByItsType(t *testing.T) {
	app := testcaddy.Backend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.URL.Path[1:])
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, "theirs")
	})
	s := testcaddy.Start(t, "http://a.test:0 {\nnot_found\n"+buffering(t, countingLength)+"\nreverse_proxy "+app+"\n}")
	for theirs, want := range map[string]string{"application/json": "application/json", "text/html": "text/plain; charset=utf-8"} {
		for _, method := range []string{"GET", "HEAD"} {
			s.Do(t, method, "http://a.test/"+theirs).WantHeader(t, "Content-Type", want)
		}
	}
}

// TestInterfacesAreThoseWithoutThePage has a handler look for what its writer can do, with not_found and without it, where
// Caddy's own writers differ. Handlers that flush because they can cost a client the rest of its request's body.
func TestInterfacesAreThoseWithoutThePage(t *testing.T) {
	look := testcaddy.Directive(t, func(w http.ResponseWriter, _ *http.Request, _ caddyhttp.Handler) error {
		_, isFlusher := w.(http.Flusher)
		_, isHijacker := w.(http.Hijacker)
		_, isReaderFrom := w.(io.ReaderFrom)
		rc := http.NewResponseController(w)
		_, err := fmt.Fprint(w, isFlusher, isHijacker, ";", isReaderFrom, rc.Flush(), rc.SetReadDeadline(time.Time{}), rc.EnableFullDuplex())
		return err
	})
	seen := make(map[string]bool)
	for _, options := range []string{"", "servers {\ntimeouts {\nread_body_idle -1s\nwrite_idle -1s\n}\n}"} {
		for _, log := range []string{"", "log"} {
			t.Run(log+options, func(t *testing.T) {
				const site = "http://%s.test:0 {\n%s\nroute {\n%s\n%s\n}\n}\n"
				s := testcaddy.Start(t, fmt.Sprintf(site, "with", log, "not_found", look)+fmt.Sprintf(site, "without", log, "", look), options)
				with, without := s.Get(t, "http://with.test/"), s.Get(t, "http://without.test/")
				if with.Content != without.Content {
					t.Errorf("got %s, want %s", with.Content, without.Content)
				}
				interfaces, _, _ := strings.Cut(without.Content, ";")
				seen[interfaces] = true
			})
		}
	}
	if !seen["true true"] || !seen["false false"] || !seen["false true"] {
		t.Errorf("Caddy's own writers are a Flusher and a Hijacker: %v", seen)
	}
}

// TestRequestHeaderIsForTheBackend has request_header change the fields that the page is made of, after not_found.
func TestRequestHeaderIsForTheBackend(t *testing.T) {
	s := testcaddy.Start(t, strings.ReplaceAll(`
http://set.test:0 {
	not_found
	request_header Accept application/json
	request_header X-Forwarded-Host internal.local
	request_header X-Forwarded-Proto http
	request_header Host internal.local
	reverse_proxy /none APP
}
http://added.test:0 {
	not_found
	request_header +Accept application/json
	request_header +X-Forwarded-Host internal.local
	request_header +X-Forwarded-Proto http
	reverse_proxy /none APP
}
http://before.test:0 {
	route {
		request_header Accept application/json
		request_header Host www.example.com
		not_found
	}
}`, "APP", testcaddy.Backend(t, testcaddy.MissingPage)), "servers {\ntrusted_proxies static 127.0.0.0/8\n}")
	for _, host := range []string{"http://set.test", "http://added.test"} {
		for _, path := range []string{"/x", "/none"} {
			res := s.Get(t, host+path, "Accept: text/html", "X-Forwarded-Host: www.example.com", "X-Forwarded-Proto: https")
			res.WantHeader(t, "Content-Type", "text/html; charset=utf-8")
			if got, want := testcaddy.FieldsOf(t, res).URI, "https://www.example.com"+path; got != want {
				t.Errorf("%s: got the address %s, want %s", host, got, want)
			}
			s.Get(t, host+path).WantPage(t, "GET", host+path, "")
		}
	}
	// two lines of Accept are one field
	s.Get(t, "http://set.test/x", "Accept: text/plain;q=0.1", "Accept: application/xml").WantHeader(t, "Content-Type", "application/xml; charset=utf-8")
	// what comes before not_found counts
	before := s.Get(t, "http://before.test/x", "Accept: text/html")
	before.WantHeader(t, "Content-Type", "application/json")
	if got, want := testcaddy.FieldsOf(t, before).URI, "http://www.example.com/x"; got != want {
		t.Errorf("got the address %s, want %s", got, want)
	}
}
