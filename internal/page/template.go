package page

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	htmltemplate "html/template"
	"io"
	"net/http"
	"regexp"
	"strings"
	texttemplate "text/template"
	"unicode/utf8"

	"github.com/caddy-notfound/notfound/internal/userfile"
)

// userPage is what is made of a kept file: a template, or a page without actions.
type userPage struct {
	literal  []byte // the page without actions, of which every page is sent; nil: a template
	template interface {
		Execute(w io.Writer, data any) error
	}
	showsRequestID bool // its source names the placeholder
}

// trial is what a template is tried with.
type trial struct {
	defaultFooter string
	sample        func() Placeholders
	fullName      func(placeholder string) string // of a shorthand of the Caddyfile
}

// ofUserFiles says what makes a page of a kept file.
func (f *format) ofUserFiles(t *trial) userfile.Format {
	return userfile.Format{
		Name: f.name,
		Parse: func(name string, text []byte) (any, error) {
			return f.parse(name, text, t)
		},
	}
}

// parse parses a template and tries it: on a harmless page, and on one whose texts would break the format if they stood
// where no text can be. A file without actions is the page, of which html/template would drop comments.
func (f *format) parse(name string, text []byte, t *trial) (*userPage, error) {
	if !bytes.Contains(text, []byte("{{")) {
		return &userPage{literal: text}, f.validate(text)
	}
	source := string(text)
	if err := t.checkPlaceholders(source); err != nil {
		return nil, err
	}
	v := &userPage{showsRequestID: strings.Contains(source, requestID)}
	var err error
	if f.name == "html" {
		v.template, err = htmltemplate.New(name).Parse(source)
	} else {
		v.template, err = texttemplate.New(name).Parse(source)
	}
	if err != nil {
		return nil, explain(err)
	}

	if err := v.try(f, t.samplePage()); err != nil {
		return nil, fmt.Errorf("trying it on a sample page: %w", err)
	}
	if f.name == "html" {
		return v, nil // html/template escapes each text for its place
	}
	if err := v.try(f, hostile(t.samplePage())); err != nil {
		return nil, fmt.Errorf("trying it on a sample page with quotes and brackets: %w", err)
	}
	return v, nil
}

func (v *userPage) try(f *format, pg Page) error {
	var body bytes.Buffer
	if err := v.execute(&body, f, pg); err != nil {
		return explain(err)
	}
	return f.validate(body.Bytes())
}

// content returns a page. What a template makes is validated, because it can also cut and compare what a client sends.
func (v *userPage) content(f *format, pg Page) (content, error) {
	if v.literal != nil {
		return content{size: int64(len(v.literal)), text: v.literal}, nil
	}
	b := newBuffer()
	err := v.execute(b, f, pg)
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
func (v *userPage) execute(body *bytes.Buffer, f *format, pg Page) error {
	if f.name != "html" {
		pg = pg.with(f.escape.escaped, f.escapeURI.escaped)
		pg.escaped = f
	}
	return v.template.Execute(body, pg)
}

// validate refuses a page that is blank, or not valid in its format.
func (f *format) validate(page []byte) error {
	switch {
	case len(bytes.Trim(page, "\ufeff \t\r\n")) == 0:
		return errors.New("the page is blank")
	case !utf8.Valid(page):
		return errors.New("the page is not in UTF-8")
	case f.check == nil:
		return nil
	}
	return f.check(page)
}

func checkJSON(page []byte) error {
	var value json.RawMessage
	if err := json.Unmarshal(page, &value); err != nil {
		return fmt.Errorf(`the page is not valid JSON: %w; a field belongs inside quotes, as in "{{.Message}}"`, err)
	}
	return nil
}

// checkXML accepts a document of one root element without a document type. encoding/xml accepts anything beside the
// root, and <?xml anywhere.
func checkXML(page []byte) error {
	d := xml.NewDecoder(bytes.NewReader(page))
	depth := 0
	roots := 0
	for {
		start := d.InputOffset()
		token, err := d.Token()
		if err == io.EOF && roots == 1 {
			return nil
		}
		if err == io.EOF {
			return fmt.Errorf("the page has %d root elements; XML has one", roots)
		}
		if err != nil {
			return fmt.Errorf("the page is not well-formed XML: %w; "+
				"a field belongs inside an element, or inside the quotes of an attribute", err)
		}
		text := page[start:d.InputOffset()]
		isMisplaced := false
		switch token := token.(type) {
		case xml.StartElement:
			if depth == 0 {
				roots++
			}
			depth++
		case xml.EndElement:
			depth--
		case xml.CharData:
			isMisplaced = depth == 0 && len(bytes.Trim(text, " \t\r\n")) > 0
		case xml.ProcInst:
			isMisplaced = token.Target == "xml" && start > 0
		case xml.Directive:
			isMisplaced = true // a document type
		}
		if isMisplaced {
			return fmt.Errorf("the page has %q where it is not allowed", text)
		}
	}
}

// samplePage returns a harmless page, without what the options say of a page.
func (t *trial) samplePage() Page {
	m, _ := NewMaker(Options{DefaultFooter: t.defaultFooter}) // which has neither formats nor files that could be wrong
	asked := Asked{
		Method:    http.MethodGet,
		Target:    "/docs/apis?x=1",
		Scheme:    "https",
		Authority: "www.example.com",
	}
	return m.Make(&asked, t.sample())
}

// hostile returns a page with texts that would break a format if they were not escaped. None is shorter than before, so
// that what a template takes of it is there.
func hostile(pg Page) Page {
	pg.placeholders = hostilePlaceholders{pg.placeholders}
	return pg.with(surround, surround)
}

type hostilePlaceholders struct{ Placeholders }

func (p hostilePlaceholders) GetString(name string) (value string, known bool) {
	value, _ = p.Placeholders.GetString(name)
	return surround(value), true
}

func surround(s string) string {
	const bytes = `"'\<&>--`
	half := len(s) / 2
	return bytes + s[:half] + bytes + s[half:] + bytes
}

// placeholderNames matches the name of a placeholder in an action.
var placeholderNames = regexp.MustCompile("\\.Placeholder\\s+[\"`]\\{?([^\"`}]+)")

// checkPlaceholders refuses the Caddyfile's shorthands of placeholders, which nothing else knows, and the body of a
// request.
func (t *trial) checkPlaceholders(source string) error {
	known := t.samplePage().placeholders
	for _, found := range placeholderNames.FindAllStringSubmatch(source, -1) {
		name := found[1]
		if err := CheckNoBody("{" + name + "}"); err != nil {
			return err
		}
		if _, isKnown := known.GetString(name); isKnown {
			continue
		}
		if full := t.fullName(name); full != name { // which takes long
			return fmt.Errorf("%q is a shorthand, which only a Caddyfile has; write {{.Placeholder %q}}", name, full)
		}
	}
	return nil
}

// explain adds to an error of a template what most often leads to one: braces of a script or another template language.
func explain(err error) error {
	return fmt.Errorf(`%w; plain braces are {{"{{"}}, and in a script { {; a file without {{ is sent as it is`, err)
}
