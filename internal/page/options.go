package page

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"unicode"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-notfound/notfound/internal/uri"
)

// text is the value of an option.
type text struct {
	value string              // clean, unless it has placeholders
	clean func(string) string // cleans the expanded value
}

func newText(value string, clean func(string) string) text {
	t := text{value, clean}
	if !t.hasPlaceholders() {
		t.value = clean(value)
	}
	return t
}

func (t *text) hasPlaceholders() bool { return strings.Contains(t.value, "{") }

// expand returns the text for a request. Unknown placeholders stay as written, and expanded ones are not expanded
// again.
func (t *text) expand(placeholders *caddy.Replacer) string {
	if !t.hasPlaceholders() {
		return t.value
	}
	return t.clean(placeholders.ReplaceKnown(t.value, ""))
}

// placeholderOfBody matches a placeholder of the body of a request.
var placeholderOfBody = regexp.MustCompile(`\{http\.request\.body(_base64)?\}`)

// CheckNoBody refuses a value that shows the body of a request. Caddy would read the body when the page is made, while
// an upstream's transport may still read it.
func CheckNoBody(value string) error {
	if name := placeholderOfBody.FindString(value); name != "" {
		return fmt.Errorf("%q has %s, which may still be on its way to an upstream when the page is made; leave it out",
			value, name)
	}
	return nil
}

// placeholderOfError matches a placeholder of the error that a page answers.
var placeholderOfError = regexp.MustCompile(`\{http\.error[.}]`)

// CheckNoError refuses a value that would show an error, which only the texts of a page can show.
func CheckNoError(value string) error {
	if placeholderOfError.MatchString(value) {
		return fmt.Errorf("%q has a placeholder of an error, which is for the message, the footer or a template; "+
			"leave it out", value)
	}
	return nil
}

// The checks refuse a bad value of an option, in which braces are plain characters. The cleaning functions make an
// expanded value safe.

// CheckContextPath refuses a context path without a leading slash, or with bytes that a path cannot have.
func CheckContextPath(s string) error {
	if s != "" && s[0] != '/' || strings.Contains(s, "*") {
		return fmt.Errorf("%q is not a path, which begins with a slash; write it as in %q", s, "/app")
	}
	if encoded := uri.EncodePath(s); encoded != s {
		return errBytes(s, encoded)
	}
	return nil
}

func errBytes(s, encoded string) error {
	return fmt.Errorf("%q has characters that are not allowed there; percent-encode them, as in %q", s, encoded)
}

// cleanContextPath turns any text into a context path, without a trailing slash.
func cleanContextPath(s string) string {
	s = uri.EncodePath(strings.TrimRight(s, "/"))
	if s != "" && s[0] != '/' {
		s = "/" + s
	}
	return s
}

// CheckBaseURL accepts an http or https URL with a host, perhaps a path, and nothing else.
func CheckBaseURL(s string) error {
	u, err := url.Parse(s)
	if err == nil && u.User != nil {
		return fmt.Errorf("%q has user information, which every visitor would see; leave it out", u.Redacted())
	}
	isBase := err == nil && uri.IsHTTP(u.Scheme) && uri.ValidAuthority(u.Host)
	if !isBase || strings.ContainsAny(s, "?#") {
		return fmt.Errorf("%q is not an http or https URL with a host, and without a query or a fragment; "+
			"write it as in https://www.example.com", s)
	}
	path := u.EscapedPath()
	encoded := uri.EncodePath(path)
	if encoded != path || !strings.HasSuffix(s, path) {
		return errBytes(s, u.Scheme+"://"+u.Host+encoded)
	}
	return nil
}

// cleanBaseURL returns a base URL without a trailing slash, or nothing if it is invalid.
func cleanBaseURL(s string) string {
	if CheckBaseURL(s) != nil {
		return ""
	}
	return strings.TrimRight(s, "/")
}

// CheckURI accepts an http or https URL with a host, or a path, each perhaps with a query.
func CheckURI(s string) error {
	target := s
	if scheme, _, rest, ok := uri.Split(s); ok && uri.IsHTTP(scheme) {
		target = rest
		if err := CheckBaseURL(strings.TrimSuffix(s, rest)); err != nil {
			return err
		}
	} else if !strings.HasPrefix(s, "/") {
		return fmt.Errorf("%q is neither a path nor an absolute http or https URL; "+
			"write it as in {http.request.header.X-Original-URI}", s)
	}
	if strings.Contains(s, "#") {
		return fmt.Errorf("%q has a fragment, which no client sends; leave it out", s)
	}
	if encoded := uri.EncodeTarget(target); encoded != target {
		return errBytes(s, strings.TrimSuffix(s, target)+encoded)
	}
	return nil
}

// CheckLine refuses a message or a footer that is not one line of text.
func CheckLine(s string) error {
	switch {
	case CleanLine(s) == "":
		return fmt.Errorf("%q is blank; write one line of text, or leave the option out", s)
	case strings.ContainsFunc(s, isNotLineText):
		return fmt.Errorf("%q is not one line of text; leave out line breaks and control characters", s)
	default:
		return nil
	}
}

// CleanLine makes s one line of printable text, with each run of blanks as one space.
func CleanLine(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || isNotLineText(r)
	}), " ")
}

// isNotLineText reports whether r ends a line, or is a control character or another one that XML cannot hold.
func isNotLineText(r rune) bool {
	return unicode.IsControl(r) || strings.ContainsRune("\u2028\u2029\uFFFE\uFFFF", r)
}
