package represent

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/caddy-notfound/notfound/internal/accept"
	"github.com/caddy-notfound/notfound/internal/page"
	"github.com/caddy-notfound/notfound/internal/uri"
)

// format is a kind of representation.
type format struct {
	name        string
	contentType string
	offer       accept.Offer

	source string // the built-in page: a template whose actions are single fields
	parts  []part // the source, split at its fields
	policy string // the Content-Security-Policy that the built-in page needs; empty: none

	escape        escaper // of texts
	escapeURI     escaper // of the address; nil: escape
	mayHaveBreaks bool    // whether a text may have line breaks and control characters, which are escaped
	check         func(page []byte) error
}

// escaper writes a text escaped.
type escaper func(b *bytes.Buffer, s string)

// part is a literal and the name of the field of [page.Page] after it. The last one has none.
type part struct{ literal, field string }

// sourceOfHTML contains a line of script, for applications that load addresses without the server. A visitor who
// reloads at a missing address gets the page, which then owns the application's history entries. Without the script,
// Back would only change the address. The script is in the head, because some routers use the body of a page that they
// fetch.
//
//go:embed page.html
var sourceOfHTML string

const (
	sourceOfText = `{{.Heading}}
URI: {{.URI}}
STATUS: {{.Status}}
MESSAGE: {{.Message}}
{{.Footer}}
`
	// CommonMark: a heading, a list and a line
	sourceOfMarkdown = `# {{.Heading}}

- URI: {{.URI}}
- STATUS: {{.Status}}
- MESSAGE: {{.Message}}

{{.Footer}}
`
	sourceOfJSON = `{"heading":"{{.Heading}}","uri":"{{.URI}}","status":{{.Status}},` +
		`"message":"{{.Message}}","footer":"{{.Footer}}"}` + "\n"
	// problem details (RFC 9457)
	sourceOfProblem = `{"type":"about:blank","title":"Not Found","status":{{.Status}},` +
		`"detail":"{{.Message}}","instance":"{{.URI}}"}` + "\n"
	sourceOfXML = `<?xml version="1.0" encoding="UTF-8"?>
<error><heading>{{.Heading}}</heading><uri>{{.URI}}</uri><status>{{.Status}}</status>` +
		`<message>{{.Message}}</message><footer>{{.Footer}}</footer></error>` + "\n"
)

// formats are the kinds of representations, in the order of preference that applies if the user has no files.
var formats = []*format{
	{
		name:        "text",
		contentType: "text/plain; charset=utf-8",
		offer:       accept.Offer{Types: []string{"text/plain"}},
		source:      sourceOfText,
		escape:      writeText,
	},
	{
		name:        "html",
		contentType: "text/html; charset=utf-8",
		offer:       accept.Offer{Types: []string{"text/html", "application/xhtml+xml"}},
		source:      sourceOfHTML,
		policy: "default-src 'none'; img-src 'self'; style-src " + hashOf("style", sourceOfHTML) +
			"; script-src " + hashOf("script", sourceOfHTML) +
			"; base-uri 'none'; form-action 'none'", // the image is the site's icon
		escape: escapeMarkup, // the built-in page; html/template escapes by itself
	},
	{
		name:        "markdown",
		contentType: "text/markdown; charset=utf-8",
		offer:       accept.Offer{Types: []string{"text/markdown", "text/x-markdown"}},
		source:      sourceOfMarkdown,
		escape:      escapeMarkdown,
		escapeURI:   writeAutolink,
	},
	{
		name:          "json",
		contentType:   "application/json",
		offer:         accept.Offer{Types: []string{"application/json", "text/json"}, Suffix: "+json"},
		source:        sourceOfJSON,
		escape:        escapeJSON,
		mayHaveBreaks: true,
		check:         checkJSON,
	},
	{
		name:          "problem",
		contentType:   "application/problem+json",
		offer:         accept.Offer{Types: []string{"application/problem+json"}},
		source:        sourceOfProblem,
		escape:        escapeJSON,
		mayHaveBreaks: true,
		check:         checkJSON,
	},
	{
		name:        "xml",
		contentType: "application/xml; charset=utf-8",
		offer:       accept.Offer{Types: []string{"application/xml", "text/xml"}, Suffix: "+xml"},
		source:      sourceOfXML,
		escape:      escapeMarkup,
		check:       checkXML,
	},
}

func init() {
	for _, f := range formats {
		f.parts = split(f.source)
		if f.escapeURI == nil {
			f.escapeURI = f.escape
		}
	}
}

// FormatNames returns the names of the representations, in the order of preference without files of the user.
func FormatNames() (names []string) {
	for _, f := range formats {
		names = append(names, f.name)
	}
	return names
}

// order is an order of preference among formats, and the offers that a client can choose from. Handlers share it.
type order struct {
	formats []*format
	offers  accept.Offers
}

// choose returns the format that an Accept field asks for.
func (o *order) choose(field string) *format { return o.formats[o.offers.Choose(field)] }

// orders are the orders of all handlers, by the names of their formats.
var orders sync.Map

