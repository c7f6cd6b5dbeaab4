package integration

import (
	"bytes"
	"errors"
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

// TestHandlerThatWritesNothingHasAnswered compares each site with the same site without not_found.
func TestHandlerThatWritesNothingHasAnswered(t *testing.T) {
	directive := testcaddy.Directive(t, silent)
	sites := map[string]string{
		"alone":             directive,
		"in a handle":       "handle {\n" + directive + "\n}",
		"in a route":        "route {\n" + directive + "\nrespond no\n}",
		"in a named route":  "invoke silent",
		"after encode":      "encode\n" + directive,
		"after templates":   "templates\n" + directive,
		"after header":      "header X-Site yes\n" + directive,
		"after a fallback":  "handle /other {\nrespond no\n}\n" + directive,
		"in handle_errors":  "error 404\nhandle_errors {\nNOT_FOUND\n" + directive + "\n}",
		"in response route": "reverse_proxy APP {\n@gone status 410\nhandle_response @gone {\nNOT_FOUND\n" + directive + "\n}\n}",
	}
	app := testcaddy.Backend(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusGone) })
	caddyfile := "&(silent) {\n" + directive + "\n}\n"
	hosts := make(map[string]string)
	for name, site := range sites {
		site = strings.ReplaceAll(site, "APP", app)
		host := fmt.Sprintf("site%d.test", len(hosts))
		hosts[name] = host
		if !strings.Contains(site, "NOT_FOUND") {
			site = "NOT_FOUND\n" + site
		}
		caddyfile += "http://with." + host + ":0 {\n" + strings.ReplaceAll(site, "NOT_FOUND", "not_found {\nreplace all\n}") + "\n}\n" +
			"http://without." + host + ":0 {\n" + strings.ReplaceAll(site, "NOT_FOUND", "") + "\n}\n"
	}
	s := testcaddy.Start(t, caddyfile)
	for name, host := range hosts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, method := range []string{"GET", "HEAD", "OPTIONS", "PUT", "DELETE"} {
				with := s.Do(t, method, "http://with."+host+"/x", "Accept-Encoding: gzip")
				without := s.Do(t, method, "http://without."+host+"/x", "Accept-Encoding: gzip")
				with.Want(t, http.StatusOK, "")
				with.WantHeader(t, "Allow", "OPTIONS, GET")
				without.Want(t, http.StatusOK, "")
				if got, want := with.Undated(), without.Undated(); !reflect.DeepEqual(got, want) {
					t.Errorf("%s: got the header %v, want %v as without not_found", method, got, want)
				}
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

// TestEmptyBufferIsNotAnAnswer has middlewares buffer the response of the next handlers, and write it in every possible way.
// They write something that is empty if nothing answered, and it must not count as an answer.
func TestEmptyBufferIsNotAnAnswer(t *testing.T) {
	record := func(write func(w http.ResponseWriter, rec caddyhttp.ResponseRecorder) error) testcaddy.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
			rec := caddyhttp.NewResponseRecorder(w, new(bytes.Buffer), func(int, http.Header) bool { return true })
			if err := next.ServeHTTP(rec, r); err != nil {
				return err
			}
			return write(w, rec)
		}
	}
	middlewares := map[string]testcaddy.HandlerFunc{
		"the status if there is one, and the buffer": record(func(w http.ResponseWriter, rec caddyhttp.ResponseRecorder) error {
			if rec.Status() > 0 { // as caddyserver/replace-response does
				w.WriteHeader(rec.Status())
			}
			_, err := w.Write(rec.Buffer().Bytes())
			return err
		}),
		"an empty string": record(func(w http.ResponseWriter, rec caddyhttp.ResponseRecorder) error {
			if rec.Status() > 0 {
				w.WriteHeader(rec.Status())
			}
			_, err := io.WriteString(w, rec.Buffer().String())
			return err
		}),
		"the response": record(func(_ http.ResponseWriter, rec caddyhttp.ResponseRecorder) error { return rec.WriteResponse() }),
		"the length and the response": record(func(_ http.ResponseWriter, rec caddyhttp.ResponseRecorder) error {
			rec.Header().Set("Content-Length", fmt.Sprint(rec.Buffer().Len()))
			return rec.WriteResponse()
		}),
		"a response of its own": func(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
			b := &buffered{header: w.Header(), status: http.StatusOK}
			if err := next.ServeHTTP(b, r); err != nil {
				return err
			}
			w.WriteHeader(b.status)
			_, err := w.Write(b.body.Bytes())
			return err
		},
	}
	names := make(map[string]string)
	var caddyfile strings.Builder
	fallback := testcaddy.Directive(t, func(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
		if err := next.ServeHTTP(w, r); err != nil {
			return err
		}
		w.WriteHeader(http.StatusOK)
		_, err := io.WriteString(w, "made up")
		return err
	})
	for name, middleware := range middlewares {
		host := fmt.Sprintf("site%d.test", len(names))
		names[name] = host
		fmt.Fprintf(&caddyfile, `
http://%s:0 {
	log
	log_append cause {http.not_found.cause}
	not_found
	%s
	handle /empty {
		respond 200
	}
	handle /silent {
		%s
	}
	handle /body {
		respond "a body"
	}
	handle /made-up {
		%s
	}
	error /error 404
}`, host, testcaddy.Directive(t, middleware), testcaddy.Directive(t, silent), fallback)
	}
	s := testcaddy.Start(t, caddyfile.String())
	for name, host := range names {
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
			s.Do(t, "HEAD", "http://"+host+"/empty").Want(t, 200, "")
			s.Get(t, "http://"+host+"/silent").Want(t, 200, "")
			s.Get(t, "http://"+host+"/body").Want(t, 200, "a body")
			s.Get(t, "http://"+host+"/made-up").Want(t, 200, "made up")
			// all but /made-up, which Caddy logs as NOP
			for _, entry := range s.Logs.WaitForHost(t, "handled request", host, 8) {
				uri := entry["request"].(map[string]any)["uri"]
				want := map[any]string{"/nothing": "unanswered", "/error": "error"}[uri]
				if entry["cause"] != want {
					t.Errorf("%s: got the cause %q, want %q", uri, entry["cause"], want)
				}
			}
		})
	}
}

