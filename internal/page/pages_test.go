package page

import (
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// values are placeholders with values.
type values map[string]string

func (v values) GetString(name string) (string, bool) {
	value, known := v[name]
	return value, known
}

// parse makes pages for a test.
func parse(t testing.TB, o Options) *Pages {
	t.Helper()
	p, err := Parse(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func samplePage() *Page { return (&Pages{server: "Powered by Caddy"}).samplePage() }

func tempFile(t testing.TB, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "404.html")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestPlaceholdersOfOptions makes pages of options whose placeholders have usable values, unusable ones and none.
func TestPlaceholdersOfOptions(t *testing.T) {
	x := NewText([]string{"", ""}, []string{"x"})
	p := parse(t, Options{
		ContextPath: NewText([]string{"/a/", ""}, []string{"x"}), BaseURL: x, Footer: x, Server: "Powered by Caddy",
		Formats: []string{"text"},
	})
	asked := Asked{Method: "HEAD", Target: "/y", Scheme: "https", Authority: "a.test"}
	for name, tt := range map[string]struct {
		values               values
		uri, message, footer string
	}{
		"usable":   {values{"x": "http://b.test/c/"}, "http://b.test/c/y", "/a/http://b.test/c/missing.html", "http://b.test/c/"},
		"unusable": {values{"x": " \n<x>\u2028 y"}, "https://a.test/y", "/a/%20%0A%3Cx%3E%E2%80%A8%20y/missing.html", "<x> y"},
		"empty":    {values{"x": ""}, "https://a.test/y", "/a/missing.html", "Powered by Caddy"},
		"unknown":  {values{}, "https://a.test/y", "/a/%7Bx%7D/missing.html", "{x}"},
	} {
		t.Run(name, func(t *testing.T) {
			pg := p.Make(asked, tt.values)
			defer pg.Free()
			if string(pg.URI) != tt.uri || string(pg.Message) != "No endpoint GET "+tt.message+"." || pg.Footer != tt.footer {
				t.Errorf("got %q, %q, %q", pg.URI, pg.Message, pg.Footer)
			}
		})
	}
}

// TestMethodThatIsNotAToken covers HTTP/2, which allows bytes in a method that HTTP/1.1 does not.
func TestMethodThatIsNotAToken(t *testing.T) {
	pg := parse(t, Options{Server: "x"}).Make(Asked{Method: "A <b>\"\xff\u2028", Target: "/", Scheme: "http", Authority: "a.test"}, values{})
	defer pg.Free()
	if got, want := string(pg.Message), "No endpoint A%20%3Cb%3E%22%FF%E2%80%A8 /missing.html."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

var (
	uriOnly     = regexp.MustCompile(`^[A-Za-z0-9._~:/?\[\]@!$&'()*+,;=%-]*$`)
	messageOnly = regexp.MustCompile("^No endpoint [!#$%&'*+.^_`|~0-9A-Za-z-]* (?:/[A-Za-z0-9._~:@!$&'()*+,;=%/-]*)?/missing\\.html\\.$")
)

// wantOfURI returns the address that the option uri means, in two parts: one that is there byte for byte, and what may be
// percent-encoded. A path begins with the base, and so does an absolute URL, if that is set by base_url.
func wantOfURI(uri, base string, isBaseURL bool) (prefix, rest string, ok bool) {
	uri, _, _ = strings.Cut(uri, "#")
	if strings.HasPrefix(uri, "/") {
		return base, uri, true
	}
	m := absoluteURL.FindStringSubmatch(uri)
	if m == nil {
		return "", "", false
	}
	if ip := ipLiteral.FindStringSubmatch(m[2]); ip != nil {
		if addr, err := netip.ParseAddr(ip[1]); err != nil || !addr.Is6() {
			return "", "", false
		}
	} else if !registeredName.MatchString(m[2]) {
		return "", "", false
	}
	if !isBaseURL {
		base = m[1] + m[2]
	}
	return base, m[3], true
}

// The grammar of RFC 3986, where an authority may have a user.
var (
	absoluteURL    = regexp.MustCompile(`(?s)^((?i:https?)://)(?:[^/?]*@)?([^/?]*)(.*)$`)
	ipLiteral      = regexp.MustCompile(`^\[([0-9A-Fa-f:.]+)\](?::[0-9]*)?$`)
	registeredName = regexp.MustCompile("^[A-Za-z0-9._~!$&'()*+,;=-]+(?::[0-9]*)?$")
	escape         = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)
)

// unescaped returns s with each valid %XX decoded.
func unescaped(s string) string {
	return escape.ReplaceAllStringFunc(s, func(escape string) string {
		c, _ := strconv.ParseUint(escape[1:], 16, 8)
		return string([]byte{byte(c)})
	})
}

// FuzzMake makes a page for anything that a request can have, and for placeholders with any value.
func FuzzMake(f *testing.F) {
	f.Add("GET", "/docs/nothing?x=1", "", "/app", "https://www.example.com", "a footer")
	f.Add("OPTIONS", "*", "/x?y#z", "", "", "")
	f.Add("CONNECT", "a.test:443", "//evil.test/x", "app", "http://a.test/<", "\x00\u2028")
	f.Add("GE\"T", "http://me:secret@b.test/#x", "https://me:secret@b.test:81/\xff?{{.}}#x", "/%zz{x}", "ftp://a.test", "<b>\"\\{{")
	f.Add("GET", "urn:me:secret@b.test//x?y", "http://a b/", "\xff", "{x}", "|*_`~$@www.a.test")
	f.Add("GET", "/404?url=x", "http:/b.test", "", "", "")
	f.Add("GET", "/404", "HTTP://[::1]:81", "", "https://www.example.com", "")
	x := func(name string) Text { return NewText([]string{"", ""}, []string{name}) }
	p := parse(f, Options{ContextPath: x("c"), BaseURL: x("b"), URI: x("u"), Footer: x("f"), Server: "Powered by Caddy"})
	f.Fuzz(func(t *testing.T, method, target, uri, contextPath, baseURL, footer string) {
		placeholders := values{"c": contextPath, "b": baseURL, "u": uri, "f": footer}
		asked := Asked{Method: method, Target: target, URI: p.ExpandURI(placeholders), Scheme: "https", Authority: "a.test"}
		pg := p.Make(asked, placeholders)
		defer pg.Free()
		if !uriOnly.Match(pg.URI) || !strings.Contains(string(pg.URI), ":") {
			t.Errorf("the address is %q", pg.URI)
		}
		if !messageOnly.Match(pg.Message) {
			t.Errorf("the message is %q", pg.Message)
		}
		if pg.Footer != cleanLine(pg.Footer) || pg.Footer == "" {
			t.Errorf("the footer is %q", pg.Footer)
		}
		asked.URI = ""
		own := string(p.AppendURI(nil, asked, placeholders))
		begins := cleanBaseURL(baseURL)
		if begins == "" {
			begins = "https://a.test"
		}
		if method != http.MethodConnect && strings.HasPrefix(target, "/") && !strings.HasPrefix(own, begins+"/") {
			t.Errorf("the address of %q is %q", target, own)
		}
		prefix, rest, ok := wantOfURI(uri, begins, cleanBaseURL(baseURL) != "")
		if !ok {
			prefix, rest = own, ""
		}
		if got, ok := strings.CutPrefix(string(pg.URI), prefix); !ok || unescaped(got) != unescaped(rest) {
			t.Errorf("with the uri %q the address is %q, want %q and %q", uri, pg.URI, prefix, rest)
		}
		for _, format := range formats {
			rep := p.Represent(pg, format.offer.Types[0], nil)
			lines := strings.Count(string(rep.Body), "\n")
			if want := map[string]int{"text": 5, "json": 1, "problem": 1, "xml": 2, "markdown": 7}[format.name]; want > 0 && lines != want {
				t.Errorf("%s has %d lines, want %d:\n%s", format.name, lines, want, rep.Body)
			}
		}
	})
}
