package notfound

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"go.uber.org/zap"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/page"
	"github.com/caddy-notfound/notfound/internal/report"
	"github.com/caddy-notfound/notfound/internal/testcaddy"
	"github.com/caddy-notfound/notfound/internal/uri"
)

// skipInput is called for input that is refused before it reaches the handler. A seed that is refused tests nothing, so it
// fails unless the fuzzer runs.
func skipInput(t *testing.T, why any) {
	t.Helper()
	if flag.Lookup("test.fuzz").Value.String() == "" {
		t.Errorf("this seed is refused: %v", why)
	}
}

var messagePattern = regexp.MustCompile("^No endpoint ([!#$%&'*+.^_`|~0-9A-Za-z-]+) /missing\\.html\\.$")

// sentRequest is a request as a client may send it.
type sentRequest struct {
	method, target, host           string
	forwardedProto, forwardedHost  string
	trusted, secure, http2, http10 bool
}

const localAddress = "192.0.2.1:8080"

// received returns the request that net/http's server would pass to a handler. It includes some that net/http's server and
// Caddy would refuse, mostly for their host.
func (s sentRequest) received() (r *http.Request, err error) {
	if s.http2 {
		r, err = s.receivedHTTP2()
	} else {
		minor := 1
		if s.http10 {
			minor = 0
		}
		raw := fmt.Sprintf("%s %s HTTP/1.%d\r\nHost: %s\r\nX-Forwarded-Proto: %s\r\nX-Forwarded-Host: %s\r\n\r\n",
			s.method, s.target, minor, s.host, s.forwardedProto, s.forwardedHost)
		r, err = http.ReadRequest(bufio.NewReader(strings.NewReader(raw)))
	}
	if err != nil {
		return nil, err
	}
	r.RemoteAddr = "192.0.2.2:1234"
	if s.secure {
		r.TLS = new(tls.ConnectionState)
	}
	local, err := net.ResolveTCPAddr("tcp", localAddress)
	if err != nil {
		return nil, err
	}
	return r.WithContext(context.WithValue(context.Background(), http.LocalAddrContextKey, local)), nil
}

// receivedHTTP2 returns the request as over HTTP/2 and HTTP/3. A pseudo-header field may have every byte that a value of a
// field may have, so the method need not be a token.
func (s sentRequest) receivedHTTP2() (r *http.Request, err error) {
	r = &http.Request{
		Method: s.method, RequestURI: s.target, Host: s.host, Proto: "HTTP/2.0", ProtoMajor: 2,
		Header: http.Header{"X-Forwarded-Proto": {s.forwardedProto}, "X-Forwarded-Host": {s.forwardedHost}},
	}
	for _, value := range []string{s.method, s.target, s.host, s.forwardedProto, s.forwardedHost} {
		if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return nil, fmt.Errorf("invalid value %q of a field", value)
		}
	}
	if s.method == "" {
		return nil, fmt.Errorf("no method")
	}
	if s.method == http.MethodConnect {
		r.RequestURI, r.URL = s.host, &url.URL{Host: s.host}
		return r, nil
	}
	r.URL, err = url.ParseRequestURI(s.target)
	return r, err
}

