package page

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest"

	"github.com/caddyserver/caddy/v2"
)

// placeholders returns those of a request, as Caddy has them.
func placeholders(values map[string]string) *caddy.Replacer {
	repl := caddy.NewReplacer()
	for name, value := range values {
		repl.Set(name, value)
	}
	return repl
}

// newMaker returns a maker of pages for a test. Without a logger, it must log no error.
func newMaker(t testing.TB, o Options) *Maker {
	t.Helper()
	o.Server = "Powered by Caddy v2.11.9"
	o.Sample = func() Placeholders { return placeholders(nil) }
	if o.Logger == nil {
		o.Logger = zaptest.NewLogger(t, zaptest.WrapOptions(zap.Hooks(func(e zapcore.Entry) error {
			if e.Level >= zapcore.ErrorLevel {
				t.Error(e.Message)
			}
			return nil
		})))
	}
	m, err := NewMaker(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// body renders a page in a format.
func body(t testing.TB, m *Maker, pg Page, format string) string {
	t.Helper()
	for _, f := range formats {
		if f.name == format {
			rep := m.Represent(&pg, f.offer.Types[0])
			defer rep.Free()
			return rep.Body.String()
		}
	}
	t.Fatalf("there is no format %s", format)
	return ""
}

func tempFile(t testing.TB, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "404.html")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestDefaultPage compares the page without options, byte for byte, with that of the first version. A client that
// only accepts a structured suffix gets it, too.
func TestDefaultPage(t *testing.T) {
	m := newMaker(t, Options{})
	asked := &Asked{Method: "GET", Target: "/docs/apis?x=1&y=2", Scheme: "https", Authority: "www.example.com"}
	pg := m.Make(asked, placeholders(nil))
	for _, format := range Formats() {
		want, err := os.ReadFile("testdata/default." + format)
		if err != nil {
			t.Fatal(err)
		}
		if got := body(t, m, pg, format); got != string(want) {
			t.Errorf("%s: got\n%s\nwant\n%s", format, got, want)
		}
	}
	for mediaType, want := range map[string]string{"application/vnd.api+json": "json", "application/atom+xml": "xml"} {
		rep := m.Represent(&pg, mediaType)
		if rep.Format != want {
			t.Errorf("%s: got %s, want %s", mediaType, rep.Format, want)
		}
		rep.Free()
	}
}

// TestPlaceholdersOfOptions makes pages from options whose placeholders have usable values, unusable ones or none.
func TestPlaceholdersOfOptions(t *testing.T) {
	m := newMaker(t, Options{ContextPath: "/a/{x}", BaseURL: "{x}", Footer: "{x}"})
	own := newMaker(t, Options{Message: "{x}"})
	asked := Asked{Method: "HEAD", Target: "/y", Scheme: "https", Authority: "a.test"}
	const ours, server = "https://a.test/y", "Powered by Caddy v2.11.9"
	for name, tt := range map[string]struct {
		values  map[string]string
		uri     string
		path    string // in the message
		message string // of one's own
		footer  string
	}{
		"usable": {
			values:  map[string]string{"x": "http://b.test/c/"},
			uri:     "http://b.test/c/y",
			path:    "/a/http://b.test/c",
			message: "http://b.test/c/",
			footer:  "http://b.test/c/",
		},
		"unusable": {
			values:  map[string]string{"x": " \n<x>\u2028\x00 y\xff"},
			uri:     ours,
			path:    "/a/%20%0A%3Cx%3E%E2%80%A8%00%20y%FF",
			message: "<x> y\uFFFD",
			footer:  "<x> y\uFFFD",
		},
		"blank": {
			values:  map[string]string{"x": " \t\n"},
			uri:     ours,
			path:    "/a/%20%09%0A",
			message: "No endpoint GET /missing.html.",
			footer:  server,
		},
		"unknown": {uri: ours, path: "/a/%7Bx%7D", message: "{x}", footer: "{x}"},
	} {
		pg := m.Make(&asked, placeholders(tt.values))
		message := "No endpoint GET " + tt.path + "/missing.html."
		if pg.URI != tt.uri || pg.Message != message || pg.Footer != tt.footer {
			t.Errorf("%s: got %+v", name, pg)
		}
		pg = own.Make(&asked, placeholders(tt.values))
		if pg.Message != tt.message || pg.Heading != "HTTP ERROR 404 "+tt.message {
			t.Errorf("%s: got %+v, want the message %q", name, pg, tt.message)
		}
	}
}

// TestFieldsAreClean covers options without placeholders, and a method with bytes that HTTP/2 allows and HTTP/1.1
// does not.
func TestFieldsAreClean(t *testing.T) {
	pg := newMaker(t, Options{ContextPath: "/app//", BaseURL: "https://a.test/", Footer: " x  y "}).Make(
		&Asked{Method: "A <b>\"\xff\u2028", Target: "/x"}, nil)
	const message = "No endpoint A%20%3Cb%3E%22%FF%E2%80%A8 /app/missing.html."
	if pg.URI != "https://a.test/x" || pg.Message != message || pg.Footer != "x y" {
		t.Errorf("got %+v", pg)
	}
	if pg := newMaker(t, Options{Message: " Nothing  here "}).Make(new(Asked), nil); pg.Message != "Nothing here" {
		t.Errorf("got %+v", pg)
	}
}

// TestWhatIsExpandedIsNotExpandedAgain gives placeholders values that look like placeholders, in every option and in
// a template.
func TestWhatIsExpandedIsNotExpandedAgain(t *testing.T) {
	const secret = "a-secret"
	t.Setenv("HOME", secret)
	template := tempFile(t, `{{.Placeholder "x"}}|{{.URI}}|{{.Message}}|{{.Footer}}`)
	own := newMaker(t, Options{Message: "{x}", URI: "/{x}"})
	m := newMaker(t, Options{
		ContextPath: "/{x}",
		BaseURL:     "{x}",
		URI:         "{x}",
		Footer:      "{x}",
		Templates:   map[string]string{"html": template},
	})
	file := "{file." + tempFile(t, secret) + "}"
	for value, want := range map[string]string{
		"{env.HOME}":    "{env.HOME}|https://a.test/y|No endpoint GET /%7Benv.HOME%7D/missing.html.|{env.HOME}",
		file:            "",
		"https://x/{a}": "https://x/{a}|https://x/%7Ba%7D|No endpoint GET /https://x/%7Ba%7D/missing.html.|https://x/{a}",
	} {
		repl := placeholders(map[string]string{"x": value, "a": secret})
		for _, m := range []*Maker{m, own} {
			asked := Asked{Method: "GET", Target: "/y", URI: m.ExpandURI(repl), Scheme: "https", Authority: "a.test"}
			pg := m.Make(&asked, repl)
			for _, format := range Formats() {
				if got := body(t, m, pg, format); strings.Contains(got, secret) {
					t.Errorf("%s as %s: got %s", value, format, got)
				}
			}
			if got := body(t, m, pg, "html"); m != own && want != "" && got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			if m == own && pg.Message != value {
				t.Errorf("got the message %q, want %q", pg.Message, value)
			}
		}
	}
}

var (
	uriOnly     = regexp.MustCompile(`^[A-Za-z0-9._~:/?\[\]@!$&'()*+,;=%-]*$`)
	messageOnly = regexp.MustCompile("^No endpoint [!#$%&'*+.^_`|~0-9A-Za-z-]* (?:/[A-Za-z0-9._~:@!$&'()*+,;=%/-]*)?/missing\\.html\\.$")
)

// FuzzMake makes a page for anything that a request can have, and for placeholders with any value.
func FuzzMake(f *testing.F) {
	f.Add("GET", "/docs/nothing?x=1", "", "/app", "https://www.example.com", "a footer")
	f.Add("OPTIONS", "*", "/x?y#z", "", "", "")
	f.Add("CONNECT", "a.test:443", "//evil.test/x", "app", "http://a.test/<", "\x00\u2028")
	f.Add("GE\"T", "http://me:secret@b.test/#x", "https://me:secret@b.test:81/\xff?{{.}}#x", "/%zz{x}",
		"ftp://a.test", "<b>\"\\{{")
	f.Add("GET", "urn:me:secret@b.test//x?y", "http://a b/", "\xff", "{x}", "|*_`~$@www.a.test")
	f.Add("GET", "/404", "HTTP://[::1]:81", "", "https://www.example.com", "{env.HOME}")
	m := newMaker(f, Options{ContextPath: "{c}", BaseURL: "{b}", URI: "{u}", Footer: "{f}"})
	own := newMaker(f, Options{Message: "{f}"})
	f.Fuzz(func(t *testing.T, method, target, value, contextPath, baseURL, line string) {
		if method == "" {
			return // net/http refuses the request
		}
		repl := placeholders(map[string]string{"c": contextPath, "b": baseURL, "u": value, "f": line})
		asked := Asked{Method: method, Target: target, URI: m.ExpandURI(repl), Scheme: "https", Authority: "a.test"}
		pg := m.Make(&asked, repl)
		if !uriOnly.MatchString(pg.URI) || !strings.Contains(pg.URI, ":") {
			t.Errorf("the address is %q", pg.URI)
		}
		_, refused := url.ParseRequestURI(target) // by net/http
		u, err := url.Parse(pg.URI)
		if refused == nil && (err != nil || u.User != nil || u.Fragment != "") {
			t.Errorf("the address %q is parsed as %#v, %v", pg.URI, u, err)
		}
		if !messageOnly.MatchString(pg.Message) {
			t.Errorf("the message is %q", pg.Message)
		}
		for _, pg := range []Page{pg, own.Make(&asked, repl)} {
			for _, s := range []string{pg.Message, pg.Footer} {
				if s == "" || s != cleanLine(s) {
					t.Errorf("%q is not a line of text", s)
				}
			}
			for format, want := range map[string]int{"text": 5, "json": 1, "problem": 1, "xml": 2, "markdown": 7} {
				if got := body(t, m, pg, format); strings.Count(got, "\n") != want {
					t.Errorf("%s has not %d lines:\n%s", format, want, got)
				}
			}
			if got := body(t, m, pg, "html"); strings.Count(got, "<") != strings.Count(sourceOfHTML, "<") {
				t.Errorf("the HTML page has more elements than the built-in one:\n%s", got)
			}
		}
	})
}
