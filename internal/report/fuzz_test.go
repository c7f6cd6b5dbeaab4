package report

import (
	"encoding/json"
	"math"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/caddy-notfound/notfound/internal/uri"
)

// The grammar of RFC 3986.
const (
	escapePattern    = `%[0-9A-Fa-f]{2}`
	authorityPattern = `(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~!$&'()*+,;=-]+)(?::[0-9]*)?`
)

var (
	validURI     = regexp.MustCompile(`^(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|` + escapePattern + `)*$`)
	validHost    = regexp.MustCompile(`^` + authorityPattern + `$`)
	escapes      = regexp.MustCompile(escapePattern)
	absoluteForm = regexp.MustCompile(`(?s)^([^:/?#]+:)(?:(//)([^/?#]*))?(.*)$`) // as in RFC 3986, appendix B
	web          = regexp.MustCompile(`^(?i:https?):$`)
)

// decoded returns s with each valid %XX decoded, once, from left to right.
func decoded(s string) string {
	return escapes.ReplaceAllStringFunc(s, func(escape string) string {
		b, err := strconv.ParseUint(escape[1:], 16, 8)
		if err != nil {
			panic(err)
		}
		return string([]byte{byte(b)})
	})
}

func isAuthority(s string) bool {
	if !validHost.MatchString(s) {
		return false
	}
	if host, _, ok := strings.Cut(strings.TrimPrefix(s, "["), "]"); ok {
		addr, err := netip.ParseAddr(host)
		return err == nil && addr.Is6()
	}
	return true
}

