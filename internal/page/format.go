package page

import (
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
	append      func(b []byte, pg Page) []byte
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

// appendText appends the page as the five lines that people read.
func appendText(b []byte, pg Page) []byte {
	for _, f := range pg.fields() {
		b = append(b, f.label...)
		b = append(b, f.value...)
		b = append(b, '\n')
	}
	return b
}

// BuiltIn is the built-in HTML page, a template whose actions are single fields in the text of elements.
//
//go:embed page.html
var BuiltIn string

var (
	builtInParts  = splitBuiltIn(BuiltIn)
	builtInPolicy = "default-src 'none'; style-src " + styleHash(BuiltIn) + "; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

// builtInPart is a literal and the field after it; the last one has none.
type builtInPart struct {
	literal string
	field   int // its index in fields, or -1
}

// splitBuiltIn splits the built-in page at its fields. One that pages do not have is a mistake in its source.
func splitBuiltIn(source string) (parts []builtInPart) {
	for {
		literal, rest, found := strings.Cut(source, "{{.")
		if !found {
			return append(parts, builtInPart{literal, -1})
		}
		var name string
		name, source, _ = strings.Cut(rest, "}}")
		fields := Page{}.fields()
		i := slices.IndexFunc(fields[:], func(f field) bool { return strings.EqualFold(f.name, name) })
		if i < 0 {
			panic("the built-in page has the unknown field " + name)
		}
		parts = append(parts, builtInPart{literal, i})
	}
}

// styleHash returns the source expression that allows the style element of a page (CSP Level 3).
func styleHash(source string) string {
	_, style, _ := strings.Cut(source, "<style>")
	style, _, _ = strings.Cut(style, "</style>")
	sum := sha256.Sum256([]byte(style))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func appendHTML(b []byte, pg Page) []byte {
	fields := pg.fields()
	for _, part := range builtInParts {
		b = append(b, part.literal...)
		if part.field >= 0 {
			b = append(b, html.EscapeString(fields[part.field].value)...)
		}
	}
	return b
}

// appendMarkdown appends the page as CommonMark: a heading, a list and a line.
func appendMarkdown(b []byte, pg Page) []byte {
	b = append(b, "# "...)
	for _, f := range pg.fields() {
		switch {
		case f.label != "":
			b = append(b, "- "...)
			b = append(b, f.label...)
			if f.name == "uri" && canBeAutolink(f.value) {
				b = append(b, '<')
				b = append(b, f.value...)
				b = append(b, ">\n"...)
				continue
			}
		case f.name == "footer":
			b = append(b, '\n')
			if c := f.value[0]; !(c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z') {
				// what begins a line may begin a list, or another block; a character reference cannot
				b = append(b, "&#"...)
				b = strconv.AppendUint(b, uint64(c), 10)
				b = append(b, ';')
				f.value = f.value[1:]
			}
		}
		b = append(b, markdownEscaper.Replace(f.value)...)
		b = append(b, '\n')
		if f.name == "heading" {
			b = append(b, '\n')
		}
	}
	return b
}

// canBeAutolink reports whether an address can stand as <address> in CommonMark (section 6.5). One that is not of
// the web could be a script. What looks like a character reference is one to some renderers, and not to others.
func canBeAutolink(address string) bool {
	scheme, _, _, ok := uri.Split(address)
	return ok && uri.IsHTTP(scheme) && !(strings.Contains(address, "&") && strings.Contains(address, ";"))
}

// markdownEscaper escapes a line of text so that nothing in it is markup, neither in CommonMark nor in what is usually
// added to it: strikethrough, tables, math, emoji, mentions, and links of what only looks like an address, as www.a.test.
var markdownEscaper = func() *strings.Replacer {
	pairs := []string{"w.", `w\.`, "W.", `W\.`}
	for c := range strings.SplitSeq("\\`*_[]{}<>#!&~|^=$:@", "") {
		pairs = append(pairs, c, `\`+c)
	}
	return strings.NewReplacer(pairs...)
}()

func appendJSON(b []byte, pg Page) []byte {
	before := byte('{')
	for _, f := range pg.fields() {
		b = append(b, before, '"')
		b = append(b, f.name...)
		b = append(b, '"', ':')
		if f.name == "status" { // a number
			b = append(b, f.value...)
		} else {
			b = appendJSONString(b, f.value)
		}
		before = ','
	}
	return append(b, "}\n"...)
}

// appendProblem appends the page as problem details (RFC 9457).
func appendProblem(b []byte, pg Page) []byte {
	b = append(b, `{"type":"about:blank","title":"Not Found","status":404,"detail":`...)
	b = appendJSONString(b, pg.Message)
	b = append(b, `,"instance":`...)
	b = appendJSONString(b, pg.URI)
	return append(b, "}\n"...)
}

func appendXML(b []byte, pg Page) []byte {
	b = append(b, `<?xml version="1.0" encoding="UTF-8"?>`+"\n<error>"...)
	for _, f := range pg.fields() {
		b = append(b, '<')
		b = append(b, f.name...)
		b = append(b, '>')
		b = append(b, html.EscapeString(f.value)...)
		b = append(b, "</"...)
		b = append(b, f.name...)
		b = append(b, '>')
	}
	return append(b, "</error>\n"...)
}

// jsonEscaper escapes a line of text as it stands in a JSON string.
var jsonEscaper = strings.NewReplacer(`"`, `\"`, `\`, `\\`)

func appendJSONString(b []byte, s string) []byte {
	b = append(b, '"')
	b = append(b, jsonEscaper.Replace(s)...)
	return append(b, '"')
}
