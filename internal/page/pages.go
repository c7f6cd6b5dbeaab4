// Package page makes the 404 page: its five fields, from what was asked and from the options, and the representations in
// which it is sent.
//
// Every unknown address has the same page. It names the address that was asked for, and in its message the missing page
// of the application that it speaks for:
//
//	HTTP ERROR 404 No endpoint GET /app/missing.html.
//	URI: https://www.example.com/docs/apis?x=1
//	STATUS: 404
//	MESSAGE: No endpoint GET /app/missing.html.
//	Powered by Caddy v2.11.9
package page

import (
	"fmt"
	"net/http"

	"go.uber.org/zap"

	"github.com/caddy-notfound/notfound/internal/accept"
	"github.com/caddy-notfound/notfound/internal/uri"
)

// Options are what pages are made of, apart from what is asked.
type Options struct {
	ContextPath Text // of the application that the page speaks for; empty: the root context
	BaseURL     Text // what the address begins with; empty: the origin that the client addressed
	URI         Text // the address that was asked for, see Asked; empty: the request target
	Footer      Text // the last line; empty, or blank for a request: Server

	// Server is the footer where there is no other: a line that names the server and its version.
	Server string

	// Formats are the names of the representations on offer, the preferred one first; none: all of them.
	Formats []string

	// Template is the file of an html/template for the HTML representation; empty: the built-in page. It is tried with
	// the placeholders of Sample. Logger takes what is wrong with it later.
	Template string
	Sample   Placeholders
	Logger   *zap.Logger
}

// Pages makes pages.
type Pages struct {
	contextPath, baseURL, uri, footer Text
	server                            string
	offered                           []*format
	offers                            accept.Offers
	template                          *fileTemplate // nil: the built-in page
}

// Parse checks options, and reads the template.
func Parse(o Options) (*Pages, error) {
	p := &Pages{server: cleanLine(o.Server)}
	for _, text := range []struct {
		name  string
		value Text
		check func(Text) error
		to    *Text
		clean func(string) string
	}{
		{"context_path", o.ContextPath, CheckContextPath, &p.contextPath, func(s string) string { return string(appendContextPath(nil, s)) }},
		{"base_url", o.BaseURL, CheckBaseURL, &p.baseURL, cleanBaseURL},
		{"uri", o.URI, CheckURI, &p.uri, func(s string) string { return s }},
		{"footer", o.Footer, CheckFooter, &p.footer, cleanLine},
	} {
		if text.value.literals == nil {
			*text.to = Literal("")
			continue
		}
		if err := text.check(text.value); err != nil {
			return nil, fmt.Errorf("%s: %w", text.name, err)
		}
		*text.to = text.value
		if text.value.isLiteral() {
			*text.to = Literal(text.clean(text.value.literals[0]))
		}
	}

	var err error
	if p.offered, err = formatsOf(o.Formats); err != nil {
		return nil, fmt.Errorf("formats: %w", err)
	}
	for _, f := range p.offered {
		p.offers = append(p.offers, f.offer)
	}
	if err := CheckTemplate(o.Template, o.Formats); err != nil {
		return nil, fmt.Errorf("template: %w", err)
	}
	if o.Template != "" {
		if p.template, err = loadTemplate(o.Template, p.samplePage(), o.Sample, o.Logger); err != nil {
			return nil, fmt.Errorf("template: %w", err)
		}
	}
	return p, nil
}

// Varies reports whether different clients may get different representations.
func (p *Pages) Varies() bool { return len(p.offered) > 1 }

// samplePage returns a page to try a template with.
func (p *Pages) samplePage() *Page {
	return &Page{
		URI:     []byte("https://www.example.com/docs/apis?x=1"),
		Message: []byte("No endpoint GET " + missingPage + "."),
		Footer:  p.server,
	}
}

// Make makes the page for what was asked. It is to be freed.
func (p *Pages) Make(asked Asked, placeholders Placeholders) *Page {
	pg := pool.Get().(*Page)
	pg.URI = p.AppendURI(pg.URI[:0], asked, placeholders)

	pg.Message = append(pg.Message[:0], "No endpoint "...)
	if asked.Method == http.MethodHead {
		asked.Method = http.MethodGet // HEAD has the header of what GET would get (RFC 9110, section 9.3.2)
	}
	pg.Message = uri.AppendEncoded(pg.Message, asked.Method, &tokenBytes)
	pg.Message = append(pg.Message, ' ')
	if p.contextPath.isLiteral() {
		pg.Message = append(pg.Message, p.contextPath.literals[0]...)
	} else {
		pg.Message = appendContextPath(pg.Message, p.contextPath.expand(placeholders))
	}
	pg.Message = append(pg.Message, missingPage+"."...)

	pg.Footer = p.footer.literals[0]
	if !p.footer.isLiteral() {
		pg.Footer = cleanLine(p.footer.expand(placeholders))
	}
	if pg.Footer == "" {
		pg.Footer = p.server
	}
	return pg
}

// tokenBytes are those of a method (RFC 9110, section 5.6.2).
var tokenBytes = uri.BytesOf(uri.Letters + uri.Digits + "!#$%&'*+-.^_`|~")

// ExpandURI returns what the option uri says for a request, as Asked takes it.
func (p *Pages) ExpandURI(placeholders Placeholders) string { return p.uri.expand(placeholders) }

// AppendURI appends the address that a page has for what was asked.
func (p *Pages) AppendURI(b []byte, asked Asked, placeholders Placeholders) []byte {
	baseURL := p.baseURL.literals[0]
	if !p.baseURL.isLiteral() {
		baseURL = cleanBaseURL(p.baseURL.expand(placeholders))
	}
	return appendAddress(b, asked, baseURL)
}

// Represent renders a page in the representation that an Accept field asks for. HTML is rendered by the user's template,
// if there is one.
func (p *Pages) Represent(pg *Page, accept string, placeholders Placeholders) Representation {
	f := p.offered[p.offers.Choose(accept)]
	r := Representation{Format: f.name, ContentType: f.contentType}
	if f.name == "html" {
		if p.template != nil {
			if r.TemplateError = p.template.latest().render(pg, placeholders); r.TemplateError == nil {
				r.Body = pg.body
				return r
			}
		}
		r.Policy = builtInPolicy
	}
	pg.body = f.append(pg.body[:0], pg)
	r.Body = pg.body
	return r
}