// FuzzReport counts a miss, and reads the report in JSON and in the terminal. The address is made of a host and a target,
// as an address on a page is, and has no authority if the host is not one.
func FuzzReport(f *testing.F) {
	f.Add("/docs/nothing?x=1", "a.test", "https://b.test/blog?x#y")
	f.Add("/<script>\xff%41?{{.}}", "A.TEST:81", "https://me:secret@b.test:81/<b>\x1b\r\n\xff%zz?token=secret")
	f.Add("/"+strings.Repeat("<", 200), "a.test", "https://b.test/"+strings.Repeat("x", 280)+"%41%41")
	f.Add("/x#access_token=secret", "a.test", "https://b.test/x%23access_token=secret")
	f.Add("b.test/x?y", "", "x:me:secret@b.test/x")
	f.Add("/x", strings.Repeat("a", 299), "https://"+strings.Repeat("b", 400)+"/<")
	f.Add("/x?y", "[2001:DB8::1]:81", "android-app://com.example/")
	f.Add("alert(1)://x/", "", "javascript://b.test/%0aalert(1)")
	f.Add("", strings.Repeat("a", 400), strings.Repeat("b", 400)+"://b.test/")
	f.Add("//b.test/x", "a.test", "/relative?https://b.test/")
	f.Add("/<?x#y", "A.test:80", "https://me:secret@a.TEST:443/%3C?x")
	f.Add("/x", "[::1]", "http://[::1]:80/blog")
	f.Add("?x", "a.test", "http://a.test/?x")
	f.Add("://", " ", "")
	f.Add("/://", " ", "")

	f.Fuzz(func(t *testing.T, target, host, referer string) {
		address := []byte("http://" + host)
		if !isAuthority(host) {
			address, target = []byte("urn:"), strings.TrimLeft(target, "/") // two of them would begin an authority
		} else if target != "" && target[0] != '/' && target[0] != '?' {
			address = append(address, '/')
		}
		address = append(address, uri.EncodeTarget(target)...)
		var c Counter
		c.Add(Miss{Address: address, Referer: referer, Link: LinkOf(referer, address), Outcome: Passed})
		r, ok := c.Snapshot()
		if !ok || r.Count != 1 || len(r.Addresses) != 1 {
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
		if a.Count != 1 || a.Overcount != 0 || a.Outcomes != (Outcomes{Passed: 1}) {
			t.Errorf("got %+v, want one response that passed", a)
		}

		kept, _, _ := strings.Cut(string(address), "?")
		kept, _, _ = strings.Cut(kept, "%23")
		wantHost, wantPath := "", kept
		if m := absoluteForm.FindStringSubmatch(kept); m != nil && m[2] != "" {
			wantHost, wantPath = strings.ToLower(m[3][:min(len(m[3]), maxKey-1)]), m[4]
		}
		checkCut(t, a.Host+" "+a.Path, wantHost+" "+wantPath, maxKey)

		// the link is the Referer without what is private, unless that is the address
		var want Links
		if m := absoluteForm.FindStringSubmatch(referer); m != nil && m[2] != "" && web.MatchString(m[1]) {
			authority := m[3][strings.LastIndex(m[3], "@")+1:]
			withoutPort := func(host string) string {
				return regexp.MustCompile(`:(80|443)?$`).ReplaceAllString(strings.ToLower(host), "")
			}
			if isAuthority(authority) && len(m[1]+"//"+authority) <= maxLink {
				kind := &want.Other
				if isAuthority(host) && withoutPort(host) == withoutPort(authority) {
					kind = &want.Own
					// a valid URI is encoded alike on the page, in any other way the rest
					onPage := strings.TrimPrefix(strings.TrimPrefix(string(address), "http://"+host), "/")
					sent := strings.TrimPrefix(m[4], "/")
					alone, _, _ := strings.Cut(sent, "#")
					if onPage == uri.EncodeTarget(sent) || onPage == uri.EncodeTarget(alone) {
						kind = new(LinkCount)
					}
				}
				path, _, _ := strings.Cut(m[4], "#")
				path, _, _ = strings.Cut(path, "?")
				path, _, _ = strings.Cut(path, "%23")
				*kind = LinkCount{1, m[1] + "//" + authority + path}
			}
		}
		got, sent := a.Links.Own, want.Own
		if sent.Count == 0 {
			got, sent = a.Links.Other, want.Other
		}
		if a.Links.Own.Count != want.Own.Count || a.Links.Other.Count != want.Other.Count || got.Count == 0 && a.Links != (Links{}) {
			t.Fatalf("got the links %+v of %q, want %+v", a.Links, referer, want)
		}
		if got.Count > 0 {
			checkCut(t, got.Last, sent.Last, maxLink)
			if u, err := url.Parse(got.Last); err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Host == "" {
				t.Errorf("the link %q is parsed as %#v, %v", got.Last, u, err)
			}
		}
		checkTable(t, r)
	})
}

// FuzzParse reads a file, and prints and merges what it has.
func FuzzParse(f *testing.F) {
	for _, r := range []Report{full, small, {Since: at(1), Capacity: capacity}} {
		body, err := json.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Add([]byte(`{"since":"2026-01-02T03:04:05Z","count":1,"capacity":1,"floor":1,"addresses":[{"path":"urn:x","count":1,` +
		`"outcomes":{"error":1},"first":"9999-12-31T23:59:59.999999999Z","last":"9999-12-31T23:59:59.999999999Z"}]}`))
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
		text := table(t, r, 0)
		if strings.ContainsFunc(strings.ReplaceAll(text, "\n", ""), func(r rune) bool { return r < ' ' || r > '~' }) || strings.ContainsRune(text, '?') {
			t.Errorf("the table is %q", text)
		}
		merged, err := Merge(r, r, small)
		if err != nil {
			if r.Count < math.MaxUint64/4 {
				t.Error(err)
			}
			return
		}
		if merged.Count != 2*r.Count+small.Count || merged.Floor != 2*r.Floor+small.Floor {
			t.Errorf("%+v is merged to %+v", r, merged)
		}
		again, err := json.Marshal(merged)
		if err != nil {
			t.Fatal(err)
		}
		if read, err := Parse(again); err != nil || !reflect.DeepEqual(read, merged) {
			t.Errorf("%+v is read as %+v, %v", merged, read, err)
		}
	})
}

// checkCut checks that what is got has the characters of a URI alone, apart from one space, and means as much of what was
// sent as there is room for.
func checkCut(t *testing.T, got, sent string, room int) {
	t.Helper()
	if len(got) > room {
		t.Errorf("%q has %d bytes, want at most %d", got, len(got), room)
	}
	if !strings.HasPrefix(decoded(sent), decoded(got)) || len(got) < room-len("%4") && decoded(got) != decoded(sent) {
		t.Errorf("got %q of %q", got, sent)
	}
	if !validURI.MatchString(strings.NewReplacer(" ", "", "[", "", "]", "").Replace(got)) {
		t.Errorf("%q has other characters than a URI", got)
	}
}

// checkTable checks that the table fits a terminal, and does nothing to it.
func checkTable(t *testing.T, r Report) {
	t.Helper()
	for line := range strings.Lines(table(t, r, 80)) {
		if line = strings.TrimSuffix(line, "\n"); len(line) > 80 || strings.ContainsFunc(line, unicode.IsControl) {
			t.Errorf("the table has the line %q", line)
		}
	}
}
