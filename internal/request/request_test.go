package request

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// read reads a request as Caddy passes it to a handler, from a proxy that is trusted.
func read(r *http.Request) *Request { return readFrom(r, true) }

// readFrom reads a request from a client that trusted_proxies has, or has not.
func readFrom(r *http.Request, isTrusted bool) *Request {
	vars := map[string]any{caddyhttp.TrustedProxyVarKey: isTrusted}
	ctx := context.WithValue(r.Context(), caddyhttp.VarsCtxKey, vars)
	ctx = context.WithValue(ctx, caddy.ReplacerCtxKey, caddy.NewReplacer())
	req := new(Request)
	req.Read(r.WithContext(ctx))
	return req
}

// TestFieldsAreLists reads lists as proxies write them, in any case and with blanks, and an Accept of two lines. Of a
// list that no client needs, little is read.
func TestFieldsAreLists(t *testing.T) {
	r := httptest.NewRequest("GET", "/", nil)
	r.Header = http.Header{
		"X-Forwarded-Proto": {"http", "HTTPS , http"},
		"X-Forwarded-Host":  {"a.test", "[2001:db8::1]:1 , b.test"},
		"Accept":            {"text/html;q=0.1", "text/plain"},
		"Accept-Encoding":   {"gzip", strings.Repeat("br;q=0.99,", 5000)},
	}
	got := read(r)
	asked := got.Asked()
	if asked.Authority != "[2001:db8::1]:1" || asked.Scheme != "https" {
		t.Errorf("got the origin %s://%s, want that of the last line", asked.Scheme, asked.Authority)
	}
	if got.Accept != "text/html;q=0.1,text/plain" {
		t.Errorf("got Accept %q", got.Accept)
	}
	if want := "gzip" + strings.Repeat(",br;q=0.99", 101); got.AcceptEncoding != want {
		t.Errorf("got %d bytes of Accept-Encoding, want %d: %q", len(got.AcceptEncoding), len(want), got.AcceptEncoding)
	}
}

// TestForwardedFieldsThatDoNotCount has a client that is no trusted proxy, and a proxy that sends what is no host and no
// scheme of the web.
func TestForwardedFieldsThatDoNotCount(t *testing.T) {
	for isTrusted, header := range map[bool]http.Header{
		false: {"X-Forwarded-Proto": {"http"}, "X-Forwarded-Host": {"b.test"}},
		true:  {"X-Forwarded-Proto": {"x"}, "X-Forwarded-Host": {"b.test/x"}},
	} {
		r := httptest.NewRequest("GET", "https://a.test/", nil)
		r.Header = header
		asked := readFrom(r, isTrusted).Asked()
		if asked.Authority != "a.test" || asked.Scheme != "https" {
			t.Errorf("trusted: %v: got the origin %s://%s, want the request's own", isTrusted, asked.Scheme, asked.Authority)
		}
	}
}

// TestVaryByClient has the header fields of browsers, of their scripts, and of programs. A client accepts anything,
// unless the case says what.
func TestVaryByClient(t *testing.T) {
	const html = "text/html,*/*;q=0.8"
	for name, tt := range map[string]struct {
		mode     string // Sec-Fetch-Mode
		dest     string // Sec-Fetch-Dest
		upgrades string // Upgrade-Insecure-Requests
		accept   string

		isScript  bool
		opensPage bool
	}{
		"curl":                       {},
		"a browser, over plain HTTP": {accept: html, opensPage: true},
		"a script element":           {mode: "cors", dest: "script"},
		"fetch":                      {mode: "cors", dest: "empty", isScript: true},
		"fetch of the same origin":   {mode: "same-origin", dest: "empty", isScript: true},
		"fetch of a fragment": {
			mode:      "cors",
			dest:      "empty",
			accept:    "TEXT/HTML",
			isScript:  true,
			opensPage: true,
		},
		"node":                         {mode: "cors", isScript: true},
		"what a service worker passes": {mode: "navigate", dest: "empty", opensPage: true},
		"what Firefox's one passes": {
			mode:      "same-origin",
			dest:      "empty",
			upgrades:  "1",
			accept:    html,
			opensPage: true,
		},
		"a prefetched page": {mode: "no-cors", dest: "empty", accept: html, opensPage: true},
		"a beacon":          {mode: "no-cors", dest: "empty"},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Sec-Fetch-Mode", tt.mode)
		r.Header.Set("Sec-Fetch-Dest", tt.dest)
		r.Header.Set("Accept", cmp.Or(tt.accept, "*/*"))
		if tt.upgrades != "" {
			r.Header.Set("Upgrade-Insecure-Requests", tt.upgrades)
		}
		got := read(r)
		if got.IsScript != tt.isScript {
			t.Errorf("%s: is a script: %v", name, got.IsScript)
		}
		if got.OpensPage() != tt.opensPage {
			t.Errorf("%s: opens a page: %v", name, got.OpensPage())
		}
	}
}

