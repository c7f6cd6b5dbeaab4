package report

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// traffic is what hides the broken links of some sites.
type traffic struct {
	Counter
	sites int
	*rand.Rand
}

const links, followed = 10, 20 // of each kind, for each site

// follow follows the broken links once: those on the pages of each site, and those on others.
func (c *traffic) follow() {
	for site := range c.sites {
		host := fmt.Sprintf("site%d.test", site)
		for i := range links {
			c.request(host, fmt.Sprintf("/own/%d", i), fmt.Sprintf("https://%s/page/%d", host, c.IntN(50)))
			c.request(host, fmt.Sprintf("/other/%d", i), fmt.Sprintf("https://blog%d.example/", c.IntN(50)))
		}
	}
}

func (c *traffic) request(host, path, referer string) {
	c.Add(Miss{Host: host, Path: path, Referer: referer, Link: LinkOf(referer, host, path)})
}

// flood sends n requests, with the links followed again and again in between.
func (c *traffic) flood(n int, request func(i int)) {
	for i := range n {
		if i%(n/followed) == 0 {
			c.follow()
		}
		request(i)
	}
}

func (c *traffic) host() string { return fmt.Sprintf("site%d.test", c.IntN(c.sites)) }

// wantLinks checks that all broken links of a kind are there, as often as they were followed, and among the first rows of
// their section.
func (c *traffic) wantLinks(t *testing.T, link Link, rows int) {
	t.Helper()
	r, _ := c.Snapshot()
	found, row := 0, 0
	for _, a := range r.Addresses {
		if a.Link != link {
			continue
		}
		if row++; strings.HasPrefix(a.Path, "/"+link.String()+"/") && row <= rows {
			if found++; a.Count != followed || a.Overcount != 0 {
				t.Errorf("%s link: %s%s has the count %d, of which %d may be too much, want %d", link, a.Host, a.Path, a.Count, a.Overcount, followed)
			}
		}
	}
	if found != c.sites*links {
		t.Errorf("%d of %d %s links are in the first %d rows of %d", found, c.sites*links, link, rows, row)
	}
}

// TestWhatCanBeCorrectedIsNeverDrowned is what the tables for each kind of link are for.
func TestWhatCanBeCorrectedIsNeverDrowned(t *testing.T) {
	t.Parallel()
	for _, sites := range []int{1, 20} {
		rows := max(20, sites*links)
		for name, request := range map[string]func(c *traffic) func(i int){
			"scanners": func(c *traffic) func(int) {
				paths := rand.NewZipf(c.Rand, 1.1, 1, 20_000-1)
				return func(i int) {
					host, path, referer := c.host(), fmt.Sprintf("/scan/%d.php", paths.Uint64()), ""
					if i%3 == 0 {
						referer = "http://" + host + path // as many send it
					}
					c.request(host, path, referer)
				}
			},
			"programs": func(c *traffic) func(int) {
				return func(i int) {
					host := c.host()
					c.Add(Miss{Host: host, Path: fmt.Sprintf("/api/items/%d", i), Referer: "https://" + host + "/shop", Link: None, Outcome: Passed})
				}
			},
		} {
			t.Run(fmt.Sprintf("%s, %d sites", name, sites), func(t *testing.T) {
				t.Parallel()
				c := &traffic{sites: sites, Rand: rand.New(rand.NewPCG(uint64(sites), 1))}
				c.flood(300_000, request(c))
				c.wantLinks(t, Own, rows)
				c.wantLinks(t, Other, rows)
				if r, _ := c.Snapshot(); r.Links.None.Count != 300_000 || r.Links.None.Floor == 0 {
					t.Errorf("the flood counts as %+v", r.Links.None)
				}
			})
		}
	}
}

// TestBrokenLinkInTheNavigationIsOneAddress has the same link on 50,000 pages.
func TestBrokenLinkInTheNavigationIsOneAddress(t *testing.T) {
	t.Parallel()
	c := &traffic{sites: 1, Rand: rand.New(rand.NewPCG(1, 2))}
	c.flood(50_000, func(i int) { c.request("site0.test", "/navigation", fmt.Sprintf("https://site0.test/page/%d", i)) })
	c.wantLinks(t, Own, 20)
	if r, _ := c.Snapshot(); r.Addresses[0].Path != "/navigation" || r.Addresses[0].Count != 50_000 {
		t.Errorf("got %+v first", r.Addresses[0])
	}
}

// TestRemovedCatalogueHidesNoOtherLink has own links to 5,000 addresses that are followed once each, beside 30 that are
// followed 20 times.
func TestRemovedCatalogueHidesNoOtherLink(t *testing.T) {
	t.Parallel()
	c := &traffic{sites: 3, Rand: rand.New(rand.NewPCG(1, 3))}
	c.flood(5_000, func(i int) { c.request("site0.test", fmt.Sprintf("/catalogue/%d", i), "https://site0.test/catalogue") })
	r, _ := c.Snapshot()
	for i, a := range r.Addresses[:3*links] {
		if !strings.HasPrefix(a.Path, "/own/") || a.Count-a.Overcount > followed || a.Count < followed {
			t.Errorf("row %d is %+v, want a link that was followed %d times", i, a, followed)
		}
	}
}

// TestForgedLinksTouchNoOtherTable sends own Referers with distinct addresses, which is what a client can do about own links.
func TestForgedLinksTouchNoOtherTable(t *testing.T) {
	t.Parallel()
	c := &traffic{sites: 1, Rand: rand.New(rand.NewPCG(1, 4))}
	c.flood(300_000, func(i int) { c.request("site0.test", fmt.Sprintf("/forged/%d", i), "https://site0.test/") })
	c.wantLinks(t, Other, 20)
	r, _ := c.Snapshot()
	left := 0
	for _, path := range r.paths(Own) {
		if strings.HasPrefix(path, "/own/") {
			left++
		}
	}
	t.Logf("%d of %d own links are left", left, links)
}
