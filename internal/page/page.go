// Package page makes the 404 page: its five fields, from the request and the options, and its representations. They are
// those of docs/representations.md. A representation is a user's file, or else built in. Package userfile has the
// files: a kept one is the page, or a template of it, and a site's own one is sent as it is.
package page

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/caddy-notfound/notfound/internal/accept"
	"github.com/caddy-notfound/notfound/internal/uri"
	"github.com/caddy-notfound/notfound/internal/userfile"
)

// Options are those of the handler. Message, ContextPath, BaseURL, URI and Footer may have placeholders. A value that
// the option's check would refuse is made safe.
type Options struct {
	Message     string // empty, or blank for a request: the one that names the context path
	ContextPath string // of the application that the page speaks for; empty: the root context
	BaseURL     string // what the address begins with; empty: the origin that the client addressed
	URI         string // the address that was asked for, see Asked; empty: the request target
	Footer      string // the last line; empty, or blank for a request: DefaultFooter

	DefaultFooter string              // names the server and its version
	Formats       []string            // the names of the representations on offer, the preferred one first; none: all of them
	Templates     map[string][]string // the user's files by format, of which the first that can be sent is the page
	Logger        *zap.Logger         // says why a file cannot be sent

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

	userfile.Placeholders // for the path of a file
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
	if showsBody(name) { // which a template has made of parts, and the check has not seen
		return ""
	}
	value, _ := pg.placeholders.GetString(name)
	value = strings.ToValidUTF8(value, "\uFFFD")
	if pg.escaped == nil {
		return value
	}
	if !pg.escaped.mayHaveBreaks {
		value = cleanLine(value)
	}
	return pg.escaped.escape.escaped(value)
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
	headingOfGET                               string // empty: it depends on the request
	defaultFooter                              string
	offered                                    []*format
	offers                                     accept.Offers
	rows                                       []row // one for each format that has files
	mistakesOfSites                            userfile.OnceAMinute
	showsRequestID                             bool // by an option; a kept file may as well
	logger                                     *zap.Logger
}

// NewMaker checks the formats of the options and the placeholders in the paths of files, and reads the kept files. A
// mistake in one is logged, and stops no site: another page is sent until the file can be used.
func NewMaker(o Options) (*Maker, error) {
	m := &Maker{
		message:       newText(o.Message, cleanLine),
		contextPath:   newText(o.ContextPath, cleanContextPath),
		baseURL:       newText(o.BaseURL, cleanBaseURL),
		uri:           newText(o.URI, func(s string) string { return s }), // it is made safe with what was asked
		footer:        newText(o.Footer, cleanLine),
		defaultFooter: o.DefaultFooter,

		showsRequestID: o.showsRequestID(),
		logger:         o.Logger,
	}
	switch {
	case m.message.clean != nil || m.contextPath.clean != nil: // it depends on the request
	case o.Message == "" && o.ContextPath == "":
		m.headingOfGET = headingAtRoot // the makers of many sites share it
	default:
		m.headingOfGET = m.heading(http.MethodGet, nil)
	}
	var err error
	if m.offered, err = formatsOf(o.Formats); err != nil {
		return nil, fmt.Errorf("formats: %w", err)
	}
	m.offers = make(accept.Offers, len(m.offered))
	for i, format := range m.offered {
		m.offers[i] = &format.offer
	}
	if err := m.takeFiles(&o); err != nil {
		return nil, fmt.Errorf("template: %w", err)
	}
	return m, nil
}

// row is the user's files for a format.
type row struct {
	format *format
	files  []*userfile.File
}

func (m *Maker) takeFiles(o *Options) error {
	t := &trial{o.DefaultFooter, o.Sample, o.FullName}
	for _, format := range m.offered {
		row := row{format: format}
		for _, path := range o.Templates[format.name] {
			f, err := userfile.Take(path, format.ofUserFiles(t), &m.mistakesOfSites, m.logger)
			if err != nil {
				return err
			}
			row.files = append(row.files, f)
		}
		if len(row.files) > 0 {
			m.rows = append(m.rows, row)
		}
	}
	return nil
}

// filesFor returns the user's files for a format, or none.
func (m *Maker) filesFor(format *format) []*userfile.File {
	for _, row := range m.rows {
		if row.format == format {
			return row.files
		}
	}
	return nil
}

// Check returns the paths of the kept files, those of the sites' own files, and the mistakes.
func (m *Maker) Check() (kept, ofSites []string, mistakes error) {
	for _, row := range m.rows {
		for _, f := range row.files {
			path, isOfSite, mistake := f.Check()
			if isOfSite {
				ofSites = append(ofSites, path)
			} else {
				kept = append(kept, path)
			}
			mistakes = errors.Join(mistakes, mistake)
		}
	}
	return kept, ofSites, mistakes
}

