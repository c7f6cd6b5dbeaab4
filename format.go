package notfound

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// format is a representation of the page.
type format struct {
	name        string
	contentType string

	// The media type that is sent; an alias, which counts only where a client names it; and a structured suffix
	// by which a client nearly names it (RFC 6839).
	mediaType, alias, suffix string

	append func(b []byte, p *page) []byte
}

// formats are the representations, in the default order of preference.
var formats = [...]format{
	{"text", "text/plain; charset=utf-8", "text/plain", "", "", appendText},
	{"html", "text/html; charset=utf-8", "text/html", "application/xhtml+xml", "", appendHTML},
	{"markdown", "text/markdown; charset=utf-8", "text/markdown", "", "", appendMarkdown},
	{"json", "application/json", "application/json", "text/json", "+json", appendJSON},
	{"problem", "application/problem+json", "application/problem+json", "", "", appendProblem},
	{"xml", "application/xml; charset=utf-8", "application/xml", "text/xml", "+xml", appendXML},
}

// parseFormats looks up formats by their names.
func parseFormats(names []string) (offered []*format, err error) {
	for _, name := range names {
		i := slices.IndexFunc(formats[:], func(f format) bool { return f.name == name })
		if i < 0 {
			return nil, fmt.Errorf("unknown format %q; the formats are text, html, markdown, json, problem and xml", name)
		}
		f := &formats[i]
		if slices.Contains(offered, f) {
			return nil, fmt.Errorf("%s is given twice; give each format once", name)
		}
		offered = append(offered, f)
	}
	return offered, nil
}

// usualAccepts are Accept fields that today's clients send; for those of browsers see
// https://developer.mozilla.org/docs/Web/HTTP/Guides/Content_negotiation/List_of_default_Accept_values.
// What they ask for is found when the config loads, so that most requests need no negotiation.
var usualAccepts = [...]string{
	// pages: Chrome and Edge; Firefox and Safari; Java's HttpURLConnection
	"text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7",
	"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
	"text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2",

	// images: Chrome and Edge; Firefox; Safari
	"image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8",
	"image/avif,image/webp,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5",
	"image/webp,image/avif,image/jxl,image/heic,image/heic-sequence,video/*;q=0.8,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5",

	// style sheets; axios; scripts, curl, Python requests and many more
	"text/css,*/*;q=0.1",
	"application/json, text/plain, */*",
	"*/*",

	"text/plain", "text/html", "application/json", "application/problem+json", "application/xml",
}

// choose returns the format that an Accept field asks for.
func (h *Handler) choose(accept string) *format {
	if f := h.usual[accept]; f != nil {
		return f
	}
	return h.negotiate(accept)
}

// negotiate chooses the format that an Accept field asks for (RFC 9110, section 12.5.1). A malformed member is
// skipped. Where no format is acceptable, one that is nearly named will do, else the first one on offer.
func (h *Handler) negotiate(accept string) *format {
	if len(h.offered) == 1 || accept == "" {
		return h.offered[0]
	}

	// What the client says of each format on offer: of the media type that is sent, of its alias, and of types that
	// nearly are the format.
	var main, alias, nearly [len(formats)]preference
	for position := 0; accept != ""; position++ {
		var member string
		member, accept = cutUnquoted(accept, ',')
		r, ok := parseMediaRange(member)
		if !ok {
			continue
		}
		for i, f := range h.offered {
			p := preference{quality: r.quality, precision: r.matches(f.mediaType), position: position}
			if p.precision > main[i].precision && !r.params {
				main[i] = p
			}
			switch {
			case r.name == f.alias:
				p.precision = exact
				if alias[i].precision == 0 && !r.params {
					alias[i] = p
				}
			case p.precision == 0 && f.suffix != "" && strings.HasSuffix(r.name, f.suffix):
				p.precision = suffix
			}
			if p.precision > 0 && p.over(nearly[i]) {
				nearly[i] = p
			}
		}
	}

	for i := range h.offered {
		// what is said of an alias counts for the type that is sent, unless that is named itself
		if main[i].precision < exact && alias[i].quality > 0 {
			main[i] = alias[i]
		}
	}
	for _, preferences := range [...]*[len(formats)]preference{&main, &nearly} {
		best := 0
		for i := range h.offered {
			if preferences[i].over(preferences[best]) {
				best = i
			}
		}
		if preferences[best].quality > 0 {
			return h.offered[best]
		}
	}
	return h.offered[0]
}

// preference is what a client says of a format.
type preference struct {
	quality   int // in thousandths
	precision int // of the media range that says it; 0 where none does
	position  int // of that range among all
}

// How precisely a media range names a format.
const (
	anyType    = 1 + iota // */*
	anySubtype            // text/*
	suffix                // application/vnd.api+json
	exact                 // text/html
)

// over reports whether p is preferred to q: for its quality, then for the more specific range, then for
// being named first.
func (p preference) over(q preference) bool {
	switch {
	case p.quality != q.quality:
		return p.quality > q.quality
	case p.precision != q.precision:
		return p.precision > q.precision
	default:
		return p.position < q.position
	}
}

// mediaRange is a member of an Accept field.
type mediaRange struct {
	name    string // type/subtype in lower case, * for any
	params  bool   // it has parameters that no representation has, so it only nearly names one
	quality int    // in thousandths
}

