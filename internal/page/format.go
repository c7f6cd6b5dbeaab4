package page

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/caddy-notfound/notfound/internal/accept"
	"github.com/caddy-notfound/notfound/internal/uri"
)

// format is a kind of representation.
type format struct {
	name        string
	contentType string
	offer       accept.Offer
	write       func(b *bytes.Buffer, pg Page)
}

// formats are the kinds of representations, in the default order of preference.
var formats = []*format{
	{"text", "text/plain; charset=utf-8", accept.Offer{Types: []string{"text/plain"}}, writeText},
	{"html", "text/html; charset=utf-8", accept.Offer{Types: []string{"text/html", "application/xhtml+xml"}}, writeHTML},
	{"markdown", "text/markdown; charset=utf-8", accept.Offer{Types: []string{"text/markdown", "text/x-markdown"}}, writeMarkdown},
	{"json", "application/json", accept.Offer{Types: []string{"application/json", "text/json"}, Suffix: "+json"}, writeJSON},
	{"problem", "application/problem+json", accept.Offer{Types: []string{"application/problem+json"}}, writeProblem},
	{"xml", "application/xml; charset=utf-8", accept.Offer{Types: []string{"application/xml", "text/xml"}, Suffix: "+xml"}, writeXML},
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

// writeText writes the page as the five lines that people read.
func writeText(b *bytes.Buffer, pg Page) {
	write(b, pg.Heading, "\nURI: ", pg.URI, "\nSTATUS: 404\nMESSAGE: ", pg.Message, "\n", pg.Footer, "\n")
}

func write(b *bytes.Buffer, parts ...string) {
	for _, s := range parts {
		b.WriteString(s)
	}
}

// BuiltIn is the built-in HTML page, a template whose actions are single fields in the text of elements.
//
//go:embed page.html
var BuiltIn string

// fields are those that the built-in page has.
var fields = map[string]func(Page) string{
	"URI":     func(pg Page) string { return pg.URI },
	"Status":  func(Page) string { return "404" },
	"Message": func(pg Page) string { return pg.Message },
	"Footer":  func(pg Page) string { return pg.Footer },
}

var (
	builtInParts  = splitBuiltIn(BuiltIn)
	builtInPolicy = "default-src 'none'; style-src " + styleHash(BuiltIn) + "; base-uri 'none'; form-action 'none'"
)

// builtInPart is a literal and the field after it; the last one has none.
type builtInPart struct {
	literal string
	field   func(Page) string
}

// splitBuiltIn splits the built-in page at its fields.
func splitBuiltIn(source string) (parts []builtInPart) {
	for {
		literal, rest, found := strings.Cut(source, "{{.")
		if !found {
			return append(parts, builtInPart{literal, nil})
		}
		name, rest, _ := strings.Cut(rest, "}}")
		parts = append(parts, builtInPart{literal, fields[name]})
		source = rest
	}
}

// styleHash returns the source expression that allows the style element of a page (CSP Level 3).
func styleHash(source string) string {
	_, style, _ := strings.Cut(source, "<style>")
	style, _, _ = strings.Cut(style, "</style>")
	sum := sha256.Sum256([]byte(style))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func writeHTML(b *bytes.Buffer, pg Page) {
	for _, part := range builtInParts {
		b.WriteString(part.literal)
		if part.field != nil {
			b.WriteString(html.EscapeString(part.field(pg)))
		}
	}
}

// writeMarkdown writes the page as CommonMark: a heading, a list and a line.
func writeMarkdown(b *bytes.Buffer, pg Page) {
	b.WriteString("# ")
	_, _ = markdownEscaper.WriteString(b, pg.Heading)
	b.WriteString("\n\n- URI: ")
	if canBeAutolink(pg.URI) {
		write(b, "<", pg.URI, ">")
	} else {
		_, _ = markdownEscaper.WriteString(b, pg.URI)
	}
	b.WriteString("\n- STATUS: 404\n- MESSAGE: ")
	_, _ = markdownEscaper.WriteString(b, pg.Message)
	b.WriteString("\n\n")
	footer := pg.Footer
	if c := footer[0]; !(c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z') {
		// the first character of a line may begin a block; a character reference cannot
		write(b, "&#", strconv.Itoa(int(c)), ";")
		footer = footer[1:]
	}
	_, _ = markdownEscaper.WriteString(b, footer)
	b.WriteByte('\n')
}

// canBeAutolink reports whether an address can stand as <address> in CommonMark (section 6.5). One that is not of
// the web could be a script. What looks like a character reference is one to some renderers, and not to others.
func canBeAutolink(address string) bool {
	scheme, _, _, ok := uri.Split(address)
	return ok && uri.IsHTTP(scheme) && !(strings.Contains(address, "&") && strings.Contains(address, ";"))
}

// markdownEscaper escapes a line of text so that nothing in it is markup, neither in CommonMark nor in common extensions:
// strikethrough, tables, math, emoji, mentions, and autolinks such as www.a.test.
var markdownEscaper = func() *strings.Replacer {
	pairs := []string{"w.", `w\.`, "W.", `W\.`}
	for c := range strings.SplitSeq("\\`*_[]{}<>#!&~|^=$:@", "") {
		pairs = append(pairs, c, `\`+c)
	}
	return strings.NewReplacer(pairs...)
}()

func writeJSON(b *bytes.Buffer, pg Page) {
	writeMember(b, `{"heading":`, pg.Heading)
	writeMember(b, `,"uri":`, pg.URI)
	writeMember(b, `,"status":404,"message":`, pg.Message)
	writeMember(b, `,"footer":`, pg.Footer)
	b.WriteString("}\n")
}

// writeProblem writes the page as problem details (RFC 9457).
func writeProblem(b *bytes.Buffer, pg Page) {
	writeMember(b, `{"type":"about:blank","title":"Not Found","status":404,"detail":`, pg.Message)
	writeMember(b, `,"instance":`, pg.URI)
	b.WriteString("}\n")
}

// jsonEscaper escapes a line of text in a JSON string.
var jsonEscaper = strings.NewReplacer(`"`, `\"`, `\`, `\\`)

// writeMember writes a string of a JSON object, after what comes before it.
func writeMember(b *bytes.Buffer, before, s string) {
	write(b, before, `"`, jsonEscaper.Replace(s), `"`)
}

func writeXML(b *bytes.Buffer, pg Page) {
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>` + "\n<error>")
	write(b, "<heading>", html.EscapeString(pg.Heading), "</heading>")
	write(b, "<uri>", html.EscapeString(pg.URI), "</uri><status>404</status>")
	write(b, "<message>", html.EscapeString(pg.Message), "</message>")
	write(b, "<footer>", html.EscapeString(pg.Footer), "</footer></error>\n")
}
