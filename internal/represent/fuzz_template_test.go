package represent

import (
	"encoding/json"
	"encoding/xml"
	"regexp"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"golang.org/x/net/html"

	"github.com/caddy-notfound/notfound/internal/page"
)

// fuzzedTemplates have texts in every place where their format allows them.
var fuzzedTemplates = map[string]string{
	"text":     "{{.Heading}}\n{{.URI}}\n{{.Footer}}\n{{.Placeholder \"x\"}}\n",
	"markdown": "{{.Message}}\n\n- {{.URI}}\n- {{.Footer}}\n- {{.Placeholder \"x\"}}\n",
	"json":     fuzzedJSON,
	"problem":  fuzzedJSON,
	"xml":      `<a heading="{{.Heading}}" uri='{{.URI}}'><footer>{{.Footer}}</footer><x>{{.Placeholder "x"}}</x></a>`,
}

const fuzzedJSON = `{"heading":"{{.Heading}}","uri":"{{.URI}}","footer":"{{.Footer}}","x":"{{.Placeholder "x"}}"}`

// fuzzedFields are read from the JSON and the XML of these templates.
type fuzzedFields struct {
	Heading string `json:"heading" xml:"heading,attr"`
	URI     string `json:"uri" xml:"uri,attr"`
	Footer  string `json:"footer" xml:"footer"`
	X       string `json:"x" xml:"x"`
}

// FuzzTemplate puts anything that a client can send into a template of each format. The texts that are read from the
// page are those that were put into it, so it is not the built-in page either.
func FuzzTemplate(f *testing.F) {
	f.Add("GET", "/docs?x=1&y;z", "a message", "a value")
	f.Add("G\"T", "javascript:alert(1)", `<b>"'&amp;' \`, "1. \"\\\x00\n\t\u2028\uFFFE<a b='c'>]]>--?>")
	f.Add("A<B", "http://a.test/&lt;`|", "- *_`~|www.a.test:x$@", "+ \xff\xc3\x28")
	f.Add("GET", "/x", "12) x", "=== # > x")
	f.Add("GET", "ftp://a.test/", "www.a.test", "WWW.a.test https://a.test me@a.test")

	o := Options{Templates: make(rows)}
	for format, source := range fuzzedTemplates {
		o.Templates[format] = []string{tempFile(f, source)}
	}
	formats := newFormats(f, o)
	builtIn := newFormats(f, Options{})
	maker := page.NewMaker(page.Options{Message: "{m}", Footer: "{m}", DefaultFooter: "x"})
	f.Fuzz(func(t *testing.T, method, target, message, value string) {
		repl := placeholders(values{"m": message, "x": value})
		pg := maker.Make(&page.Asked{Method: method, Target: target, Scheme: "https", Authority: "a.test"}, repl)
		line := page.CleanLine(value)

		lines := []string{pg.Heading, pg.URI, pg.Footer, line, ""}
		wantBody(t, formats, &pg, repl, "text", strings.Join(lines, "\n"))
		want := fuzzedFields{pg.Heading, pg.URI, pg.Footer, line}
		wantFields(t, xml.Unmarshal, body(t, formats, &pg, repl, "xml"), want)
		want.X = strings.ToValidUTF8(value, "\uFFFD")
		wantFields(t, json.Unmarshal, body(t, formats, &pg, repl, "json"), want)
		wantFields(t, json.Unmarshal, body(t, formats, &pg, repl, "problem"), want)
		wantNoMoreLines(t, builtIn, &pg)

		ofTemplate := body(t, formats, &pg, repl, "markdown")
		text := pg.Message + pg.URI + pg.Footer + line
		wantMarkdown(t, ofTemplate, "p ul li li li", text)
		ofBuiltIn := body(t, builtIn, &pg, nil, "markdown")
		text = pg.Heading + "URI: " + pg.URI + "STATUS: 404MESSAGE: " + pg.Message + pg.Footer
		wantMarkdown(t, ofBuiltIn, "h1 ul li li li p", text)
		if autolinkWithReference.MatchString(ofBuiltIn) {
			t.Errorf("a renderer may find a character reference in the link of\n%s", ofBuiltIn)
		}
	})
}

// linesOfPages says how many lines the built-in pages have, but for the one in HTML.
var linesOfPages = map[string]int{
	"text":     5,
	"json":     1,
	"problem":  1,
	"xml":      2,
	"markdown": 7,
}

// wantNoMoreLines checks that no text of a page adds a line or an element to a built-in page.
func wantNoMoreLines(t *testing.T, builtIn *Formats, pg *page.Page) {
	t.Helper()
	for format, want := range linesOfPages {
		got := body(t, builtIn, pg, nil, format)
		if strings.Count(got, "\n") != want {
			t.Errorf("%s has not %d lines:\n%s", format, want, got)
		}
	}
	got := body(t, builtIn, pg, nil, "html")
	if strings.Count(got, "<") != strings.Count(sourceOfHTML, "<") {
		t.Errorf("the HTML page has more elements than the built-in one:\n%s", got)
	}
}

type unmarshaler func([]byte, any) error

// wantFields checks what is read from a page.
func wantFields(t *testing.T, unmarshal unmarshaler, page string, want fuzzedFields) {
	t.Helper()
	var got fuzzedFields
	err := unmarshal([]byte(page), &got)
	if err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v of\n%s", got, err, want, page)
	}
}

var autolinkWithReference = regexp.MustCompile(`URI: <.*&.*;`)

// webLink matches an address and a text that both begin as that of the web.
var webLink = regexp.MustCompile(`(?i)^https?://[^ ]* https?://`)

var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM, extension.Footnote, extension.DefinitionList))

// wantMarkdown checks that a renderer finds these elements and this text, and no markup but links.
func wantMarkdown(t *testing.T, page, elements, text string) {
	t.Helper()
	var rendered strings.Builder
	err := markdown.Convert([]byte(page), &rendered)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := html.Parse(strings.NewReader(rendered.String()))
	if err != nil {
		t.Fatal(err)
	}
	gotElements := ""
	gotText := ""
	for n := range doc.Descendants() {
		switch n.Type {
		case html.TextNode:
			gotText += strings.Trim(n.Data, "\n")
		case html.CommentNode:
			t.Errorf("got the comment %q", n.Data)
		case html.ElementNode:
			if n.Data != "a" {
				gotElements += " " + n.Data
				continue
			}
			link := n.Attr[0].Val + " " + n.FirstChild.Data
			if !webLink.MatchString(link) {
				t.Errorf("got the link and its text %q", link)
			}
		}
	}
	if gotElements != " html head body "+elements || gotText != text {
		t.Errorf("got the elements%s and the text\n%q\nwant %s and\n%q", gotElements, gotText, elements, text)
	}
}
