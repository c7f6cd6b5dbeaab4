package notfound

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/caddyserver/caddy/v2"
)

// format is a representation of the page.
type format struct {
	name        string
	contentType string

	// The media type that is sent; an alias, which counts only where a client names it; and a structured suffix
	// by which a client nearly names it (RFC 6839).
	mediaType, alias, suffix string

	append func(b []byte, p *page) []byte
}

// formats are the representations, in the default order of preference.
var formats = [...]format{
	{"text", "text/plain; charset=utf-8", "text/plain", "", "", appendText},
	{"html", "text/html; charset=utf-8", "text/html", "application/xhtml+xml", "", appendHTML},
	{"markdown", "text/markdown; charset=utf-8", "text/markdown", "text/x-markdown", "", appendMarkdown},
	{"json", "application/json", "application/json", "text/json", "+json", appendJSON},
	{"problem", "application/problem+json", "application/problem+json", "", "", appendProblem},
	{"xml", "application/xml; charset=utf-8", "application/xml", "text/xml", "+xml", appendXML},
}

// parseFormats finds formats by their names. Without names it returns all of them.
func parseFormats(names []string) (offered []*format, err error) {
	if len(names) == 0 {
		for i := range formats {
			offered = append(offered, &formats[i])
		}
	}
	for _, name := range names {
		i := slices.IndexFunc(formats[:], func(f format) bool { return f.name == name })
		if i < 0 {
			return nil, fmt.Errorf("unknown format %q; the formats are text, html, markdown, json, problem and xml", name)
		}
		f := &formats[i]
		if slices.Contains(offered, f) {
			return nil, fmt.Errorf("%s is given twice; give each format once", name)
		}
		offered = append(offered, f)
	}
	return offered, nil
}

// render fills in the body of a page, and returns the Content-Security-Policy that it needs. HTML is rendered by
// the user's template, if there is one. If that fails, the page is the built-in one, and the error says why.
func render(p *page, f *format, t *pageTemplate, repl *caddy.Replacer) (csp string, templateErr error) {
	if f.name == "html" {
		if t != nil {
			if templateErr = t.render(p, repl); templateErr == nil {
				return "", nil
			}
		}
		csp = builtinCSP
	}
	p.body = f.append(p.body[:0], p)
	return csp, templateErr
}

func appendText(b []byte, p *page) []byte {
	b = append(b, heading...)
	b = append(b, p.message...)
	b = append(b, "\nURI: "...)
	b = append(b, p.uri...)
	b = append(b, "\nSTATUS: 404\nMESSAGE: "...)
	b = append(b, p.message...)
	b = append(b, '\n')
	b = append(b, p.footer...)
	return append(b, '\n')
}