// matches returns how precisely the name of r matches a media type, which has no wildcards; 0 if it does not.
func (r mediaRange) matches(mediaType string) int {
	switch {
	case r.name == mediaType:
		return exact
	case r.name == "*/*":
		return anyType
	case strings.HasSuffix(r.name, "/*") && strings.HasPrefix(mediaType, r.name[:len(r.name)-1]):
		return anySubtype
	default:
		return 0
	}
}

// parseMediaRange parses a member of an Accept field, with its weight.
func parseMediaRange(s string) (r mediaRange, ok bool) {
	name, params := cutUnquoted(s, ';')
	name = trimSpace(name)
	mainType, subtype, ok := strings.Cut(name, "/")
	if !ok || !isToken(mainType) || !isToken(subtype) || mainType == "*" && subtype != "*" {
		return r, false
	}

	// ToLower allocates only where there is an upper case letter
	r = mediaRange{name: strings.ToLower(name), quality: 1000}
	for params != "" {
		var param string
		param, params = cutUnquoted(params, ';')
		if param = trimSpace(param); param == "" {
			continue
		}
		key, value, ok := strings.Cut(param, "=")
		switch {
		case !ok || !isToken(key) || !isToken(value) && !isQuoted(value):
			return r, false
		case strings.EqualFold(key, "q"):
			// nothing that follows a weight belongs to the range
			r.quality, ok = parseQuality(value)
			return r, ok
		case strings.EqualFold(key, "charset") && strings.EqualFold(strings.Trim(value, `"`), "utf-8"):
			// it is what all representations have
		default:
			r.params = true
		}
	}
	return r, true
}

// parseQuality parses a weight (RFC 9110, section 12.4.2), in thousandths. The zero before the dot may
// be missing, as it is in what Java's HttpURLConnection sends.
func parseQuality(s string) (int, bool) {
	whole, fraction, _ := strings.Cut(s, ".")
	if whole == "" && fraction != "" {
		whole = "0"
	}
	if whole != "0" && whole != "1" || len(fraction) > 3 || !consistsOf(fraction, &digitBytes) {
		return 0, false
	}
	q := int(whole[0] - '0')
	for i := range 3 {
		q *= 10
		if i < len(fraction) {
			q += int(fraction[i] - '0')
		}
	}
	return q, q <= 1000
}

// cutUnquoted cuts s around the first separator that is not in a quoted string.
func cutUnquoted(s string, separator byte) (before, after string) {
	i := strings.IndexByte(s, separator)
	if i < 0 {
		return s, ""
	}
	if strings.IndexByte(s[:i], '"') < 0 {
		return s[:i], s[i+1:]
	}
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && quoted:
			i++
		case c == separator && !quoted:
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}

func isToken(s string) bool { return s != "" && consistsOf(s, &tokenBytes) }

// isQuoted reports whether s is a quoted string (RFC 9110, section 5.6.4).
func isQuoted(s string) bool {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return false
	}
	s = s[1 : len(s)-1]
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			return false
		case '\\':
			if i++; i == len(s) {
				return false
			}
		}
	}
	return true
}

// trimSpace trims optional whitespace (RFC 9110, section 5.6.3).
func trimSpace(s string) string { return strings.Trim(s, " \t") }

func appendText(b []byte, p *page) []byte {
	b = append(b, heading...)
	b = append(b, p.message...)
	b = append(b, "\nURI: "...)
	b = append(b, p.uri...)
	b = append(b, "\nSTATUS: 404\nMESSAGE: "...)
	b = append(b, p.message...)
	b = append(b, '\n')
	b = append(b, p.footer...)
	return append(b, '\n')
}

// appendMarkdown appends the page as CommonMark.
func appendMarkdown(b []byte, p *page) []byte {
	b = append(b, "# "+heading...)
	b = appendMarkdownEscaped(b, p.message)
	b = append(b, "\n\n- URI: "...)
	if canBeAutolink(p.uri) {
		b = append(b, '<')
		b = append(b, p.uri...)
		b = append(b, '>')
	} else {
		b = appendMarkdownEscaped(b, p.uri)
	}
	b = append(b, "\n- STATUS: 404\n- MESSAGE: "...)
	b = appendMarkdownEscaped(b, p.message)
	b = append(b, "\n\n"...)
	footer := p.footer
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

func appendJSON(b []byte, p *page) []byte {
	b = append(b, `{"heading":"`+heading...)
	b = append(b, p.message...)
	b = append(b, `","uri":"`...)
	b = append(b, p.uri...)
	b = append(b, `","status":404,"message":"`...)
	b = append(b, p.message...)
	b = append(b, `","footer":"`...)
	b = appendJSONEscaped(b, p.footer)
	return append(b, "\"}\n"...)
}

// appendProblem appends the page as problem details (RFC 9457).
func appendProblem(b []byte, p *page) []byte {
	b = append(b, `{"type":"about:blank","title":"Not Found","status":404,"detail":"`...)
	b = append(b, p.message...)
	b = append(b, `","instance":"`...)
	b = append(b, p.uri...)
	return append(b, "\"}\n"...)
}

func appendXML(b []byte, p *page) []byte {
	b = append(b, `<?xml version="1.0" encoding="UTF-8"?>`+"\n<error><heading>"+heading...)
	b = appendEscaped(b, p.message)
	b = append(b, "</heading><uri>"...)
	b = appendEscaped(b, p.uri)
	b = append(b, "</uri><status>404</status><message>"...)
	b = appendEscaped(b, p.message)
	b = append(b, "</message><footer>"...)
	b = appendEscaped(b, p.footer)
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
