package main

import (
	"fmt"
	"html"
	"strings"

	"github.com/dustin/go-humanize"
)

// The measures of the chart, in pixels. The longest bar of a group has the full length.
const (
	chartWidth = 760
	barStart   = 360
	barLength  = 310
	rowHeight  = 26
	groupSpace = 46 // for the title
	margin     = 20
)

const chartNote = "Requests per second that one core can serve, over " + http1 + ": what the CPU time per request allows. Each group has its own scale."

// The chart has a background of its own, because a page may be dark where the visitor's scheme is light. The colors are
// those of the built-in 404 page.
const chartStyle = `
	text { font: 14px system-ui, sans-serif; fill: #1d2421 }
	.note { font-size: 11px }
	.title { font-weight: 600 }
	.name { text-anchor: end }
	.background { fill: #fff }
	.bar { fill: #7f8a85 }
	.ours .bar { fill: #0b6b4f }
	.ours text { font-weight: 600 }
	@media (prefers-color-scheme: dark) {
		text { fill: #e7ece9 }
		.background { fill: #1a201d }
		.ours .bar { fill: #5fd3a8 }
	}
`

// chart draws how many requests per second each site can serve, except the controls.
func (r results) chart() string {
	var bars, desc strings.Builder
	y := margin
	for _, g := range r.Groups {
		if g.Loads[0] != http1 { // how many connections: their requests per second compare with nothing
			continue
		}
		most := 0.0
		for _, s := range g.Sites {
			most = max(most, 1e6/s.Loads[http1].CPU)
		}
		fmt.Fprintf(&bars, "<text class=\"title\" x=\"%d\" y=\"%d\">%s</text>\n", margin, y+groupSpace/2, html.EscapeString(g.Title))
		fmt.Fprintf(&desc, "%s:\n", g.Title)
		y += groupSpace
		for i, s := range g.Sites {
			if i == control {
				continue
			}
			name, class := strings.ReplaceAll(s.Name, "`", ""), "other"
			if i == ours {
				class = "ours"
			}
			rate := 1e6 / s.Loads[http1].CPU
			length := barLength * rate / most
			fmt.Fprintf(&bars, "<g class=%q>\n<text class=\"name\" x=\"%d\" y=\"%d\">%s</text>\n", class, barStart-10, y+13, html.EscapeString(name))
			fmt.Fprintf(&bars, "<rect class=\"bar\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"16\"/>\n", barStart, y, length)
			fmt.Fprintf(&bars, "<text x=\"%.1f\" y=\"%d\">%s</text>\n</g>\n", barStart+length+8, y+13, humanize.Comma(int64(rate)))
			fmt.Fprintf(&desc, "%s %s\n", name, humanize.Comma(int64(rate)))
			y += rowHeight
		}
	}
	y += margin
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d" role="img" aria-labelledby="title desc">
<title id="title">Requests per second that one core can serve, over %[3]s</title>
<desc id="desc">%[4]s</desc>
<style>%[5]s</style>
<rect class="background" width="%[1]d" height="%[2]d" rx="6"/>
%[6]s<text class="note" x="%[7]d" y="%[8]d">%[9]s</text>
</svg>
`, chartWidth, y+margin, http1, html.EscapeString(desc.String()), chartStyle, bars.String(), margin, y, chartNote)
}
