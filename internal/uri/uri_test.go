package uri

import (
	"slices"
	"testing"
)

func TestAppendEncodedLeavesShortEscapes(t *testing.T) {
	for s, want := range map[string]string{"": "", "%": "%25", "%4": "%254", "%41": "%41", "a%4": "a%254", "%%41": "%25%41"} {
		if got := string(AppendTarget([]byte("x"), s)); got != "x"+want {
			t.Errorf("%q: got %q, want %q", s, got, "x"+want)
		}
	}
	if !slices.Equal(AppendTarget(nil, ""), nil) {
		t.Error("the empty string is not encoded as nothing")
	}
}

func TestValidAuthority(t *testing.T) {
	for s, want := range map[string]bool{
		"": false, "a.test": true, "A.test:80": true, "a.test:": true, "a.test:x": false, "a:b:1": false, "[::1]": true, "[::1]:8080": true,
		"[::1]8080": false, "[::1": false, "::1": false, "[127.0.0.1]": false, "[fe80::1%25eth0]": false, "me@a.test": false, "a%41.test": false,
		"a_b!$&'()*+,;=~": true, "a.test/": false, "a b": false, "b\u00fccher.test": false, "<a>": false, "{a}": false,
	} {
		if got := ValidAuthority(s); got != want {
			t.Errorf("%q: got %v, want %v", s, got, want)
		}
	}
}

func TestHasHTTPScheme(t *testing.T) {
	for s, want := range map[string]bool{
		"http://a.test": true, "HTTPS://": true, "http:/a": false, "httpx://a": false, "://a": false, "": false, "/http://a": false,
	} {
		if got := HasHTTPScheme(s); got != want {
			t.Errorf("%q: got %v, want %v", s, got, want)
		}
	}
}

func TestCutEncoded(t *testing.T) {
	for n, want := range []string{"", "a", "a", "a", "a%41", "a%41b", "a%41b"} {
		if got := string(CutEncoded([]byte("a%41b"), n)); got != want {
			t.Errorf("%d bytes: got %q, want %q", n, got, want)
		}
	}
}

// FuzzAppendTarget encodes any bytes. Only those of a URI are left, and to encode them again changes nothing.
func FuzzAppendTarget(f *testing.F) {
	f.Add("/docs/<b>?x=%41%zz%")
	f.Fuzz(func(t *testing.T, s string) {
		once := AppendTarget(nil, s)
		for i, c := range once {
			if !targetBytes[c] && !(c == '%' && i+2 < len(once) && isHex(once[i+1]) && isHex(once[i+2])) {
				t.Errorf("%q has %q at %d", once, c, i)
			}
		}
		if twice := AppendTarget(nil, string(once)); !slices.Equal(once, twice) {
			t.Errorf("%q is encoded again as %q", once, twice)
		}
	})
}