// FuzzRequest asks for the page in every representation, with a request as a client may send it. What the address has to be
// is the business of internal/page.
func FuzzRequest(f *testing.F) {
	f.Add("GET", "/docs/nothing?x=1", "a.test", "", "", false, false, false, false)
	f.Add("POST", "/<script>alert(\"x\")</script>?{{.}}&%zz%", "a.test:8080", "https", "b.test", true, false, false, false)
	f.Add("OPTIONS", "*", "[2001:db8::1]:81", "", "", false, true, false, false)
	f.Add("CONNECT", "b.test:443", "b.test:443", "", "", false, false, false, false)
	f.Add("GET", "http://me:secret@b.test:81/x?y", "a.test", "", "", false, false, false, true)
	f.Add("GET", "http:me:secret@b.test/x?y=@", "a.test", "", "", false, false, false, false)
	f.Add("GET", "x:/me@//b.test/@//[/?y", "a.test", "", "", false, false, false, false)
	f.Add("A <b>\"\xff", "/\xff?\u20ac", "b\u00fccher.test", "gopher", "\"><script>", true, false, true, false)

	h := provision(f, &Handler{Report: true})
	h.logger = zap.NewNop()
	f.Fuzz(func(t *testing.T, method, target, host, forwardedProto, forwardedHost string, trusted, secure, http2, http10 bool) {
		missed.Take()
		r, err := sentRequest{method, target, host, forwardedProto, forwardedHost, trusted, secure, http2, http10}.received()
		if err != nil {
			skipInput(t, err)
			return
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
		method = r.Method
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
				isOfRequest := u.Host == r.Host || u.Host == localAddress && !uri.ValidAuthority(r.Host) ||
					trusted && strings.HasPrefix(forwardedHost, u.Host)
				if strings.HasPrefix(r.RequestURI, "/") && (!isOfRequest || !strings.HasSuffix(got.URI, "://"+u.Host+uri.EncodeTarget(r.RequestURI))) {
					t.Errorf("got the address %q of %q", got.URI, r.RequestURI)
				}
				m := messagePattern.FindStringSubmatch(got.Message)
				if m == nil {
					t.Fatalf("got the message %q for the method %q", got.Message, method)
				}
				if res.Content != testcaddy.TextPage(m[1], got.URI, "") {
					t.Errorf("got the body\n%s", res.Content)
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

// FuzzCaddyfile takes any text as what follows the directive's name. If it is accepted, its JSON must mean the same, it must
// load unless a placeholder has an unusable value, and the fields of its page must be the same in every format.
func FuzzCaddyfile(f *testing.F) {
	f.Add("")
	f.Add("{\ncontext_path /app/\nbase_url https://a.test/\nuri {http.request.orig_uri}\nfooter \"<us> & you\"\nformats html json text xml problem markdown\nreplace all\ntemplate 404.html\n}")
	f.Add("{\nmessage \"{host} <b>\"\nkeep header X *\nreport\n}")
	f.Add("{\nfooter \"/{unknown} \\{x\\} {http.request.host}\"\n}")
	f.Add("{\nmessage x\ncontext_path /\n}")

	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "file.") { // a placeholder of a file that the fuzzer names, such as /dev/zero
			skipInput(t, "a file")
			return
		}
		tokens, err := caddyfile.Tokenize([]byte("not_found "+text), "Caddyfile")
		if err != nil {
			skipInput(t, err)
			return
		}
		h := new(Handler)
		if err := h.UnmarshalCaddyfile(caddyfile.NewDispenser(tokens)); err != nil {
			return
		}
		wantSameInJSON(t, h)

		if h.Template != "" {
			h.Template = "internal/page/page.html"
		}
		if err := provisionErr(t, h); err != nil {
			if !strings.Contains(h.Message+h.ContextPath+h.BaseURL+h.URI+h.Footer, "{") {
				t.Errorf("accepted, but not loaded: %v", err)
			}
			return
		}
		if strings.Contains(text, "time") || strings.Contains(text, "duration") || strings.Contains(text, "uuid") {
			return // they differ from one page to the next
		}
		h.logger = zap.NewNop()
		formats := h.Formats
		if len(formats) == 0 {
			formats = page.Formats()
		}
		var first testcaddy.Fields
		for _, format := range testcaddy.Formats {
			if !slices.Contains(formats, format.Name) {
				continue
			}
			rec := httptest.NewRecorder()
			r := httptest.NewRequest("GET", "http://a.test/%3C\"'?{http.request.host}", nil)
			r.Header.Set("Accept", format.MediaType)
			if err := h.ServeHTTP(rec, prepare(rec, r), caddyhttp.HandlerFunc(testcaddy.EndOfChain)); err != nil {
				t.Fatal(err)
			}
			got := testcaddy.FieldsOf(t, testcaddy.Recorded(rec))
			got.Footer = "" // problem details have none
			if first == (testcaddy.Fields{}) {
				first = got
			}
			if got != first {
				t.Errorf("%s: got %+v, want %+v as in another format", format.Name, got, first)
			}
		}
	})
}

// wantSameInJSON checks that a handler is the same once it was written as JSON and read.
func wantSameInJSON(t *testing.T, h *Handler) {
	t.Helper()
	encoded, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	fromJSON := new(Handler)
	if err := caddy.StrictUnmarshalJSON(encoded, fromJSON); err != nil || !reflect.DeepEqual(fromJSON, h) {
		t.Errorf("%s becomes %+v, %v", encoded, fromJSON, err)
	}
}
