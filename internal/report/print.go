package report

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// headings say what each kind of link is, and what to do about it.
var headings = [NumLinks][2]string{
	Own:   {"OWN LINKS", "Pages of your own link to these addresses: correct the pages."},
	Other: {"OTHER LINKS", "Pages elsewhere link to these addresses: redirect the frequent ones."},
	None:  {"NO LINKS", "No known link: typed, bookmarked, fetched by a program, or asked for by a scanner. Some may work, as a wiki's do."},
}

// WriteText writes the addresses that a filter chooses for a terminal: a section for each kind of link, with two lines for
// each address. Nothing is cut. Control characters are replaced.
func (r *Report) WriteText(w io.Writer, f Filter) error {
	var b bytes.Buffer
	inAll := ""
	if f.link != "" || f.why != "" || f.host != "" || r.Partial {
		inAll = " in all" // not of what the filter chooses
	}
	fmt.Fprintf(&b, "%s%s since %s\n", plural(r.Links.Own.Count+r.Links.Other.Count+r.Links.None.Count, "404"), inAll, r.Since.Local().Format(time.DateTime))
	if r.Partial {
		b.WriteString("The report is partial: a limit or a filter left addresses out.\n")
	}
	for link, t := range r.Links.all() {
		if t.Count > 0 && (f.link == "" || f.link == linkNames[link]) {
			fmt.Fprintf(&b, "\n%s: %s%s, %s\n%s\n\n", headings[link][0], plural(t.Count, "404"), inAll, t.Outcomes, headings[link][1])
			r.writeSection(&b, f, Link(link))
		}
	}
	_, err := b.WriteTo(w)
	return err
}

// writeSection writes the addresses of a kind of link.
func (r *Report) writeSection(b *bytes.Buffer, f Filter, link Link) {
	var chosen []Address
	for _, a := range r.Addresses {
		if a.Link == link && f.chooses(&a) {
			chosen = append(chosen, a)
		}
	}
	shown := chosen
	if f.limit > 0 && f.limit < len(chosen) {
		shown = chosen[:f.limit]
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
		row(a.times(), a.Last.Local().Format(lastSeen), Printable(a.Host+a.Path))
		outcomes := a.Outcomes.String()
		if a.Query {
			outcomes += "; with a query"
		}
		if a.LastLink != "" {
			outcomes += "; on " + Printable(a.LastLink)
		}
		row("", "", outcomes)
	}
	if more := len(chosen) - len(shown); more > 0 {
		fmt.Fprintf(b, "... and %d more\n", more)
	}
	if floor := r.Links.all()[link].Floor; floor > 0 {
		fmt.Fprintf(b, "There was no room for every address: one that is not here may have been missed up to %s.\n", plural(floor, "time"))
	}
}

// times returns the count of an address, or the range that it is in.
func (a *Address) times() string {
	if a.Overcount == 0 {
		return strconv.FormatUint(a.Count, 10)
	}
	return fmt.Sprintf("%d-%d", a.Count-a.Overcount, a.Count)
}

func plural(n uint64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// WriteCSV writes a row for each address, for a spreadsheet. Times are in UTC.
func (r *Report) WriteCSV(w io.Writer) error {
	header := append([]string{"link", "host", "path", "query", "count", "overcount"}, outcomeNames[:]...)
	rows := [][]string{append(header, "last_link", "first", "last")}
	for _, a := range r.Addresses {
		row := []string{a.Link.String(), cell(a.Host), cell(a.Path), fmt.Sprint(a.Query), fmt.Sprint(a.Count), fmt.Sprint(a.Overcount)}
		for _, n := range a.Outcomes.all() {
			row = append(row, fmt.Sprint(*n))
		}
		rows = append(rows, append(row, cell(a.LastLink), a.First.Format(time.RFC3339), a.Last.Format(time.RFC3339)))
	}
	return csv.NewWriter(w).WriteAll(rows)
}

// cell makes a part of a URL safe for a spreadsheet, to which a cell that begins with one of =+-@ is a formula, and a
// semicolon may begin a cell.
func cell(s string) string {
	if s != "" && strings.IndexByte("=+-@", s[0]) >= 0 {
		s = fmt.Sprintf("%%%02X%s", s[0], s[1:])
	}
	return strings.ReplaceAll(Printable(s), ";", "%3B")
}
