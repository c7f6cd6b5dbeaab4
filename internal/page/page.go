// Package page makes the 404 page: its five fields, from the request and the options, and its representations. They are
// those of docs/representations.md.
package page

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"go.uber.org/zap"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-notfound/notfound/internal/accept"
	"github.com/caddy-notfound/notfound/internal/uri"
)

// Options are those of the handler. Message, ContextPath, BaseURL, URI and Footer may have placeholders. A value that
// the option's check would refuse is made safe.
type Options struct {
	Message     string // empty, or blank for a request: the one that names the context path
	ContextPath string // of the application that the page speaks for; empty: the root context
	BaseURL     string // what the address begins with; empty: the origin that the client addressed
	URI         string // the address that was asked for, see Asked; empty: the request target
	Footer      string // the last line; empty, or blank for a request: Server

	Server    string            // the default footer, which names the server and its version
	Formats   []string          // the names of the representations on offer, the preferred one first; none: all of them
	Templates map[string]string // the files of templates by format; none: the built-in page
	SiteFiles map[string]string // instead, files of pages, whose paths have placeholders
	Logger    *zap.Logger       // says what becomes of a template
	Config    any               // is the same for the handlers of one config; nil: no template may have a mistake

	// Sample and FullName are for trying a template, and may be kept: the placeholders of a request, and the full name
	// of one. It is the same name, unless it is a shorthand of the Caddyfile.
	Sample   func() Placeholders
	FullName func(name string) string
}

// Placeholders gives the placeholders of a request their values. Caddy's Replacer does.
type Placeholders interface {
	// GetString returns the value of a placeholder, whose name has no braces, and whether it is known.
	GetString(name string) (value string, known bool)

	// ReplaceKnown returns the input with each known placeholder replaced by its value, or by empty if that is empty.
	ReplaceKnown(input, empty string) string

	// ReplaceFunc returns the input with each placeholder replaced by what f makes of its value, or the error of f.
	ReplaceFunc(input string, f caddy.ReplacementFunc) (string, error)
}

// Page is a page for one request. It is the data of a template, too.
//
// The fields are clean, whatever a client sent: Heading, Message and Footer are one line of valid UTF-8 without control
// characters, and URI has no bytes but those of a URI.
type Page struct {
	Heading string
	URI     string
	Status  int
	Message string
	Footer  string

	placeholders Placeholders
	escaped      *format // whose escaping the texts have; nil: none
}

// Placeholder returns the value of one of Caddy's placeholders, for a template. An unknown one is empty. Braces
// around the name are dropped.
func (pg Page) Placeholder(name string) string {
	name = strings.TrimSuffix(strings.TrimPrefix(name, "{"), "}")
	value, _ := pg.placeholders.GetString(name)
	value = strings.ToValidUTF8(value, "\uFFFD")
	if pg.escaped == nil {
		return value
	}
	if !pg.escaped.breaks {
		value = cleanLine(value)
	}
	return pg.escaped.escape.of(value)
}

// with returns the page with other texts and another address.
func (pg Page) with(text, uri func(string) string) Page {
	pg.Heading = text(pg.Heading)
	pg.URI = uri(pg.URI)
	pg.Message = text(pg.Message)
	pg.Footer = text(pg.Footer)
	return pg
}

// Maker makes pages.
type Maker struct {
	message, contextPath, baseURL, uri, footer text
	server                                     string
	offered                                    []*format
	offers                                     accept.Offers
	renderers                                  []renderer      // of the offered formats; nil: the built-in page
	templates                                  []*fileTemplate // of some of them
	showsRequestID                             bool            // by an option or a path; a template may as well
	logger                                     *zap.Logger
}

// renderer writes a page of the user's and returns true, unless the page cannot be sent.
type renderer func(body *bytes.Buffer, pg Page, logger *zap.Logger) bool

