package notfound

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"unicode"

	"github.com/caddyserver/caddy/v2"
)

// page is the 404 page: its heading, URI, STATUS, MESSAGE and footer. The heading is the message after
// "HTTP ERROR 404 ", and the status is always 404.
//
// The fields are clean, whatever a client sent: uri and message are printable ASCII without `"`, `<`, `>`, `\`
// and braces, and footer is one line of valid UTF-8 without control characters. Pages are reused.
type page struct {
	method       string // the client's own
	uri, message []byte
	footer       string

	body []byte // once rendered
}

// heading precedes the message in the first line.
const heading = "HTTP ERROR 404 "

// missingPage is the path, below the context path, that the message names for every unknown address.
const missingPage = "/missing.html"

var pagePool = sync.Pool{New: func() any { return new(page) }}

// pageOptions are the options that the page is made of.
type pageOptions struct{ contextPath, baseURL, footer expandable }

// newPage makes the page for a request.
func (o *pageOptions) newPage(r *clientRequest) *page {
	method, target := r.original()

	p := pagePool.Get().(*page)
	p.method = method
	p.uri = r.appendAddress(p.uri[:0], method, target, o.expandBaseURL(r.replacer))

	p.message = append(p.message[:0], "No endpoint "...)
	if method == http.MethodHead {
		method = http.MethodGet // HEAD has the header of what GET would get (RFC 9110, section 9.3.2)
	}
	p.message = appendEncoded(p.message, method, &tokenBytes)
	p.message = append(p.message, ' ')
	if o.contextPath.perRequest {
		p.message = appendContextPath(p.message, o.contextPath.expand(r.replacer))
	} else {
		p.message = append(p.message, o.contextPath.value...)
	}
	p.message = append(p.message, missingPage+"."...)

	p.footer = o.footer.value
	if o.footer.perRequest {
		if p.footer = cleanLine(o.footer.expand(r.replacer)); p.footer == "" {
			p.footer = defaultFooter()
		}
	}
	return p
}

// free gives the page back for another request. One that grew over a very long address is left to the garbage
// collector.
func (p *page) free() {
	const maxReused = 64 << 10
	if cap(p.uri)+cap(p.message)+cap(p.body) <= maxReused {
		pagePool.Put(p)
	}
}

// expandBaseURL returns the base URL for a request; it is empty if there is none that could be used.
func (o *pageOptions) expandBaseURL(repl *caddy.Replacer) string {
	if !o.baseURL.perRequest {
		return o.baseURL.value
	}
	baseURL, err := parseBaseURL(expandable{value: o.baseURL.expand(repl)})
	if err != nil {
		return ""
	}
	return baseURL
}

// parseContextPath checks a context path, and returns it without the slash at its end. If it has placeholders,
// only its beginning is checked; the rest is made safe for each request.
func parseContextPath(e expandable) (string, error) {
	s := e.value
	if s != "" && s[0] != '/' && !(e.perRequest && s[0] == '{') {
		return "", fmt.Errorf("%q does not begin with a slash; write it as in %q", s, "/app")
	}
	if e.perRequest {
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

// defaultFooter names the server and its version.
func defaultFooter() string {
	version, _ := caddy.Version()
	return cleanLine("Powered by Caddy " + version)
}

// parseFooter checks a footer, and returns it with each run of blanks as one space. If it has placeholders, it is
// made safe for each request.
func parseFooter(e expandable) (string, error) {
	if e.perRequest {
		return e.value, nil
	}
	footer := cleanLine(e.value)
	switch {
	case footer == "":
		return "", fmt.Errorf("%q is blank; write one line of text, or leave the option out", e.value)
	case strings.ContainsFunc(e.value, isNotLineText):
		return "", fmt.Errorf("%q is not one line of text; leave out line breaks and control characters", e.value)
	}
	return footer, nil
}

// cleanLine makes s one line of printable text.
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
