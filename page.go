package notfound

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"unicode"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// page is the 404 page: its heading, URI, STATUS, MESSAGE and footer. The heading is the message behind
// "HTTP ERROR 404 ", and the status is always 404.
//
// Whatever a client sent, the fields are clean: uri and message are printable ASCII without `"`, `<`,
// `>`, `\` and braces, and the footer is one line of valid UTF-8 without control characters. Pages are reused.
type page struct {
	method       string // the client's own
	uri, message []byte
	footer       string

	body []byte // the representation, once rendered
}

// heading precedes the message in the first line.
const heading = "HTTP ERROR 404 "

// missingPage is the path, below the context path, that the message names for every unknown address.
const missingPage = "/missing.html"

var pagePool = sync.Pool{New: func() any { return new(page) }}

// newPage makes the page for a request. sent is what the client sent, and trusted tells whether it is a trusted
// proxy.
func (h *Handler) newPage(r *http.Request, sent *received, trusted bool, repl *caddy.Replacer) *page {
	method, target := r.Method, r.RequestURI
	if orig, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok {
		method, target = orig.Method, orig.RequestURI
	}

	p := pagePool.Get().(*page)
	p.method = method
	p.uri = appendAddress(p.uri[:0], method, target, h.base(r, sent, trusted, repl))

	p.message = append(p.message[:0], "No endpoint "...)
	if method == http.MethodHead {
		method = http.MethodGet // a HEAD response has the header of what GET would get (RFC 9110, section 9.3.2)
	}
	p.message = appendEncoded(p.message, method, &tokenBytes)
	p.message = append(p.message, ' ')
	if h.contextPath.perRequest {
		p.message = appendContextPath(p.message, h.contextPath.resolve(repl))
	} else {
		p.message = append(p.message, h.contextPath.value...)
	}
	p.message = append(p.message, missingPage+"."...)

	p.footer = h.footer.value
	if h.footer.perRequest {
		if p.footer = cleanLine(h.footer.resolve(repl)); p.footer == "" {
			p.footer = defaultFooter()
		}
	}
	return p
}

// free gives the page back for another request. One that grew over a very long address is left to the
// garbage collector.
func (p *page) free() {
	const maxReused = 64 << 10
	if cap(p.uri)+cap(p.message)+cap(p.body) <= maxReused {
		pagePool.Put(p)
	}
}

// text is a configured text that may have placeholders.
type text struct {
	value      string
	perRequest bool // placeholders are left, to be replaced for each request
}

// literal is a text as it is written.
func literal(s string) text {
	return text{s, strings.Contains(s, "{") && strings.Contains(s, "}")}
}

// newText replaces the global placeholders of s. The time, though global, is left to each request.
func newText(s string) text {
	// escaped braces lose their backslash when placeholders are replaced, so that happens only once
	if strings.Contains(s, `\{`) || strings.Contains(s, `\}`) {
		return text{s, true}
	}
	repl := caddy.NewReplacer()
	value, err := repl.ReplaceFunc(s, func(name string, value any) (any, error) {
		if _, known := repl.Get(name); !known || strings.HasPrefix(name, "time.") {
			return "{" + name + "}", nil
		}
		return value, nil
	})
	if err != nil { // braces without end
		return text{s, false}
	}
	return literal(value)
}

// resolve gives the text for a request. An unknown placeholder stays as it is written.
func (t text) resolve(repl *caddy.Replacer) string {
	return repl.ReplaceKnown(t.value, "")
}

// defaultFooter names the server and its version.
func defaultFooter() string {
	version, _ := caddy.Version()
	return cleanLine("Powered by Caddy " + version)
}

// parseFooter checks a footer, and returns it without blanks around it and in a row. One with placeholders is made safe
// for each request.
func parseFooter(t text) (string, error) {
	if t.perRequest {
		return t.value, nil
	}
	footer := cleanLine(t.value)
	switch {
	case footer == "":
		return "", fmt.Errorf("%q is blank; write one line of text, or leave the option out", t.value)
	case strings.ContainsFunc(t.value, isNotLineText):
		return "", fmt.Errorf("%q is not one line of text; leave out line breaks and control characters", t.value)
	}
	return footer, nil
}

// cleanLine makes one line of printable text of s.
func cleanLine(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || isNotLineText(r)
	}), " ")
}

// isNotLineText reports whether r ends a line, or is a control character or another that XML cannot hold.
func isNotLineText(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r == '\uFFFE' || r == '\uFFFF'
}

// parseContextPath checks a context path, and returns it without the slash at its end. Of one with placeholders it sees
// only how it begins; the rest is made safe for each request.
func parseContextPath(t text) (string, error) {
	s := t.value
	if s != "" && s[0] != '/' && !(t.perRequest && s[0] == '{') {
		return "", fmt.Errorf("%q does not begin with a slash; write it as in %q", s, "/app")
	}
	if t.perRequest {
		return s, nil
	}
	path := strings.TrimRight(s, "/")
	if encoded := string(appendContextPath(nil, path)); encoded != path {
		return "", fmt.Errorf("%q has characters that the path of a URL cannot have; percent-encode them, as in %q", s, encoded)
	}
	return path, nil
}

// appendContextPath appends a context path, made safe whatever s is.
func appendContextPath(b []byte, s string) []byte {
	s = strings.TrimRight(s, "/")
	if s == "" {
		return b
	}
	if s[0] != '/' {
		b = append(b, '/')
	}
	return appendEncoded(b, s, &pathBytes)
}
