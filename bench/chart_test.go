package main

import (
	"encoding/xml"
	"math"
	"strings"
	"testing"
)

// drawing is the chart as XML.
type drawing struct {
	Role   string `xml:"role,attr"`
	Height int    `xml:"height,attr"`
	Title  string `xml:"title"`
	Desc   string `xml:"desc"`
	Groups []struct {
		Title string `xml:"text"`
		Bars  []struct {
			Class string   `xml:"class,attr"`
			Texts []string `xml:"text"`
			Rect  struct {
				Y      int     `xml:"y,attr"`
				Width  float64 `xml:"width,attr"`
				Height int     `xml:"height,attr"`
			} `xml:"rect"`
		} `xml:"g"`
	} `xml:"g"`
}

// TestBarsAreProportional measures each contender's bar.
func TestBarsAreProportional(t *testing.T) {
	r := measured()
	r.Groups[1].Contenders = append(r.Groups[1].Contenders, contenderResult{
		Name:      "a slow one",
		Protocols: map[string]figures{chartedProtocol: {Rate: 123, Core: 1}},
	})
	svg, err := chart(r)
	if err != nil {
		t.Fatal(err)
	}
	var d drawing
	if err := xml.Unmarshal([]byte(svg), &d); err != nil {
		t.Fatalf("%v\n%s", err, svg)
	}
	if d.Role != "img" || d.Title == "" {
		t.Errorf("role %q and title %q, want an image with a title", d.Role, d.Title)
	}
	if len(d.Groups) != len(charted) {
		t.Fatalf("%d groups, want %d", len(d.Groups), len(charted))
	}
	for i, group := range d.Groups {
		want := r.Groups[i]
		if group.Title != want.Title || len(group.Bars) != len(want.Contenders) {
			t.Fatalf("group %q with %d bars, want %q with %d", group.Title, len(group.Bars), want.Title, len(want.Contenders))
		}
		longest := 0.0
		for _, c := range want.Contenders {
			longest = max(longest, c.Protocols[chartedProtocol].Rate)
		}
		for j, bar := range group.Bars {
			c := want.Contenders[j]
			f := c.Protocols[chartedProtocol]
			name := strings.ReplaceAll(c.Name, "`", "")
			if len(bar.Texts) != 2 || bar.Texts[0] != name || bar.Texts[1] != f.rate() {
				t.Errorf("the bar of %s is labelled %q", name, bar.Texts)
			}
			if length := barLength * f.Rate / longest; math.Abs(bar.Rect.Width-length) > 0.05 {
				t.Errorf("the bar of %s is %v long, want %v", name, bar.Rect.Width, length)
			}
			if (bar.Class == "ours") != (name == "not_found") {
				t.Errorf("the bar of %s has class %q", name, bar.Class)
			}
			if bar.Rect.Y+bar.Rect.Height > d.Height {
				t.Errorf("the bar of %s is below the chart, which ends at %d", name, d.Height)
			}
			if !strings.Contains(d.Desc, name+" "+f.rate()+"\n") {
				t.Errorf("no %s in the description %q", name, d.Desc)
			}
		}
	}
}

// TestChartIsTheSameAgain draws it from the same figures, which are in maps.
func TestChartIsTheSameAgain(t *testing.T) {
	first, err := chart(measured())
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		again, err := chart(measured())
		if err != nil {
			t.Fatal(err)
		}
		if again != first {
			t.Fatalf("got\n%s\nand before\n%s", again, first)
		}
	}
}

func TestChartNeedsEveryFigure(t *testing.T) {
	noGroup := measured()
	noGroup.Groups = noGroup.Groups[:1]
	noRate := measured()
	noRate.Groups[0].Contenders[1].Protocols = nil
	for want, r := range map[string]*results{
		`no figures of group "replacing"`:                              noGroup,
		"nginx, `return <404>` has no requests per second in HTTP/1.1": noRate,
	} {
		if _, err := chart(r); err == nil || err.Error() != want {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
