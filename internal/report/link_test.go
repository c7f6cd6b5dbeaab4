package report

import (
	"strings"
	"testing"

	"github.com/caddy-notfound/notfound/internal/uri"
)

func TestLinkIsOwnIfTheRefererHasAHostOfTheSite(t *testing.T) {
	for name, tt := range map[string]struct {
		referer, address, addressed string
		want                        Link
	}{
		"the same host":                 {"http://a.test/blog", "http://a.test/x", "", Own},
		"another case":                  {"HTTPS://A.Test/blog", "http://a.tEST/x", "", Own},
		"the port of https":             {"https://a.test/blog", "https://a.test:443/x", "", Own},
		"the ports of both":             {"https://a.test:443/blog", "http://a.test:80/x", "", Own},
		"an empty port":                 {"https://a.test:/blog", "http://a.test/x", "", Own},
		"another port":                  {"http://a.test:8080/blog", "http://a.test/x", "", Other},
		"another host":                  {"https://b.test/blog", "http://a.test/x", "", Other},
		"a host that ends like it":      {"https://evila.test/blog", "http://a.test/x", "", Other},
		"its host as the user":          {"https://a.test@b.test/blog", "http://a.test/x", "", Other},
		"with a user":                   {"https://b.test:x@a.test/blog", "http://a.test/x", "", Own},
		"its host in the query":         {"https://b.test?a.test/blog", "http://a.test/x", "", Other},
		"IPv6":                          {"http://[2001:DB8::1]:80/blog", "http://[2001:db8::1]/x", "", Own},
		"IPv6 that ends like a port":    {"http://[::80]/blog", "http://[::]/x", "", Other},
		"an address without a host":     {"http://a.test/blog", "urn:a.test", "", Other},
		"the host that was addressed":   {"http://a.test:443/blog", "https://www.example.com/x", "A.TEST", Own},
		"neither of the hosts":          {"http://c.test/blog", "https://www.example.com/x", "b.test", Other},
		"the address without its query": {"http://a.test/x", "http://a.test/x?y", "", Own},
		"the address":                   {"http://a.test/x", "http://a.test/x", "", None},
		"the address, with a fragment":  {"http://a.test/x#y", "http://a.test/x", "", None},
		"the address and its fragment":  {"http://a.test/x#y", "http://a.test/x%23y", "", None},
		"the address, not encoded":      {"http://a.test/<\xff>?\"%41%zz", "http://a.test/%3C%FF%3E?%22%41%25zz", "", None},
		"the address, encoded in part":  {"http://a.test/<%3C", "http://a.test/%3C%3C", "", None},
		"the root without a slash":      {"http://a.test", "http://a.test/", "", None},
		"the root as OPTIONS * has it":  {"http://a.test/", "http://a.test", "", None},
		"the address at another host":   {"http://a.test/x", "https://www.example.com/x", "a.test", None},
	} {
		t.Run(name, func(t *testing.T) {
			host, target := split(tt.address)
			if got := linkOf(tt.referer, host, target, tt.addressed); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestLinkIsAnAbsoluteURLWithoutWhatIsPrivate(t *testing.T) {
	long := strings.Repeat("x", 16<<10)
	const site = "https://b.test"
	for name, tt := range map[string]struct{ referer, want string }{
		"query, no path":     {site + "?token=secret", site},
		"fragment":           {site + "/x#access_token=secret", site + "/x"},
		"fragment, encoded":  {site + "/x%23access_token=secret", site + "/x"},
		"not a fragment":     {site + "/x%2523", site + "/x%2523"},
		"user and password":  {"https://me:secret@b.test/x?y", site + "/x"},
		"user with an @":     {"https://me@c.test:secret@b.test/x", site + "/x"},
		"encoded":            {site + "/%3Cb%3E%zz", site + "/%3Cb%3E%25zz"},
		"control characters": {site + "/\x1b[2J\r\n\t\x7f ", site + "/%1B%5B2J%0D%0A%09%7F%20"},
		"UTF-8":              {site + "/\u00e4\u202e", site + "/%C3%A4%E2%80%AE"},
		"long, within %XX":   {site + "/" + long[:maxLink-len(site)-2] + "<", site + "/" + long[:maxLink-len(site)-2]},
		"long, all markup": {
			site + "/" + strings.Repeat("<", 16<<10),
			site + "/" + strings.Repeat("%3C", (maxLink-len(site)-1)/3),
		},
		"no room for a path": {
			"https://" + long[:maxLink-len("https://")] + "/x",
			"https://" + long[:maxLink-len("https://")],
		},

		"nothing":                     {"", ""},
		"another scheme than http":    {"android-app://b.test/", ""},
		"a backslash for a slash":     {"http://evil.example\\@b.test/", ""},
		"without a scheme":            {"//b.test/blog", ""},
		"not a scheme":                {"1'&`://b.test/", ""},
		"no authority":                {"https:///x", ""},
		"too long a host":             {"https://" + long[:maxLink-len("https://")+1] + "/x", ""},
		"too long a scheme":           {long + "://b.test/", ""},
		"markup in the host":          {"https://<b>/", ""},
		"a password without its host": {"https://me:se/cret@b.test/", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(appendLink(nil, tt.referer)); got != tt.want {
				t.Errorf("got %.400q, want %q", got, tt.want)
			}
			want := None
			if tt.want != "" {
				want = Other
			}
			if got := linkOf(tt.referer, "a.test", "/x", ""); got != want {
				t.Errorf("it counts as %s, want %s", got, want)
			}
		})
	}
}

// split splits an address as a page has it into its host and the rest.
func split(address string) (host, target string) {
	if _, host, target, ok := uri.Split(address); ok {
		return host, target
	}
	return "", address
}

func TestOfAnAddressTheHostAndThePathAreKept(t *testing.T) {
	long := strings.Repeat("x", 2*maxKey)
	for name, tt := range map[string]struct{ address, want string }{
		"query":                 {"http://a.test/x?y=/z", "a.test /x"},
		"query, no path":        {"http://a.test?y", "a.test "},
		"fragment":              {"http://a.test/x%23access_token=secret", "a.test /x"},
		"fragment with a query": {"http://a.test/x%23y?access_token=secret", "a.test /x"},
		"not a fragment":        {"http://a.test/x%2523", "a.test /x%2523"},
		"port and letter case":  {"https://A.Zest:8443/X%2f", "a.zest:8443 /X%2f"},
		"no authority":          {"urn:x%23access_token=secret", " urn:x"},
		"long path":             {"http://a.test/" + long, "a.test /" + long[:maxKey-len("a.test /")]},
		"within %XX": {
			"http://a.test/" + long[:maxKey-len("a.test /%4")] + "%41",
			"a.test /" + long[:maxKey-len("a.test /%4")],
		},
		"long host": {"http://" + long + "/x", long[:maxKey-1] + " "},
	} {
		t.Run(name, func(t *testing.T) {
			host, path := split(tt.address)
			if got := string(appendKey(nil, host, path)); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
