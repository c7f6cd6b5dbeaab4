package main

import (
	"fmt"
	"html"
	"strings"
)

// charted are the groups that the chart shows, in this protocol.
var charted = []string{"answering", "replacing"}

const chartedProtocol = "HTTP/1.1"

// What the chart measures, in pixels. A group's longest bar has the full length.
const (
	chartWidth = 760
	barStart   = 300
	barLength  = 370
	barHeight  = 16 // of which 13 are above the text's baseline
	rowHeight  = 26
	groupSpace = 46 // for the title
	noteHeight = 18
	margin     = 20
)

const (
	chartNote = "Requests per second, " + chartedProtocol + ", a server on one core. Each group has a scale of its own."
	limitNote = "† The limit was the load or the backend, not the server."
)

// The background is the chart's own, as a page may be dark where the visitor's scheme is light. The colors are
// those of the built-in 404 page.
const chartStyle = `
	text { font: 14px system-ui, sans-serif; fill: #1d2421 }
	.note { font-size: 12px }
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

// chart draws the requests per second of each contender, as a bar.
func chart(r *results) (string, error) {
	var bars, desc strings.Builder
	y := margin
	for _, name := range charted {
		g, err := r.group(name)
		if err != nil {
			return "", err
		}
		longest := 0.0
		for _, c := range g.Contenders {
			longest = max(longest, c.Protocols[chartedProtocol].Rate)
		}

		fmt.Fprintf(&bars, "<g>\n<text class=\"title\" x=\"%d\" y=\"%d\">%s</text>\n", margin, y+groupSpace/2, html.EscapeString(g.Title))
		fmt.Fprintf(&desc, "%s:\n", g.Title)
		y += groupSpace
		for _, c := range g.Contenders {
			f := c.Protocols[chartedProtocol]
			if f.Rate <= 0 {
				return "", fmt.Errorf("%s has no requests per second in %s", c.Name, chartedProtocol)
			}
			name, class := strings.ReplaceAll(c.Name, "`", ""), "other"
			if name == "not_found" {
				class = "ours"
			}
			length := barLength * f.Rate / longest
			baseline := y + 13
			fmt.Fprintf(&bars, "<g class=%q>\n", class)
			fmt.Fprintf(&bars, "<text class=\"name\" x=\"%d\" y=\"%d\">%s</text>\n", barStart-10, baseline, html.EscapeString(name))
			fmt.Fprintf(&bars, "<rect class=\"bar\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\"/>\n", barStart, y, length, barHeight)
			fmt.Fprintf(&bars, "<text class=\"rate\" x=\"%.1f\" y=\"%d\">%s</text>\n</g>\n", barStart+length+8, baseline, f.rate())
			fmt.Fprintf(&desc, "%s %s\n", name, f.rate())
			y += rowHeight
		}
		bars.WriteString("</g>\n")
	}
	y += margin
	notes := []string{chartNote}
	if strings.Contains(bars.String(), "†") {
		notes = append(notes, limitNote)
	}
	for _, note := range notes {
		fmt.Fprintf(&bars, "<text class=\"note\" x=\"%d\" y=\"%d\">%s</text>\n", margin, y, note)
		y += noteHeight
	}
	height := y

	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d" role="img" aria-labelledby="title desc">
<title id="title">Requests per second, %[3]s, on one core</title>
<desc id="desc">%[4]s</desc>
<style>%[5]s</style>
<rect class="background" width="%[1]d" height="%[2]d" rx="6"/>
%[6]s</svg>
`, chartWidth, height, chartedProtocol, html.EscapeString(desc.String()), chartStyle, bars.String()), nil
}

// group finds a group by its name.
func (r *results) group(name string) (*groupResult, error) {
	for i := range r.Groups {
		if r.Groups[i].Name == name {
			return &r.Groups[i], nil
		}
	}
	return nil, fmt.Errorf("no figures of group %q", name)
}
