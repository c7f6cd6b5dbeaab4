package uri

import "testing"

func TestEncodeLeavesWhatIsEncoded(t *testing.T) {
	for s, want := range map[string]string{
		"": "", "/a?b": "/a?b", "%": "%25", "%4": "%254", "%41": "%41", "%fF": "%fF", "%Ag%gA": "%25Ag%25gA",
		"%%41": "%25%41", "a b<c": "a%20b%3Cc", "\xff": "%FF",
	} {
		if got := EncodeTarget(s); got != want {
			t.Errorf("%q: got %q, want %q", s, got, want)
		}
	}
	if got := EncodePath("/a?b"); got != "/a%3Fb" {
		t.Errorf("got the path %q, want /a%%3Fb", got)
	}
}

func TestSplit(t *testing.T) {
	for uri, want := range map[string][3]string{
		"http://a.test/x?y#z":           {"http", "a.test", "/x?y#z"},
		"HTTPS://me:secret@a.test:81?y": {"HTTPS", "a.test:81", "?y"},
		"http://a@b@c.test#d@e":         {"http", "c.test", "#d@e"},
		"http:///x":                     {"http", "", "/x"},
		"://a.test":                     {"", "a.test", ""},
	} {
		if scheme, authority, target, ok := Split(uri); !ok || [3]string{scheme, authority, target} != want {
			t.Errorf("%s: got %q, %q, %q, %v", uri, scheme, authority, target, ok)
		}
	}
	for _, uri := range []string{"", "/x", "//a.test/x", "urn:x", "http:/a.test", "urn:x?y=http://a.test"} {
		if _, _, _, ok := Split(uri); ok {
			t.Errorf("%q is said to have an authority", uri)
		}
	}
}

func TestValidAuthority(t *testing.T) {
	for s, want := range map[string]bool{
		"": false, "a.test": true, "A.test:80": true, "a.test:": true, "a.test:x": false, "a:b:1": false,
		"[::1]": true, "[::1]:8080": true,
		"[::1]8080": false, "[::1]:x": false, "[::1": false, "::1": false, "[127.0.0.1]": false,
		"[fe80::1%25eth0]": false, "me@a.test": false, "a%41.test": false,
		"a_b!$&'()*+,;=~": true, "a.test/": false, "a b": false, "b\u00fccher.test": false, "<a>": false, "{a}": false,
	} {
		if got := ValidAuthority(s); got != want {
			t.Errorf("%q: got %v, want %v", s, got, want)
		}
	}
}

func TestIsHTTP(t *testing.T) {
	for s, want := range map[string]bool{"http": true, "HTTPS": true, "httpx": false, "ftp": false, "": false} {
		if got := IsHTTP(s); got != want {
			t.Errorf("%q: got %v, want %v", s, got, want)
		}
	}
}

func TestCutEncoded(t *testing.T) {
	for n, want := range []string{"", "a", "a", "a", "a%41", "a%41%", "a%41%", "a%41%"} {
		if got := CutEncoded("a%41%", n); got != want {
			t.Errorf("%d bytes: got %q, want %q", n, got, want)
		}
	}
}
