package report

import (
	"fmt"
	"strings"
	"testing"
)

// TestWhatCanBeCorrectedIsNeverDrowned follows broken links now and then, on own pages and on others, in a flood of
// other requests for missing addresses.
func TestWhatCanBeCorrectedIsNeverDrowned(t *testing.T) {
	const host = "www.example.com"
	const links = 10    // of each kind
	const followed = 20 // times, each of them
	for name, flood := range map[string]struct {
		size    int
		path    string
		referer string
		drowned Link // the kind of link whose table the flood fills, if it is larger than that
	}{
		"scanners":            {size: 100_000, path: "/scan/", drowned: None},
		"a removed catalogue": {size: 5_000, path: "/catalogue/", referer: "https://www.example.com/catalogue", drowned: None},
		"forged own links":    {size: 100_000, path: "/forged/", referer: "https://www.example.com/", drowned: Own},
	} {
		t.Run(name, func(t *testing.T) {
			var c Counter
			miss := func(path, referer string) {
				c.Add(Miss{Host: host, Path: path, Referer: referer, Link: LinkOf(referer, host, path, "")})
			}
			for i := range flood.size {
				miss(fmt.Sprint(flood.path, i), flood.referer)
				if i%(flood.size/followed) > 0 {
					continue
				}
				for link := range links {
					miss(fmt.Sprint("/own/", link), "https://www.example.com/blog")
					miss(fmt.Sprint("/other/", link), "https://blog.example/")
				}
			}

			r, _ := c.Snapshot()
			for _, link := range []Link{Own, Other} {
				if link == flood.drowned {
					continue
				}
				kind := r.paths(link)
				for _, path := range kind[:links] {
					if !strings.HasPrefix(path, "/"+link.String()+"/") {
						t.Errorf("the first rows of %s are %q, want the links that were followed", link, kind[:links])
					}
				}
			}
		})
	}
}

// paths returns the paths of a kind of link, in the order of the report.
func (r *Report) paths(link Link) (paths []string) {
	for _, a := range r.Addresses {
		if a.Link == link {
			paths = append(paths, a.Path)
		}
	}
	return paths
}
