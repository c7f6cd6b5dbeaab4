package notfound

import (
	"strings"
)

// format is a representation of the page.
type format struct {
	name        string
	contentType string

	// The media types by which a client asks for it. The first is the one that is sent; the others
	// count only where a client names them.
	mediaTypes []string

	// A structured suffix that selects it where nothing else is acceptable (RFC 6839).
	suffix string

	append func(b []byte, p *page) []byte
}

// formats are the representations, in the default order of preference.
var formats = [...]format{
	{"text", "text/plain; charset=utf-8", []string{"text/plain"}, "", appendText},
	{"html", "text/html; charset=utf-8", []string{"text/html", "application/xhtml+xml"}, "", appendHTML},
	{"json", "application/json", []string{"application/json", "text/json"}, "+json", appendJSON},
	{"problem", "application/problem+json", []string{"application/problem+json"}, "", appendProblem},
	{"xml", "application/xml; charset=utf-8", []string{"application/xml", "text/xml"}, "+xml", appendXML},
}

func formatByName(name string) *format {
	for i := range formats {
		if formats[i].name == name {
			return &formats[i]
		}
	}
	return nil
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

// choose returns the format that the Accept lines of a request ask for.
func (h *Handler) choose(accept []string) *format {
	if len(accept) == 1 {
		if f := h.usual[accept[0]]; f != nil {
			return f
		}
	}
	return h.negotiate(accept)
}

// negotiate chooses the format that the Accept lines of a request ask for (RFC 9110, section 12.5.1).
// A malformed member is skipped. Where no format is acceptable, one that a client names by its
// structured suffix only will do (application/vnd.api+json), else the first one on offer.
func (h *Handler) negotiate(accept []string) *format {
	if len(h.offered) == 1 || len(accept) == 0 {
		return h.offered[0]
	}

	// what the client says of each format on offer: of the media type that is sent, of another that
	// it names, and of the suffix
	var sent, named, suffixed [len(formats)]preference
	position := 0
	for _, line := range accept {
		for line != "" {
			var member string
			member, line = cutUnquoted(line, ',')
			position++
			r, ok := parseMediaRange(member)
			if !ok {
				continue
			}
			p := preference{quality: r.quality, position: position}
			for i, f := range h.offered {
				if p.precision = r.matches(f.mediaTypes[0]); p.precision > sent[i].precision {
					sent[i] = p
				}
				for _, mediaType := range f.mediaTypes[1:] {
					if p.precision = r.matches(mediaType); p.precision >= withParams && p.precision > named[i].precision {
						named[i] = p
					}
				}
				if f.suffix != "" && strings.HasSuffix(r.name, f.suffix) && r.quality > suffixed[i].quality {
					suffixed[i] = preference{quality: r.quality, position: position}
				}
			}
		}
	}

	chosen, best := h.offered[0], preference{}
	for i, f := range h.offered {
		p := sent[i]
		switch {
		case p.precision == 0 && named[i].quality == 0:
			p = suffixed[i]
		case p.precision > 0 && p.quality == 0:
			p = named[i]
			p.recourse = ruledOut
		default:
			if named[i].over(p) {
				p = named[i]
			}
			p.recourse = regular
		}
		if p.quality > 0 && p.over(best) {
			chosen, best = f, p
		}
	}
	return chosen
}

// preference is what a client says of a format.
type preference struct {
	recourse  int // regular, or how far the format is from it
	quality   int // in thousandths
	precision int // of the media range that says it; 0 where none does
	position  int // of that range among all
}

// By what a client accepts a format.
const (
	bySuffix = iota // by a structured suffix only
	ruledOut        // by another media type, but not by the one that is sent
	regular
)

// How precisely a media range matches a media type.
const (
	noMatch    = iota
	anyType    // */*
	anySubtype // text/*
	withParams // text/html;level=1, which asks for more than there is
	exactType  // text/html
)

// over reports whether p is preferred to q: for its quality, then for the more specific range, then for
// being named first.
func (p preference) over(q preference) bool {
	switch {
	case p.recourse != q.recourse:
		return p.recourse > q.recourse
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
	params  bool   // it has parameters that no representation has
	quality int    // in thousandths
}

// matches returns how precisely r matches a media type, which has no wildcards.
func (r mediaRange) matches(mediaType string) int {
	switch {
	case r.name == mediaType:
		if r.params {
			return withParams
		}
		return exactType
	case r.name == "*/*":
		return anyType
	case strings.HasSuffix(r.name, "/*") && strings.HasPrefix(mediaType, r.name[:len(r.name)-1]):
		return anySubtype
	default:
		return noMatch
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
