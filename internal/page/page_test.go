package page

import (
	"cmp"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

// values are those of placeholders, by name.
type values map[string]string

// placeholders returns those of a request, as Caddy has them.
func placeholders(known values) *caddy.Replacer {
	repl := caddy.NewReplacer()
	for name, value := range known {
		repl.Set(name, value)
	}
	return repl
}

// newMaker returns a maker of pages with a default footer.
func newMaker(o Options) *Maker {
	o.DefaultFooter = defaultFooter
	return NewMaker(o)
}

// wantError checks that an error has a text. A failure names what was refused.
func wantError(t *testing.T, what string, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: got the error\n%v\nwant one with\n%s", what, err, text)
	}
}

// wantTexts checks the texts of a page.
func wantTexts(t *testing.T, pg Page, uri, message, footer string) {
	t.Helper()
	got := [...]string{pg.Heading, pg.URI, pg.Message, pg.Footer}
	want := [...]string{"HTTP ERROR 404 " + message, uri, message, footer}
	if got != want {
		t.Errorf("got the texts\n%q\nwant\n%q", got, want)
	}
}

// defaultFooter names a version that no Caddy has, so that it stays when a new Caddy comes.
const defaultFooter = "Powered by Caddy v0.0.0"

// TestMessageNamesTheMethod has the default message, and one of the site's own. HEAD is named GET.
func TestMessageNamesTheMethod(t *testing.T) {
	for method, want := range map[string]string{"GET": "GET", "HEAD": "GET", "POST": "POST"} {
		pg := newMaker(Options{}).Make(ask(method, "/x"), placeholders(nil))
		own := newMaker(Options{Message: "Gone."}).Make(ask(method, "/x"), placeholders(nil))
		if pg.Message != "No endpoint "+want+" /missing.html." || own.Message != "Gone." {
			t.Errorf("%s: got the messages %q and %q", method, pg.Message, own.Message)
		}
	}
}

// TestPlaceholdersOfOptions makes pages from options with a placeholder whose value is usable or not, or is blank.
func TestPlaceholdersOfOptions(t *testing.T) {
	m := newMaker(Options{ContextPath: "/{x}/{unknown}", BaseURL: "{x}", Footer: "{x}"})
	own := newMaker(Options{Message: "{x}"})
	const ours = "https://a.test/y"
	for _, tt := range []struct {
		value string
		uri   string
		path  string // in the message
		line  string // as a message or a footer; empty: the default one
	}{
		{
			value: "http://b.test/c/",
			uri:   "http://b.test/c/y",
			path:  "/http://b.test/c/",
			line:  "http://b.test/c/",
		},
		{
			value: " \n<x>\u2028\x00 y\xff",
			uri:   ours,
			path:  "/%20%0A%3Cx%3E%E2%80%A8%00%20y%FF",
			line:  "<x> y\uFFFD",
		},
		{
			value: " \t\n",
			uri:   ours,
			path:  "/%20%09%0A",
		},
	} {
		asked := ask("HEAD", "/y")
		repl := placeholders(values{"x": tt.value})
		message := "No endpoint GET " + tt.path + "/%7Bunknown%7D/missing.html."
		footer := cmp.Or(tt.line, defaultFooter)
		wantTexts(t, m.Make(asked, repl), tt.uri, message, footer)
		message = cmp.Or(tt.line, "No endpoint GET /missing.html.")
		wantTexts(t, own.Make(asked, repl), ours, message, defaultFooter)
	}
}

// TestWhatIsExpandedIsNotExpandedAgain gives a placeholder a value that has another one, in every option.
func TestWhatIsExpandedIsNotExpandedAgain(t *testing.T) {
	const value = "https://x/{secret}"
	const encoded = "https://x/%7Bsecret%7D"
	repl := placeholders(values{"x": value, "secret": "a-secret"})
	m := newMaker(Options{ContextPath: "/{x}", BaseURL: "{x}", URI: "{x}", Footer: "{x}"})
	asked := ask("GET", "/y")
	asked.URI = m.ExpandURI(repl)
	wantTexts(t, m.Make(asked, repl), encoded, "No endpoint GET /"+encoded+"/missing.html.", value)
	own := newMaker(Options{Message: "{x}"})
	wantTexts(t, own.Make(asked, repl), encoded, value, defaultFooter)
}

var (
	uriOnly     = regexp.MustCompile(`^[A-Za-z0-9._~:/?\[\]@!$&'()*+,;=%-]*$`)
	messageOnly = regexp.MustCompile("^No endpoint [!#$%&'*+.^_`|~0-9A-Za-z-]* " +
		`(?:/[A-Za-z0-9._~:@!$&'()*+,;=%/-]*)?/missing\.html\.$`)
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
	m := newMaker(Options{
		ContextPath: "{path}",
		BaseURL:     "{base}",
		URI:         "{uri}",
		Footer:      "{line}",
	})
	own := newMaker(Options{Message: "{line}"})
	f.Fuzz(func(t *testing.T, method, target, uri, contextPath, baseURL, line string) {
		if method == "" {
			return // net/http refuses the request
		}
		repl := placeholders(values{"path": contextPath, "base": baseURL, "uri": uri, "line": line})
		asked := ask(method, target)
		asked.URI = m.ExpandURI(repl)
		pg := m.Make(asked, repl)
		if !uriOnly.MatchString(pg.URI) || !strings.Contains(pg.URI, ":") {
			t.Errorf("the address is %q", pg.URI)
		}
		if _, err := url.ParseRequestURI(target); err == nil { // or net/http refuses the request
			wantURLWithoutSecrets(t, pg.URI)
		}
		if !messageOnly.MatchString(pg.Message) {
			t.Errorf("the message is %q", pg.Message)
		}
		for _, text := range []string{pg.Message, pg.Footer, own.Make(asked, repl).Message} {
			if text == "" || text != CleanLine(text) {
				t.Errorf("%q is not a line of text", text)
			}
		}
	})
}

func wantURLWithoutSecrets(t *testing.T, address string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil || u.User != nil || u.Fragment != "" {
		t.Errorf("the address %q is parsed as %#v, %v", address, u, err)
	}
}
