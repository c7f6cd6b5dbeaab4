package report

import (
	"strings"
	"testing"
)

func TestLinkIsOwnIfTheRefererHasAHostOfTheSite(t *testing.T) {
	for name, tt := range map[string]struct {
		referer, address string
		others           []string
		want             Link
	}{
		"the same host":                   {"http://a.test/blog", "http://a.test/x", nil, OwnLink},
		"its root":                        {"http://a.test/", "http://a.test/x", nil, OwnLink},
		"without a path":                  {"http://a.test", "http://a.test/x", nil, OwnLink},
		"another scheme":                  {"https://a.test/blog", "http://a.test/x", nil, OwnLink},
		"another case":                    {"HTTPS://A.Test/blog", "http://a.tEST/x", nil, OwnLink},
		"the port of http":                {"http://a.test:80/blog", "http://a.test/x", nil, OwnLink},
		"the port of https":               {"https://a.test/blog", "https://a.test:443/x", nil, OwnLink},
		"the ports of both":               {"https://a.test:443/blog", "http://a.test:80/x", nil, OwnLink},
		"an empty port":                   {"https://a.test:/blog", "http://a.test/x", nil, OwnLink},
		"the same port":                   {"http://a.test:8080/blog", "http://a.test:8080/x", nil, OwnLink},
		"another port":                    {"http://a.test:8080/blog", "http://a.test/x", nil, OtherLink},
		"another port that ends alike":    {"http://a.test:1443/blog", "http://a.test:1/x", nil, OtherLink},
		"another host":                    {"https://b.test/blog", "http://a.test/x", nil, OtherLink},
		"a longer host":                   {"https://a.test.evil.example/blog", "http://a.test/x", nil, OtherLink},
		"a subdomain":                     {"https://www.a.test/blog", "http://a.test/x", nil, OtherLink},
		"a host that ends like it":        {"https://evila.test/blog", "http://a.test/x", nil, OtherLink},
		"its host as the user":            {"https://a.test@b.test/blog", "http://a.test/x", nil, OtherLink},
		"with a user":                     {"https://b.test:x@a.test/blog", "http://a.test/x", nil, OwnLink},
		"its host in the query":           {"https://b.test?a.test/blog", "http://a.test/x", nil, OtherLink},
		"its host in the fragment":        {"https://b.test#a.test/blog", "http://a.test/x", nil, OtherLink},
		"IPv6":                            {"http://[2001:DB8::1]:80/blog", "http://[2001:db8::1]/x", nil, OwnLink},
		"IPv6 that ends like a port":      {"http://[::80]/blog", "http://[::]/x", nil, OtherLink},
		"an address without a host":       {"http://a.test/blog", "urn:a.test", nil, OtherLink},
		"the host that was addressed":     {"http://a.test:443/blog", "https://www.example.com/x", []string{"b.test", "A.TEST"}, OwnLink},
		"none of the hosts":               {"http://c.test/blog", "https://www.example.com/x", []string{"a.test", "b.test"}, OtherLink},
		"the address of a page and more":  {"http://a.test/x/", "http://a.test/x", nil, OwnLink},
		"the address with a query":        {"http://a.test/x?y", "http://a.test/x", nil, OwnLink},
		"the address without its query":   {"http://a.test/x", "http://a.test/x?y", nil, OwnLink},
		"another query":                   {"http://a.test/x?y=1", "http://a.test/x?y=2", nil, OwnLink},
		"the address in another case":     {"http://a.test/X", "http://a.test/x", nil, OwnLink},
		"another byte, encoded":           {"http://a.test/\x8f", "http://a.test/%FF", nil, OwnLink},
		"another byte that ends alike":    {"http://a.test/\xf8", "http://a.test/%FF", nil, OwnLink},
		"a byte, and what encodes it":     {"http://a.test/<", "http://a.test/x3C", nil, OwnLink},
		"two slashes":                     {"http://a.test//", "http://a.test/", nil, OwnLink},
		"the same path on another host":   {"http://b.test/x", "http://a.test/x", nil, OtherLink},
		"the address":                     {"http://a.test/x", "http://a.test/x", nil, NoLink},
		"the address, with a query":       {"http://a.test/x?y=/z", "http://a.test/x?y=/z", nil, NoLink},
		"the address, by another scheme":  {"https://A.TEST:443/x", "http://a.test/x", nil, NoLink},
		"the address, with a user":        {"http://me:secret@a.test/x", "http://a.test/x", nil, NoLink},
		"the address, with a fragment":    {"http://a.test/x#y", "http://a.test/x", nil, NoLink},
		"the address and its fragment":    {"http://a.test/x#y", "http://a.test/x%23y", nil, NoLink},
		"the address, not encoded":        {"http://a.test/<\xff>?\"%41%zz", "http://a.test/%3C%FF%3E?%22%41%25zz", nil, NoLink},
		"the address, encoded in part":    {"http://a.test/<%3C", "http://a.test/%3C%3C", nil, NoLink},
		"the root":                        {"http://a.test/", "http://a.test/", nil, NoLink},
		"the root without a slash":        {"http://a.test", "http://a.test/", nil, NoLink},
		"the root as OPTIONS * has it":    {"http://a.test/", "http://a.test", nil, NoLink},
		"the root with a query":           {"http://a.test?y", "http://a.test/?y", nil, NoLink},
		"the address at another host":     {"http://a.test/x", "https://www.example.com/x", []string{"a.test"}, NoLink},
		"nothing":                         {"", "http://a.test/x", nil, NoLink},
		"a path":                          {"/blog", "http://a.test/x", nil, NoLink},
		"another scheme than http":        {"android-app://a.test/", "http://a.test/x", nil, NoLink},
		"a host that is not one":          {"http://a.test\x1b/", "http://a.test/x", nil, NoLink},
		"a scheme alone":                  {"http:", "http://a.test/x", nil, NoLink},
		"a scheme without slashes":        {"http:a.test/blog", "http://a.test/x", nil, NoLink},
		"a scheme and other slashes":      {"http:\\\\a.test/blog", "http://a.test/x", nil, NoLink},
		"no host":                         {"http:///x", "urn:x", []string{""}, NoLink},
		"a port alone":                    {"http://:80/x", "urn:x", nil, NoLink},
		"a host with percent-encoding":    {"http://a%2Etest/", "http://a.test/x", nil, NoLink},
		"a host that is too long to keep": {"http://" + strings.Repeat("a", maxLink) + "/", "http://a.test/x", nil, NoLink},
	} {
		t.Run(name, func(t *testing.T) {
			if got := LinkOf(tt.referer, []byte(tt.address), tt.others...); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestLinkIsAnAbsoluteURLWithoutWhatIsPrivate(t *testing.T) {
	long := strings.Repeat("x", 16<<10)
	const site = "https://b.test"
	for name, tt := range map[string]struct{ referer, want string }{
		"plain":                  {site + "/blog", site + "/blog"},
		"no path":                {site, site},
		"port":                   {site + ":8443/", site + ":8443/"},
		"IPv6":                   {"http://[2001:db8::1]/x", "http://[2001:db8::1]/x"},
		"query":                  {site + "/x?token=secret", site + "/x"},
		"query, no path":         {site + "?token=secret", site},
		"fragment, no path":      {site + "#access_token=secret", site},
		"fragment":               {site + "/x#access_token=secret?y", site + "/x"},
		"fragment, encoded":      {site + "/x%23access_token=secret", site + "/x"},
		"not a fragment":         {site + "/x%2523", site + "/x%2523"},
		"user":                   {"https://me@b.test/x", site + "/x"},
		"user and password":      {"https://me:secret@b.test/x?y", site + "/x"},
		"user with an @":         {"https://me@c.test:secret@b.test/x", site + "/x"},
		"path with an @":         {site + "/@me", site + "/@me"},
		"app":                    {"android-app://com.example/", ""},
		"encoded":                {site + "/%3Cb%3E%zz", site + "/%3Cb%3E%25zz"},
		"markup":                 {site + `/<script>"'`, site + "/%3Cscript%3E%22'"},
		"control characters":     {site + "/\x1b[2J\r\n\t\x7f ", site + "/%1B%5B2J%0D%0A%09%7F%20"},
		"UTF-8":                  {site + "/\u00e4\u202e", site + "/%C3%A4%E2%80%AE"},
		"invalid UTF-8":          {site + "/\xff", site + "/%FF"},
		"long path":              {site + "/" + long, site + "/" + long[:maxLink-len(site)-1]},
		"long, within %XX":       {site + "/" + long[:maxLink-len(site)-2] + "<", site + "/" + long[:maxLink-len(site)-2]},
		"long, within %XX twice": {site + "/" + long[:maxLink-len(site)-3] + "%41", site + "/" + long[:maxLink-len(site)-3]},
		"long, all markup":       {site + "/" + strings.Repeat("<", 16<<10), site + "/" + strings.Repeat("%3C", (maxLink-len(site)-1)/3)},
		"longest host":           {"https://" + long[:maxLink-len("https://")] + "/x", "https://" + long[:maxLink-len("https://")]},

		"nothing":                     {"", ""},
		"relative":                    {"/blog", ""},
		"relative with a URL":         {"/blog?next=https://b.test/", ""},
		"without a scheme":            {"//b.test/blog", ""},
		"empty scheme":                {"://b.test/", ""},
		"not a scheme":                {"1'&`://b.test/", ""},
		"no authority":                {"https:///x", ""},
		"user alone":                  {"https://me:secret@/x", ""},
		"too long a host":             {"https://" + long[:maxLink-len("https://")+1] + "/x", ""},
		"too long a scheme":           {long + "://b.test/", ""},
		"about":                       {"about:blank", ""},
		"data":                        {"data:text/html,<script>", ""},
		"script with a host":          {"javascript://b.test/%0aalert(1)", ""},
		"script":                      {"javascript:alert('https://b.test/')", ""},
		"markup in the host":          {"https://<b>/", ""},
		"control character in it":     {"https://b\x1b.test/", ""},
		"space before":                {" https://b.test/", ""},
		"percent-encoding in a host":  {"https://b%2etest/", ""},
		"encoded fragment in a host":  {"https://b.test%23/", ""},
		"a password without its host": {"https://me:se/cret@b.test/", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(appendLink(nil, tt.referer)); got != tt.want {
				t.Errorf("got %.400q, want %q", got, tt.want)
			}
			want := NoLink
			if tt.want != "" {
				want = OtherLink
			}
			if got := LinkOf(tt.referer, []byte("http://a.test/x")); got != want {
				t.Errorf("it counts as %s, want %s", got, want)
			}

			var c Counter
			c.Add(Miss{Address: []byte("http://a.test/x"), Referer: tt.referer, Link: OwnLink}) // even if it is not one
			var links Links
			if tt.want != "" {
				links.Own = LinkCount{1, tt.want}
			}
			if r, _ := c.Snapshot(); r.Addresses[0].Links != links {
				t.Errorf("the report has the links %+v, want %+v", r.Addresses[0].Links, links)
			}
		})
	}
}
