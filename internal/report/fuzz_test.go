package report

import (
	"net/url"
	"strings"
	"testing"
	"unicode"

	"github.com/caddy-notfound/notfound/internal/uri"
)

// FuzzReport counts a miss. The address is as on a page.
func FuzzReport(f *testing.F) {
	markup := strings.Repeat("<", 200)
	long := strings.Repeat("x", 280)
	f.Add("/docs/nothing?x=1", "a.test", "https://b.test/blog?x#y")
	f.Add("/<script>\xff%41?{{.}}", "A.TEST:81", "https://me:secret@b.test:81/<b>\x1b\r\n\xff%zz?token=secret")
	f.Add("/"+markup, "a.test", "https://b.test/"+long+"%41%41")
	f.Add("/x#access_token=secret", "a.test", "https://b.test/x%23access_token=secret")
	f.Add("b.test/x?y", "", "x:me:secret@b.test/x")
	f.Add("/x%c3%a9", long, "https://"+long+"/<")
	f.Add("://", " ", "")

	f.Fuzz(func(t *testing.T, target, host, referer string) {
		isTarget := target == "" || strings.ContainsAny(target[:1], "/?")
		if !uri.ValidAuthority(host) {
			host = ""
		} else if !isTarget {
			target = "/" + target
		}
		onPage := uri.EncodeTarget(target)
		miss := Miss{Host: host, Path: onPage, Referer: referer}
		miss.Link = linkOf(referer, host, onPage, "")
		c := Counter{room: 1}
		c.Begin()
		c.Add(miss)
		r, _ := c.Snapshot()

		a := r.Addresses[0]
		if strings.ContainsFunc(a.Host+a.Path+a.LastLink, isNotASCII) {
			t.Errorf("%+v acts on a terminal", a)
		}
		address := strings.ToLower(host + onPage)
		isOfPage := strings.HasPrefix(address, strings.ToLower(a.Host+a.Path))
		isTooLong := len(a.Host+" "+a.Path) > maxKey
		if !isOfPage || isTooLong || strings.Contains(a.Path, "?") {
			t.Errorf("got the address %q %q of %q", a.Host, a.Path, address)
		}
		if a.LastLink != "" {
			wantLinkOf(t, referer, a.LastLink)
		}
	})
}

// wantLinkOf checks that a link is what the Referer begins with, without what is private.
func wantLinkOf(t *testing.T, referer, link string) {
	t.Helper()
	u, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	isPrivate := u.User != nil || u.RawQuery != "" || u.Fragment != ""
	isOfReferer := uri.ValidAuthority(u.Host) && strings.Contains(referer, u.Host)
	if isPrivate || !isOfReferer || len(link) > maxLink {
		t.Errorf("got the link %q of %q", link, referer)
	}
}

func isNotASCII(r rune) bool { return r < ' ' || r > '~' }

// FuzzReadable has an address as it is kept, which is of printable ASCII.
func FuzzReadable(f *testing.F) {
	f.Add("a.test/tags/%E9%96%8B%e7%99%ba/")
	f.Add("/%1B%5B31m%C2%9B%E2%80%AE%D8%A7%E9%96%C3%C3%9F%25C3%A9%")
	f.Fuzz(func(t *testing.T, address string) {
		address = uri.EncodePath(address)
		got := readable(address)
		for _, r := range got {
			isShown := unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r)
			if isNotASCII(r) && !isShown {
				t.Errorf("%q is printed", got)
			}
		}
		if back := uri.EncodePath(got); !strings.EqualFold(back, address) {
			t.Errorf("%s is printed as %s, which is %s", address, got, back)
		}
	})
}
