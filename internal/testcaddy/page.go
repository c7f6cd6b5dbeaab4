package testcaddy

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"golang.org/x/net/html"

	"github.com/caddyserver/caddy/v2"
)

// Format is a representation of the page.
type Format struct {
	Name        string // as the formats option takes it
	MediaType   string // as a client accepts it
	ContentType string // as it is sent
}

// Formats are all representations, in the default order.
var Formats = []Format{
	{"text", "text/plain", "text/plain; charset=utf-8"},
	{"html", "text/html", "text/html; charset=utf-8"},
	{"markdown", "text/markdown", "text/markdown; charset=utf-8"},
	{"json", "application/json", "application/json"},
	{"problem", "application/problem+json", "application/problem+json"},
	{"xml", "application/xml", "application/xml; charset=utf-8"},
}

// Footer returns the default footer of the page.
func Footer() string {
	version, _ := caddy.Version()
	return "Powered by Caddy " + version
}

// TextPage returns the page as plain text.
func TextPage(method, uri, contextPath string) string {
	message := "No endpoint " + method + " " + contextPath + "/missing.html."
	return "HTTP ERROR 404 " + message + "\nURI: " + uri + "\nSTATUS: 404\nMESSAGE: " + message + "\n" + Footer() + "\n"
}

// StylePolicy returns the Content-Security-Policy of the built-in HTML page, which allows the page's own style and
// nothing else.
func StylePolicy(t testing.TB, page string) string {
	t.Helper()
	_, style, ok := strings.Cut(page, "<style>")
	style, _, closed := strings.Cut(style, "</style>")
	if !ok || !closed {
		t.Fatalf("the page has no style:\n%.2000s", page)
	}
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; base-uri 'none'; form-action 'none'"
}

// Fields are the fields of a page, as a client reads them.
type Fields struct {
	Heading string `xml:"heading" json:"heading"`
	URI     string `xml:"uri" json:"uri"`
	Status  int    `xml:"status" json:"status"`
	Message string `xml:"message" json:"message"`
	Footer  string `xml:"footer" json:"footer"`
}

// FieldsOf reads a page in any representation, and checks what every page has in common.
func FieldsOf(t testing.TB, res Response) (f Fields) {
	t.Helper()
	res.WantHeader(t, "X-Content-Type-Options", "nosniff")
	res.WantHeader(t, "Cache-Control", "no-store")
	if res.StatusCode != http.StatusNotFound {
		t.Errorf("got status %d, want 404", res.StatusCode)
	}
	if res.ContentLength != int64(len(res.Content)) {
		t.Errorf("got Content-Length %d for a body of %d bytes", res.ContentLength, len(res.Content))
	}

	mediaType, params, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	switch mediaType {
	case "text/plain":
		f = fieldsOfLines(t, strings.Split(strings.TrimSuffix(res.Content, "\n"), "\n"))
	case "text/html":
		f = fieldsOfLines(t, visibleLines(t, res.Content))
	case "text/markdown":
		f = fieldsOfLines(t, visibleLines(t, renderMarkdown(t, res.Content)))
	case "application/json":
		decodeJSON(t, res.Content, &f)
	case "application/problem+json":
		var p struct {
			Type, Title, Detail, Instance string
			Status                        int
		}
		decodeJSON(t, res.Content, &p)
		if p.Type != "about:blank" || p.Title != "Not Found" {
			t.Errorf("got the type %q and the title %q", p.Type, p.Title)
		}
		// problem details have no footer
		f = Fields{Heading: "HTTP ERROR 404 " + p.Detail, URI: p.Instance, Status: p.Status, Message: p.Detail, Footer: Footer()}
	case "application/xml":
		f = decodeXML(t, res.Content)
	default:
		t.Fatalf("got Content-Type %q", mediaType)
	}
	if mediaType != "application/json" && mediaType != "application/problem+json" && params["charset"] != "utf-8" {
		t.Errorf("got the charset %q", params["charset"])
	}
	if f.Status != 404 || f.Heading != "HTTP ERROR 404 "+f.Message {
		t.Errorf("got the heading %q, the status %d and the message %q", f.Heading, f.Status, f.Message)
	}
	return f
}

