package notfound

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"go.uber.org/zap"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/page"
	"github.com/caddy-notfound/notfound/internal/report"
	"github.com/caddy-notfound/notfound/internal/testcaddy"
	"github.com/caddy-notfound/notfound/internal/uri"
)

var messagePattern = regexp.MustCompile("^No endpoint ([!#$%&'*+.^_`|~0-9A-Za-z-]+) /missing\\.html\\.$")

// FuzzRequest asks for the page in every representation, with a request as a client may send it: over HTTP/2 and HTTP/3, the
// method and the authority may have every byte that a field may have. internal/page tests what the
// address must be.
func FuzzRequest(f *testing.F) {
	f.Add("GET", "/docs/nothing?x=1", "a.test", "", "", false, false)
	f.Add("POST", "/<script>alert(\"x\")</script>?{{.}}&%zz%", "a.test:8080", "https", "b.test", true, false)
	f.Add("OPTIONS", "*", "[2001:db8::1]:81", "", "", false, true)
	f.Add("CONNECT", "b.test:443", "b.test:443", "", "", false, false)
	f.Add("GET", "http://me:secret@b.test:81/x?y", "a.test", "", "", false, false)
	f.Add("GET", "http:me:secret@b.test/x?y=@", "a.test", "", "", false, false)
	f.Add("GET", "x:/me@//b.test/@//[/?y", "a.test", "", "", false, false)
	f.Add("A <b>\"\xff", "/\xff?\u20ac", "b\u00fccher.test", "gopher", "\"><script>", true, false)

	h := provision(f, &Handler{Report: true})
	h.logger = zap.NewNop()
	f.Fuzz(func(t *testing.T, method, target, host, forwardedProto, forwardedHost string, trusted, secure bool) {
		u, err := url.ParseRequestURI(target)
		inField := method + target + host + forwardedProto + forwardedHost
		if err != nil || method == "" || strings.ContainsFunc(inField, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			if flag.Lookup("test.fuzz").Value.String() == "" {
				t.Errorf("net/http refuses this seed, which tests nothing then: %v", err)
			}
			return
		}
		missed.Take()
		r := (&http.Request{URL: u, RequestURI: target, Host: host, Header: http.Header{
			"X-Forwarded-Proto": {forwardedProto}, "X-Forwarded-Host": {forwardedHost},
		}}).WithContext(context.Background())
		if secure {
			r.TLS = new(tls.ConnectionState)
		}
		ask := func(method, accept string) testcaddy.Response {
			r.Method = method
			r.Header.Set("Accept", accept)
			rec := httptest.NewRecorder()
			r := prepare(rec, r)
			caddyhttp.SetVar(r.Context(), caddyhttp.TrustedProxyVarKey, trusted)
			if err := h.ServeHTTP(rec, r, caddyhttp.HandlerFunc(testcaddy.EndOfChain)); err != nil {
				t.Fatal(err)
			}
			return testcaddy.Recorded(rec)
		}
		if method == http.MethodHead {
			method = http.MethodGet
		}
		var text testcaddy.Fields
		for _, representation := range testcaddy.Formats {
			res := ask(method, representation.MediaType)
			res.WantHeader(t, "Content-Type", representation.ContentType)
			for field, values := range res.Header {
				if strings.ContainsFunc(strings.Join(values, ""), unicode.IsControl) {
					t.Errorf("%s has the value %q", field, values)
				}
			}
			switch got := testcaddy.FieldsOf(t, res); {
			case representation.Name == "text":
				text = got
				u, err := url.Parse(got.URI)
				if err != nil || !u.IsAbs() || u.User != nil || u.Fragment != "" {
					t.Fatalf("the address %q is parsed as %#v, %v", got.URI, u, err)
				}
				isOfRequest := u.Host == host || u.Host == "localhost" && !uri.ValidAuthority(host) || trusted && strings.HasPrefix(strings.TrimSpace(forwardedHost), u.Host)
				if strings.HasPrefix(target, "/") && method != http.MethodConnect && !isOfRequest {
					t.Errorf("got the address %q", got.URI)
				}
				if !messagePattern.MatchString(got.Message) {
					t.Errorf("got the message %q", got.Message)
				}
			case got != text:
				t.Errorf("%s: got %+v, want %+v as in text", representation.Name, got, text)
			}
			if method != http.MethodGet {
				continue
			}
			if head := ask(http.MethodHead, representation.MediaType); head.Content != "" || !reflect.DeepEqual(head.Header, res.Header) {
				t.Errorf("HEAD: got %v %q, want %v as for GET, and no body", head.Header, head.Content, res.Header)
			}
		}

		// whatever a client sends, the report can be read
		missing, _ := missed.Snapshot()
		body, err := json.Marshal(missing)
		if err != nil {
			t.Fatal(err)
		}
		if read, err := report.Parse(body); err != nil || len(read.Addresses) != 1 {
			t.Errorf("the report %s is read as %+v, %v", body, read, err)
		}
	})
}

// FuzzCaddyfile takes any text for the options. Accepted ones survive JSON, load unless a placeholder has an invalid
// value, and give a page.
func FuzzCaddyfile(f *testing.F) {
	f.Add("context_path /app/\nbase_url https://a.test/\nuri {http.request.orig_uri}\nfooter \"<us> & you\"\nformats html json\nreplace all\ntemplate 404.html\ntemplate json 404.json")
	f.Add("message \"{host} <b>\"\nkeep {\nheader X *\nstatus 404\n}\nkeep header Y a\nreport")
	f.Add("footer \"/{unknown} \\{x\\} {http.request.host}\"")
	f.Add("message x\ncontext_path /")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "file.") { // a placeholder could name any file, such as /dev/zero
			return
		}
		tokens, err := caddyfile.Tokenize([]byte("not_found {\n"+text+"\n}"), "Caddyfile")
		if err != nil {
			return
		}
		h := new(Handler)
		if err := h.UnmarshalCaddyfile(caddyfile.NewDispenser(tokens)); err != nil {
			return
		}
		wantSameInJSON(t, h)
		for format := range h.Template {
			source, _ := page.BuiltIn(format)
			h.Template[format] = testcaddy.TempFile(t, "404", source)
		}
		if err := provisionErr(t, h); err != nil {
			if !strings.Contains(h.Message+h.ContextPath+h.BaseURL+h.URI+h.Footer, "{") {
				t.Errorf("accepted, but not loaded: %v", err)
			}
			return
		}
		h.logger = zap.NewNop()
		w := httptest.NewRecorder()
		if err := serve(h, w, "GET", "http://a.test/{http.request.host}", testcaddy.EndOfChain); err != nil || w.Body.Len() == 0 {
			t.Errorf("got %d %q, %v", w.Code, w.Body, err)
		}
	})
}
