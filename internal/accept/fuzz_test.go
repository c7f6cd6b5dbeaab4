package accept

import (
	"cmp"
	"flag"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// FuzzAccept compares the representation that is chosen with the choice of another negotiator, which is written for this
// test. The bytes of offered name the offers, in their order.
func FuzzAccept(f *testing.F) {
	every := []byte{0, 1, 2, 3, 4, 5}
	f.Add("text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7", every)
	f.Add("text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2", []byte{2, 0})
	f.Add("application/json, text/plain, */*", every)
	f.Add("text/html;q=0,application/xhtml+xml,*/*;q=0.1", every)
	f.Add(`text/html;a="b,text/plain;q=0";q=0.3, application/vnd.api+json`, []byte{5, 3})
	f.Add("text/markdown, text/html;level=1, text/*;q=0.1;x=y", []byte{1, 2})
	f.Add("text/*, text/html;q=0", []byte{5, 1})
	f.Add("text/html, text/html;charset=utf-8;q=0, application/xhtml+xml, a/b+json;q=0.1", []byte{1, 3})
	f.Add("text/markdown;q=1.0, text/x-markdown;q=0.9, text/plain;q=0.8, text/html;q=0.7, */*;q=0.1", every)

	// refused is called for input that cannot come, or asks for nothing. A seed like that tests nothing, so it fails unless
	// the fuzzer runs.
	refused := func(t *testing.T, why string) {
		t.Helper()
		if flag.Lookup("test.fuzz").Value.String() == "" {
			t.Errorf("this seed is refused: %s", why)
		}
	}
	f.Fuzz(func(t *testing.T, accept string, offered []byte) {
		// which net/http refuses in any field
		if strings.ContainsFunc(accept, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			refused(t, "control characters")
			return
		}
		var names []string
		for _, b := range offered {
			if name := all[int(b)%len(all)].name; !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		if len(names) == 0 {
			refused(t, "no offers")
			return
		}
		if got, want := choose(t, names, accept), wantName(accept, names); got != want {
			t.Errorf("Accept %q of %v: got %s, want %s", accept, names, got, want)
		}
	})
}

// acceptable is a media range of an Accept field.
type acceptable struct {
	mediaType string // or type/*, or */*
	charset   bool   // it has the one that is sent
	foreign   bool   // it has a parameter that no representation has
	quality   float64
	position  int
}

// specificity is higher for a range that matches fewer media types.
func (r acceptable) specificity() int { return -strings.Count(r.mediaType, "*") }

const tokenPattern = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"

var (
	rangePattern     = regexp.MustCompile("^(?:" + tokenPattern + `/` + tokenPattern + `)$`)
	parameterPattern = regexp.MustCompile(`^(` + tokenPattern + `)=(` + tokenPattern + `|"(?:[^"\\]|\\.)*")$`)
	weightPattern    = regexp.MustCompile(`^(?:0?\.[0-9]{1,3}|0\.?|1(?:\.0{0,3})?)$`)
	utf8Pattern      = regexp.MustCompile(`(?i)^"?utf-8"?$`)
)

// wantName chooses the offer that an Accept field asks for (RFC 9110, section 12.5.1): the best that is
// acceptable, else the best that is nearly named and not refused, else the best that is refused except by an alias, else the
// first. A quoted string that is not closed reaches to the end of the field.
func wantName(accept string, offered []string) string {
	var ranges []acceptable
	for _, member := range splitUnquoted(accept, ',') {
		if r, ok := parseAcceptable(member); ok {
			r.position = len(ranges)
			ranges = append(ranges, r)
		}
	}
	sentAs, aliases, suffixes := make(map[string]string), make(map[string]string), make(map[string]string)
	for _, offer := range all {
		sentAs[offer.name], suffixes[offer.name] = offer.Types[0], offer.Suffix
		if len(offer.Types) > 1 {
			aliases[offer.name] = offer.Types[1]
		}
	}
	names := func(r acceptable, mediaType string) bool {
		mainType, _, _ := strings.Cut(mediaType, "/")
		return slices.Contains([]string{mediaType, mainType + "/*", "*/*"}, r.mediaType)
	}

	type way struct {
		name        string
		quality     float64
		specificity float64
		position    int
	}
	choose := func(ways []way) string {
		ways = slices.DeleteFunc(ways, func(w way) bool { return w.quality == 0 })
		slices.SortStableFunc(ways, func(a, b way) int {
			return cmp.Or(cmp.Compare(b.quality, a.quality), cmp.Compare(b.specificity, a.specificity), cmp.Compare(a.position, b.position))
		})
		if len(ways) == 0 {
			return ""
		}
		return ways[0].name
	}

	// what the client says of a media type: the most specific range first, then a refusal, then the first range
	saysOf := func(applies func(acceptable) bool) *acceptable {
		var says []acceptable
		for _, r := range ranges {
			if !r.foreign && applies(r) {
				says = append(says, r)
			}
		}
		slices.SortStableFunc(says, func(a, b acceptable) int {
			return cmp.Or(cmp.Compare(b.specificity(), a.specificity()), first(a.charset, b.charset), first(a.quality == 0, b.quality == 0))
		})
		if len(says) == 0 {
			return nil
		}
		return &says[0]
	}

	var acceptables, nearly, byAlias []way
	for _, offer := range offered {
		add := func(ways *[]way, r *acceptable) {
			*ways = append(*ways, way{offer, r.quality, float64(r.specificity()), r.position})
		}
		sent := saysOf(func(r acceptable) bool { return names(r, sentAs[offer]) })
		alias := saysOf(func(r acceptable) bool { return r.mediaType == aliases[offer] })
		switch {
		case sent != nil && sent.quality == 0: // refused
			if alias != nil {
				add(&byAlias, alias)
			}
			continue
		case alias != nil && alias.quality > 0 && (sent == nil || sent.mediaType != sentAs[offer]):
			add(&acceptables, alias)
		case sent != nil:
			add(&acceptables, sent)
		}
		for _, r := range ranges {
			if names(r, sentAs[offer]) || r.mediaType == aliases[offer] {
				nearly = append(nearly, way{offer, r.quality, float64(r.specificity()), r.position})
			} else if suffix := suffixes[offer]; suffix != "" && strings.HasSuffix(r.mediaType, suffix) {
				nearly = append(nearly, way{offer, r.quality, -0.5, r.position}) // before any wildcard
			}
		}
	}
	return cmp.Or(choose(acceptables), choose(nearly), choose(byAlias), offered[0])
}

// first compares two values so that what is true comes first.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

func parseAcceptable(member string) (r acceptable, ok bool) {
	parts := splitUnquoted(member, ';')
	r = acceptable{mediaType: strings.ToLower(strings.Trim(parts[0], " \t")), quality: 1}
	if !rangePattern.MatchString(r.mediaType) || strings.HasPrefix(r.mediaType, "*/") && r.mediaType != "*/*" {
		return r, false
	}
	for _, part := range parts[1:] {
		if part = strings.Trim(part, " \t"); part == "" {
			continue
		}
		m := parameterPattern.FindStringSubmatch(part)
		switch {
		case m == nil:
			return r, false
		case strings.EqualFold(m[1], "q"): // after which everything is ignored
			r.quality, _ = strconv.ParseFloat(m[2], 64)
			return r, weightPattern.MatchString(m[2])
		case strings.EqualFold(m[1], "charset") && utf8Pattern.MatchString(m[2]):
			r.charset = true
		default:
			r.foreign = true
		}
	}
	return r, true
}

// splitUnquoted splits s at each separator that is not in a quoted string.
func splitUnquoted(s string, separator byte) (parts []string) {
	var quoted, escaped bool
	begin := 0
	for i := range len(s) {
		switch {
		case escaped:
			escaped = false
		case quoted && s[i] == '\\':
			escaped = true
		case s[i] == '"':
			quoted = !quoted
		case s[i] == separator && !quoted:
			parts = append(parts, s[begin:i])
			begin = i + 1
		}
	}
	return append(parts, s[begin:])
}
