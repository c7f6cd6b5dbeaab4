// Package page makes the five fields of the 404 page, from the request and the options. Package represent renders them.
package page

import (
	"cmp"
	"fmt"
	"net/http"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-notfound/notfound/internal/uri"
)

// Options are the options of Handler that the page shows. A value that the option's check would refuse is made safe.
type Options struct {
	Message     string
	ContextPath string
	BaseURL     string
	URI         string
	Footer      string

	DefaultFooter string // names the server and its version
}

// Page is a page for one request.
//
// The fields are clean, whatever a client sent: Heading, Message and Footer are one line of valid UTF-8 without control
// characters, and URI contains only bytes that a URI may contain.
type Page struct {
	Heading string
	URI     string
	Status  int
	Message string
	Footer  string
}

// Maker makes pages.
type Maker struct {
	message, contextPath, baseURL, uri, footer text
	headingOfGET                               string // empty: it depends on the request
	defaultFooter                              string
}

// NewMaker returns a maker of a handler's pages.
func NewMaker(o Options) *Maker {
	m := &Maker{
		message:       newText(o.Message, CleanLine),
		contextPath:   newText(o.ContextPath, cleanContextPath),
		baseURL:       newText(o.BaseURL, cleanBaseURL),
		uri:           newText(o.URI, func(s string) string { return s }), // it is made safe with what was asked
		footer:        newText(o.Footer, CleanLine),
		defaultFooter: o.DefaultFooter,
	}
	switch {
	case m.message.hasPlaceholders() || m.contextPath.hasPlaceholders(): // it depends on the request
	case o.Message == "" && o.ContextPath == "":
		m.headingOfGET = headingAtRoot // the makers of many sites share it
	default:
		m.headingOfGET = m.heading(http.MethodGet, nil)
	}
	return m
}

// tokenBytes are the bytes that a method may contain (RFC 9110, section 5.6.2).
var tokenBytes = uri.BytesOf(uri.Letters + uri.Digits + "!#$%&'*+-.^_`|~")

var headingStart = fmt.Sprintf("HTTP ERROR %d ", http.StatusNotFound)

// headingAtRoot is the heading of a GET with the default options.
var headingAtRoot = new(Maker).heading(http.MethodGet, nil)

// heading returns the heading for a method, with the message. The heading of most requests is precomputed.
func (m *Maker) heading(method string, placeholders *caddy.Replacer) string {
	if method == http.MethodHead {
		method = http.MethodGet // HEAD gets the header that GET would get (RFC 9110, section 9.3.2)
	}
	if method == http.MethodGet && m.headingOfGET != "" {
		return m.headingOfGET
	}
	if message := m.message.expand(placeholders); message != "" {
		return headingStart + message
	}
	// always missing.html, which stands for any missing page of the application
	missing := m.contextPath.expand(placeholders) + "/missing.html"
	return headingStart + "No endpoint " + uri.Encode(method, &tokenBytes) + " " + missing + "."
}

// Make makes the page for what was asked.
func (m *Maker) Make(asked *Asked, placeholders *caddy.Replacer) Page {
	heading := m.heading(asked.Method, placeholders)
	return Page{
		Heading: heading,
		URI:     m.URI(asked, placeholders),
		Status:  http.StatusNotFound,
		Message: heading[len(headingStart):],
		Footer:  cmp.Or(m.footer.expand(placeholders), m.defaultFooter),
	}
}
