package page

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	htmltemplate "html/template"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	texttemplate "text/template"
	"time"
	"unicode/utf8"

	"go.uber.org/zap"

	"github.com/caddyserver/caddy/v2"
)

// fileTemplate is a template that the user wrote. It is read again when its file has changed. The handlers that name
// the same file and format share it, also those of the next config. So it has nothing of a handler, such as a logger.
type fileTemplate struct {
	key    templateKey
	format *format
	trial  Options // what it is tried with

	used   atomic.Pointer[parsedTemplate] // the last one that could be used; nil: none
	failed atomic.Bool                    // a page failed since the file was read

	mu     sync.Mutex // held by the request that reads the file
	config any        // the last one that took the template
	readAt time.Time  // when the file was read
	last   string     // its text, and why it could not be read
	err    error      // why it cannot be used
}

// templateKey is the key of the pool. It is kept, because the working directory may change.
type templateKey struct{ file, format string }

// parsedTemplate is a template as its file was at some time.
type parsedTemplate struct {
	literal  []byte // the page, if the file has no actions; otherwise nil
	template interface {
		Execute(w io.Writer, data any) error
	}
	showsRequestID bool // its source names the placeholder
}

// pool has the templates that a config uses, or is about to.
var pool = caddy.NewUsagePool()

// pause is the least time between two readings of a file.
const pause = time.Second

// takeTemplate returns the template of a file, for a Maker that gives it back. A file that no config uses and that
// cannot be used is an error on a reload. At a start, it is logged, because nobody may be there to correct it, and the
// built-in page is sent meanwhile. A mistake is logged once for each config that loads.
func takeTemplate(file string, f *format, o *Options) (*fileTemplate, error) {
	file, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	key := templateKey{file, f.name}
	value, _, err := pool.LoadOrNew(key, func() (caddy.Destructor, error) {
		t := &fileTemplate{key: key, format: f}
		t.trial = Options{
			Server:   o.Server,
			Sample:   o.Sample,
			FullName: o.FullName,
		}
		t.readAgain()
		if t.err != nil && (o.Config == nil || isReload()) {
			return nil, fmt.Errorf("%s: %w", file, t.err)
		}
		return t, nil
	})
	if err != nil {
		return nil, err
	}
	t := value.(*fileTemplate)
	t.mu.Lock()
	defer t.mu.Unlock()
	isNews := t.config != o.Config && t.err != nil
	t.config = o.Config
	if t.readIfDue() || isNews {
		t.log(o.Logger)
	}
	return t, nil
}

// isReload reports whether sites are running already, which stay if the config that loads is refused. Caddy says so
// nowhere else.
func isReload() bool {
	_, err := caddy.ActiveContext().AppIfConfigured("http")
	return err == nil
}

// Destruct is for the pool. It frees nothing, because requests may still run.
func (t *fileTemplate) Destruct() error { return nil }

// showsRequestID reports whether the template may show the placeholder.
func (t *fileTemplate) showsRequestID() bool {
	v := t.used.Load()
	return v != nil && v.showsRequestID
}

// render writes a page, unless the template cannot be used or makes a page that its format does not allow. It logs that
// at most once between two readings of the file.
func (t *fileTemplate) render(body *bytes.Buffer, pg Page, logger *zap.Logger) bool {
	t.refresh(logger)
	v := t.used.Load()
	if v == nil {
		return false
	}
	if v.literal != nil {
		body.Write(v.literal)
		return true
	}
	err := v.execute(body, t.format, pg)
	if err == nil {
		err = t.format.validate(body.Bytes())
	}
	if err == nil {
		return true
	}
	body.Reset()
	if !t.failed.Swap(true) {
		logger.Error("rendering the template; sending the built-in page instead",
			zap.String("template", t.key.file), zap.Error(err))
	}
	return false
}

// refresh reads the file again if that is due, and logs a change. One request at a time does; the others do not wait.
func (t *fileTemplate) refresh(logger *zap.Logger) {
	if !t.mu.TryLock() {
		return
	}
	defer t.mu.Unlock()
	if t.readIfDue() {
		t.log(logger)
	}
}

// readIfDue reads the file again, unless that was just now. It reports whether what it found is new.
func (t *fileTemplate) readIfDue() (isNew bool) {
	if time.Since(t.readAt) < pause {
		return false
	}
	t.failed.Store(false)
	return t.readAgain()
}

func (t *fileTemplate) log(logger *zap.Logger) {
	logger = logger.With(zap.String("template", t.key.file))
	switch {
	case t.err == nil:
		logger.Info("the changed template is in use")
	case t.used.Load() == nil:
		logger.Error("the template cannot be used; the built-in page is sent until it can", zap.Error(t.err))
	default:
		logger.Error("the changed template cannot be used; the last good one stays in use", zap.Error(t.err))
	}
}

