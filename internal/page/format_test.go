package page

import (
	"encoding/json"
	"encoding/xml"
	"html/template"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// TestMessageAndFooterAreEscaped has readers of each representation read a message and a footer that are full of markup. HTML
// and Markdown are also compared with the text page, as they look when they are rendered, by the tests of a whole Caddy.
func TestMessageAndFooterAreEscaped(t *testing.T) {
	m := newMaker(t, Options{Message: "{m}", Footer: "{f}"})
	message := `<b>"'&amp;'</b> \ ü€😀 ]]> *_[x](y)_* www.a.test`
	footer := "1. " + message
	// what no line can have becomes a space, or the replacement character
	values := map[string]string{"m": " \n" + message + "\x00\r\n", "f": footer}
	pg := m.Make(Asked{Method: "GET", Target: "/x?y&z", Scheme: "http", Authority: "a.test"}, placeholders(values))
	heading := "HTTP ERROR 404 " + message

	if got, want := body(t, m, pg, "text"), heading+"\nURI: http://a.test/x?y&z\nSTATUS: 404\nMESSAGE: "+message+"\n"+footer+"\n"; got != want {
		t.Errorf("text: got\n%s\nwant\n%s", got, want)
	}

	var inJSON struct {
		Heading, URI, Message, Footer string
		Status                        int
	}
	decoder := json.NewDecoder(strings.NewReader(body(t, m, pg, "json")))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&inJSON); err != nil || inJSON.Heading != heading || inJSON.URI != pg.URI || inJSON.Message != message ||
		inJSON.Footer != footer || inJSON.Status != 404 {
		t.Errorf("JSON: got %+v, %v", inJSON, err)
	}

	var problem map[string]any
	if err := json.Unmarshal([]byte(body(t, m, pg, "problem")), &problem); err != nil || problem["detail"] != message || problem["instance"] != pg.URI || len(problem) != 5 {
		t.Errorf("problem: got %v, %v", problem, err)
	}

	var inXML struct {
		Heading string `xml:"heading"`
		URI     string `xml:"uri"`
		Status  int    `xml:"status"`
		Message string `xml:"message"`
		Footer  string `xml:"footer"`
	}
	if err := xml.Unmarshal([]byte(body(t, m, pg, "xml")), &inXML); err != nil || inXML.Heading != heading || inXML.URI != pg.URI || inXML.Message != message ||
		inXML.Footer != footer || inXML.Status != 404 {
		t.Errorf("XML: got %+v, %v", inXML, err)
	}

	const inMarkdown = `\<b\>"'\&amp;'\</b\> \\ ü€😀 \]\]\> \*\_\[x\](y)\_\* www\.a.test`
	if got, want := body(t, m, pg, "markdown"), "# HTTP ERROR 404 "+inMarkdown+"\n\n- URI: <http://a.test/x?y&z>\n- STATUS: 404\n- MESSAGE: "+inMarkdown+"\n\n&#49;. "+inMarkdown+"\n"; got != want {
		t.Errorf("Markdown: got\n%s\nwant\n%s", got, want)
	}

	// the built-in page is put together from the pieces of its template
	var want strings.Builder
	if err := template.Must(template.New("").Parse(BuiltIn)).Execute(&want, pg); err != nil {
		t.Fatal(err)
	}
	got := body(t, m, pg, "html")
	if html.UnescapeString(got) != html.UnescapeString(want.String()) || strings.ContainsAny(pg.Message, "<") && strings.Contains(got, "<b>") {
		t.Errorf("HTML: got\n%s\nwant\n%s", got, want.String())
	}
}

// TestMarkdownAddressThatIsNoLink has addresses that a renderer could take for a script or for a character reference.
func TestMarkdownAddressThatIsNoLink(t *testing.T) {
	for address, want := range map[string]string{
		"javascript:alert(1)":  `javascript\:alert(1)`,
		"ftp://a.test/":        `ftp\://a.test/`,
		"http://a.test/&lt;x_": `http\://a.test/\&lt;x\_`,
	} {
		got := body(t, newMaker(t, Options{}), Page{URI: address, Footer: "x"}, "markdown")
		if !strings.Contains(got, "\n- URI: "+want+"\n") {
			t.Errorf("got\n%s\nwant %s", got, want)
		}
	}
}

// TestBuiltInPageWithAnUnknownField has a field in the source of the built-in page that pages do not have.
func TestBuiltInPageWithAnUnknownField(t *testing.T) {
	defer func() {
		if got := recover(); got != "the built-in page has the unknown field Url" {
			t.Errorf("got the panic %v", got)
		}
	}()
	splitBuiltIn("<p>{{.URI}}</p><p>{{.Url}}</p>")
}

// TestBuiltInPageStandsAlone looks for anything that would make a browser send another request or run a script.
func TestBuiltInPageStandsAlone(t *testing.T) {
	doc, err := html.Parse(strings.NewReader(BuiltIn))
	if err != nil {
		t.Fatal(err)
	}
	for n := range doc.Descendants() {
		for _, a := range n.Attr {
			if a.Key == "src" || a.Key == "href" || a.Key == "style" || strings.HasPrefix(a.Key, "on") {
				t.Errorf("%s has %s", n.Data, a.Key)
			}
		}
		if n.Data == "script" || n.Data == "link" || n.Data == "img" {
			t.Errorf("the page has the element %s", n.Data)
		}
	}
	if strings.Contains(BuiltIn, "url(") || strings.Contains(BuiltIn, "@import") {
		t.Error("the style needs another request")
	}
}