// TestHEADIsJudgedByItsType has a middleware count the body of a response to HEAD, which has none.
func TestHEADIsJudgedByItsType(t *testing.T) {
	app := testcaddy.Backend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/none" {
			w.Header()["Content-Type"] = nil
		} else {
			w.Header().Set("Content-Type", r.URL.Path[1:])
		}
		w.WriteHeader(http.StatusNotFound)
		if r.URL.Path != "/none" {
			io.WriteString(w, "theirs")
		}
	})
	count := testcaddy.Directive(t, func(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
		rec := caddyhttp.NewResponseRecorder(w, new(bytes.Buffer), func(int, http.Header) bool { return true })
		if err := next.ServeHTTP(rec, r); err != nil {
			return err
		}
		rec.Header().Set("Content-Length", fmt.Sprint(rec.Buffer().Len()))
		return rec.WriteResponse()
	})
	s := testcaddy.Start(t, "http://a.test:0 {\nnot_found\n"+count+"\nreverse_proxy "+app+"\n}")
	for path, replaced := range map[string]bool{"/application/json": false, "/text/html": true, "/none": true} {
		get, head := s.Get(t, "http://a.test"+path), s.Do(t, "HEAD", "http://a.test"+path)
		if isPage := strings.HasPrefix(get.Content, "HTTP ERROR 404"); isPage != replaced {
			t.Errorf("%s: got %q", path, get.Content)
		}
		if got, want := head.Header.Get("Content-Type"), get.Header.Get("Content-Type"); got != want {
			t.Errorf("%s: HEAD has the type %q, and GET %q", path, got, want)
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
		_, err := fmt.Fprintf(w, "Flusher %v, Hijacker %v, ReaderFrom %v, ", isFlusher, isHijacker, isReaderFrom)
		_, err = fmt.Fprintf(w, "%v, %v, %v", errors.Join(err, rc.Flush()), rc.SetReadDeadline(time.Time{}), rc.EnableFullDuplex())
		return err
	})
	seen := make(map[string]bool)
	for name, options := range map[string][]string{
		"with its timeouts": nil, "without timeouts": {"servers {\ntimeouts {\nread_body_idle -1s\nwrite_idle -1s\n}\n}"},
	} {
		for _, log := range []string{"", "log\n"} {
			t.Run(name+log, func(t *testing.T) {
				site := func(host, directives string) string {
					return "http://" + host + ":0 {\n" + log + "route {\n" + directives + look + "\n}\n}\n"
				}
				s := testcaddy.Start(t, site("with.test", "not_found\n")+site("without.test", ""), options...)
				with, without := s.Get(t, "http://with.test/"), s.Get(t, "http://without.test/")
				if with.Content != without.Content {
					t.Errorf("got\n%s\nwant\n%s", with.Content, without.Content)
				}
				interfaces, _, _ := strings.Cut(without.Content, ", ReaderFrom")
				seen[interfaces] = true
			})
		}
	}
	for _, interfaces := range []string{"Flusher true, Hijacker true", "Flusher false, Hijacker false", "Flusher false, Hijacker true"} {
		if !seen[interfaces] {
			t.Errorf("no writer of Caddy's had %s", interfaces)
		}
	}
}

