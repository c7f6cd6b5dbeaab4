// Package accept chooses one of several offers by an Accept field (RFC 9110, section 12.5.1). It knows media types, and
// nothing of what is offered.
package accept

import (
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Offer is a representation that can be sent.
type Offer struct {
	// Types are the media types that ask for it, without parameters. The first is the one that is sent. The others are
	// aliases, which count only where a client names them.
	Types []string

	// Suffix is the structured suffix by which a client nearly names the offer (RFC 6839), for example `+json`. Empty:
	// none.
	Suffix string
}

// Offers are what a client can choose from, in the server's order of preference. They are sent in UTF-8.
type Offers []Offer

// Choose returns the index of the offer that an Accept field asks for. Several lines of the field are joined with
// commas. A malformed member is skipped. If no offer is acceptable, one that the client nearly names and does not refuse
// is chosen; then one of which it names an alias, although it refuses the type that is sent; else the first one.
func (o Offers) Choose(field string) int {
	if len(o) == 1 || field == "" {
		return 0
	}

	var most [8]stated // so that no usual number of offers is allocated
	said := append(most[:0], make([]stated, len(o))...)
	for position := int32(0); field != ""; position++ {
		var member string
		member, field = cutUnquoted(field, ',')
		r, ok := parseMediaRange(member)
		if !ok {
			continue
		}
		for i := range o {
			said[i].add(&o[i], &r, position)
		}
	}

	for i := range said {
		switch s := &said[i]; {
		case s[main].precision > 0 && s[main].quality == 0: // the client refuses what would be sent
			s[nearly] = preference{}
		case s[main].precision < exact && s[alias].quality > 0:
			// an alias counts for the type that is sent, unless the client names that one as well
			s[main] = s[alias]
		}
	}
	for _, of := range [...]int{main, nearly, alias} {
		best := 0
		for i := range said {
			if said[i][of].over(said[best][of]) {
				best = i
			}
		}
		if said[best][of].quality > 0 {
			return best
		}
	}
	return 0
}

// stated is what a client says of an offer.
type stated [3]preference

const (
	main   = iota // of the media type that is sent
	nearly        // of media types that nearly name it
	alias         // of its aliases
)

// add takes in what a media range says of an offer.
func (s *stated) add(o *Offer, r *mediaRange, position int32) {
	precision, of := r.matches(o.Types[0]), main
	if precision == 0 && slices.ContainsFunc(o.Types[1:], r.isNamed) {
		precision, of = exact, alias
	}
	p := preference{quality: r.quality, precision: precision, charset: r.charset, position: position}
	if precision > 0 && !r.params && p.governs(s[of]) {
		s[of] = p
	}
	if precision == 0 && r.hasSuffix(o.Suffix) {
		p.precision = suffix
	}
	if p.precision > 0 && p.over(s[nearly]) {
		s[nearly] = p
	}
}

// preference is how much a client prefers an offer. It is small because Choose has many of them on its stack.
type preference struct {
	quality   int16 // in thousandths
	precision int8  // of the media range that says so; 0 if none does
	charset   bool  // that range has the charset of what is sent
	position  int32 // of that range among all
}

// How precisely a media range names a format.
const (
	anyType    = 1 + iota // */*
	anySubtype            // text/*
	suffix                // application/vnd.api+json
	exact                 // text/html
)

// governs reports whether p counts rather than q, if a client says both of one media type: what the more specific range
// says counts (RFC 9110, section 12.5.1). Of two that are equally specific, a refusal counts, else the first.
func (p preference) governs(q preference) bool {
	switch {
	case p.precision != q.precision:
		return p.precision > q.precision
	case p.charset != q.charset:
		return p.charset
	default:
		return p.quality == 0
	}
}

// over reports whether p is preferred to q: by its quality, then by how specific its range is, then by which is
// named first.
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
	name     string // type/subtype in any case, with * for any
	wildcard int8   // anyType or anySubtype, or 0
	charset  bool   // with the charset that representations have
	params   bool   // with parameters that no representation has, so that it nearly names one at best
	quality  int16  // in thousandths
}

// matches returns how precisely the name of r matches a media type, which has no wildcards. It returns 0 if it
// does not.
func (r *mediaRange) matches(mediaType string) int8 {
	switch {
	case r.wildcard == anyType:
		return anyType
	case r.wildcard == anySubtype && r.hasMainTypeOf(mediaType):
		return anySubtype
	case r.isNamed(mediaType):
		return exact
	default:
		return 0
	}
}

// hasMainTypeOf reports whether r, which ends in a wildcard, begins as a media type does.
func (r *mediaRange) hasMainTypeOf(mediaType string) bool {
	n := len(r.name) - len("*")
	return len(mediaType) >= n && strings.EqualFold(mediaType[:n], r.name[:n])
}

// isNamed reports whether r has the name of a media type.
func (r *mediaRange) isNamed(mediaType string) bool {
	return len(r.name) == len(mediaType) && strings.EqualFold(r.name, mediaType)
}

// hasSuffix reports whether r has a structured suffix.
func (r *mediaRange) hasSuffix(suffix string) bool {
	from := len(r.name) - len(suffix)
	return suffix != "" && from >= 0 && r.name[from] == '+' && strings.EqualFold(r.name[from:], suffix)
}

// parseMediaRange parses a member of an Accept field, with its weight.
func parseMediaRange(s string) (r mediaRange, ok bool) {
	name, params := cutUnquoted(s, ';')
	name = trimSpace(name)
	mainType, subtype, ok := strings.Cut(name, "/")
	if !ok || !isToken(mainType) || !isToken(subtype) || mainType == "*" && subtype != "*" {
		return r, false
	}

	r = mediaRange{name: name, quality: 1000}
	if subtype == "*" {
		r.wildcard = anySubtype
		if mainType == "*" {
			r.wildcard = anyType
		}
	}
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
			// whatever follows a weight is not part of the range
			r.quality, ok = parseQuality(value)
			return r, ok
		case strings.EqualFold(key, "charset") && strings.EqualFold(strings.Trim(value, `"`), "utf-8"):
			r.charset = true
		default:
			r.params = true
		}
	}
	return r, true
}

// parseQuality parses a weight (RFC 9110, section 12.4.2), in thousandths. The zero before the dot may be missing,
// as Java's HttpURLConnection leaves it out.
func parseQuality(s string) (int16, bool) {
	whole, fraction, _ := strings.Cut(s, ".")
	if whole == "" && fraction != "" {
		whole = "0"
	}
	if whole != "0" && whole != "1" || len(fraction) > 3 || strings.Trim(fraction, "0123456789") != "" {
		return 0, false
	}
	q := int16(whole[0] - '0')
	for i := range 3 {
		q *= 10
		if i < len(fraction) {
			q += int16(fraction[i] - '0')
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

func isToken(s string) bool { return httpguts.ValidHeaderFieldName(s) }

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
