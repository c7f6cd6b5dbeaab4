package uri

import "testing"

func TestEncodeLeavesWhatIsEncoded(t *testing.T) {
	for s, want := range map[string]string{
		"":         "",
		"/a?b%fF":  "/a?b%fF",
		"%Ag%gA":   "%25Ag%25gA",
		"%%41":     "%25%41",
		"%4":       "%254",
		"a b<\xff": "a%20b%3C%FF",
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
	type parts struct{ scheme, authority, target string }
	for uri, want := range map[string]parts{
		"http://a.test/x?y#z":           {"http", "a.test", "/x?y#z"},
		"HTTPS://me:secret@a.test:81?y": {"HTTPS", "a.test:81", "?y"},
		"http://a@b@c.test#d@e":         {"http", "c.test", "#d@e"},
		"http:///x":                     {"http", "", "/x"},
		"://a.test":                     {"", "a.test", ""},
	} {
		var got parts
		var ok bool
		got.scheme, got.authority, got.target, ok = Split(uri)
		if !ok || got != want {
			t.Errorf("%s: got %+v, %v", uri, got, ok)
		}
	}
	withoutAuthority := []string{"", "/x", "//a.test/x", "http:/a.test", "urn:x?y=http://a.test"}
	for _, uri := range withoutAuthority {
		if _, _, _, ok := Split(uri); ok {
			t.Errorf("%q is said to have an authority", uri)
		}
	}
}

func TestValidAuthority(t *testing.T) {
	for _, valid := range []string{
		"a.test",
		"A.test:80",
		"a.test:",
		"[::1]",
		"[::1]:8080",
		"a_b!$&'()*+,;=~",
	} {
		if !ValidAuthority(valid) {
			t.Errorf("%q is said to be invalid", valid)
		}
	}
	for _, invalid := range []string{
		"",
		"a.test:x",
		"a:b:1",
		"[::1]8080",
		"[::1]:x",
		"[::1",
		"::1",
		"[127.0.0.1]",
		"[fe80::1%25eth0]",
		"me@a.test",
		"a%41.test",
		"a.test/",
		"a b",
		"b\u00fccher.test",
		"<a>",
		"{a}",
	} {
		if ValidAuthority(invalid) {
			t.Errorf("%q is said to be valid", invalid)
		}
	}
}

func TestIsHTTP(t *testing.T) {
	for s, want := range map[string]bool{"http": true, "HTTPS": true, "httpx": false} {
		if IsHTTP(s) != want {
			t.Errorf("%q: want %v", s, want)
		}
	}
}

func TestCutEncoded(t *testing.T) {
	const s = "a%41%"
	wants := []string{"", "a", "a", "a", "a%41", s, s}
	for n, want := range wants {
		if got := CutEncoded(s, n); got != want {
			t.Errorf("%d bytes: got %q, want %q", n, got, want)
		}
	}
}
