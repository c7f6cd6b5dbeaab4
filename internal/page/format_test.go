package page

import (
	"strings"
	"testing"
)

// TestMessageAndFooterAreEscaped puts a message and a footer full of markup into each representation, byte for byte. The
// tests of a whole Caddy parse the pages.
func TestMessageAndFooterAreEscaped(t *testing.T) {
	m := newMaker(t, Options{Message: "{m}", Footer: "{f}"})
	const (
		line       = `<b>"'&amp;'</b> \ ü€😀 ]]> *_[x](y)_* {a} b|c www.a.test WWW.a.test`
		inJSON     = `<b>\"'&amp;'</b> \\ ü€😀 ]]> *_[x](y)_* {a} b|c www.a.test WWW.a.test`
		inMarkdown = `\<b\>"'\&amp;'\</b\> \\ ü€😀 \]\]\> \*\_\[x\](y)\_\* \{a\} b\|c www\.a.test WWW\.a.test`
		inHTML     = `&lt;b&gt;&#34;&#39;&amp;amp;&#39;&lt;/b&gt; \ ü€😀 ]]&gt; *_[x](y)_* {a} b|c www.a.test WWW.a.test`
	)
	builtIn := strings.NewReplacer("{{.Heading}}", "HTTP ERROR 404 LINE", "{{.URI}}", "http://a.test/x?y&amp;z", "{{.Status}}", "404",
		"{{.Message}}", "LINE", "{{.Footer}}", "1. LINE").Replace(sourceOfHTML)

	// what no line can have becomes a space, or the replacement character
	values := map[string]string{"m": " \n" + line + "\x00\r\n", "f": "1. " + line}
	pg := m.Make(&Asked{Method: "GET", Target: "/x?y&z", Scheme: "http", Authority: "a.test"}, placeholders(values))
	for format, want := range map[string][2]string{
		"text":     {line, "HTTP ERROR 404 LINE\nURI: http://a.test/x?y&z\nSTATUS: 404\nMESSAGE: LINE\n1. LINE\n"},
		"html":     {inHTML, builtIn},
		"markdown": {inMarkdown, "# HTTP ERROR 404 LINE\n\n- URI: <http://a.test/x?y&z>\n- STATUS: 404\n- MESSAGE: LINE\n\n&#49;. LINE\n"},
		"json":     {inJSON, `{"heading":"HTTP ERROR 404 LINE","uri":"http://a.test/x?y&z","status":404,"message":"LINE","footer":"1. LINE"}` + "\n"},
		"problem":  {inJSON, `{"type":"about:blank","title":"Not Found","status":404,"detail":"LINE","instance":"http://a.test/x?y&z"}` + "\n"},
		"xml": {inHTML, `<?xml version="1.0" encoding="UTF-8"?>` + "\n<error><heading>HTTP ERROR 404 LINE</heading>" +
			"<uri>http://a.test/x?y&amp;z</uri><status>404</status><message>LINE</message><footer>1. LINE</footer></error>\n"},
	} {
		if got, want := body(t, m, pg, format), strings.ReplaceAll(want[1], "LINE", want[0]); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", format, got, want)
		}
	}
}

// TestNothingInMarkdownIsMarkup covers addresses that a renderer could take for a script or a character reference, and
// footers whose first character could begin a block.
func TestNothingInMarkdownIsMarkup(t *testing.T) {
	for _, tt := range []struct{ address, footer, want string }{
		{"javascript:alert(1)", "x", "\n- URI: javascript\\:alert(1)\n"},
		{"ftp://a.test/", "x", "\n- URI: ftp\\://a.test/\n"},
		{"http://a.test/&lt;x_", "x", "\n- URI: http\\://a.test/\\&lt;x\\_\n"},
		{"http://a.test/", "+ x", "\n\n&#43; x\n"},
		{"http://a.test/", "ä 1.", "\n\nä 1.\n"},
	} {
		if got := body(t, newMaker(t, Options{}), Page{URI: tt.address, Footer: tt.footer}, "markdown"); !strings.Contains(got, tt.want) {
			t.Errorf("got\n%s\nwant %s", got, tt.want)
		}
	}
}
