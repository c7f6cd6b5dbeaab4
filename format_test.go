package notfound

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"golang.org/x/net/html"
)

// fields are the fields of a page, as a client reads them.
type fields struct {
	XMLName xml.Name `xml:"error" json:"-"`
	Heading string   `xml:"heading" json:"heading"`
	URI     string   `xml:"uri" json:"uri"`
	Status  int      `xml:"status" json:"status"`
	Message string   `xml:"message" json:"message"`
	Footer  string   `xml:"footer" json:"footer"`
}

// fieldsOf reads the page with parsers that are not ours, and checks what holds for every page.
func fieldsOf(t testing.TB, res response) (f fields) {
	t.Helper()
	res.wantHeader(t, "X-Content-Type-Options", "nosniff")
	res.wantHeader(t, "Cache-Control", "no-store")
	if res.StatusCode != http.StatusNotFound {
		t.Errorf("got status %d", res.StatusCode)
	}
	if res.ContentLength != int64(len(res.body)) {
		t.Errorf("got Content-Length %d for a body of %d bytes", res.ContentLength, len(res.body))
	}

	mediaType, params, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	switch mediaType {
	case "text/plain", "text/html", "text/markdown":
		lines := strings.Split(strings.TrimSuffix(res.body, "\n"), "\n")
		switch mediaType {
		case "text/html":
			lines = visibleLines(t, res.body)
		case "text/markdown":
			lines = visibleLines(t, renderMarkdown(t, res.body))
		}
		if len(lines) != 5 {
			t.Fatalf("got %d lines, want 5:\n%.2000s", len(lines), strings.Join(lines, "\n"))
		}
		for i, prefix := range []string{"", "URI: ", "STATUS: ", "MESSAGE: ", ""} {
			value, ok := strings.CutPrefix(lines[i], prefix)
			if !ok {
				t.Errorf("line %d is %.200q, want it to begin with %q", i+1, lines[i], prefix)
			}
			lines[i] = value
		}
		f = fields{Heading: lines[0], URI: lines[1], Message: lines[3], Footer: lines[4]}
		if _, err := fmt.Sscanf(lines[2]+";", "%d;", &f.Status); err != nil {
			t.Errorf("status %q: %v", lines[2], err)
		}
	case "application/json":
		decodeJSON(t, res.body, &f)
	case "application/problem+json":
		var p struct {
			Type, Title, Detail, Instance string
			Status                        int
		}
		decodeJSON(t, res.body, &p)
		if p.Type != "about:blank" || p.Title != "Not Found" {
			t.Errorf("got the type %q and the title %q", p.Type, p.Title)
		}
		f = fields{Heading: "HTTP ERROR 404 " + p.Detail, URI: p.Instance, Status: p.Status, Message: p.Detail, Footer: footer()}
	case "application/xml":
		d := xml.NewDecoder(strings.NewReader(res.body))
		if err := d.Decode(&f); err != nil {
			t.Fatalf("%v:\n%.2000s", err, res.body)
		}
		if _, err := d.Token(); err != nil && err != io.EOF {
			t.Errorf("after the document: %v", err)
		}
		f.XMLName = xml.Name{}
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

var brackets = strings.NewReplacer("%5B", "[", "%5D", "]")

// renderMarkdown returns a page in Markdown as HTML. It checks that what is in it is a heading, a list of three and a paragraph, and that
// there is at most one link, whose text is its address; and that nothing more is there with all that GitHub adds to CommonMark.
func renderMarkdown(t testing.TB, page string) (rendered string) {
	t.Helper()
	for _, md := range []goldmark.Markdown{goldmark.New(), goldmark.New(goldmark.WithExtensions(extension.GFM, extension.Footnote, extension.DefinitionList))} {
		var b bytes.Buffer
		if err := md.Convert([]byte(page), &b); err != nil {
			t.Fatal(err)
		}
		doc, err := html.Parse(&b)
		if err != nil {
			t.Fatal(err)
		}
		var elements []string
		for n := range doc.Descendants() {
			switch {
			case n.Type == html.CommentNode:
				t.Errorf("the page has the comment %q:\n%.2000s", n.Data, page)
			case n.Type != html.ElementNode:
			case n.Data != "a":
				elements = append(elements, n.Data)
			case len(n.Attr) != 1 || !strings.HasPrefix(strings.ToLower(n.Attr[0].Val), "http") ||
				brackets.Replace(n.FirstChild.Data) != brackets.Replace(n.Attr[0].Val): // it encodes those of an IPv6 address
				t.Errorf("the page has the link %v of %q:\n%.2000s", n.Attr, n.FirstChild.Data, page)
			}
		}
		if got, want := strings.Join(elements, " "), "html head body h1 ul li li li p"; got != want {
			t.Errorf("the page has the elements %s, want %s:\n%.2000s", got, want, page)
		}
		var text strings.Builder
		if err := html.Render(&text, doc); err != nil {
			t.Fatal(err)
		}
		if rendered != "" && text.String() != rendered {
			t.Errorf("rendered as\n%.2000s\nand with extensions as\n%.2000s", rendered, text.String())
		}
		rendered = text.String()
	}
	return rendered
}

func decodeJSON(t testing.TB, body string, v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		t.Fatalf("%v:\n%.2000s", err, body)
	}
	if d.More() {
		t.Errorf("there is more than one JSON value:\n%.2000s", body)
	}
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
		block := false
		switch {
		case n.Type == html.TextNode:
			text.WriteString(strings.NewReplacer("\n", " ", "\t", " ").Replace(n.Data))
		case n.Type == html.ElementNode:
			switch n.Data {
			case "head", "script", "style":
				return
			case "strong", "dt", "dd", "span", "a": // the page shows dt and dd inline
			default:
				block = true
			}
		}
		if block {
			text.WriteByte('\n')
		}
		for child := n.FirstChild; child != nil; child = child.NextSibling {
			visit(child)
		}
		if block {
			text.WriteByte('\n')
		}
	}
	visit(doc)
	for line := range strings.Lines(text.String()) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

func TestRepresentationsHaveExactlyTheirFields(t *testing.T) {
	p := &page{uri: []byte("http://a.test/x?y&z"), message: []byte("No endpoint GET /missing.html."), footer: `Powered by "Caddy"`}
	for name, want := range map[string]string{
		"text":    "HTTP ERROR 404 No endpoint GET /missing.html.\nURI: http://a.test/x?y&z\nSTATUS: 404\nMESSAGE: No endpoint GET /missing.html.\nPowered by \"Caddy\"\n",
		"json":    `{"heading":"HTTP ERROR 404 No endpoint GET /missing.html.","uri":"http://a.test/x?y&z","status":404,"message":"No endpoint GET /missing.html.","footer":"Powered by \"Caddy\""}` + "\n",
		"problem": `{"type":"about:blank","title":"Not Found","status":404,"detail":"No endpoint GET /missing.html.","instance":"http://a.test/x?y&z"}` + "\n",
		"xml": `<?xml version="1.0" encoding="UTF-8"?>` + "\n" + `<error><heading>HTTP ERROR 404 No endpoint GET /missing.html.</heading><uri>http://a.test/x?y&amp;z</uri><status>404</status>` +
			`<message>No endpoint GET /missing.html.</message><footer>Powered by &#34;Caddy&#34;</footer></error>` + "\n",
	} {
		if got := string(formatsByName(t, name)[0].append(nil, p)); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
	}
}

func formatsByName(t testing.TB, names ...string) []*format {
	t.Helper()
	found, err := parseFormats(names)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestNegotiation(t *testing.T) {
	const (
		chrome     = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7"
		firefox    = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
		safari     = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
		image      = "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"
		java       = "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2"
		axios      = "application/json, text/plain, */*"
		allFormats = "text html markdown json problem xml"
	)
	junk := strings.Repeat(`a/b;c="d,e\"f",;=/,"`, 100<<10/20)

	for _, tt := range []struct {
		name    string
		formats string
		accept  []string
		want    string
	}{
		{"none", allFormats, nil, "text"},
		{"none, HTML first", "html json", nil, "html"},
		{"empty", allFormats, []string{""}, "text"},
		{"blank", allFormats, []string{" , ,\t"}, "text"},
		{"anything", allFormats, []string{"*/*"}, "text"},
		{"anything, HTML first", "html json", []string{"*/*"}, "html"},
		{"Chrome", allFormats, []string{chrome}, "html"},
		{"Firefox", allFormats, []string{firefox}, "html"},
		{"Safari", allFormats, []string{safari}, "html"},
		{"Chrome without HTML", "json xml", []string{chrome}, "xml"},
		{"image tag", allFormats, []string{image}, "text"},
		{"Java", allFormats, []string{java}, "html"},
		{"Java without HTML", "json text", []string{java}, "json"},
		{"axios", allFormats, []string{axios}, "json"},
		{"axios, text first all the same", "text json", []string{axios}, "json"},
		{"JSON", allFormats, []string{"application/json"}, "json"},
		{"JSON by its old name", allFormats, []string{"text/json"}, "json"},
		{"problem", allFormats, []string{"application/problem+json"}, "problem"},
		{"problem or JSON", allFormats, []string{"application/problem+json, application/json"}, "problem"},
		{"XML", allFormats, []string{"application/xml"}, "xml"},
		{"XML by its other name", allFormats, []string{"text/xml"}, "xml"},
		{"XHTML", allFormats, []string{"application/xhtml+xml"}, "html"},
		{"odd case", allFormats, []string{"Application/JSON;Q=0.5, TEXT/*;q=0.4"}, "json"},
		{"two lines", allFormats, []string{"text/plain;q=0.1", "application/json"}, "json"},

		// quality, then specificity, then what the client names first, then the order of formats
		{"quality", allFormats, []string{"text/*;q=0.3, text/html;q=0.7"}, "html"},
		{"quality in thousandths", allFormats, []string{"text/plain;q=0.998, application/xml;q=0.999"}, "xml"},
		{"specificity", allFormats, []string{"*/*, application/*, text/html"}, "html"},
		{"a subtype wildcard", allFormats, []string{"*/*, application/*"}, "json"},
		{"a low specific range", allFormats, []string{"text/plain;q=0.1, */*;q=0.5"}, "html"},
		{"named first", allFormats, []string{"application/xml, text/plain"}, "xml"},
		{"named first in lines", allFormats, []string{"application/xml", "text/plain"}, "xml"},
		{"named twice", allFormats, []string{"text/plain;q=0.9, text/plain;q=0.1, text/html;q=0.5"}, "text"},
		{"with a parameter", allFormats, []string{"text/html;level=1;q=0.9, text/html;q=0.2, text/plain;q=0.5"}, "text"},
		{"with a parameter, or anything", allFormats, []string{"application/json;odata=verbose, */*;q=0.1"}, "text"},
		{"with a parameter, or another", allFormats, []string{"text/html;level=1, text/plain;q=0.5"}, "text"},
		{"with a quoted parameter, or another", allFormats, []string{`image/png, application/problem+json;q=0.7, text/html;level="1"`}, "problem"},
		{"with a charset", allFormats, []string{`text/html;charset=utf-8, text/plain;charset="UTF-8";q=0.3`}, "html"},
		{"after the weight", allFormats, []string{"application/json;q=0.2;x=y, text/html;q=0.1"}, "json"},

		// an alias
		{"an alias counts only when named", allFormats, []string{"application/*;q=0.9, text/html;q=0.5"}, "json"},
		{"an alias before what is named", allFormats, []string{"application/xhtml+xml, text/plain"}, "html"},
		{"an alias after what is named", allFormats, []string{"text/plain, application/xhtml+xml"}, "text"},
		{"an alias and its type", allFormats, []string{"text/html;q=0.5, application/xhtml+xml, text/plain;q=0.8"}, "text"},
		{"an alias and its type, in the other order", allFormats, []string{"application/xhtml+xml, text/html;q=0.5, text/plain;q=0.8"}, "text"},
		{"an alias and a wildcard", allFormats, []string{"*/*;q=0.5, text/xml"}, "xml"},
		{"an alias with a parameter", allFormats, []string{"application/xhtml+xml;x=y, */*;q=0.5"}, "text"},
		{"an alias that is ruled out", "html text", []string{"application/xhtml+xml;q=0, */*"}, "html"},

		// Markdown
		{"Markdown", allFormats, []string{"text/markdown"}, "markdown"},
		{"a coding agent", allFormats, []string{"text/markdown, text/html, */*"}, "markdown"},
		{"Markdown without it", "html text", []string{"text/markdown, text/html;q=0.9, */*;q=0.1"}, "html"},

		// q=0
		{"not HTML", allFormats, []string{"text/html;q=0, */*"}, "text"},
		{"not text", allFormats, []string{"text/plain;q=0, */*"}, "html"},
		{"not text at all", allFormats, []string{"text/*;q=0, */*;q=0.001"}, "json"},
		{"not HTML but XHTML or anything", allFormats, []string{"text/html;q=0, application/xhtml+xml, */*;q=0.1"}, "text"},
		{"not HTML but XHTML", allFormats, []string{"text/html;q=0, application/xhtml+xml"}, "html"},
		{"not HTML but XHTML or JSON", allFormats, []string{"text/html;q=0.000, application/xhtml+xml, application/json;q=0.1"}, "json"},
		{"nothing else than XHTML", allFormats, []string{"application/xhtml+xml, */*;q=0"}, "html"},
		{"nothing at all", allFormats, []string{"*/*;q=0"}, "text"},

		// what is not on offer
		{"images only", allFormats, []string{"image/png, image/*;q=0.5"}, "text"},
		{"HTML from JSON", "json xml", []string{"text/html"}, "json"},
		{"a structured suffix", allFormats, []string{"application/vnd.api+json"}, "json"},
		{"another structured suffix", allFormats, []string{"image/png, application/atom+xml;q=0.1"}, "xml"},
		{"the better of two suffixes", allFormats, []string{"a/b+json;q=0.1, a/b+xml;q=0.2"}, "xml"},
		{"a suffix and a type", allFormats, []string{"application/vnd.api+json, text/html;q=0.1"}, "html"},
		{"a suffix of what is not on offer", "html text", []string{"application/vnd.api+json"}, "html"},
		{"a suffix of what is ruled out", allFormats, []string{"application/vnd.api+json, application/json;q=0"}, "json"},
		{"a suffix of what is ruled out, or another", allFormats, []string{"application/vnd.api+json, application/json;q=0, text/html;q=0.1"}, "html"},
		{"a type but for its parameter", allFormats, []string{"application/json;odata=verbose"}, "json"},
		{"a type with a suffix but for its parameter", allFormats, []string{"application/problem+json;version=2"}, "problem"},
		{"an alias but for its parameter", allFormats, []string{"image/png, text/xml;version=2"}, "xml"},
		{"a wildcard but for its parameter", "json html text", []string{"text/*;level=1"}, "html"},
		{"the better of two that are nearly named", allFormats, []string{"text/html;level=1;q=0.2, application/vnd.api+json;q=0.3"}, "json"},
		{"the first of two that are nearly named", allFormats, []string{"application/xml;version=2, text/html;level=1"}, "xml"},
		{"nearly named, but not accepted", "text json", []string{"application/json;odata=verbose;q=0"}, "text"},
		{"problem from JSON", "html json", []string{"application/problem+json"}, "json"},

		// a malformed member is skipped, the rest counts
		{"no slash", allFormats, []string{"json, application/xml;q=0.1"}, "xml"},
		{"no subtype", allFormats, []string{"text/, application/xml;q=0.1"}, "xml"},
		{"half a wildcard", allFormats, []string{"*/html, application/xml;q=0.1"}, "xml"},
		{"weight too large", allFormats, []string{"text/html;q=1.001, text/html;q=2, application/xml;q=0.1"}, "xml"},
		{"weight with four digits", allFormats, []string{"text/html;q=0.1234, application/xml;q=0.1"}, "xml"},
		{"weight without digits", allFormats, []string{"text/html;q=, text/html;q=., text/html;q=x, application/xml;q=0.1"}, "xml"},
		{"negative weight", allFormats, []string{"text/html;q=-1, application/xml;q=0.1"}, "xml"},
		{"weight without its zero", allFormats, []string{"text/html;q=.1, application/xml;q=.2"}, "xml"},
		{"parameter without value", allFormats, []string{"text/html;level, application/xml;q=0.1"}, "xml"},
		{"empty parameters", allFormats, []string{"text/html;;q=0.1; ;, application/xml;q=0.2"}, "xml"},
		{"separators in quotes", allFormats, []string{`text/html;a="b,text/plain";q=0.3, application/xml;q=0.2`}, "xml"},
		{"escaped quotes", allFormats, []string{`text/html;a="\",text/plain,";q=0.3, application/xml;q=0.2`}, "xml"},
		{"quote without end", allFormats, []string{`application/xml;q=0.1, text/html;a="b, text/plain`}, "xml"},
		{"spaces", allFormats, []string{"text / html, application/xml\t; \tq=0.1"}, "xml"},
		{"garbage", allFormats, []string{"\x80\xff,;;;,/,=,\"\\"}, "text"},
		{"100 KB of junk", allFormats, []string{junk}, "text"},
		{"100 KB of junk and JSON", allFormats, []string{"application/json", junk}, "json"},
		{"100 KB of commas and JSON", allFormats, []string{strings.Repeat(",", 100<<10) + "application/json"}, "json"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			offered := formatsByName(t, strings.Fields(tt.formats)...)
			if got := negotiate(offered, strings.Join(tt.accept, ",")).name; got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// acceptOfClients is what clients send as Accept, and what they get.
var acceptOfClients = []struct{ name, accept, format string }{
	{"Chrome", "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7", "html"},
	{"Firefox", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "html"},
	{"Safari", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "html"},
	{"curl", "*/*", "text"},
	{"Java", "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2", "html"},
	{"Python requests", "*/*", "text"},
	{"Go", "", "text"},
	{"axios", "application/json, text/plain, */*", "json"},
	{"a coding agent", "text/markdown, text/html, */*", "markdown"},
	{"one that is not known", "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/jxl,*/*;q=0.8,application/signed-exchange;v=b4;q=0.7", "html"},
}

func TestNegotiationAllocatesNothing(t *testing.T) {
	offered := formatsByName(t)
	for _, client := range acceptOfClients {
		if got := negotiate(offered, client.accept).name; got != client.format {
			t.Errorf("%s: got %s, want %s", client.name, got, client.format)
		}
		if allocs := testing.AllocsPerRun(100, func() { negotiate(offered, client.accept) }); allocs != 0 {
			t.Errorf("%s: %v allocations", client.name, allocs)
		}
	}
}

func TestEscapedIsWhatTheStandardLibraryReads(t *testing.T) {
	for _, s := range []string{"", "plain", `<a href="x">'&amp;'</a>`, "ü€😀", strings.Repeat(`"\`, 9)} {
		if got := html.UnescapeString(string(appendEscaped(nil, s))); got != s {
			t.Errorf("HTML: got %q, want %q", got, s)
		}
		var inXML struct {
			Text string `xml:",chardata"`
		}
		if err := xml.Unmarshal(fmt.Appendf(nil, "<x>%s</x>", appendEscaped(nil, s)), &inXML); err != nil || inXML.Text != s {
			t.Errorf("XML: got %q, %v, want %q", inXML.Text, err, s)
		}
		var inJSON string
		if err := json.Unmarshal(fmt.Appendf(nil, `"%s"`, appendJSONEscaped(nil, s)), &inJSON); err != nil || inJSON != s {
			t.Errorf("JSON: got %q, %v, want %q", inJSON, err, s)
		}
		if strings.ContainsAny(string(appendEscaped(nil, s)), `<>"'`) {
			t.Errorf("%q is not escaped", s)
		}
	}
	if !bytes.Equal(appendEscaped([]byte("a"), []byte("b<c")), []byte("ab&lt;c")) || !reflect.DeepEqual(appendJSONEscaped([]byte("a"), `"`), []byte(`a\"`)) {
		t.Error("nothing is appended")
	}
}