// The built-in HTML page, whose actions are single fields in the text of elements.
var (
	//go:embed page.html
	builtinSource string

	builtinParts = splitBuiltin(builtinSource)
	builtinCSP   = "default-src 'none'; style-src " + styleHash(builtinSource) + "; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

// builtinPart is a field of the page and the literal after it.
type builtinPart struct{ field, literal string }

func splitBuiltin(source string) (parts []builtinPart) {
	for i, part := range strings.Split(source, "{{.") {
		field, literal, _ := strings.Cut(part, "}}")
		if i == 0 {
			field, literal = "", part
		}
		parts = append(parts, builtinPart{field, literal})
	}
	return parts
}

// styleHash returns the source expression that allows the style element of a page (CSP Level 3).
func styleHash(source string) string {
	_, style, _ := strings.Cut(source, "<style>")
	style, _, _ = strings.Cut(style, "</style>")
	sum := sha256.Sum256([]byte(style))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func appendHTML(b []byte, p *page) []byte {
	for _, part := range builtinParts {
		switch part.field {
		case "URI":
			b = appendEscaped(b, p.uri)
		case "Status":
			b = append(b, "404"...)
		case "Message":
			b = appendEscaped(b, p.message)
		case "Footer":
			b = appendEscaped(b, p.footer)
		}
		b = append(b, part.literal...)
	}
	return b
}

// appendMarkdown appends the page as CommonMark.
func appendMarkdown(b []byte, p *page) []byte {
	b = append(b, "# "+heading...)
	b = appendMarkdownEscaped(b, p.message)
	b = append(b, "\n\n- URI: "...)
	if canBeAutolink(p.uri) {
		b = append(b, '<')
		b = append(b, p.uri...)
		b = append(b, '>')
	} else {
		b = appendMarkdownEscaped(b, p.uri)
	}
	b = append(b, "\n- STATUS: 404\n- MESSAGE: "...)
	b = appendMarkdownEscaped(b, p.message)
	b = append(b, "\n\n"...)
	footer := p.footer
	if c := footer[0]; !(c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z') {
		// what begins a line may begin a list, or another block; a character reference cannot
		b = append(b, "&#"...)
		b = strconv.AppendUint(b, uint64(c), 10)
		b = append(b, ';')
		footer = footer[1:]
	}
	b = appendMarkdownEscaped(b, footer)
	return append(b, '\n')
}

// canBeAutolink reports whether an address can stand as <address> in CommonMark (section 6.5). One that is not of
// the web could be a script. What looks like a character reference is one to some renderers, and not to others.
func canBeAutolink(uri []byte) bool {
	scheme, _, _ := bytes.Cut(uri, []byte("://"))
	return (bytes.EqualFold(scheme, []byte("http")) || bytes.EqualFold(scheme, []byte("https"))) &&
		!(bytes.IndexByte(uri, '&') >= 0 && bytes.IndexByte(uri, ';') >= 0)
}

// appendMarkdownEscaped appends s, a line of text, so that nothing in it is markup, neither in CommonMark nor in what
// is usually added to it: strikethrough, tables, math, emoji, mentions, and links of what only looks like an address.
func appendMarkdownEscaped[T string | []byte](b []byte, s T) []byte {
	for i := range len(s) {
		switch c := s[i]; c {
		case '.':
			if i == 0 || s[i-1]|0x20 != 'w' { // as in www.example.com
				break
			}
			fallthrough
		case '\\', '`', '*', '_', '[', ']', '{', '}', '<', '>', '#', '!', '&', '~', '|', '^', '=', '$', ':', '@':
			b = append(b, '\\')
		}
		b = append(b, s[i])
	}
	return b
}

func appendJSON(b []byte, p *page) []byte {
	b = append(b, `{"heading":"`+heading...)
	b = append(b, p.message...)
	b = append(b, `","uri":"`...)
	b = append(b, p.uri...)
	b = append(b, `","status":404,"message":"`...)
	b = append(b, p.message...)
	b = append(b, `","footer":"`...)
	b = appendJSONEscaped(b, p.footer)
	return append(b, "\"}\n"...)
}

// appendProblem appends the page as problem details (RFC 9457).
func appendProblem(b []byte, p *page) []byte {
	b = append(b, `{"type":"about:blank","title":"Not Found","status":404,"detail":"`...)
	b = append(b, p.message...)
	b = append(b, `","instance":"`...)
	b = append(b, p.uri...)
	return append(b, "\"}\n"...)
}

func appendXML(b []byte, p *page) []byte {
	b = append(b, `<?xml version="1.0" encoding="UTF-8"?>`+"\n<error><heading>"+heading...)
	b = appendEscaped(b, p.message)
	b = append(b, "</heading><uri>"...)
	b = appendEscaped(b, p.uri)
	b = append(b, "</uri><status>404</status><message>"...)
	b = appendEscaped(b, p.message)
	b = append(b, "</message><footer>"...)
	b = appendEscaped(b, p.footer)
	return append(b, "</footer></error>\n"...)
}

// appendJSONEscaped appends s, a line of text, as it stands in a JSON string.
func appendJSONEscaped(b []byte, s string) []byte {
	for i := range len(s) {
		if s[i] == '"' || s[i] == '\\' {
			b = append(b, '\\')
		}
		b = append(b, s[i])
	}
	return b
}

// appendEscaped appends s, a line of text, as it stands in the text of HTML and XML.
func appendEscaped[T string | []byte](b []byte, s T) []byte {
	done := 0
	for i := range len(s) {
		var entity string
		switch s[i] {
		case '&':
			entity = "&amp;"
		case '<':
			entity = "&lt;"
		case '>':
			entity = "&gt;"
		case '"':
			entity = "&#34;"
		case '\'':
			entity = "&#39;"
		default:
			continue
		}
		b = append(b, s[done:i]...)
		b = append(b, entity...)
		done = i + 1
	}
	return append(b, s[done:]...)
}
