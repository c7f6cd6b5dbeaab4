package represent

import (
	"bytes"
	"fmt"
	htmltemplate "html/template"
	"io"
	"regexp"
	"strings"
	texttemplate "text/template"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-notfound/notfound/internal/page"
	"github.com/caddy-notfound/notfound/internal/userfile"
)

// userPage is the page of a kept file: a template, or a literal page.
type userPage struct {
	literal  []byte // the page without actions, which is sent as it is; nil: a template
	template interface {
		Execute(w io.Writer, data any) error
	}
	showsRequestID bool // its source names the placeholder
}

// RequestID is the placeholder that Caddy writes to the variables of a request when it is first expanded.
const RequestID = "http.request.uuid"

// Trial is what a template is tried with.
type Trial struct {
	// Sample returns a harmless page, and the placeholders of its request.
	Sample func() (page.Page, *caddy.Replacer)

	// FullName returns the full name of a placeholder. It is the same name, unless it is a shorthand of the Caddyfile.
	FullName func(name string) string
}

// ofKeptFiles returns how the kept files of a format become pages.
func ofKeptFiles(f *format, t Trial) userfile.Format {
	return userfile.Format{
		Name: f.name,
		Parse: func(name string, text []byte) (any, error) {
			return parse(f, name, text, &t) // and no other option, because the file may outlast the handler
		},
	}
}

// parse parses a template and tries it: on a harmless page, and on one whose texts would break the format if the
// template puts them where text is not allowed. A file without actions is the page: html/template would drop its
// comments.
func parse(f *format, name string, text []byte, t *Trial) (*userPage, error) {
	if !bytes.Contains(text, []byte("{{")) {
		return &userPage{literal: text}, f.validate(text)
	}
	source := string(text)
	pg, placeholders := t.Sample()
	sample := data{Page: pg, placeholders: placeholders}
	if err := t.checkPlaceholders(source, placeholders); err != nil {
		return nil, err
	}
	p := &userPage{showsRequestID: strings.Contains(source, RequestID)}
	var err error
	if f.name == "html" {
		p.template, err = htmltemplate.New(name).Parse(source)
	} else {
		p.template, err = texttemplate.New(name).Parse(source)
	}
	if err != nil {
		return nil, explain(err)
	}

	if err := p.try(f, &sample); err != nil {
		return nil, fmt.Errorf("trying it on a sample page: %w", err)
	}
	if f.name == "html" {
		return p, nil // html/template escapes each text for its place
	}
	if err := p.try(f, sample.hostile()); err != nil {
		return nil, fmt.Errorf("trying it on a sample page with quotes and brackets: %w", err)
	}
	return p, nil
}

// placeholderNames matches the name of a placeholder in an action.
var placeholderNames = regexp.MustCompile("\\.Placeholder\\s+[\"`]\\{?([^\"`}]+)")

// checkPlaceholders refuses the Caddyfile's shorthands of placeholders, which only a Caddyfile expands, and the body of
// a request.
func (t *Trial) checkPlaceholders(source string, known *caddy.Replacer) error {
	for _, found := range placeholderNames.FindAllStringSubmatch(source, -1) {
		name := found[1]
		if err := page.CheckNoBody("{" + name + "}"); err != nil {
			return err
		}
		if _, isKnown := known.GetString(name); isKnown {
			continue
		}
		if full := t.FullName(name); full != name { // slow, so it is the last check
			return fmt.Errorf("%q is a shorthand, which only a Caddyfile has; write {{.Placeholder %q}}", name, full)
		}
	}
	return nil
}

// explain adds to an error of a template what most often causes it: braces of a script or of another template language.
func explain(err error) error {
	return fmt.Errorf(`%w; plain braces are {{"{{"}}, and in a script { {; a file without {{ is sent as it is`, err)
}

func (p *userPage) try(f *format, d *data) error {
	var body bytes.Buffer
	if err := p.execute(&body, f, d); err != nil {
		return explain(err)
	}
	return f.validate(body.Bytes())
}

// content returns a page. The output of a template is validated each time, because it depends on what a client sends.
func (p *userPage) content(f *format, in *Input) (content, error) {
	if p.literal != nil {
		size := int64(len(p.literal))
		return content{size: size, text: p.literal}, nil
	}
	b := newBuffer()
	err := p.execute(b, f, &data{Page: in.Page, placeholders: in.Placeholders})
	if err == nil {
		err = f.validate(b.Bytes())
	}
	if err != nil {
		freeBuffer(b)
		return content{}, err
	}
	return buffered(b), nil
}

// execute renders a page, which is not validated yet.
func (p *userPage) execute(body *bytes.Buffer, f *format, d *data) error {
	if f.name != "html" {
		d = d.escapedFor(f)
	}
	return p.template.Execute(body, d)
}

// data is what a template is executed with.
type data struct {
	page.Page
	placeholders *caddy.Replacer
	escaping     *format // that the texts are escaped for; nil: they are not
	isHostile    bool    // the values of placeholders would break a format
}

// Placeholder returns the value of one of Caddy's placeholders, in braces or not. An unknown one is empty.
func (d *data) Placeholder(name string) string {
	name = strings.TrimSuffix(strings.TrimPrefix(name, "{"), "}")
	if strings.HasPrefix(name, "http.request.body") { // checkPlaceholders misses a name that the template puts together
		return ""
	}
	value, _ := d.placeholders.GetString(name)
	value = strings.ToValidUTF8(value, "\uFFFD")
	if d.isHostile {
		value = surround(value)
	}
	if d.escaping == nil {
		return value
	}
	if !d.escaping.mayHaveBreaks {
		value = page.CleanLine(value)
	}
	return d.escaping.escape.escaped(value)
}

// escapedFor returns the data with its texts escaped for a format.
func (d *data) escapedFor(f *format) *data {
	escaped := d.with(f.escape.escaped, f.escapeURI.escaped)
	escaped.escaping = f
	return escaped
}

// hostile returns the data with texts that would break a format if they were not escaped. None is shorter than before,
// so that a template that takes a part of one still can.
func (d *data) hostile() *data {
	hostile := d.with(surround, surround)
	hostile.isHostile = true
	return hostile
}

// with returns the data with other texts and another address.
func (d *data) with(text, uri func(string) string) *data {
	other := *d
	other.Heading = text(d.Heading)
	other.URI = uri(d.URI)
	other.Message = text(d.Message)
	other.Footer = text(d.Footer)
	return &other
}

func surround(s string) string {
	const bytes = `"'\<&>--`
	half := len(s) / 2
	return bytes + s[:half] + bytes + s[half:] + bytes
}