// buffered is a response writer that passes nothing on.
type buffered struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *buffered) Header() http.Header { return w.header }

func (w *buffered) WriteHeader(status int) { w.status = status }

func (w *buffered) Write(p []byte) (int, error) { return w.body.Write(p) }

// TestRequestHeaderIsForTheBackend has request_header change the fields that the page is made of, after not_found.
func TestRequestHeaderIsForTheBackend(t *testing.T) {
	app := testcaddy.Backend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusNotFound)
	})
	s := testcaddy.Start(t, strings.ReplaceAll(`
http://set.test:0, http://www.example.com:0 {
	not_found
	request_header Accept application/json
	request_header X-Forwarded-Host internal.local
	request_header X-Forwarded-Proto https
	request_header Host internal.local
	reverse_proxy /proxied APP
}
http://removed.test:0 {
	not_found
	request_header -Accept
	request_header -X-Forwarded-Host
	request_header -X-Forwarded-Proto
	reverse_proxy /proxied APP
}
http://replaced.test:0 {
	not_found
	request_header Accept html json
	request_header X-Forwarded-Host example internal
	request_header X-Forwarded-Proto https http
	reverse_proxy /proxied APP
}
http://added.test:0 {
	not_found
	request_header +Accept application/json
	request_header +X-Forwarded-Host internal.local
	request_header +X-Forwarded-Proto http
	reverse_proxy /proxied APP
}
http://before.test:0 {
	route {
		request_header Accept application/json
		request_header Host www.example.com
		not_found
	}
}`, "APP", app), "servers {\ntrusted_proxies static 127.0.0.0/8\n}")
	for _, host := range []string{"set", "removed", "replaced", "added"} {
		for _, path := range []string{"/x", "/proxied"} {
			res := s.Get(t, "http://"+host+".test"+path, "Accept: text/html", "X-Forwarded-Host: www.example.com", "X-Forwarded-Proto: https")
			res.WantHeader(t, "Content-Type", "text/html; charset=utf-8")
			if got, want := testcaddy.FieldsOf(t, res).URI, "https://www.example.com"+path; got != want {
				t.Errorf("%s: got the address %s, want %s", host, got, want)
			}
			if host == "set" {
				uri := "http://www.example.com" + path
				s.Get(t, uri).WantPage(t, "GET", uri, "")
			}
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