// orderOf returns the order of formats with these names.
func orderOf(names []string) *order {
	key := strings.Join(names, " ")
	if known, ok := orders.Load(key); ok {
		return known.(*order)
	}
	o := new(order)
	for _, name := range names {
		f, _ := formatOf(name) // the names have been checked
		o.formats = append(o.formats, f)
		o.offers = append(o.offers, &f.offer)
	}
	known, _ := orders.LoadOrStore(key, o)
	return known.(*order)
}

// ownFirst returns the names of all formats: those that have files of the user, then the others, as preferred.
func ownFirst(rows map[string][]string) []string {
	var own, others []string
	for _, name := range FormatNames() {
		if len(rows[name]) > 0 {
			own = append(own, name)
		} else {
			others = append(others, name)
		}
	}
	return append(own, others...)
}

func formatOf(name string) (*format, error) {
	i := slices.Index(FormatNames(), name)
	if i < 0 {
		return nil, fmt.Errorf("unknown format %q; the formats are %s", name, strings.Join(FormatNames(), ", "))
	}
	return formats[i], nil
}

// BuiltIn returns the built-in page of a format, as a template.
func BuiltIn(name string) (source string, err error) {
	f, err := formatOf(name)
	if err != nil {
		return "", err
	}
	return f.source, nil
}

// split splits a built-in page at its fields.
func split(source string) (parts []part) {
	for {
		literal, rest, _ := strings.Cut(source, "{{.")
		field, rest, found := strings.Cut(rest, "}}")
		parts = append(parts, part{literal, field})
		if !found {
			return parts
		}
		source = rest
	}
}

// write writes the built-in page. The escaped fields stream into the buffer, so they allocate nothing.
func (f *format) write(b *bytes.Buffer, pg *page.Page) {
	for _, part := range f.parts {
		b.WriteString(part.literal)
		switch part.field {
		case "Heading":
			f.escape(b, pg.Heading)
		case "URI":
			f.escapeURI(b, pg.URI)
		case "Status":
			b.Write(strconv.AppendInt(b.AvailableBuffer(), int64(pg.Status), 10)) // allocates nothing
		case "Message":
			f.escape(b, pg.Message)
		case "Footer":
			f.escape(b, pg.Footer)
		case "":
		default:
			panic("represent: the built-in page of " + f.name + " has the unknown field " + part.field)
		}
	}
}

// hashOf returns the source expression that allows the style or the script of a page (CSP Level 3).
func hashOf(element, source string) string {
	_, text, _ := strings.Cut(source, "<"+element+">")
	text, _, _ = strings.Cut(text, "</"+element+">")
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// escaped returns a text escaped.
func (e escaper) escaped(s string) string {
	var b bytes.Buffer
	e(&b, s)
	return b.String()
}

func writeText(b *bytes.Buffer, s string) {
	b.WriteString(s)
}

// markupEscaper escapes a text for the text or an attribute of an element, in HTML or XML.
var markupEscaper = strings.NewReplacer("&", "&amp;", "'", "&#39;", "<", "&lt;", ">", "&gt;", `"`, "&#34;")

func escapeMarkup(b *bytes.Buffer, s string) {
	_, _ = markupEscaper.WriteString(b, s)
}

// jsonEscaper escapes a text for a JSON string.
var jsonEscaper = func() *strings.Replacer {
	pairs := []string{`"`, `\"`, `\`, `\\`}
	for c := range ' ' {
		pairs = append(pairs, string(c), fmt.Sprintf(`\u%04x`, c))
	}
	return strings.NewReplacer(pairs...)
}()

func escapeJSON(b *bytes.Buffer, s string) {
	_, _ = jsonEscaper.WriteString(b, s)
}

// markdownEscaper escapes a line of text so that nothing in it is markup, neither in CommonMark nor in common
// extensions: strikethrough, tables, math, emoji, mentions, and autolinks such as www.a.test.
var markdownEscaper = func() *strings.Replacer {
	pairs := []string{"w.", `w\.`, "W.", `W\.`}
	for c := range strings.SplitSeq("\\`*_[]{}<>#!&~|^=$:@", "") {
		pairs = append(pairs, c, `\`+c)
	}
	return strings.NewReplacer(pairs...)
}()

// escapeMarkdown escapes a text that may begin a line. What would begin a list item becomes a character reference.
func escapeMarkdown(b *bytes.Buffer, s string) {
	if s != "" && marksItem(s) {
		b.WriteString("&#" + strconv.Itoa(int(s[0])) + ";")
		s = s[1:]
	}
	_, _ = markdownEscaper.WriteString(b, s)
}

func marksItem(s string) bool {
	if s[0] == '+' || s[0] == '-' {
		return true
	}
	afterNumber := strings.TrimLeft(s, "0123456789")
	return afterNumber != s && strings.IndexAny(afterNumber, ".)") == 0
}

// writeAutolink writes an address as <address>, if CommonMark allows it (section 6.5). An address that is neither http
// nor https could be a script, and renderers disagree about what looks like a character reference. Such addresses are
// escaped.
func writeAutolink(b *bytes.Buffer, address string) {
	scheme, _, _, ok := uri.Split(address)
	isReference := strings.Contains(address, "&") && strings.Contains(address, ";")
	if !ok || !uri.IsHTTP(scheme) || isReference {
		escapeMarkdown(b, address)
		return
	}
	b.WriteString("<")
	b.WriteString(address)
	b.WriteString(">")
}