// fieldsOfLines reads the five lines of a page.
func fieldsOfLines(t testing.TB, lines []string) (f Fields) {
	t.Helper()
	if len(lines) != 5 {
		t.Fatalf("got %d lines, want 5:\n%.2000s", len(lines), strings.Join(lines, "\n"))
	}
	var values [5]string
	for i, prefix := range []string{"", "URI: ", "STATUS: ", "MESSAGE: ", ""} {
		value, ok := strings.CutPrefix(lines[i], prefix)
		if !ok {
			t.Errorf("line %d is %.200q, want it to begin with %q", i+1, lines[i], prefix)
		}
		values[i] = value
	}
	f = Fields{Heading: values[0], URI: values[1], Message: values[3], Footer: values[4]}
	if _, err := fmt.Sscanf(values[2]+";", "%d;", &f.Status); err != nil {
		t.Errorf("status %q: %v", values[2], err)
	}
	return f
}

func decodeJSON(t testing.TB, content string, v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(content))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil || d.More() {
		t.Fatalf("got %v, or more than one JSON value:\n%.2000s", err, content)
	}
}

func decodeXML(t testing.TB, content string) Fields {
	t.Helper()
	var document struct {
		XMLName xml.Name `xml:"error"`
		Fields
	}
	d := xml.NewDecoder(strings.NewReader(content))
	if err := d.Decode(&document); err != nil {
		t.Fatalf("%v:\n%.2000s", err, content)
	}
	if strings.TrimSpace(content[d.InputOffset():]) != "" {
		t.Errorf("after the document there is more:\n%.2000s", content)
	}
	return document.Fields
}

// visibleLines returns the text of an HTML page as a browser shows it, without blank lines: each block begins a line,
// and white space collapses.
func visibleLines(t testing.TB, page string) (lines []string) {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	var visit func(n *html.Node)
	visit = func(n *html.Node) {
		edge := "" // of a block
		switch {
		case n.Type == html.TextNode:
			text.WriteString(strings.NewReplacer("\n", " ", "\t", " ").Replace(n.Data))
		case n.Type != html.ElementNode:
		case slices.Contains([]string{"head", "script", "style"}, n.Data):
			return
		case !slices.Contains([]string{"strong", "dt", "dd", "span", "a"}, n.Data): // the page shows dt and dd inline
			edge = "\n"
		}
		text.WriteString(edge)
		for child := range n.ChildNodes() {
			visit(child)
		}
		text.WriteString(edge)
	}
	visit(doc)
	for line := range strings.Lines(text.String()) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// renderMarkdown returns a page in Markdown as HTML. It checks that the page is a heading, a list of three items and a
// paragraph, with at most one link, whose text is its address, and that GitHub's extensions of CommonMark find nothing
// more in it.
func renderMarkdown(t testing.TB, page string) (rendered string) {
	t.Helper()
	brackets := strings.NewReplacer("%5B", "[", "%5D", "]") // goldmark encodes those of an IPv6 address in a link
	for _, extensions := range [][]goldmark.Extender{nil, {extension.GFM, extension.Footnote, extension.DefinitionList}} {
		var b strings.Builder
		if err := goldmark.New(goldmark.WithExtensions(extensions...)).Convert([]byte(page), &b); err != nil {
			t.Fatal(err)
		}
		rendered = b.String()
		doc, err := html.Parse(strings.NewReader(rendered))
		if err != nil {
			t.Fatal(err)
		}
		elements := ""
		for n := range doc.Descendants() {
			switch {
			case n.Type == html.CommentNode:
				t.Errorf("the page has the comment %q:\n%.2000s", n.Data, page)
			case n.Type != html.ElementNode:
			case n.Data != "a":
				elements += " " + n.Data
			case len(n.Attr) != 1 || !strings.HasPrefix(strings.ToLower(n.Attr[0].Val), "http") ||
				brackets.Replace(n.FirstChild.Data) != brackets.Replace(n.Attr[0].Val):
				t.Errorf("the page has the link %v with the text %q:\n%.2000s", n.Attr, n.FirstChild.Data, page)
			}
		}
		if want := " html head body h1 ul li li li p"; elements != want {
			t.Errorf("the page has the elements%s, want%s:\n%.2000s", elements, want, page)
		}
	}
	return rendered
}