// TestMarkOfTheEndIsCleared has Caddy's access log not say NOP for a page. Where there is no mark, nothing is written.
func TestMarkOfTheEndIsCleared(t *testing.T) {
	r := read(httptest.NewRequest("GET", "/", nil))
	r.SetHandled()
	if _, ok := r.vars["unhandled"]; ok {
		t.Error("without a mark, the variables are written")
	}
	r.vars["unhandled"] = true
	if !r.IsUnhandled() {
		t.Error("the mark is not found")
	}
	if r.SetHandled(); r.IsUnhandled() {
		t.Error("the mark is still there")
	}
}

// upload is a request with a body of 1 MiB.
type upload struct {
	length  int64 // Content-Length
	proto   int
	closes  bool  // Connection: close
	isPlain bool  // read_body_idle is off
	proxied bool  // an upstream was asked
	read    int64 // bytes that the next handlers have read

	fullDuplex bool // enable_full_duplex
	awaits100  bool // Expect: 100-continue
}

// TestBodyIsReadOrItsConnectionEnds has bodies that the next handlers have read in part, to their end or not at all.
// Where Caddy has no deadline for bodies, net/http itself decides.
func TestBodyIsReadOrItsConnectionEnds(t *testing.T) {
	const (
		size  = 1 << 20
		limit = 256<<10 + 1
	)
	for name, tt := range map[string]struct {
		upload    upload
		discarded int64
		closes    bool
	}{
		"too long":           {upload: upload{length: size, proto: 1}, discarded: limit, closes: true},
		"too long, chunked":  {upload: upload{length: -1, proto: 1}, discarded: limit, closes: true},
		"at its limit":       {upload: upload{length: -1, proto: 1, read: size - limit + 1}, discarded: limit - 1},
		"read":               {upload: upload{length: size, proto: 1, read: size}},
		"none":               {upload: upload{length: 0, proto: 1}},
		"HTTP/2":             {upload: upload{length: -1, proto: 2}},
		"HTTP/3":             {upload: upload{length: -1, proto: 3}, discarded: limit},
		"HTTP/3, proxied":    {upload: upload{length: -1, proto: 3, proxied: true}},
		"HTTP/3, duplex":     {upload: upload{length: -1, proto: 3, isPlain: true, fullDuplex: true}},
		"Connection: close":  {upload: upload{length: -1, proto: 1, closes: true}, discarded: limit, closes: true},
		"no deadline":        {upload: upload{length: -1, proto: 1, isPlain: true}},
		"full duplex":        {upload: upload{length: -1, proto: 1, isPlain: true, fullDuplex: true}, closes: true},
		"held back":          {upload: upload{length: size, proto: 1, awaits100: true}, closes: true},
		"proxied":            {upload: upload{length: -1, proto: 1, proxied: true}, closes: true},
		"proxied in part":    {upload: upload{length: -1, proto: 1, proxied: true, read: size - 1}, closes: true},
		"proxied to its end": {upload: upload{length: -1, proto: 1, proxied: true, read: size}},
	} {
		body := bytes.NewReader(make([]byte, size))
		from := httptest.NewRequest("POST", "/", body)
		from.ContentLength = tt.upload.length
		from.ProtoMajor = tt.upload.proto
		from.Close = tt.upload.closes
		if tt.upload.awaits100 {
			from.Header.Set("Expect", "100-Continue")
		}
		replacer := caddy.NewReplacer()
		ctx := context.WithValue(from.Context(), caddy.ReplacerCtxKey, replacer)
		server := &caddyhttp.Server{EnableFullDuplex: tt.upload.fullDuplex}
		ctx = context.WithValue(ctx, caddyhttp.ServerCtxKey, server)
		if !tt.upload.isPlain {
			reader := &caddyhttp.IdleTimeoutReader{
				ReadCloser: from.Body,
				Ctrl:       http.NewResponseController(httptest.NewRecorder()), // which has no deadlines
				Logger:     zap.NewNop(),
			}
			from.Body = reader
			ctx = caddyhttp.ContextWithIdleTimeouts(ctx, reader, nil)
		}
		r := new(Request)
		r.Read(from.WithContext(ctx))
		_, _ = io.CopyN(io.Discard, from.Body, tt.upload.read)
		if tt.upload.proxied {
			replacer.Set("http.reverse_proxy.upstream.hostport", "a.test:80")
		}

		before := body.Len()
		w := httptest.NewRecorder()
		r.EndBody(w)
		if got := int64(before - body.Len()); got != tt.discarded {
			t.Errorf("%s: discarded %d bytes, want %d", name, got, tt.discarded)
		}
		if closes := w.Header().Get("Connection") == "close"; closes != tt.closes {
			t.Errorf("%s: the connection ends: %v", name, closes)
		}
	}
}