// readAgain reads the file, and uses it if it is valid. It reports whether the text or the error is another than
// before. Time and size do not tell: after a chmod, the file cannot be read, and has both.
func (t *fileTemplate) readAgain() (isNew bool) {
	t.readAt = time.Now()
	source, err := t.read()
	last := source + fmt.Sprint(err)
	if last == t.last {
		return false
	}
	t.last = last
	var v *parsedTemplate
	if err == nil {
		v, err = t.format.parse(filepath.Base(t.key.file), source, &t.trial)
	}
	if err == nil {
		t.used.Store(v)
	}
	t.err = err
	return true
}

// read reads the file.
func (t *fileTemplate) read() (string, error) {
	var source bytes.Buffer
	err := readFile(&source, t.key.file)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w; for the built-in page to begin with, run caddy not-found export-template %s",
			err, t.format.name)
	}
	return source.String(), err
}

// parse parses a template and tries it: on a harmless page, and on one whose texts would break the format if they stood
// where no text can be. A file without actions is the page, of which html/template would drop comments.
func (f *format) parse(name, source string, trial *Options) (*parsedTemplate, error) {
	if !strings.Contains(source, "{{") {
		literal := []byte(source)
		return &parsedTemplate{literal: literal}, f.validate(literal)
	}
	if err := trial.checkPlaceholders(source); err != nil {
		return nil, err
	}
	v := &parsedTemplate{showsRequestID: strings.Contains(source, requestID)}
	var err error
	if f.name == "html" {
		v.template, err = htmltemplate.New(name).Parse(source)
	} else {
		v.template, err = texttemplate.New(name).Parse(source)
	}
	if err != nil {
		return nil, explain(err)
	}

	if err := v.try(f, trial.samplePage()); err != nil {
		return nil, fmt.Errorf("trying it on a sample page: %w", err)
	}
	if f.name == "html" {
		return v, nil // html/template escapes each text for its place
	}
	if err := v.try(f, hostile(trial.samplePage())); err != nil {
		return nil, fmt.Errorf("trying it on a sample page with quotes and brackets: %w", err)
	}
	return v, nil
}

func (v *parsedTemplate) try(f *format, pg Page) error {
	var body bytes.Buffer
	if err := v.execute(&body, f, pg); err != nil {
		return explain(err)
	}
	return f.validate(body.Bytes())
}

// execute renders a page. It is to be validated, because a template can also cut and compare what a client sends.
func (v *parsedTemplate) execute(body *bytes.Buffer, f *format, pg Page) error {
	if f.name != "html" {
		pg = pg.with(f.escape.of, f.escapeURI.of)
		pg.escaped = f
	}
	return v.template.Execute(body, pg)
}

// validate refuses a page that is blank, or not valid in its format.
func (f *format) validate(page []byte) error {
	switch {
	case len(bytes.Trim(page, "\ufeff \t\r\n")) == 0:
		return errors.New("the page is blank; in a template, write it outside of define")
	case !utf8.Valid(page):
		return errors.New("the page is not in UTF-8; save the file in UTF-8; in a template, slice can cut a character in two")
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
func (o *Options) samplePage() Page {
	m := Maker{server: o.Server}
	asked := Asked{
		Method:    http.MethodGet,
		Target:    "/docs/apis?x=1",
		Scheme:    "https",
		Authority: "www.example.com",
	}
	return m.Make(&asked, o.Sample())
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

// checkPlaceholders refuses the Caddyfile's shorthands of placeholders, which nothing else knows.
func (o *Options) checkPlaceholders(source string) error {
	known := o.samplePage().placeholders
	for _, found := range placeholderNames.FindAllStringSubmatch(source, -1) {
		name := found[1]
		full := o.FullName(name)
		if _, isKnown := known.GetString(name); full != name && !isKnown {
			return fmt.Errorf("%q is a shorthand, which only a Caddyfile has; write {{.Placeholder %q}}", name, full)
		}
	}
	return nil
}

// explain adds a hint to an error of a template, for the mistakes that people make.
func explain(err error) error {
	text := err.Error()
	for mistake, hint := range hints {
		if strings.Contains(text, mistake) {
			return fmt.Errorf("%w; %s", err, hint)
		}
	}
	return fmt.Errorf("%w; %s", err, plainBraces)
}

const (
	listOfFields = `.Heading, .URI, .Status, .Message, .Footer and .Placeholder "http.request.uuid"`
	plainBraces  = `plain braces are {{"{{"}}, and in a script { {; a file without {{ is sent as it is`
)

var hints = map[string]string{
	" not defined":         "the fields begin with a dot: " + listOfFields + "; " + plainBraces,
	"can't evaluate field": "the fields are " + listOfFields + "; within with and range, they begin with $.",
	"ends in a non-text context": "look for a quote, a tag or a comment that is not closed, a script or style element " +
		"without its end, or in a script for --> or a quote within a regular expression",
}
