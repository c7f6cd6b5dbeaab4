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
	f.Add("/docs/nothing?x=1", "a.test", "https://b.test/blog?x#y")
	f.Add("/<script>\xff%41?{{.}}", "A.TEST:81", "https://me:secret@b.test:81/<b>\x1b\r\n\xff%zz?token=secret")
	f.Add("/"+strings.Repeat("<", 200), "a.test", "https://b.test/"+strings.Repeat("x", 280)+"%41%41")
	f.Add("/x#access_token=secret", "a.test", "https://b.test/x%23access_token=secret")
	f.Add("b.test/x?y", "", "x:me:secret@b.test/x")
	f.Add("/x", strings.Repeat("a", 299), "https://"+strings.Repeat("b", 400)+"/<")
	f.Add("://", " ", "")

	f.Fuzz(func(t *testing.T, target, host, referer string) {
		if !uri.ValidAuthority(host) {
			host = ""
		} else if target != "" && target[0] != '/' && target[0] != '?' {
			target = "/" + target
		}
		onPage := uri.EncodeTarget(target)
		var c Counter
		c.Begin()
		c.Add(Miss{Host: host, Path: onPage, Referer: referer, Link: linkOf(referer, host, onPage, "")})
		r, _ := c.Snapshot()

		// the report is as printable as the command makes another server's
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
		isOfPage := strings.HasPrefix(address, a.Host+a.Path) && !strings.Contains(a.Path, "?")
		if !isOfPage || len(a.Host+" "+a.Path) > maxKey {
			t.Errorf("got the address %q %q of %q", a.Host, a.Path, address)
		}

		// a link is what the Referer begins with, without what is private
		if a.LastLink == "" {
			return
		}
		u, err := url.Parse(a.LastLink)
		if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			t.Errorf("the link %q is parsed as %#v, %v", a.LastLink, u, err)
		} else if !uri.ValidAuthority(u.Host) || !strings.Contains(referer, u.Host) || len(a.LastLink) > maxLink {
			t.Errorf("got the link %q of %q", a.LastLink, referer)
		}
	})
}

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
		printed := ""
		if err != nil {
			printed = err.Error()
		} else {
			printed = strings.ReplaceAll(text(t, r, Filter{}), "\n", "")
		}
		isControl := func(r rune) bool { return r < ' ' || r > '~' }
		if strings.ContainsFunc(printed, isControl) || len(printed) > 2000+len(address) {
			t.Errorf("%q is printed", printed)
		}
	})
}
