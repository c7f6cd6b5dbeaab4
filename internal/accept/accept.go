// Package accept chooses one of several offers by an Accept field (RFC 9110, section 12.5.1).
package accept

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Offer is a representation that can be sent.
type Offer struct {
	// Types are the media types that ask for it, without parameters. The first is the one that is sent. The others are
	// aliases: a client that names one names the offer, but cannot refuse it by an alias.
	Types []string

	// Suffix is the structured suffix by which a client nearly names the offer (RFC 6839), as in `+json`; empty: none.
	Suffix string
}

// Offers are what a client can choose from, in the server's order of preference. They are sent in UTF-8.
type Offers []*Offer

// Choose returns the index of the offer that an Accept field asks for. Several lines of the field are joined with
// commas. A member whose name or weight is invalid is skipped. If no offer is acceptable, Choose returns one that the
// client nearly names and does not refuse, else the first.
func (o Offers) Choose(field string) int {
	if len(o) == 1 || field == "" || field == "*/*" {
		return 0
	}
	all := make([]preferences, len(o))
	for position := int32(0); field != ""; position++ {
		var member string
		member, field = cutUnquoted(field, ',')
		r, ok := parseMediaRange(member)
		if !ok {
			continue
		}
		for i := range o {
			all[i].add(o[i], &r, position)
		}
	}
	return best(all)
}

// Names reports whether an Accept field names a media type, which is in lower case, and does not refuse it.
func Names(field, mediaType string) bool {
	if !strings.Contains(strings.ToLower(field), mediaType) {
		return false // as for most requests
	}
	for field != "" {
		var member string
		member, field = cutUnquoted(field, ',')
		r, ok := parseMediaRange(member)
		if ok && r.name == mediaType && r.quality > 0 {
			return true
		}
	}
	return false
}

// best returns the index of the most preferred offer. One that a client nearly names counts if none is acceptable.
func best(all []preferences) int {
	chosen, nearly := 0, 0
	for i := range all {
		if all[i].isRefused() {
			all[i].nearly.quality = 0
		}
		if all[i].plainly.isOver(all[chosen].plainly) {
			chosen = i
		}
		if all[i].nearly.isOver(all[nearly].nearly) {
			nearly = i
		}
	}
	switch {
	case all[chosen].plainly.quality > 0:
		return chosen
	case all[nearly].nearly.quality > 0:
		return nearly
	default:
		return 0
	}
}

// preferences say how much a client prefers an offer: by the ranges that match it, and by those that nearly do.
type preferences struct{ plainly, nearly preference }

// preference is how much a client prefers an offer.
type preference struct {
	quality   int32 // in thousandths
	precision int32 // of the media range; 0: none matches
	position  int32 // of that range among all
}

// How precisely a media range names an offer.
const (
	anyType    = 1 + iota // */*
	anySubtype            // text/*
	suffix                // application/vnd.api+json
	exact                 // text/html
)

// add adds the preference that a media range has for an offer.
func (s *preferences) add(o *Offer, r *mediaRange, position int32) {
	p := preference{r.quality, r.matches(o), position}
	if p.precision > 0 && !r.params {
		s.addPlainly(p)
		return
	}
	if p.precision == 0 && o.Suffix != "" && strings.HasSuffix(r.name, o.Suffix) {
		p.precision = suffix
	}
	if p.precision > 0 && p.isOver(s.nearly) {
		s.nearly = p
	}
}

// addPlainly adds the preference of a range that matches the offer. The more specific range counts. Of two that are
// equally specific, a refusal counts, and otherwise the higher weight.
func (s *preferences) addPlainly(p preference) {
	isAsSpecific := p.precision == s.plainly.precision
	isStronger := p.quality == 0 || p.quality > s.plainly.quality
	if p.precision > s.plainly.precision || isAsSpecific && isStronger && !s.isRefused() {
		s.plainly = p
	}
}

// isRefused reports whether the client refuses the offer, with the weight 0.
func (s *preferences) isRefused() bool {
	return s.plainly.precision > 0 && s.plainly.quality == 0
}

// isOver reports whether p is preferred to q: by quality, then by how specific the range is, then by its position.
func (p preference) isOver(q preference) bool {
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
	name    string // type/subtype in lower case, with * for any
	quality int32  // in thousandths
	params  bool   // there are parameters other than a charset, so it matches no offer exactly
}

// matches returns how precisely the name of r matches the types of an offer. It returns 0 if it does not.
func (r *mediaRange) matches(o *Offer) int32 {
	switch {
	case r.name == "*/*":
		return anyType
	case strings.HasSuffix(r.name, "/*") && strings.HasPrefix(o.Types[0], strings.TrimSuffix(r.name, "*")):
		return anySubtype
	case r.name == o.Types[0]:
		return exact
	case r.quality > 0 && slices.Contains(o.Types[1:], r.name):
		return exact
	default:
		return 0
	}
}

// parseMediaRange parses a member of an Accept field. It fails if the name or the weight is invalid.
func parseMediaRange(member string) (r mediaRange, ok bool) {
	name, params := cutUnquoted(member, ';')
	mainType, subtype, _ := strings.Cut(name, "/")
	if !httpguts.ValidHeaderFieldName(mainType) || !httpguts.ValidHeaderFieldName(subtype) { // not tokens
		return r, false
	}
	r = mediaRange{name: strings.ToLower(name), quality: 1000}
	for params != "" {
		var param string
		param, params = cutUnquoted(params, ';')
		switch key, value, _ := strings.Cut(param, "="); {
		case strings.EqualFold(key, "q"): // whatever follows the weight is not part of the range
			r.quality, ok = parseQuality(value)
			return r, ok
		case key != "" && !strings.EqualFold(key, "charset"):
			r.params = true
		}
	}
	return r, true
}

// parseQuality parses a weight (RFC 9110, section 12.4.2), in thousandths. The zero before the dot may be missing, as
// Java's HttpURLConnection leaves it out.
func parseQuality(s string) (thousandths int32, ok bool) {
	quality, err := strconv.ParseFloat(s, 64)
	isWeight := err == nil && 0 <= quality && quality <= 1
	if !isWeight { // such as NaN
		return 0, false
	}
	return int32(math.Round(1000 * quality)), true
}

// cutUnquoted cuts s around the first separator that is not in a quoted string, and trims what is before it (RFC 9110,
// sections 5.6.3 and 5.6.4).
func cutUnquoted(s string, separator byte) (before, after string) {
	isQuoted, isEscaped := false, false
	for i := range len(s) {
		switch {
		case isEscaped:
			isEscaped = false
		case s[i] == '"':
			isQuoted = !isQuoted
		case isQuoted:
			isEscaped = s[i] == '\\' // a quoted pair
		case s[i] == separator:
			return strings.TrimSpace(s[:i]), s[i+1:]
		}
	}
	return strings.TrimSpace(s), ""
}
