package testcaddy

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"html"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/yuin/goldmark"

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
	const lines = "HTTP ERROR 404 %[1]s\nURI: %[2]s\nSTATUS: 404\nMESSAGE: %[1]s\n%[3]s\n"
	message := "No endpoint " + method + " " + contextPath + "/missing.html."
	return fmt.Sprintf(lines, message, uri, Footer())
}

// PagePolicy returns the Content-Security-Policy of the built-in HTML page, which allows the page's own style and
// script, the site's icon, and nothing else.
func PagePolicy(t testing.TB, page string) string {
	t.Helper()
	hash := func(element string) string {
		text := regexp.MustCompile("(?s)<" + element + ">(.*)</" + element + ">").FindStringSubmatch(page)
		if text == nil {
			t.Fatalf("the page has no %s:\n%.2000s", element, page)
		}
		sum := sha256.Sum256([]byte(text[1]))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'none'; img-src 'self'; style-src " + hash("style") + "; script-src " + hash("script") +
		"; base-uri 'none'; form-action 'none'"
}

// Fields are the fields of a page, as a client reads them.
type Fields struct {
	Heading string `xml:"heading" json:"heading"`
	URI     string `xml:"uri" json:"uri"`
	Status  int    `xml:"status" json:"status"`
	Message string `xml:"message" json:"message"`
	Footer  string `xml:"footer" json:"footer"`
}

// FieldsOf reads a page in any representation, and checks what every page has in common. It trusts that the page is
// valid: the tests of internal/page look for markup and for more than one document.
func FieldsOf(t testing.TB, res Response) (f Fields) {
	t.Helper()
	res.WantHeader(t, "X-Content-Type-Options", "nosniff")
	res.WantHeader(t, "Cache-Control", "no-store")
	res.WantHeader(t, "Content-Length", strconv.Itoa(len(res.Content)))
	content := []byte(res.Content)
	var err error
	switch mediaType, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";"); mediaType {
	case "application/json":
		err = json.Unmarshal(content, &f)
	case "application/problem+json":
		var problem struct {
			Detail   string
			Instance string
			Status   int
		}
		err = json.Unmarshal(content, &problem)
		f = Fields{
			Heading: fmt.Sprintf("HTTP ERROR %d %s", problem.Status, problem.Detail),
			URI:     problem.Instance,
			Status:  problem.Status,
			Message: problem.Detail,
			Footer:  Footer(), // which problem details lack
		}
	case "application/xml":
		err = xml.Unmarshal(content, &f)
	case "text/html":
		f = fieldsOfLines(t, textOfHTML(res.Content))
	case "text/markdown":
		var rendered strings.Builder
		err = goldmark.Convert(content, &rendered)
		f = fieldsOfLines(t, textOfHTML(rendered.String()))
	default:
		f = fieldsOfLines(t, res.Content)
	}
	if err != nil {
		t.Fatalf("%v:\n%.2000s", err, content)
	}
	heading := fmt.Sprintf("HTTP ERROR %d %s", res.StatusCode, f.Message)
	if f.Status != res.StatusCode || f.Heading != heading {
		t.Errorf("got the status %d and the page %+v", res.StatusCode, f)
	}
	return f
}

var fiveLines = regexp.MustCompile(`^(.+)\nURI: (.+)\nSTATUS: (\d+)\nMESSAGE: (.+)\n(.+)\n?$`)

// fieldsOfLines reads the five lines of a page.
func fieldsOfLines(t testing.TB, lines string) Fields {
	t.Helper()
	match := fiveLines.FindStringSubmatch(lines)
	if match == nil {
		t.Fatalf("these are not the five lines of a page:\n%.2000s", lines)
	}
	status, err := strconv.Atoi(match[3])
	if err != nil {
		t.Fatal(err)
	}
	return Fields{
		Heading: match[1],
		URI:     match[2],
		Status:  status,
		Message: match[4],
		Footer:  match[5],
	}
}

var (
	block = regexp.MustCompile(`<(p|div|li|footer)( [^>]*)?>`)
	tag   = regexp.MustCompile(`<[^>]*>`)
	edge  = regexp.MustCompile(` *\n *`)
)

// textOfHTML returns the text of an HTML page from its heading on, as a browser shows it.
func textOfHTML(page string) string {
	_, text, _ := strings.Cut(page, "<h1")
	text = strings.Join(strings.Fields("<h1"+text), " ")
	text = block.ReplaceAllString(text, "\n")
	text = tag.ReplaceAllString(text, "")
	text = edge.ReplaceAllString(text, "\n")
	return strings.TrimSpace(html.UnescapeString(text))
}
