package main

import (
	"fmt"
	"html"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
)

// The measures of the chart, in pixels. The longest bar of a group has the full length.
const (
	chartWidth = 760
	barStart   = 360
	barLength  = 310
	rowHeight  = 26
	groupSpace = 46 // has the title
	margin     = 20
)

const chartNote = "Requests per second that one core can serve, over " + http1 +
	": what the CPU time per request allows. Each group has its own scale."

// The chart has a background of its own, because a page may be dark where the visitor's scheme is light. The colors
// are those of the built-in 404 page.
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
	c := chart{y: margin}
	for _, g := range r.Groups {
		if g.comparesSites() {
			c.drawGroup(g)
		}
	}
	c.y += margin
	values := strings.NewReplacer(
		"[width]", strconv.Itoa(chartWidth),
		"[height]", strconv.Itoa(c.y+margin),
		"[protocol]", http1,
		"[description]", html.EscapeString(c.description.String()),
		"[style]", chartStyle,
		"[bars]", c.bars.String(),
		"[x]", strconv.Itoa(margin),
		"[y]", strconv.Itoa(c.y),
		"[note]", chartNote,
	)
	return values.Replace(chartFrame)
}

const chartFrame = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 [width] [height]" ` +
	`width="[width]" height="[height]" role="img" aria-labelledby="title desc">
<title id="title">Requests per second that one core can serve, over [protocol]</title>
<desc id="desc">[description]</desc>
<style>[style]</style>
<rect class="background" width="[width]" height="[height]" rx="6"/>
[bars]<text class="note" x="[x]" y="[y]">[note]</text>
</svg>
`

// chart is a chart that is being drawn.
type chart struct {
	bars, description strings.Builder
	y                 int // where the next line begins
}

func (c *chart) drawGroup(g groupResult) {
	const element = "<text class=\"title\" x=\"%d\" y=\"%d\">%s</text>\n"
	title := html.EscapeString(g.Title)
	middle := c.y + groupSpace/2
	fmt.Fprintf(&c.bars, element, margin, middle, title)
	fmt.Fprintf(&c.description, "%s:\n", g.Title)
	c.y += groupSpace
	most := 0.0
	for _, s := range g.Sites {
		most = max(most, perSecond(s))
	}
	for i, s := range g.Sites {
		if i != control {
			c.drawBar(s, i == ours, most)
		}
	}
}

// drawBar draws the bar of a site. The longest bar is that of the most requests per second.
func (c *chart) drawBar(s siteResult, isOurs bool, most float64) {
	class := "other"
	if isOurs {
		class = "ours"
	}
	name := strings.ReplaceAll(s.Name, "`", "")
	rate := perSecond(s)
	rounded := humanize.Comma(int64(rate))
	length := barLength * rate / most
	baseline := c.y + 13
	fmt.Fprintf(&c.bars, "<g class=%q>\n", class)
	fmt.Fprintf(&c.bars, "<text class=\"name\" x=\"%d\" y=\"%d\">", barStart-10, baseline)
	fmt.Fprintf(&c.bars, "%s</text>\n", html.EscapeString(name))
	fmt.Fprintf(&c.bars, "<rect class=\"bar\" x=\"%d\" y=\"%d\" ", barStart, c.y)
	fmt.Fprintf(&c.bars, "width=\"%.1f\" height=\"16\"/>\n", length)
	barEnd := barStart + length
	fmt.Fprintf(&c.bars, "<text x=\"%.1f\" y=\"%d\">%s</text>\n</g>\n", barEnd+8, baseline, rounded)
	fmt.Fprintf(&c.description, "%s %s\n", name, rounded)
	c.y += rowHeight
}

// perSecond returns how many requests a site can serve in the CPU time of one core.
func perSecond(s siteResult) float64 {
	return 1e6 / s.Loads[http1].CPU
}
