package page

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/caddy-notfound/notfound/internal/accept"
)

// format is a kind of representation.
type format struct {
	name        string
	contentType string
	offer       accept.Offer
	append      func(b []byte, pg *Page) []byte
}

// formats are the kinds of representations, in the default order of preference.
var formats = []*format{
	{"text", "text/plain; charset=utf-8", accept.Offer{Types: []string{"text/plain"}}, appendText},
	{"html", "text/html; charset=utf-8", accept.Offer{Types: []string{"text/html", "application/xhtml+xml"}}, appendHTML},
	{"markdown", "text/markdown; charset=utf-8", accept.Offer{Types: []string{"text/markdown", "text/x-markdown"}}, appendMarkdown},
	{"json", "application/json", accept.Offer{Types: []string{"application/json", "text/json"}, Suffix: "+json"}, appendJSON},
	{"problem", "application/problem+json", accept.Offer{Types: []string{"application/problem+json"}}, appendProblem},
	{"xml", "application/xml; charset=utf-8", accept.Offer{Types: []string{"application/xml", "text/xml"}, Suffix: "+xml"}, appendXML},
}

// Formats returns the names of the representations, in the default order of preference.
func Formats() (names []string) {
	for _, f := range formats {
		names = append(names, f.name)
	}
	return names
}

// CheckFormats refuses unknown formats and repeated ones.
func CheckFormats(names []string) error {
	_, err := formatsOf(names)
	return err
}

// CheckTemplate refuses a template that no format uses.
func CheckTemplate(file string, formats []string) error {
	if file == "" || len(formats) == 0 || slices.Contains(formats, "html") {
		return nil
	}
	return fmt.Errorf("%s is for the HTML page, and the formats %s have no html; add html to them, or leave the template out",
		file, strings.Join(formats, " "))
}

// formatsOf finds formats by their names. Without names it returns all of them.
func formatsOf(names []string) (offered []*format, err error) {
	if len(names) == 0 {
		return formats, nil
	}
	for _, name := range names {
		i := slices.IndexFunc(formats, func(f *format) bool { return f.name == name })
		switch {
		case i < 0:
			return nil, fmt.Errorf("unknown format %q; the formats are %s", name, strings.Join(Formats(), ", "))
		case slices.Contains(offered, formats[i]):
			return nil, fmt.Errorf("%s is given twice; give each format once", name)
		}
		offered = append(offered, formats[i])
	}
	return offered, nil
}

// Representation is a page as it is sent.
type Representation struct {
	Format      string // its name
	ContentType string
	Policy      string // the Content-Security-Policy that it needs; empty: none
	Body        []byte // until the page is freed

	// TemplateError says why the built-in page stands in for the user's template; nil: it does not.
	TemplateError error
}

func appendText(b []byte, pg *Page) []byte {
	b = append(b, headingStart...)
	b = append(b, pg.Message...)
	b = append(b, "\nURI: "...)
	b = append(b, pg.URI...)
	b = append(b, "\nSTATUS: 404\nMESSAGE: "...)
	b = append(b, pg.Message...)
	b = append(b, '\n')
	b = append(b, pg.Footer...)
	return append(b, '\n')
}

// BuiltIn is the built-in HTML page, a template whose actions are single fields in the text of elements.
//
//go:embed page.html
var BuiltIn string

