package notfound

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"go.uber.org/zap"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/page"
	"github.com/caddy-notfound/notfound/internal/report"
	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// skipInput is called for input that is refused before it reaches the handler. A seed that is refused tests nothing, so it
// fails unless the fuzzer runs.
func skipInput(t *testing.T, why any) {
	t.Helper()
	if flag.Lookup("test.fuzz").Value.String() == "" {
		t.Errorf("this seed is refused: %v", why)
	}
}

// acceptOf is an Accept field for each format.
var acceptOf = make(map[string]string)

func init() {
	for _, f := range testcaddy.Formats {
		acceptOf[f.Name] = f.MediaType
	}
}

// The grammar of RFC 3986, for an absolute URI without user information and fragment.
const (
	uriChars         = `[A-Za-z0-9._~!$&'()*+,;=:@/?-]`
	authorityPattern = `(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~!$&'()*+,;=-]+)(?::[0-9]*)?`
	escapePattern    = `%[0-9A-Fa-f]{2}`
)

var (
	uriPattern     = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:(?://` + authorityPattern + `)?(?:` + uriChars + `|` + escapePattern + `)*$`)
	validTarget    = regexp.MustCompile(`^(?:` + uriChars + `|` + escapePattern + `)*$`)
	validHost      = regexp.MustCompile(`^` + authorityPattern + `$`)
	escapes        = regexp.MustCompile(escapePattern)
	absoluteForm   = regexp.MustCompile(`(?s)^([^:/?#]+:)(?:(//)([^/?#]*))?(.*)$`) // as in RFC 3986, appendix B
	contextMessage = regexp.MustCompile(`^No endpoint GET (?:/(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|` + escapePattern + `)*)?/missing\.html\.$`)
	messagePattern = regexp.MustCompile("^No endpoint ([!#$%&'*+.^_`|~0-9A-Za-z-]+) /missing\\.html\\.$")
)

// decoded returns s with each valid %XX decoded, once, from left to right. Any other % stands for itself, so that a text
// and its encoded form, in which that % is %25, are decoded alike.
func decoded(s string) string {
	return escapes.ReplaceAllStringFunc(s, func(escape string) string {
		b, err := strconv.ParseUint(escape[1:], 16, 8)
		if err != nil {
			panic(err)
		}
		return string([]byte{byte(b)})
	})
}

func isAuthority(s string) bool {
	if !validHost.MatchString(s) {
		return false
	}
	if host, _, ok := strings.Cut(strings.TrimPrefix(s, "["), "]"); ok {
		addr, err := netip.ParseAddr(host)
		return err == nil && addr.Is6()
	}
	return true
}

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

// wantAddress returns the address that the page must show, in two parts: one that is there byte for byte, and a path and a
// query of which more may be percent-encoded on the page than in the request.
func wantAddress(r *http.Request, trusted bool) (prefix, rest string) {
	first := func(field string) string {
		value, _, _ := strings.Cut(r.Header.Get(field), ",")
		return strings.Trim(value, " \t")
	}
	scheme, authority := "http", r.Host
	if r.TLS != nil {
		scheme = "https"
	}
	if proto := strings.ToLower(first("X-Forwarded-Proto")); trusted && (proto == "http" || proto == "https") {
		scheme = proto
	}
	if host := first("X-Forwarded-Host"); trusted && isAuthority(host) {
		authority = host
	}
	if !isAuthority(authority) {
		authority = localAddress
	}
	base := scheme + "://" + authority

	target := r.RequestURI
	switch m := absoluteForm.FindStringSubmatch(target); {
	case strings.HasPrefix(target, "/"):
		return base, target
	case target == "*" || r.Method == http.MethodConnect:
		return base, ""
	case m[2] == "": // a URI without an authority
		path, query := m[4], ""
		if i := strings.IndexAny(path, "?#"); i >= 0 {
			path, query = path[:i], path[i:]
		}
		if i := strings.LastIndex(path, "@"); i >= 0 {
			return m[1], strings.TrimLeft(path[i+1:]+query, "/")
		}
		return m[1], m[4]
	default:
		authority := m[3][strings.LastIndex(m[3], "@")+1:]
		if !isAuthority(authority) {
			return base, m[4]
		}
		return m[1] + "//" + authority, m[4]
	}
}

// wantAddressByURI is wantAddress where the option uri expands to a value.
func wantAddressByURI(r *http.Request, trusted bool, value string) (prefix, rest string) {
	value, _, _ = strings.Cut(value, "#")
	isURL := false
	if m := absoluteForm.FindStringSubmatch(value); m != nil {
		scheme := strings.ToLower(m[1])
		isURL = (scheme == "http:" || scheme == "https:") && isAuthority(m[3][strings.LastIndex(m[3], "@")+1:])
	}
	if !isURL && !strings.HasPrefix(value, "/") {
		return wantAddress(r, trusted)
	}
	asked := r.Clone(r.Context())
	asked.Method, asked.RequestURI = http.MethodGet, value
	return wantAddress(asked, trusted)
}

// FuzzRequest asks for the page in every representation, with a request as a client may send it, and for one whose address
// another proxy says in the field X-Forwarded-Host.
func FuzzRequest(f *testing.F) {
	f.Add("GET", "/docs/nothing?x=1", "a.test", "", "", false, false, false, false)
	f.Add("POST", "/<script>alert(\"x\")</script>?{{.}}&%zz%", "a.test:8080", "https", "b.test", true, false, false, false)
	f.Add("OPTIONS", "*", "[2001:db8::1]:81", "", "", false, true, false, false)
	f.Add("CONNECT", "b.test:443", "b.test:443", "", "", false, false, false, false)
	f.Add("GET", "http://me:secret@b.test:81/x?y", "a.test", "", "", false, false, false, true)
	f.Add("GET", "http:me:secret@b.test/x?y=@", "a.test", "", "", false, false, false, false)
	f.Add("GET", "x:/me@//b.test/@//[/?y", "a.test", "", "", false, false, false, false)
	f.Add("A <b>\"\xff", "/\xff?\u20ac", "b\u00fccher.test", "gopher", "\"><script>", true, false, true, false)

	f.Add("POST", "/404?x", "a.test", "https", "/docs/%zz<b>?x=1#y", true, false, false, false)
	f.Add("CONNECT", "b.test:443", "b.test:443", "", "HTTP://me:secret@shop.test:81/x@y?z#", false, false, false, false)
	f.Add("GET", "/404", "a.test", "", "//evil.test/x", false, true, true, false)
	f.Add("GET", "/404", "a.test", "", "https://[::1]%61/x", false, false, false, false)

	h := provision(f, &Handler{Report: true})
	h.logger = zap.NewNop()
	behind := provision(f, &Handler{URI: "{http.request.header.X-Forwarded-Host}", Formats: []string{"text"}})
	behind.logger = zap.NewNop()
	f.Fuzz(func(t *testing.T, method, target, host, forwardedProto, forwardedHost string, trusted, secure, http2, http10 bool) {
		missed.Take()
		r, err := sentRequest{method, target, host, forwardedProto, forwardedHost, trusted, secure, http2, http10}.received()
		if err != nil {
			skipInput(t, err)
			return
		}
		askOf := func(h *Handler, method, accept string) testcaddy.Response {
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
		ask := func(method, accept string) testcaddy.Response { return askOf(h, method, accept) }

		method = r.Method
		if method == http.MethodHead {
			method = http.MethodGet
		}
		prefix, rest := wantAddressByURI(r, trusted, r.Header.Get("X-Forwarded-Host"))
		checkAddress(t, testcaddy.FieldsOf(t, askOf(behind, method, "text/plain")).URI, prefix, rest)

		prefix, rest = wantAddress(r, trusted)
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
				checkAddress(t, got.URI, prefix, rest)
				m := messagePattern.FindStringSubmatch(got.Message)
				if m == nil || decoded(m[1]) != decoded(method) {
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

// checkAddress checks that an address is a URI, and means what its two parts do.
func checkAddress(t *testing.T, address, prefix, rest string) {
	t.Helper()
	if !uriPattern.MatchString(address) {
		t.Errorf("the address %q is not a URI", address)
	}
	got, ok := strings.CutPrefix(address, prefix)
	if !ok {
		t.Fatalf("got the address %q, want it to begin with %q", address, prefix)
	}
	if decoded(got) != decoded(rest) {
		t.Errorf("got the address %q, which does not mean %q", address, prefix+rest)
	}
	if validTarget.MatchString(rest) && got != rest {
		t.Errorf("got the address %q, want %q", address, prefix+rest)
	}

	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	scheme, authority, _ := strings.Cut(prefix, ":")
	path, query, _ := strings.Cut(rest, "?")
	if u.Scheme != strings.ToLower(scheme) || u.User != nil || u.Host != strings.TrimPrefix(authority, "//") || u.Fragment != "" ||
		cmp.Or(u.Path, decoded(u.Opaque)) != decoded(path) || decoded(u.RawQuery) != decoded(query) {
		t.Errorf("the address %q is parsed as %#v, want what was sent, %q and %q", address, u, prefix, rest)
	}
}

// FuzzCaddyfile takes any text as what follows the directive's name. If it is accepted, its JSON must mean the same, and the
// pages must be well-formed.
func FuzzCaddyfile(f *testing.F) {
	f.Add("")
	f.Add("{\ncontext_path /app/\nbase_url https://a.test/\nuri {http.request.orig_uri}\nfooter \"<us> & you\"\nformats html json text xml problem markdown\nreplace all\ntemplate 404.html\n}")
	f.Add("/docs/* {\nfooter {host}{unknown}\n}")
	f.Add("{\ncontext_path app\n}")
	f.Add("{\nuri https://me@a.test/\n}")
	f.Add("{\nmessage \"{host} <b>\"\n}")
	f.Add("{\nmessage x\ncontext_path /\n}")
	f.Add("{\nformats html html\n}")
	f.Add("{\nfooter x {\ny\n}\n}")

	f.Fuzz(func(t *testing.T, text string) {
		// Not to read files that the fuzzer names, such as /dev/zero: in an import, which an environment variable may
		// contain, or in a placeholder.
		if strings.Contains(text, "{$") {
			skipInput(t, "an environment variable")
			return
		}
		tokens, err := caddyfile.Tokenize([]byte("not_found "+text), "Caddyfile")
		if err != nil {
			skipInput(t, err)
			return
		}
		for _, token := range tokens {
			if strings.Contains(token.Text, "import") || strings.Contains(token.Text, "file.") {
				skipInput(t, "an import or a file")
				return
			}
		}
		_ = new(Handler).UnmarshalCaddyfile(caddyfile.NewDispenser(tokens)) // whatever follows the directive

		// Nor to run other directives, which may read files, too.
		d := caddyfile.NewDispenser(tokens)
		d.Next()
		d.NextSegment()
		if d.Next() {
			skipInput(t, "more than one directive")
			return
		}
		config, adaptErr := testcaddy.AdaptErr(":0 {\nnot_found " + text + "\n}")

		segment := caddyfile.Segment(tokens)
		httpcaddyfile.NewShorthandReplacer().ApplyToSegment(&segment)
		if len(segment) > 1 && (segment[1].Text == "*" || strings.HasPrefix(segment[1].Text, "/")) {
			segment = slices.Delete(segment, 1, 2) // a matcher, which is not part of the handler
		}
		var parsed Handler
		err = parsed.UnmarshalCaddyfile(caddyfile.NewDispenser(segment))
		if d.Nesting() > 0 { // a block that is not closed takes the brace that closes the site
			return
		}
		if err != nil || adaptErr != nil {
			if adaptErr == nil {
				t.Errorf("adapted as %s, though %v", config, err)
			}
			return
		}
		parsed.Group = "not_found0" // which is the block's
		adapted := handlerOf(t, config)
		if !reflect.DeepEqual(&parsed, adapted) {
			t.Fatalf("got %+v from the Caddyfile, %+v from its JSON", &parsed, adapted)
		}

		if parsed.Template != "" {
			parsed.Template, adapted.Template = "internal/page/page.html", "internal/page/page.html"
		}
		if got, want := provisionErr(t, adapted), provisionErr(t, &parsed); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("got the error %v from the JSON, %v from the Caddyfile", got, want)
		} else if got != nil {
			return
		}
		parsed.logger, adapted.logger = zap.NewNop(), zap.NewNop()
		// a clock goes on between two pages, and a UUID differs
		changes := strings.Contains(text, "time") || strings.Contains(text, "duration") || strings.Contains(text, "uuid")
		for _, target := range []string{"/docs/nothing?x=1", "/%3C\"'?{http.request.host}"} {
			var first testcaddy.Fields
			var footer string // except of problem details, which have none
			formats := parsed.Formats
			if len(formats) == 0 {
				formats = page.Formats()
			}
			for _, format := range formats {
				want, got := makePage(t, &parsed, target, format), makePage(t, adapted, target, format)
				fields := testcaddy.FieldsOf(t, got)
				if !uriPattern.MatchString(fields.URI) || parsed.Message == "" && (!contextMessage.MatchString(fields.Message) || strings.Contains(fields.Message, "//missing.html")) {
					t.Errorf("%s: got %+v", format, fields)
				}
				if changes {
					continue
				}
				if got.Content != want.Content || !reflect.DeepEqual(got.Header, want.Header) {
					t.Errorf("got the page\n%v\n%s\nfrom the JSON, and from the Caddyfile\n%v\n%s", got.Header, got.Content, want.Header, want.Content)
				}
				if format != "problem" {
					if footer == "" {
						footer = fields.Footer
					}
					if fields.Footer != footer || footer == "" {
						t.Errorf("%s: got the footer %q, want %q as in another format", format, fields.Footer, footer)
					}
				}
				fields.Footer = ""
				if first == (testcaddy.Fields{}) {
					first = fields
				}
				if fields != first {
					t.Errorf("%s: got %+v, want %+v as in another format", format, fields, first)
				}
			}
		}
	})
}

// handlerOf returns the only handler of a config.
func handlerOf(t *testing.T, config []byte) *Handler {
	t.Helper()
	var c struct {
		Apps struct {
			HTTP struct {
				Servers struct {
					Srv0 struct {
						Routes []struct{ Handle []json.RawMessage }
					}
				}
			}
		}
	}
	if err := json.Unmarshal(config, &c); err != nil {
		t.Fatal(err)
	}
	routes := c.Apps.HTTP.Servers.Srv0.Routes
	if len(routes) != 1 || len(routes[0].Handle) != 1 {
		t.Fatalf("there is not one handler in %s", config)
	}
	var module struct {
		Module string `json:"handler"`
		Handler
	}
	d := json.NewDecoder(bytes.NewReader(routes[0].Handle[0]))
	d.DisallowUnknownFields()
	if err := d.Decode(&module); err != nil || module.Module != "not_found" {
		t.Fatalf("%v: %s", err, config)
	}
	return &module.Handler
}

// makePage returns the page that a handler makes for a request target.
func makePage(t *testing.T, h *Handler, target, formatName string) testcaddy.Response {
	t.Helper()
	rec := httptest.NewRecorder()
	r := httptest.NewRequest("GET", "/", nil)
	r.RequestURI, r.Host = target, "a.test"
	r.Header.Set("Accept", acceptOf[formatName])
	r = prepare(rec, r)
	if err := h.ServeHTTP(rec, r, caddyhttp.HandlerFunc(testcaddy.EndOfChain)); err != nil {
		t.Fatal(err)
	}
	return testcaddy.Recorded(rec)
}
