package report

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// WriteTable writes the report as a table of a width in columns, which is unlimited if it is 0. Whatever the report has,
// it does nothing to a terminal.
func (r Report) WriteTable(w io.Writer, width int) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s since %s\n", plural(r.Count, "404"), r.Since.Local().Format(time.DateTime))
	if len(r.Addresses) > 0 {
		b.WriteByte('\n')
		r.writeRows(&b, width)
	} else if r.Count > 0 {
		b.WriteString("\nNo address matches.\n")
	}
	_, err := b.WriteTo(w)
	return err
}

const columnGap = 2

// writeRows writes a head and a row for each address.
func (r *Report) writeRows(b *bytes.Buffer, width int) {
	rows := [][]string{{"COUNT", "WHY", "OWN", "OTHER", "LAST LINK", "ADDRESS"}}
	for _, a := range r.Addresses {
		count := fmt.Sprint(a.Count)
		if a.Overcount > 0 {
			count = fmt.Sprintf("%d-%d", a.Count-a.Overcount, a.Count)
		}
		own, other := a.Links.Own, a.Links.Other
		last := Printable(cmp.Or(own.Last, other.Last, "-")) // the mistake is mended on a page of one's own
		rows = append(rows, []string{count, a.Outcomes.why(), fmt.Sprint(own.Count), fmt.Sprint(other.Count), last, Printable(a.Host + a.Path)})
	}
	if width > 0 {
		var widest [6]int
		for _, row := range rows {
			row[1] = shorten(row[1], max(width/3, len("unanswered")))
			for column, cell := range row {
				widest[column] = max(widest[column], len(cell))
			}
		}
		// what the first four columns leave is for the last link and the address, which gets two thirds if it needs them
		left := width - widest[0] - widest[1] - widest[2] - widest[3] - 5*columnGap
		address := max(min(widest[5], max(left-widest[4], left*2/3)), len("ADDRESS"))
		link := max(left-address, len("LAST LINK"))
		address = max(min(address, left-link), len("ADDRESS"))
		for _, row := range rows {
			row[4], row[5] = shorten(row[4], link), shorten(row[5], address)
		}
	}
	t := tabwriter.NewWriter(b, 0, 0, columnGap, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	t.Flush()
}

// why says what the outcomes were, most of them first, with numbers if they were not all alike.
func (o Outcomes) why() string {
	numbers := o.all()
	kinds := []Outcome{Unanswered, Error, Response, Passed, Replaceable}
	slices.SortStableFunc(kinds, func(a, b Outcome) int { return cmp.Compare(numbers[b], numbers[a]) })
	if numbers[kinds[1]] == 0 {
		return outcomeNames[kinds[0]]
	}
	var parts []string
	for _, kind := range kinds {
		if n := numbers[kind]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, outcomeNames[kind]))
		}
	}
	return strings.Join(parts, ", ")
}

func plural(n uint64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// shorten cuts s to n characters, with an ellipsis.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n-len("...")] + "..."
}
