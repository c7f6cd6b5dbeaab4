package request

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// read reads a request as Caddy passes it to a handler, from a proxy that is trusted.
func read(r *http.Request) *Request {
	vars := map[string]any{caddyhttp.TrustedProxyVarKey: true}
	ctx := context.WithValue(r.Context(), caddyhttp.VarsCtxKey, vars)
	ctx = context.WithValue(ctx, caddy.ReplacerCtxKey, caddy.NewReplacer())
	req := new(Request)
	req.Read(r.WithContext(ctx))
	return req
}

// TestFieldsAreLists reads lists as proxies write them, in any case and with blanks, and an Accept of two lines.
func TestFieldsAreLists(t *testing.T) {
	r := httptest.NewRequest("GET", "/", nil)
	r.Header = http.Header{
		"X-Forwarded-Proto": {"http", "HTTPS , http"},
		"X-Forwarded-Host":  {"a.test", "[2001:db8::1]:1 , b.test"},
		"Accept":            {"text/html;q=0.1", "text/plain"},
	}
	got := read(r)
	asked := got.Asked()
	if asked.Authority != "[2001:db8::1]:1" || asked.Scheme != "https" {
		t.Errorf("got the origin %s://%s, want that of the last line", asked.Scheme, asked.Authority)
	}
	if got.Accept != "text/html;q=0.1,text/plain" {
		t.Errorf("got Accept %q", got.Accept)
	}
}

// TestForwardedFieldsAreChecked has a trusted proxy send what is no host and no scheme of the web.
func TestForwardedFieldsAreChecked(t *testing.T) {
	r := httptest.NewRequest("GET", "/", nil)
	r.Host = "a.test"
	r.Header = http.Header{"X-Forwarded-Proto": {"x"}, "X-Forwarded-Host": {"b.test/x"}}
	asked := read(r).Asked()
	if asked.Authority != "a.test" || asked.Scheme != "http" {
		t.Errorf("got the origin %s://%s, want the request's own", asked.Scheme, asked.Authority)
	}
}

// TestWhoAsks has the header fields of browsers, of their scripts, and of programs.
func TestWhoAsks(t *testing.T) {
	for name, tt := range map[string]struct {
		mode, dest, accept string

		isScript      bool
		opensPage     bool
		mayFollowLink bool
	}{
		"curl":                         {"", "", "*/*", false, false, true},
		"a browser, over plain HTTP":   {"", "", "text/html,*/*;q=0.8", false, true, true},
		"a navigation":                 {"navigate", "document", "text/html,*/*;q=0.8", false, true, true},
		"an image":                     {"no-cors", "image", "image/*", false, false, true},
		"a script element":             {"cors", "script", "*/*", false, false, true},
		"fetch":                        {"cors", "empty", "*/*", true, false, false},
		"fetch of the same origin":     {"same-origin", "empty", "*/*", true, false, false},
		"fetch of a fragment":          {"cors", "empty", "TEXT/HTML", true, true, true},
		"node":                         {"cors", "", "*/*", true, false, true},
		"what a service worker passes": {"navigate", "empty", "*/*", false, true, true},
		"a prefetched page":            {"no-cors", "empty", "text/html", false, true, true},
		"a beacon":                     {"no-cors", "empty", "*/*", false, false, false},
		"an older browser's fetch":     {"", "empty", "*/*", false, false, false},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Sec-Fetch-Mode", tt.mode)
		r.Header.Set("Sec-Fetch-Dest", tt.dest)
		r.Header.Set("Accept", tt.accept)
		got := read(r)
		if got.IsScript != tt.isScript || got.OpensPage() != tt.opensPage || got.MayFollowLink() != tt.mayFollowLink {
			t.Errorf("%s: script %v, opens a page %v, may follow a link %v",
				name, got.IsScript, got.OpensPage(), got.MayFollowLink())
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
