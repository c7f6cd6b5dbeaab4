package page

import (
	"encoding/json"
	"encoding/xml"
	"regexp"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"go.uber.org/zap"
	"golang.org/x/net/html"
)

// FuzzTemplate puts anything that a client can send into a template of each format. The texts that are read from the
// page are those that were put into it, so it is not the built-in page either.
func FuzzTemplate(f *testing.F) {
	f.Add("GET", "/docs?x=1&y;z", "a message", "a value")
	f.Add("G\"T", "javascript:alert(1)", `<b>"'&amp;' \`, "1. \"\\\x00\n\t\u2028\uFFFE<a b='c'>]]>--?>")
	f.Add("A<B", "http://a.test/&lt;`|", "- *_`~|www.a.test:x$@", "+ \xff\xc3\x28")
	f.Add("GET", "/x", "12) x", "=== # > x")
	f.Add("GET", "ftp://a.test/", "www.a.test", "WWW.a.test https://a.test me@a.test")

	files := make(map[string]string)
	for format, source := range map[string]string{
		"text":     "{{.Heading}}\n{{.URI}}\n{{.Footer}}\n{{.Placeholder \"x\"}}\n",
		"markdown": "{{.Message}}\n\n- {{.URI}}\n- {{.Footer}}\n\n{{or (.Placeholder \"x\") \"none\"}}\n",
		"json":     `["{{.Heading}}","{{.URI}}","{{.Footer}}","{{.Placeholder "x"}}"]`,
		"problem":  `["{{.Heading}}","{{.URI}}","{{.Footer}}","{{.Placeholder "x"}}"]`,
		"xml":      `<a b="{{.Heading}}" c='{{.URI}}'><d>{{.Footer}}</d><e>{{.Placeholder "x"}}</e></a>`,
	} {
		files[format] = tempFile(f, source)
	}
	m := newMaker(f, Options{Message: "{m}", Footer: "{m}", Templates: files, Logger: zap.NewNop()})
	builtIn := newMaker(f, Options{})
	f.Fuzz(func(t *testing.T, method, target, message, value string) {
		values := placeholders(map[string]string{"m": message, "x": value})
		pg := m.Make(&Asked{Method: method, Target: target, Scheme: "https", Authority: "a.test"}, values)
		line := cleanLine(value)

		if got, want := body(t, m, pg, "text"), pg.Heading+"\n"+pg.URI+"\n"+pg.Footer+"\n"+line+"\n"; got != want {
			t.Errorf("text: got\n%q\nwant\n%q", got, want)
		}
		for _, format := range []string{"json", "problem"} {
			var got [4]string
			want := [4]string{pg.Heading, pg.URI, pg.Footer, strings.ToValidUTF8(value, "\uFFFD")}
			if err := json.Unmarshal([]byte(body(t, m, pg, format)), &got); err != nil || got != want {
				t.Errorf("%s: got %q, %v, want %q", format, got, err, want)
			}
		}
		var got struct {
			B string `xml:"b,attr"`
			C string `xml:"c,attr"`
			D string `xml:"d"`
			E string `xml:"e"`
		}
		err := xml.Unmarshal([]byte(body(t, m, pg, "xml")), &got)
		if err != nil || got.B != pg.Heading || got.C != pg.URI || got.D != pg.Footer || got.E != line {
			t.Errorf("xml: got %q, %v, want %+v and %q", got, err, pg, line)
		}
		if line == "" {
			line = "none"
		}
		wantMarkdown(t, body(t, m, pg, "markdown"), "p ul li li p", pg.Message, pg.URI, pg.Footer, line)
		if got := body(t, builtIn, pg, "markdown"); autolinkWithReference.MatchString(got) {
			t.Errorf("a renderer may find a character reference in the link of\n%s", got)
		}
		wantMarkdown(t, body(t, builtIn, pg, "markdown"), "h1 ul li li li p",
			pg.Heading, "URI: "+pg.URI, "STATUS: 404", "MESSAGE: "+pg.Message, pg.Footer)
	})
}

var autolinkWithReference = regexp.MustCompile(`URI: <.*&.*;`)

// isWebLink matches an address and a text that both begin as that of the web.
var isWebLink = regexp.MustCompile(`(?i)^https?://[^ ]* https?://`)

// wantMarkdown checks that a renderer finds these elements and texts, and no markup but links.
func wantMarkdown(t *testing.T, page, elements string, texts ...string) {
	t.Helper()
	var rendered strings.Builder
	extensions := goldmark.WithExtensions(extension.GFM, extension.Footnote, extension.DefinitionList)
	if err := goldmark.New(extensions).Convert([]byte(page), &rendered); err != nil {
		t.Fatal(err)
	}
	doc, err := html.Parse(strings.NewReader(rendered.String()))
	if err != nil {
		t.Fatal(err)
	}
	found := ""
	text := ""
	for n := range doc.Descendants() {
		switch {
		case n.Type == html.TextNode && n.Data != "\n":
			text += n.Data
		case n.Type == html.CommentNode:
			t.Errorf("got the comment %q", n.Data)
		case n.Type == html.ElementNode && n.Data != "a":
			found += " " + n.Data
		case n.Type == html.ElementNode && !isWebLink.MatchString(n.Attr[0].Val+" "+n.FirstChild.Data):
			t.Errorf("got the link %q with the text %q", n.Attr[0].Val, n.FirstChild.Data)
		}
	}
	if want := " html head body " + elements; found != want || text != strings.Join(texts, "") {
		t.Errorf("got the elements%s and the texts\n%q\nwant%s and\n%q", found, text, want, texts)
	}
}
