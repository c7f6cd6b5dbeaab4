package page

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"github.com/caddy-notfound/notfound/internal/uri"
)

// Text is the value of an option. Its placeholders get their values when a page is made.
type Text struct {
	literals []string // one more than names
	names    []string
}

// Literal returns a text without placeholders.
func Literal(s string) Text { return Text{literals: []string{s}} }

// NewText returns a text that begins and ends with a literal, and has a placeholder after each of the others. So there is
// one literal more than there are names.
func NewText(literals, names []string) Text { return Text{literals, names} }

// Placeholders gives each placeholder of a request its value, as Caddy's Replacer does.
type Placeholders interface {
	// GetString returns the value of a placeholder, whose name has no braces, and whether it is known.
	GetString(name string) (value string, known bool)
}

func (t Text) isLiteral() bool { return len(t.names) == 0 }

// String returns the text as it is written, except for escapes.
func (t Text) String() string {
	s := t.literals[0]
	for i, name := range t.names {
		s += "{" + name + "}" + t.literals[i+1]
	}
	return s
}

// beginning returns what a text begins with; it is empty if that is a placeholder.
func (t Text) beginning() string { return t.literals[0] }

// expand returns the text for a request. An unknown placeholder stays as it is written.
func (t Text) expand(placeholders Placeholders) string {
	var b strings.Builder
	b.WriteString(t.literals[0])
	for i, name := range t.names {
		if value, known := placeholders.GetString(name); known {
			b.WriteString(value)
		} else {
			b.WriteString("{" + name + "}")
		}
		b.WriteString(t.literals[i+1])
	}
	return b.String()
}

// Each option has a check when the config loads, and a cleaning of what its placeholders expand to for a request.
// Where those have no values yet, a check looks at what it can.

// CheckContextPath refuses a context path that does not begin with a slash, or that has bytes which a path cannot have.
func CheckContextPath(t Text) error {
	switch s := t.beginning(); {
	case s != "" && s[0] != '/':
		return fmt.Errorf("%q does not begin with a slash; write it as in %q", t, "/app")
	case !t.isLiteral():
		return nil
	default:
		path := strings.TrimRight(s, "/")
		if encoded := string(appendContextPath(nil, path)); encoded != path {
			return fmt.Errorf("%q has characters that the path of a URL cannot have; percent-encode them, as in %q", s, encoded)
		}
		return nil
	}
}

// appendContextPath appends a context path without the slash at its end, made safe whatever it is.
func appendContextPath(b []byte, s string) []byte {
	s = strings.TrimRight(s, "/")
	if s == "" {
		return b
	}
	if s[0] != '/' {
		b = append(b, '/')
	}
	return uri.AppendPath(b, s)
}

// CheckBaseURL refuses what is not an http or https URL with a host, perhaps a path, and nothing else.
func CheckBaseURL(t Text) error {
	s := t.beginning()
	if !t.isLiteral() {
		if s != "" && !uri.HasHTTPScheme(s) {
			return fmt.Errorf("%q does not begin with http:// or https://", t)
		}
		return nil
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return fmt.Errorf("%q is not a URL: %w; write it as in https://www.example.com", s, err)
	case !uri.HasHTTPScheme(s) || !uri.ValidAuthority(u.Host):
		return fmt.Errorf("%q is not an absolute http or https URL with a host; write it as in https://www.example.com", s)
	case u.User != nil:
		return fmt.Errorf("%q has user information, which every visitor would see; leave it out", u.Redacted())
	case strings.ContainsAny(s, "?#"):
		return fmt.Errorf("%q has a query or a fragment; leave it out", s)
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return fmt.Errorf("%q has the port %s; a port is a number from 1 to 65535", s, port)
		}
	}
	if path := u.EscapedPath(); string(uri.AppendPath(nil, path)) != path || !strings.HasSuffix(s, path) {
		return fmt.Errorf("%q has characters that the path of a URL cannot have; percent-encode them, as in %q", s, u)
	}
	return nil
}

// cleanBaseURL returns a base URL without the slash at its end; it is empty if it cannot be used.
func cleanBaseURL(s string) string {
	if CheckBaseURL(Literal(s)) != nil {
		return ""
	}
	return strings.TrimRight(s, "/")
}

// CheckURI refuses what is neither an http or https URL with a host, nor a path, each perhaps with a query.
func CheckURI(t Text) error {
	s := t.beginning()
	rest := s // after the host
	switch {
	case uri.HasHTTPScheme(s):
		_, rest, _ = strings.Cut(s, "://")
		rest = strings.TrimLeftFunc(rest, func(c rune) bool { return !strings.ContainsRune("/?#", c) })
		if rest == "" && !t.isLiteral() {
			break // a placeholder may go on with the host
		}
		if err := CheckBaseURL(Literal(strings.TrimSuffix(s, rest))); err != nil {
			return err
		}
	case s == "" && !t.isLiteral():
	case !strings.HasPrefix(s, "/"):
		return fmt.Errorf("%q is neither a path nor an absolute http or https URL; write it as in {http.request.header.X-Original-URI}", t)
	}
	for _, literal := range t.literals {
		if strings.Contains(literal, "#") {
			return fmt.Errorf("%q has a fragment, which no client sends; leave it out", t)
		}
	}
	if encoded := string(uri.AppendTarget(nil, rest)); t.isLiteral() && encoded != rest {
		return fmt.Errorf("%q has characters that a URL cannot have; percent-encode them, as in %q", s, strings.TrimSuffix(s, rest)+encoded)
	}
	return nil
}

// CheckFooter refuses what is not one line of text.
func CheckFooter(t Text) error {
	switch s := t.beginning(); {
	case !t.isLiteral():
		return nil
	case cleanLine(s) == "":
		return fmt.Errorf("%q is blank; write one line of text, or leave the option out", s)
	case strings.ContainsFunc(s, isNotLineText):
		return fmt.Errorf("%q is not one line of text; leave out line breaks and control characters", s)
	default:
		return nil
	}
}

// cleanLine makes s one line of printable text, with each run of blanks as one space.
func cleanLine(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || isNotLineText(r)
	}), " ")
}

// isNotLineText reports whether r ends a line, or is a control character or another one that XML cannot hold.
func isNotLineText(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r == '\uFFFE' || r == '\uFFFF'
}
