package report

import (
	"bytes"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// headings say what each kind of link is, and what to do about it.
var headings = [NumLinks][2]string{
	OwnLink:   {"OWN LINKS", "Pages of your own link to these addresses: correct the pages."},
	OtherLink: {"OTHER LINKS", "Pages elsewhere link to these addresses: redirect the frequent ones."},
	NoLink: {"NO LINKS", "No known link: typed, bookmarked, asked for by a scanner, or fetched by a program, " +
		"perhaps on the page that is named. Some may be in use, such as a wiki's forms for missing pages."},
}

// WriteText writes the addresses that a filter chooses: a section for each kind of link, two lines for each address.
func (r *Report) WriteText(w io.Writer, f Filter) error {
	var b bytes.Buffer
	inAll := ""
	if f != (Filter{Limit: f.Limit}) {
		inAll = " in all" // the count is not that of the chosen addresses
	}
	count := uint64(0)
	for _, t := range r.Links {
		count += t.Count
	}
	since := r.Since.Local().Format(time.DateTime + " -0700") // the offset says whose clock all times are of
	fmt.Fprintf(&b, "%s%s since %s\n", plural(count, "404"), inAll, since)
	for link := range NumLinks {
		t := r.Links[link]
		isChosen := f.Link == "" || f.Link == link.String()
		if t.Count == 0 || !isChosen {
			continue
		}
		heading, advice := headings[link][0], headings[link][1]
		outcomes := withBrowsers(t.Outcomes, t.Browsers)
		fmt.Fprintf(&b, "\n%s: %s%s, %s\n", heading, plural(t.Count, "404"), inAll, outcomes)
		fmt.Fprintf(&b, "%s\n\n", advice)
		r.writeSection(&b, f, link)
	}
	_, err := b.WriteTo(w)
	return err
}

// writeSection writes the addresses of a kind of link.
func (r *Report) writeSection(b *bytes.Buffer, f Filter, link Link) {
	chosen := f.choose(r, link)
	shown := chosen
	if f.Limit > 0 && f.Limit < len(chosen) {
		shown = chosen[:f.Limit]
	}
	const lastSeen = "2006-01-02 15:04"
	width := len("COUNT")
	for _, a := range shown {
		width = max(width, len(a.times()))
	}
	row := func(count, last, address string) {
		fmt.Fprintf(b, "%*s  %-*s  %s\n", width, count, len(lastSeen), last, address)
	}
	if len(chosen) > 0 {
		row("COUNT", "LAST SEEN", "ADDRESS")
	} else {
		b.WriteString("No address matches.\n")
	}
	for _, a := range shown {
		last := a.Last.Local().Format(lastSeen)
		row(a.times(), last, readable(a.Host+a.Path))
		outcomes := withBrowsers(a.Outcomes, a.Browsers)
		if a.Query {
			outcomes += "; with a query"
		}
		if a.LastLink != "" {
			outcomes += "; on " + readable(a.LastLink)
		}
		row("", "", outcomes)
	}
	if more := len(chosen) - len(shown); more > 0 {
		fmt.Fprintf(b, "... and %d more\n", more)
	}
	if floor := r.Links[link].Floor; floor > 0 {
		fmt.Fprintf(b, "There was no room for every address: one that is not here may have been missed up to %s. "+
			"39-42 is a count somewhere between the two.\n", plural(floor, "time"))
	}
}

// encodedBytes matches percent-encoded bytes outside ASCII.
var encodedBytes = regexp.MustCompile("(%[89A-Fa-f][0-9A-Fa-f])+")

// invisible are the tables of letters and marks that nobody sees.
var invisible = []*unicode.RangeTable{unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector}

// readable returns an address in which the letters, marks and digits of every script are decoded. Everything else stays
// encoded: it could act on a terminal, change the direction of a text, be invisible, or be no character at all.
func readable(address string) string {
	return encodedBytes.ReplaceAllStringFunc(address, func(encoded string) string {
		var b strings.Builder
		text, _ := url.PathUnescape(encoded) // which is valid
		for text != "" {
			r, n := utf8.DecodeRuneInString(text)
			isOfAScript := unicode.In(r, unicode.Letter, unicode.Mark, unicode.Digit)
			if isOfAScript && !unicode.In(r, invisible...) {
				b.WriteString(text[:n])
			} else {
				b.WriteString(encoded[:3*n])
			}
			text, encoded = text[n:], encoded[3*n:]
		}
		return b.String()
	})
}

// times returns the count of an address, or the range that it is in.
func (a *Address) times() string {
	if a.Overcount == 0 {
		return strconv.FormatUint(a.Count, 10)
	}
	return fmt.Sprintf("%d-%d", a.Count-a.Overcount, a.Count)
}

// withBrowsers returns outcomes, and how many of the requests opened a page.
func withBrowsers(o Outcomes, browsers uint64) string {
	if browsers == 0 {
		return fmt.Sprintf("%s, none opened a page", o)
	}
	return fmt.Sprintf("%s, %d opened a page", o, browsers)
}

func plural(n uint64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
