package report

import (
	"strings"
	"testing"
)

// wantLink checks what a GET request for an address counts as. The Referer is kept if it is a link.
func wantLink(t *testing.T, referer, address string, want Link) {
	t.Helper()
	kept := referer
	if want == NoLink {
		kept = ""
	}
	m := NewMiss(address, "", "GET", referer)
	if m.Link != want || m.Referer != kept {
		t.Errorf("%s from %s: got %s and the Referer %q, want %s and %q", address, referer, m.Link, m.Referer, want, kept)
	}
}

func TestLinkIsOwnIfTheRefererHasTheHost(t *testing.T) {
	for referer, address := range map[string]string{
		"HTTPS://A.Test/blog":          "http://a.tEST/x",
		"https://a.test/blog":          "https://a.test:443/x",
		"https://a.test:443/blog":      "http://a.test:80/x",
		"https://a.test:/blog":         "http://a.test/x",
		"https://b.test:x@a.test/blog": "http://a.test/x",
		"http://[2001:DB8::1]:80/blog": "http://[2001:db8::1]/x",
		"http://a.test/x":              "http://a.test/x?y",
		"http://a.test/x//":            "http://a.test/x",
		"http://a.test/x?y":            "http://a.test/x?y/",
	} {
		wantLink(t, referer, address, OwnLink)
	}
	for referer, address := range map[string]string{
		"http://a.test:8080/blog":    "http://a.test/x",
		"https://evila.test/blog":    "http://a.test/x",
		"https://a.test@b.test/blog": "http://a.test/x",
		"https://b.test?a.test/blog": "http://a.test/x",
		"http://[::80]/blog":         "http://[::]/x",
		"http://a.test/blog":         "urn:a.test",
		"https://b.test/":            "http://a.test/", // all that a browser says of a page of another site
		"https://b.test":             "http://a.test/?",
	} {
		wantLink(t, referer, address, OtherLink)
	}
}

// TestRefererThatIsTheAddressIsNoLink has those of redirects, too: to another scheme or host, and with another slash.
func TestRefererThatIsTheAddressIsNoLink(t *testing.T) {
	for referer, address := range map[string]string{
		"http://a.test/x?y/":            "https://www.a.test:8443/x?y/",
		"http://a.test/x/?y":            "http://a.test/x?y",
		"http://b.test/x":               "http://a.test/x/",
		"http://b.test/?x":              "http://a.test?x",
		"http://a.test/x#y":             "http://a.test/x",
		"http://a.test/y#z":             "http://a.test/y%23z",
		"http://a.test/<\xff>?\"%41%zz": "http://a.test/%3C%FF%3E?%22%41%25zz",
		"http://a.test/<%3C":            "http://a.test/%3C%3C",
		"http://a.test":                 "http://a.test/",
		"http://a.test/":                "http://a.test", // as OPTIONS * has it
		"http://a.test/x?y":             "http://a.test/x?y",
	} {
		wantLink(t, referer, address, NoLink)
	}
}

// TestAddressedHostIsOneOfTheSite has an address that begins with another host, as a base URL has it.
func TestAddressedHostIsOneOfTheSite(t *testing.T) {
	for referer, want := range map[string]Link{
		"http://a.test:443/blog": OwnLink,
		"http://c.test/blog":     OtherLink,
		"http://a.test/x":        NoLink,
	} {
		if got := NewMiss("https://www.example.com/x", "A.TEST", "GET", referer).Link; got != want {
			t.Errorf("%s: got %s, want %s", referer, got, want)
		}
	}
}

// TestWhatNobodyFollowedIsNoLink sends a Referer of the same host with every request. The report shows it in any case.
func TestWhatNobodyFollowedIsNoLink(t *testing.T) {
	const referer = "https://a.test/blog"
	for _, tt := range []struct {
		method string
		target string
		want   Link
	}{
		{method: "GET", target: "/x?y", want: OwnLink},
		{method: "POST", target: "/x", want: OwnLink},
		{method: "HEAD", target: "/x", want: OwnLink},
		{method: "PROPFIND", target: "/x", want: NoLink},
		{method: "GET", target: "/favicon.ico", want: NoLink}, // which browsers request on their own
		{method: "GET", target: "/favicon.ico?v=2", want: OwnLink},
		{method: "GET", target: "/blog/favicon.ico", want: OwnLink},
	} {
		want := Miss{
			Host:    "a.test",
			Path:    tt.target,
			Referer: referer,
			Link:    tt.want,
		}
		if got := NewMiss("https://a.test"+tt.target, "a.test", tt.method, referer); got != want {
			t.Errorf("%s: got %+v, want %+v", tt.method, got, want)
		}
	}
}

func TestLinkIsAnAbsoluteURLWithoutWhatIsPrivate(t *testing.T) {
	const site = "https://b.test"
	long := strings.Repeat("x", 16<<10)
	full := site + "/" + long[:maxLink-len(site+"/")-1]
	fullHost := "https://" + long[:maxLink-len("https://")]
	for referer, want := range map[string]string{
		site + "?token=secret":             site,
		site + "/x#access_token=secret":    site + "/x",
		site + "/x%23access_token=secret":  site + "/x",
		site + "/x%2523":                   site + "/x%2523",
		"https://me:secret@b.test/x?y":     site + "/x",
		"https://me@c.test:secret@b.test/": site + "/",
		site + "/%3Cb%3E%zz":               site + "/%3Cb%3E%25zz",
		site + "/\x1b[2J\r\n\t\x7f ":       site + "/%1B%5B2J%0D%0A%09%7F%20",
		site + "/\u00e4\u202e":             site + "/%C3%A4%E2%80%AE",
		full + "<":                         full,
		full + long:                        full + "x",
		fullHost + "/x":                    fullHost,
	} {
		wantLink(t, referer, "http://a.test/y", OtherLink)
		got := string(appendLink(nil, referer))
		if got != want {
			t.Errorf("got %.400q, want %q", got, want)
		}
	}
	for _, referer := range []string{
		"android-app://b.test/",
		"http://evil.example\\@b.test/",
		"//b.test/blog",
		"https:///x",
		"https://<b>/",
		"https://me:se/cret@b.test/",
		fullHost + "x/x",
	} {
		wantLink(t, referer, "http://a.test/x", NoLink)
		got := appendLink(nil, referer)
		if got != nil {
			t.Errorf("got the link %q", got)
		}
	}
}

func TestOfAnAddressTheHostAndThePathAreKept(t *testing.T) {
	long := strings.Repeat("x", 2*maxKey)
	almost := long[:maxKey-len("a.test /")-1]
	for address, want := range map[string]string{
		"http://a.test/x?y=/z":                    "a.test /x",
		"http://a.test?y":                         "a.test ",
		"http://a.test/x%23access_token=secret":   "a.test /x",
		"http://a.test/x%23y?access_token=secret": "a.test /x",
		"http://a.test/x%2523":                    "a.test /x%2523",
		"https://A.Zest:8443/X%2f%aFaf%25af":      "a.zest:8443 /X%2F%AFaf%25af",
		"urn:x%23access_token=secret":             " urn:x",
		"http://a.test/" + long:                   "a.test /" + almost + "x",
		"http://a.test/" + almost + "%41":         "a.test /" + almost,
		"http://" + long + "/x":                   long[:maxKey-1] + " ",
	} {
		m := NewMiss(address, "a.test", "GET", "")
		got := string(appendKey(nil, m.Host, m.Path))
		if got != want {
			t.Errorf("%q: got %q, want %q", address, got, want)
		}
	}
}
