package page

import "testing"

// TestMistakesAreRefused covers values that break the rule of their option.
func TestMistakesAreRefused(t *testing.T) {
	const notBase = "is not an http or https URL with a host, and without a query or a fragment"
	for _, option := range []struct {
		check    func(string) error
		mistakes map[string]string
	}{
		{CheckContextPath, map[string]string{
			`app`: `"app" is not a path, which begins with a slash; write it as in "/app"`,
			`/my app?x`: `"/my app?x" has characters that are not allowed there; ` +
				`percent-encode them, as in "/my%20app%3Fx"`,
		}},
		{CheckBaseURL, map[string]string{
			`www.example.com`: `"www.example.com" is not an http or https URL with a host, and without a query or a fragment; ` +
				`write it as in https://www.example.com`,
			`ftp://example.com`:             notBase,
			`https:///x`:                    notBase,
			`https://:8443`:                 notBase,
			`https://me:secret@example.com`: `"https://me:xxxxx@example.com" has user information`,
			`https://example.com/?`:         notBase,
			`https://example.com/#x`:        notBase,
			`https://example.com/my app`:    `percent-encode them, as in "https://example.com/my%20app"`,
			`https://example.com/[x]`:       `percent-encode them, as in "https://example.com/%5Bx%5D"`,
			`https://example.com:x`:         notBase,
		}},
		{CheckURI, map[string]string{
			`ftp://a.test/x`: `"ftp://a.test/x" is neither a path nor an absolute http or https URL; ` +
				`write it as in {http.request.header.X-Original-URI}`,
			`https:///x`: notBase,
			`https://me:secret@example.com#x`: `"https://me:xxxxx@example.com" has user information, ` +
				`which every visitor would see; leave it out`,
			`/x#top`:                       `"/x#top" has a fragment, which no client sends; leave it out`,
			`https://example.com/my app?x`: `percent-encode them, as in "https://example.com/my%20app?x"`,
			`/<b>`:                         `percent-encode them, as in "/%3Cb%3E"`,
		}},
		{CheckLine, map[string]string{
			" \t":          `" \t" is blank; write one line of text, or leave the option out`,
			"one\ntwo":     `"one\ntwo" is not one line of text; leave out line breaks and control characters`,
			"one\u2028two": `is not one line of text`,
		}},
	} {
		for value, want := range option.mistakes {
			wantError(t, value, option.check(value), want)
		}
	}
}