// NewMaker checks the formats of the options, and takes the templates. The caller closes the Maker.
func NewMaker(o Options) (*Maker, error) {
	m := &Maker{
		message:     newText(o.Message, cleanLine),
		contextPath: newText(o.ContextPath, cleanContextPath),
		baseURL:     newText(o.BaseURL, cleanBaseURL),
		uri:         newText(o.URI, func(s string) string { return s }), // it is made safe with what was asked
		footer:      newText(o.Footer, cleanLine),
		server:      o.Server,

		showsRequestID: strings.Contains(o.Message+o.ContextPath+o.BaseURL+o.URI+o.Footer, requestID),
		logger:         o.Logger,
	}
	var err error
	if m.offered, err = formatsOf(o.Formats); err != nil {
		return nil, fmt.Errorf("formats: %w", err)
	}
	for _, format := range m.offered {
		var r renderer
		if path := o.SiteFiles[format.name]; path != "" {
			site := &siteFile{
				path:   path,
				format: format,
			}
			r = site.render
			m.showsRequestID = m.showsRequestID || strings.Contains(path, requestID)
		}
		if file := o.Templates[format.name]; file != "" {
			t, err := takeTemplate(file, format, &o)
			if err != nil {
				m.Close()
				return nil, fmt.Errorf("template: %w", err)
			}
			r = t.render
			m.templates = append(m.templates, t)
		}
		m.offers = append(m.offers, format.offer)
		m.renderers = append(m.renderers, r)
	}
	return m, nil
}

// Close gives the templates back. Pages that are still made go on using them.
func (m *Maker) Close() {
	for _, t := range m.templates {
		_, _ = pool.Delete(t.key) // Destruct gives no error
	}
}

// requestID is the placeholder that Caddy writes to the variables of a request when it is first expanded.
const requestID = "http.request.uuid"

// ExpandRequestID expands {http.request.uuid} if a page may show it. It is called before the next handler runs: a
// dial to an upstream may outlive the response, and reads the variables meanwhile.
func (m *Maker) ExpandRequestID(placeholders Placeholders) {
	if m.showsRequestID || slices.ContainsFunc(m.templates, (*fileTemplate).showsRequestID) {
		placeholders.GetString(requestID)
	}
}

// tokenBytes are those of a method (RFC 9110, section 5.6.2).
var tokenBytes = uri.BytesOf(uri.Letters + uri.Digits + "!#$%&'*+-.^_`|~")

var headingStart = fmt.Sprintf("HTTP ERROR %d ", http.StatusNotFound)

// heading returns the heading for a method, with the message.
func (m *Maker) heading(method string, placeholders Placeholders) string {
	if message := m.message.of(placeholders); message != "" {
		return headingStart + message
	}
	if method == http.MethodHead {
		method = http.MethodGet // HEAD has the header of what GET would get (RFC 9110, section 9.3.2)
	}
	// missing.html for every unknown address: the message speaks for the application
	missing := m.contextPath.of(placeholders) + "/missing.html"
	return headingStart + "No endpoint " + uri.Encode(method, &tokenBytes) + " " + missing + "."
}

// Make makes the page for what was asked.
func (m *Maker) Make(asked *Asked, placeholders Placeholders) Page {
	heading := m.heading(asked.Method, placeholders)
	return Page{
		Heading:      heading,
		URI:          m.URI(asked, placeholders),
		Status:       http.StatusNotFound,
		Message:      heading[len(headingStart):],
		Footer:       cmp.Or(m.footer.of(placeholders), m.server),
		placeholders: placeholders,
	}
}

// Representation is a page as it is sent.
type Representation struct {
	Format      string // its name
	ContentType string
	Body        *bytes.Buffer // until it is freed

	policy string // the Content-Security-Policy that it needs; empty: none
	varies bool   // other clients may get another representation
}

// bodies are reused: the built-in HTML page is longer than everything else that a request allocates.
var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// Free releases the body for another page. One that grew for a very long address is left to the garbage collector.
func (r *Representation) Free() {
	if r.Body.Cap() <= 64<<10 {
		r.Body.Reset()
		bodies.Put(r.Body)
	}
}

// Represent renders a page in the representation that an Accept field asks for, by the user's file, if there is one
// that can be used. The caller frees it.
func (m *Maker) Represent(pg *Page, accept string) Representation {
	i := m.offers.Choose(accept)
	format := m.offered[i]
	r := Representation{
		Format:      format.name,
		ContentType: format.contentType,
		Body:        bodies.Get().(*bytes.Buffer),
		varies:      len(m.offered) > 1,
	}
	if render := m.renderers[i]; render != nil && render(r.Body, *pg, m.logger) {
		return r
	}
	r.policy = format.policy
	format.write(r.Body, pg)
	return r
}