var (
	builtInParts  = splitBuiltIn(BuiltIn)
	builtInPolicy = "default-src 'none'; style-src " + styleHash(BuiltIn) + "; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

// builtInPart is a field of the page and the literal after it.
type builtInPart struct {
	append  func(b []byte, pg *Page) []byte
	literal string
}

// splitBuiltIn splits the built-in page at its fields. One that the page does not have is a mistake in its source.
func splitBuiltIn(source string) []builtInPart {
	fields := map[string]func(b []byte, pg *Page) []byte{
		"URI":     func(b []byte, pg *Page) []byte { return appendEscaped(b, pg.URI) },
		"Status":  func(b []byte, _ *Page) []byte { return append(b, "404"...) },
		"Message": func(b []byte, pg *Page) []byte { return appendEscaped(b, pg.Message) },
		"Footer":  func(b []byte, pg *Page) []byte { return appendEscaped(b, pg.Footer) },
	}
	first, rest, _ := strings.Cut(source, "{{.")
	parts := []builtInPart{{func(b []byte, _ *Page) []byte { return b }, first}}
	for part := range strings.SplitSeq(rest, "{{.") {
		name, literal, _ := strings.Cut(part, "}}")
		if fields[name] == nil {
			panic("the built-in page has the unknown field " + name)
		}
		parts = append(parts, builtInPart{fields[name], literal})
	}
	return parts
}

// styleHash returns the source expression that allows the style element of a page (CSP Level 3).
func styleHash(source string) string {
	_, style, _ := strings.Cut(source, "<style>")
	style, _, _ = strings.Cut(style, "</style>")
	sum := sha256.Sum256([]byte(style))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func appendHTML(b []byte, pg *Page) []byte {
	for _, part := range builtInParts {
		b = part.append(b, pg)
		b = append(b, part.literal...)
	}
	return b
}

// appendMarkdown appends the page as CommonMark.
func appendMarkdown(b []byte, pg *Page) []byte {
	b = append(b, "# "+headingStart...)
	b = appendMarkdownEscaped(b, pg.Message)
	b = append(b, "\n\n- URI: "...)
	if canBeAutolink(pg.URI) {
		b = append(b, '<')
		b = append(b, pg.URI...)
		b = append(b, '>')
	} else {
		b = appendMarkdownEscaped(b, pg.URI)
	}
	b = append(b, "\n- STATUS: 404\n- MESSAGE: "...)
	b = appendMarkdownEscaped(b, pg.Message)
	b = append(b, "\n\n"...)
	footer := pg.Footer
	if c := footer[0]; !(c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z') {
		// what begins a line may begin a list, or another block; a character reference cannot
		b = append(b, "&#"...)
		b = strconv.AppendUint(b, uint64(c), 10)
		b = append(b, ';')
		footer = footer[1:]
	}
	b = appendMarkdownEscaped(b, footer)
	return append(b, '\n')
}

// canBeAutolink reports whether an address can stand as <address> in CommonMark (section 6.5). One that is not of
// the web could be a script. What looks like a character reference is one to some renderers, and not to others.
func canBeAutolink(uri []byte) bool {
	scheme, _, _ := bytes.Cut(uri, []byte("://"))
	return (bytes.EqualFold(scheme, []byte("http")) || bytes.EqualFold(scheme, []byte("https"))) &&
		!(bytes.IndexByte(uri, '&') >= 0 && bytes.IndexByte(uri, ';') >= 0)
}

// appendMarkdownEscaped appends s, a line of text, so that nothing in it is markup, neither in CommonMark nor in what
// is usually added to it: strikethrough, tables, math, emoji, mentions, and links of what only looks like an address.
func appendMarkdownEscaped[T string | []byte](b []byte, s T) []byte {
	for i := range len(s) {
		switch c := s[i]; c {
		case '.':
			if i == 0 || s[i-1]|0x20 != 'w' { // as in www.example.com
				break
			}
			fallthrough
		case '\\', '`', '*', '_', '[', ']', '{', '}', '<', '>', '#', '!', '&', '~', '|', '^', '=', '$', ':', '@':
			b = append(b, '\\')
		}
		b = append(b, s[i])
	}
	return b
}

func appendJSON(b []byte, pg *Page) []byte {
	b = append(b, `{"heading":"`+headingStart...)
	b = append(b, pg.Message...)
	b = append(b, `","uri":"`...)
	b = append(b, pg.URI...)
	b = append(b, `","status":404,"message":"`...)
	b = append(b, pg.Message...)
	b = append(b, `","footer":"`...)
	b = appendJSONEscaped(b, pg.Footer)
	return append(b, "\"}\n"...)
}

// appendProblem appends the page as problem details (RFC 9457).
func appendProblem(b []byte, pg *Page) []byte {
	b = append(b, `{"type":"about:blank","title":"Not Found","status":404,"detail":"`...)
	b = append(b, pg.Message...)
	b = append(b, `","instance":"`...)
	b = append(b, pg.URI...)
	return append(b, "\"}\n"...)
}

func appendXML(b []byte, pg *Page) []byte {
	b = append(b, `<?xml version="1.0" encoding="UTF-8"?>`+"\n<error><heading>"+headingStart...)
	b = appendEscaped(b, pg.Message)
	b = append(b, "</heading><uri>"...)
	b = appendEscaped(b, pg.URI)
	b = append(b, "</uri><status>404</status><message>"...)
	b = appendEscaped(b, pg.Message)
	b = append(b, "</message><footer>"...)
	b = appendEscaped(b, pg.Footer)
	return append(b, "</footer></error>\n"...)
}

// appendJSONEscaped appends s, a line of text, as it stands in a JSON string.
func appendJSONEscaped(b []byte, s string) []byte {
	for i := range len(s) {
		if s[i] == '"' || s[i] == '\\' {
			b = append(b, '\\')
		}
		b = append(b, s[i])
	}
	return b
}

// appendEscaped appends s, a line of text, as it stands in the text of HTML and XML.
func appendEscaped[T string | []byte](b []byte, s T) []byte {
	done := 0
	for i := range len(s) {
		var entity string
		switch s[i] {
		case '&':
			entity = "&amp;"
		case '<':
			entity = "&lt;"
		case '>':
			entity = "&gt;"
		case '"':
			entity = "&#34;"
		case '\'':
			entity = "&#39;"
		default:
			continue
		}
		b = append(b, s[done:i]...)
		b = append(b, entity...)
		done = i + 1
	}
	return append(b, s[done:]...)
}
