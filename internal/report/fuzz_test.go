package report

import (
	"bytes"
	"encoding/json"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/caddy-notfound/notfound/internal/uri"
)

// FuzzReport counts a miss, and reads the report in JSON, in the terminal and in CSV. The address is as on a page.
func FuzzReport(f *testing.F) {
	f.Add("/docs/nothing?x=1", "a.test", "https://b.test/blog?x#y")
	f.Add("/<script>\xff%41?{{.}}", "A.TEST:81", "https://me:secret@b.test:81/<b>\x1b\r\n\xff%zz?token=secret")
	f.Add("/"+strings.Repeat("<", 200), "a.test", "https://b.test/"+strings.Repeat("x", 280)+"%41%41")
	f.Add("/x#access_token=secret", "a.test", "https://b.test/x%23access_token=secret")
	f.Add("b.test/x?y", "", "x:me:secret@b.test/x")
	f.Add("/x", strings.Repeat("a", 299), "https://"+strings.Repeat("b", 400)+"/<")
	f.Add("alert(1)://x/", "", "javascript://b.test/%0aalert(1)")
	f.Add("", strings.Repeat("a", 400), strings.Repeat("b", 400)+"://b.test/")
	f.Add("//b.test/x", "a.test", "/relative?https://b.test/")
	f.Add("/<?x#y", "A.test:80", "https://me:secret@a.TEST:443/%3C?x")
	f.Add("://", " ", "")

	f.Fuzz(func(t *testing.T, target, host, referer string) {
		if !uri.ValidAuthority(host) {
			host = ""
		} else if target != "" && target[0] != '/' && target[0] != '?' {
			target = "/" + target
		}
		onPage := uri.EncodeTarget(target)
		if host == "" && withoutQuery(onPage) == "" {
			return // no page has an empty address
		}
		var c Counter
		c.Begin()
		c.Add(Miss{Host: host, Path: onPage, Referer: referer, Link: LinkOf(referer, host, onPage, ""), Outcome: Passed})
		r, ok := c.Snapshot()
		if !ok || len(r.Addresses) != 1 {
			t.Fatalf("got %+v, want one address", r)
		}
		body, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := Parse(body); err != nil || !reflect.DeepEqual(again, r) {
			t.Errorf("%s is read as %+v, %v", body, again, err)
		}
		a := r.Addresses[0]
		if a.Count != 1 || a.Overcount != 0 || a.Outcomes != (Outcomes{Passed: 1}) || r.Links.all()[a.Link].Outcomes != a.Outcomes {
			t.Errorf("got %+v, want one response that passed", r)
		}
		if address := strings.ToLower(host) + onPage; !strings.HasPrefix(address, a.Host+a.Path) || strings.Contains(a.Path, "?") || len(a.Host+" "+a.Path) > maxKey {
			t.Errorf("got the address %q %q of %q", a.Host, a.Path, address)
		}

		// a link is what the Referer begins with, without what is private
		if a.LastLink != "" {
			u, err := url.Parse(a.LastLink)
			if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" || !uri.ValidAuthority(u.Host) || len(a.LastLink) > maxLink || !strings.Contains(referer, u.Host) {
				t.Errorf("the link %q of %q is parsed as %#v, %v", a.LastLink, referer, u, err)
			}
		}
		checkPrinted(t, r)
	})
}

// FuzzParse reads a file, and prints and merges what it has.
func FuzzParse(f *testing.F) {
	for _, r := range []Report{full, small, {Since: at(1), Capacity: capacity, Addresses: []Address{}}} {
		body, err := json.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Add([]byte("{\"since\":\"\x7f\"}"))
	f.Add([]byte(`{"since":"0000-01-01T00:00:00-23:59","count":1,"capacity":1,"addresses":[{"host":"\u001b[2J","path":"/\ud800"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := Parse(body)
		if err != nil {
			if strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' || r == 0x7f || r >= 0x80 && !strconv.IsPrint(r) }) {
				t.Errorf("the error is %q", err)
			}
			return
		}
		checkPrinted(t, r)
		if r.Partial {
			return
		}
		merged, err := Merge(r, r, small)
		if err != nil {
			t.Fatal(err)
		}
		for link, total := range merged.Links.all() {
			if of, more := r.Links.all()[link], small.Links.all()[link]; total.Count != 2*of.Count+more.Count || total.Floor != 2*of.Floor+more.Floor {
				t.Errorf("%+v is merged to %+v", r, merged)
			}
		}
		again, err := json.Marshal(merged)
		if err != nil {
			t.Fatal(err)
		}
		read, err := Parse(again)
		if slices.ContainsFunc(merged.Addresses, func(a Address) bool { return a.Count > merged.Links.all()[a.Link].Count }) {
			return // impossible numbers, which may no longer add up
		}
		if body, _ := json.Marshal(read); err != nil || !bytes.Equal(body, again) {
			t.Errorf("%s is read as %s, %v", again, body, err)
		}
	})
}

// checkPrinted checks that no output acts on a terminal.
func checkPrinted(t *testing.T, r Report) {
	t.Helper()
	var table strings.Builder
	if err := r.WriteCSV(&table); err != nil {
		t.Fatal(err)
	}
	for _, printed := range []string{text(t, r), table.String()} {
		if strings.ContainsFunc(strings.ReplaceAll(printed, "\n", ""), func(r rune) bool { return r < ' ' || r > '~' || r == '?' }) {
			t.Errorf("%q is printed", printed)
		}
	}
}
