package notfound

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// silent answers as caddy-webdav answers OPTIONS, and caddy-s3-proxy PUT: it returns without writing, which net/http
// makes an empty 200 of.
func silent(w http.ResponseWriter, _ *http.Request, _ caddyhttp.Handler) error {
	w.Header().Set("Allow", "OPTIONS, GET")
	return nil
}

// TestHandlerThatWritesNothingHasAnswered compares each site with the same one without the handler.
func TestHandlerThatWritesNothingHasAnswered(t *testing.T) {
	directive := goDirective(t, silent)
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
	app := backend(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusGone) })
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
	s := startCaddy(t, caddyfile)
	for name, host := range hosts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, method := range []string{"GET", "HEAD", "OPTIONS", "PUT", "DELETE"} {
				with := s.do(t, method, "http://with."+host+"/x", "Accept-Encoding: gzip")
				without := s.do(t, method, "http://without."+host+"/x", "Accept-Encoding: gzip")
				with.want(t, http.StatusOK, "")
				with.wantHeader(t, "Allow", "OPTIONS, GET")
				without.want(t, http.StatusOK, "")
				if got, want := fmt.Sprint(undated(with)), fmt.Sprint(undated(without)); got != want {
					t.Errorf("%s: got the header %s, and without the handler %s", method, got, want)
				}
			}
		})
	}
}

// buffered is a response writer that keeps everything for itself.
type buffered struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *buffered) Header() http.Header         { return w.header }
func (w *buffered) WriteHeader(status int)      { w.status = status }
func (w *buffered) Write(p []byte) (int, error) { return w.body.Write(p) }

