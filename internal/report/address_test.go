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
