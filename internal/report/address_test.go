package report

import (
	"strings"
	"testing"
)

func TestKeyIsHostAndPath(t *testing.T) {
	long := strings.Repeat("x", 2*maxKey)
	for name, tt := range map[string]struct{ uri, want string }{
		"plain":                 {"http://a.test/x", "a.test /x"},
		"query":                 {"http://a.test/x?y=/z", "a.test /x"},
		"query, no path":        {"http://a.test?y", "a.test "},
		"fragment":              {"http://a.test/x%23access_token=secret", "a.test /x"},
		"fragment with a query": {"http://a.test/x%23y?access_token=secret", "a.test /x"},
		"fragment, no path":     {"urn:x%23access_token=secret", " urn:x"},
		"not a fragment":        {"http://a.test/x%2523", "a.test /x%2523"},
		"no path":               {"http://a.test", "a.test "},
		"port":                  {"https://a.test:8443/", "a.test:8443 /"},
		"IPv6":                  {"http://[2001:DB8::1]:81/x", "[2001:db8::1]:81 /x"},
		"letter case":           {"HTTP://A.Test/X%2f", "a.test /X%2f"},
		"colons and slashes":    {"http://a.test/http://b.test/x", "a.test /http://b.test/x"},
		"no authority":          {"urn:x?y", " urn:x"},
		"scheme of a script":    {"javascript:alert(1)", " javascript:alert(1)"},
		"nothing":               {"", " "},
		"long path":             {"http://a.test/" + long, "a.test /" + long[:maxKey-len("a.test /")]},
		"within %XX":            {"http://a.test/" + long[:maxKey-len("a.test /%4")] + "%41", "a.test /" + long[:maxKey-len("a.test /%4")]},
		"after the %":           {"http://a.test/" + long[:maxKey-len("a.test /%")] + "%41", "a.test /" + long[:maxKey-len("a.test /%")]},
		"after %XX":             {"http://a.test/" + long[:maxKey-len("a.test /%41")] + "%41%42", "a.test /" + long[:maxKey-len("a.test /%41")] + "%41"},
		"long host":             {"http://" + long + "/x", long[:maxKey-1] + " "},
		"long host, no path":    {"http://" + long, long[:maxKey-1] + " "},
		"host with room for /":  {"http://" + long[:maxKey-2] + "/x", long[:maxKey-2] + " /"},
		"host with room for /x": {"http://" + long[:maxKey-3] + "/x", long[:maxKey-3] + " /x"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(appendKey(nil, []byte(tt.uri))); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
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
		"a password without its host": {"https://me:se/cret@b.test/", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(appendLink(nil, tt.referer)); got != tt.want {
				t.Errorf("got %.400q, want %q", got, tt.want)
			}
		})
	}
}
