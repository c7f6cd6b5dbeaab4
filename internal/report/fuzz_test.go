package report

import (
	"encoding/json"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/caddy-notfound/notfound/internal/uri"
)

// FuzzReport counts a miss, and reads the report in JSON. The address is as on a page.
func FuzzReport(f *testing.F) {
	markup := strings.Repeat("<", 200)
	long := strings.Repeat("x", 280)
	f.Add("/docs/nothing?x=1", "a.test", "https://b.test/blog?x#y")
	f.Add("/<script>\xff%41?{{.}}", "A.TEST:81", "https://me:secret@b.test:81/<b>\x1b\r\n\xff%zz?token=secret")
	f.Add("/"+markup, "a.test", "https://b.test/"+long+"%41%41")
	f.Add("/x#access_token=secret", "a.test", "https://b.test/x%23access_token=secret")
	f.Add("b.test/x?y", "", "x:me:secret@b.test/x")
	f.Add("/x", long, "https://"+long+"/<")
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

		// The report is as printable as the command makes another server's.
		body, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		read, err := Parse(body)
		if err != nil || !reflect.DeepEqual(read, r) {
			t.Errorf("%s is read as %+v, %v", body, read, err)
		}

		a := r.Addresses[0]
		address := strings.ToLower(host) + onPage
		isOfPage := strings.HasPrefix(address, a.Host+a.Path)
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

func isNotPrintable(r rune) bool { return r < ' ' || r > '~' }

// FuzzParse prints what a server sends in the place of a report.
func FuzzParse(f *testing.F) {
	f.Add("2026-01-02T03:04:05Z", `{"link":"own","path":"/x","count":1}`)
	f.Add("0000-01-01T00:00:00-23:59", `{"host":"\u001b[2J","path":"/\ud800\u009b31m","last_link":"\r\n\u202e"}`)
	f.Add("\x7f", "")
	f.Add(`\u0000`, "")
	f.Add("2026-01-02T03:04:05Z", `{"link":"`+strings.Repeat(`\u009b`, 300)+`"}`)
	f.Fuzz(func(t *testing.T, since, address string) {
		body := `{"since":"` + since + `","capacity":1,"links":{"own":{"count":1}},"addresses":[` + address + `]}`
		r, err := Parse([]byte(body))
		var printed string
		if err != nil {
			printed = err.Error()
		} else {
			printed = text(t, r, Filter{})
		}
		line := strings.ReplaceAll(printed, "\n", "")
		if strings.ContainsFunc(line, isNotPrintable) || len(line) > 2000+len(address) {
			t.Errorf("%q is printed", printed)
		}
	})
}