// TestEmptyBufferIsNoAnswer has middlewares buffer what comes after them, and write what they buffered in the ways that there are.
// Where the end of the chain was reached, it is nothing.
func TestEmptyBufferIsNoAnswer(t *testing.T) {
	record := func(write func(w http.ResponseWriter, rec caddyhttp.ResponseRecorder) error) goFunc {
		return func(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
			rec := caddyhttp.NewResponseRecorder(w, new(bytes.Buffer), func(int, http.Header) bool { return true })
			if err := next.ServeHTTP(rec, r); err != nil {
				return err
			}
			return write(w, rec)
		}
	}
	middlewares := map[string]goFunc{
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
		"a copy": record(func(w http.ResponseWriter, rec caddyhttp.ResponseRecorder) error {
			if rec.Status() > 0 {
				w.WriteHeader(rec.Status())
			}
			_, err := io.Copy(w, io.LimitReader(rec.Buffer(), 1<<20)) // a reader without WriteTo
			return err
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
	fallback := goDirective(t, func(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
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
}`, host, goDirective(t, middleware), goDirective(t, silent), fallback)
	}
	s := startCaddy(t, caddyfile.String())
	for name, host := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, path := range []string{"/nothing", "/error"} {
				uri := "http://" + host + path
				get, head := s.get(t, uri), s.do(t, "HEAD", uri)
				get.wantPage(t, "GET", uri, "")
				if head.StatusCode != 404 || fmt.Sprint(undated(head)) != fmt.Sprint(undated(get)) {
					t.Errorf("HEAD %s: got %d %v", path, head.StatusCode, head.Header)
				}
			}
			s.get(t, "http://"+host+"/empty").want(t, 200, "")
			s.do(t, "HEAD", "http://"+host+"/empty").want(t, 200, "")
			s.get(t, "http://"+host+"/silent").want(t, 200, "")
			s.get(t, "http://"+host+"/body").want(t, 200, "a body")
			s.get(t, "http://"+host+"/made-up").want(t, 200, "made up")
			// of all but /made-up, which Caddy calls NOP
			for _, entry := range s.logs.waitForHost(t, "handled request", host, 8) {
				uri := entry["request"].(map[string]any)["uri"]
				want := map[any]string{"/nothing": "unanswered", "/error": "error"}[uri]
				if entry["cause"] != want {
					t.Errorf("%s: got the cause %q, want %q", uri, entry["cause"], want)
				}
			}
		})
	}
}

// TestRequestHeaderIsForTheBackend has request_header change what the page goes by, after not_found.
func TestRequestHeaderIsForTheBackend(t *testing.T) {
	app := backend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusNotFound)
	})
	s := startCaddy(t, strings.ReplaceAll(`
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
		not_found
	}
}`, "APP", app), "servers {\ntrusted_proxies static 127.0.0.0/8\n}")
	for _, host := range []string{"set", "removed", "replaced", "added"} {
		for _, path := range []string{"/x", "/proxied"} {
			res := s.get(t, "http://"+host+".test"+path, "Accept: text/html", "X-Forwarded-Host: www.example.com", "X-Forwarded-Proto: https")
			res.wantHeader(t, "Content-Type", "text/html; charset=utf-8")
			if got, want := fieldsOf(t, res).URI, "https://www.example.com"+path; got != want {
				t.Errorf("%s: got the address %s, want %s", host, got, want)
			}
			if host == "set" {
				uri := "http://www.example.com" + path
				s.get(t, uri).wantPage(t, "GET", uri, "")
			}
		}
	}
	// two lines of Accept are one field
	s.get(t, "http://set.test/x", "Accept: text/plain;q=0.1", "Accept: application/xml").wantHeader(t, "Content-Type", "application/xml; charset=utf-8")
	// what comes before not_found counts
	s.get(t, "http://before.test/x", "Accept: text/html").wantHeader(t, "Content-Type", "application/json")
}

// TestHeaderOfTheSiteStaysWhereNothingWasReplaced sets a policy, and removes Server, after not_found.
func TestHeaderOfTheSiteStaysWhereNothingWasReplaced(t *testing.T) {
	file := writeTemplate(t, "<h1>{{.Heading}}</h1>")
	app := backend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src theirs.test")
		w.Header().Set("Server", "theirs")
		w.WriteHeader(http.StatusNotFound)
	})
	// a header directive without defer sets fields at once, and a route in JSON can so delete them
	noServer := goDirective(t, func(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
		w.Header().Del("Server")
		return next.ServeHTTP(w, r)
	})
	site := `
	header /sets/* Content-Security-Policy "default-src site.test"
	not_found {
		TEMPLATE
	}
	handle /app/* {
		header Content-Security-Policy "default-src 'self'"
		` + noServer + `
		root /nowhere
		file_server
	}
	handle /errors/* {
		header Content-Security-Policy "default-src 'self'"
		` + noServer + `
		error 404
	}
	handle /unanswered/* {
		header Content-Security-Policy "default-src 'self'"
		` + noServer + `
	}
	handle /none/* {
		header Server mine
	}
	handle {
		reverse_proxy APP
	}`
	s := startCaddy(t, "http://builtin.test:0 {\n"+strings.NewReplacer("TEMPLATE", "", "APP", app).Replace(site)+"\n}\n"+
		"http://template.test:0 {\n"+strings.NewReplacer("TEMPLATE", "template "+file, "APP", app).Replace(site)+"\n}")
	for host, ownPolicy := range map[string]string{"builtin.test": builtinCSP, "template.test": ""} {
		for path, want := range map[string]struct{ policy, server string }{
			"/app/x":        {"default-src 'self'", ""},
			"/errors/x":     {"default-src 'self'", ""},
			"/unanswered/x": {"default-src 'self'", ""},
			"/none/x":       {ownPolicy, "mine"},
			"/proxied":      {ownPolicy, "Caddy"},
			"/sets/x":       {"default-src site.test", "Caddy"},
		} {
			res := s.get(t, "http://"+host+path, "Accept: text/html")
			if res.StatusCode != 404 || !strings.Contains(res.body, "No endpoint GET") {
				t.Errorf("%s: got %d %s", path, res.StatusCode, res.body)
			}
			t.Run(host+path, func(t *testing.T) {
				res.wantHeader(t, "Content-Security-Policy", want.policy)
				res.wantHeader(t, "Server", want.server)
			})
		}
	}
}
