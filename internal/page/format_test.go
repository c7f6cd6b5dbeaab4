package page

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// TestRepresentationsHaveExactlyTheirFields has no HTML and no Markdown: those are compared with the text page, as they
// look when they are rendered.
func TestRepresentationsHaveExactlyTheirFields(t *testing.T) {
	p := &Page{URI: []byte("http://a.test/x?y&z"), Message: []byte("No endpoint GET /missing.html."), Footer: `Powered by "Caddy"`}
	for name, want := range map[string]string{
		"text":    "HTTP ERROR 404 No endpoint GET /missing.html.\nURI: http://a.test/x?y&z\nSTATUS: 404\nMESSAGE: No endpoint GET /missing.html.\nPowered by \"Caddy\"\n",
		"json":    `{"heading":"HTTP ERROR 404 No endpoint GET /missing.html.","uri":"http://a.test/x?y&z","status":404,"message":"No endpoint GET /missing.html.","footer":"Powered by \"Caddy\""}` + "\n",
		"problem": `{"type":"about:blank","title":"Not Found","status":404,"detail":"No endpoint GET /missing.html.","instance":"http://a.test/x?y&z"}` + "\n",
		"xml": `<?xml version="1.0" encoding="UTF-8"?>` + "\n" + `<error><heading>HTTP ERROR 404 No endpoint GET /missing.html.</heading><uri>http://a.test/x?y&amp;z</uri><status>404</status>` +
			`<message>No endpoint GET /missing.html.</message><footer>Powered by &#34;Caddy&#34;</footer></error>` + "\n",
	} {
		offered, err := formatsOf([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(offered[0].append(nil, p)); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
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
		t.Error("what is escaped is not appended to what was there")
	}
}

// TestBuiltInPageWithAnUnknownField has a field in the source of the built-in page that pages do not have.
func TestBuiltInPageWithAnUnknownField(t *testing.T) {
	defer func() {
		if got := recover(); got != "the built-in page has the unknown field Uri" {
			t.Errorf("got the panic %v", got)
		}
	}()
	splitBuiltIn("<p>{{.URI}}</p><p>{{.Uri}}</p>")
}
