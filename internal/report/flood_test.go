package report

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestWhatCanBeCorrectedIsNeverDrowned follows the broken links of some sites now and then, on their own pages and on
// others, in a flood of other requests for missing addresses.
func TestWhatCanBeCorrectedIsNeverDrowned(t *testing.T) {
	t.Parallel()
	const links, followed = 10, 20 // of each kind and site; how often each is followed
	for name, tt := range map[string]struct {
		size    int
		request func(r *rand.Rand, host string, i int) Miss
		floods  Link
		kept    []Link // the kinds whose broken links are all in the first rows
	}{
		"scanners": {300_000, func(r *rand.Rand, host string, i int) Miss {
			path, referer := fmt.Sprintf("/scan/%d.php", min(r.IntN(20_000), r.IntN(20_000))), ""
			if i%3 == 0 {
				referer = "http://" + host + path // as many scanners send it
			}
			return missOf(host, path, referer)
		}, None, []Link{Own, Other}},
		"a removed catalogue": {5_000, func(_ *rand.Rand, host string, i int) Miss {
			return missOf(host, fmt.Sprint("/catalogue/", i), "https://"+host+"/catalogue")
		}, Own, []Link{Own, Other}},
		"forged own links": {300_000, func(_ *rand.Rand, host string, i int) Miss {
			return missOf(host, fmt.Sprint("/forged/", i), "https://"+host+"/")
		}, Own, []Link{Other}},
	} {
		for _, sites := range []int{1, 20} {
			t.Run(fmt.Sprintf("%s, %d sites", name, sites), func(t *testing.T) {
				t.Parallel()
				random := rand.New(rand.NewPCG(uint64(sites), 1))
				var c Counter
				for i := range tt.size {
					for n := range sites * links {
						if (i+1)%(tt.size/followed) == 0 {
							host := fmt.Sprintf("site%d.test", n/links)
							c.Add(missOf(host, fmt.Sprint("/own/", n%links), fmt.Sprint("https://", host, "/page/", random.IntN(50))))
							c.Add(missOf(host, fmt.Sprint("/other/", n%links), fmt.Sprint("https://blog.example/", random.IntN(50))))
						}
					}
					c.Add(tt.request(random, fmt.Sprintf("site%d.test", random.IntN(sites)), i))
				}

				r, _ := c.Snapshot()
				for _, link := range tt.kept {
					rows := slices.DeleteFunc(slices.Clone(r.Addresses), func(a Address) bool { return a.Link != link })
					for i, a := range rows[:sites*links] {
						if !strings.HasPrefix(a.Path, "/"+link.String()+"/") || a.Count-a.Overcount > followed || a.Count < followed {
							t.Errorf("row %d is %+v, want a link that was followed %d times", i, a, followed)
						}
					}
				}
				if total := r.Links.all()[tt.floods]; total.Count < uint64(tt.size) || total.Floor == 0 {
					t.Errorf("the flood counts as %+v", *total)
				}
				if total := r.Links.Other; total.Count != uint64(sites*links*followed) || total.Floor != 0 {
					t.Errorf("other links count as %+v", total)
				}
			})
		}
	}
}