// requestID is the placeholder that Caddy writes to the variables of a request when it is first expanded.
const requestID = "http.request.uuid"

// showsRequestID reports whether an option has the placeholder, also in the path of a site's own file.
func (o *Options) showsRequestID() bool {
	values := []string{o.Message, o.ContextPath, o.BaseURL, o.URI, o.Footer}
	for _, paths := range o.Templates {
		values = append(values, paths...)
	}
	return slices.ContainsFunc(values, func(value string) bool { return strings.Contains(value, requestID) })
}

// ExpandRequestID expands {http.request.uuid} if a page may show it. It is called before the next handler runs: a
// dial to an upstream may outlive the response, and reads the variables meanwhile.
func (m *Maker) ExpandRequestID(placeholders Placeholders) {
	if m.showsRequestID || m.userPageShowsRequestID() {
		placeholders.GetString(requestID)
	}
}

func (m *Maker) userPageShowsRequestID() bool {
	for _, row := range m.rows {
		for _, f := range row.files {
			if pg, ok := f.Page().(*userPage); ok && pg.showsRequestID {
				return true
			}
		}
	}
	return false
}

// tokenBytes are those of a method (RFC 9110, section 5.6.2).
var tokenBytes = uri.BytesOf(uri.Letters + uri.Digits + "!#$%&'*+-.^_`|~")

var headingStart = fmt.Sprintf("HTTP ERROR %d ", http.StatusNotFound)

// headingAtRoot is the heading of a GET with the default options.
var headingAtRoot = new(Maker).heading(http.MethodGet, nil)

// heading returns the heading for a method, with the message. That of most requests is made once.
func (m *Maker) heading(method string, placeholders Placeholders) string {
	if method == http.MethodHead {
		method = http.MethodGet // HEAD has the header of what GET would get (RFC 9110, section 9.3.2)
	}
	if method == http.MethodGet && m.headingOfGET != "" {
		return m.headingOfGET
	}
	if message := m.message.expand(placeholders); message != "" {
		return headingStart + message
	}
	// missing.html for every unknown address: the message speaks for the application
	missing := m.contextPath.expand(placeholders) + "/missing.html"
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
		Footer:       cmp.Or(m.footer.expand(placeholders), m.defaultFooter),
		placeholders: placeholders,
	}
}

// Representation is a page as it is sent.
type Representation struct {
	Format      string // its name
	ContentType string

	Vary string // the fields of a request by which other clients may get something else

	content   content
	policy    string // the Content-Security-Policy that it needs; empty: none
	hasPolicy bool   // the header has it, and none of the site's

	// A browser asks for a stylesheet. With nosniff, Chromium would hide the status of the page from its console, and from
	// what drives it.
	isForStyle bool
}

// ErrCut is the error of a file that was cut, or could not be read, while it was sent: the page has fewer bytes than
// its header says.
var ErrCut = errors.New("the file was cut while it was sent")

// WriteTo implements io.WriterTo. It is called once. A text is written by one call from here: with io.Copy between, the
// stack of most HTTP/2 requests would grow, and a page takes a tenth longer.
func (r *Representation) WriteTo(w io.Writer) (int64, error) {
	if r.content.file != nil {
		n, err := io.Copy(w, io.LimitReader(r.content.file, r.content.size))
		_, isUnreadable := errors.AsType[*fs.PathError](err) // no write fails so
		if isUnreadable || err == nil && n < r.content.size {
			err = ErrCut
		}
		return n, err
	}
	n, err := w.Write(r.content.text)
	return int64(n), err
}

// Free releases what the content is in.
func (r *Representation) Free() {
	if r.content.buffer != nil {
		freeBuffer(r.content.buffer)
	}
	if r.content.file != nil {
		r.content.file.Close()
	}
}

// Represent renders a page in the representation that an Accept field asks for: the first file of the row that can be
// sent, or the built-in page. The caller frees it.
func (m *Maker) Represent(pg *Page, field string) Representation {
	format := m.offered[m.offers.Choose(field)]
	r := Representation{
		Format:      format.name,
		ContentType: format.contentType,
		Vary:        "Accept", // also with one format, because of isForStyle
		isForStyle:  accept.Names(field, "text/css") && !accept.Names(field, "text/html"),
	}
	for _, f := range m.filesFor(format) {
		var ok bool
		if r.content, ok = m.contentOf(f, format, pg); ok {
			return r
		}
	}
	b := newBuffer()
	format.write(b, pg)
	r.content = buffered(b)
	r.policy = format.policy
	return r
}
