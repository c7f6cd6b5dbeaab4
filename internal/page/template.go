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
	"os"
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
	sample func() Page

	used   atomic.Pointer[parsedTemplate] // the last one that could be used; nil: none
	failed atomic.Bool                    // a page failed since the last look at the file

	mu      sync.Mutex // held by the request that looks at the file
	looked  time.Time  // when the last look was
	source  []byte     // what it found
	readErr error      // or why the file could not be read
	err     error      // why what it found cannot be used
}

// templateKey is the key of the pool. It is kept, because the working directory may change.
type templateKey struct{ file, format string }

// parsedTemplate is a template as its file was at some time.
type parsedTemplate struct {
	template interface {
		Execute(w io.Writer, data any) error
	}
	showsRequestID bool // its source names the placeholder
}

// pool has the templates that a config uses, or is about to.
var pool = caddy.NewUsagePool()

// pause is the time from one look at a file to the next.
const pause = time.Second

// takeTemplate returns the template of a file, for a Maker that gives it back. A file that no config uses and that
// cannot be used is an error on a reload. At a start, it is logged, because nobody may be there to correct it, and
// the built-in page is sent meanwhile.
func takeTemplate(file string, f *format, sample func() Page, logger *zap.Logger) (*fileTemplate, error) {
	file, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	key := templateKey{file, f.name}
	value, _, err := pool.LoadOrNew(key, func() (caddy.Destructor, error) {
		t := &fileTemplate{
			key:     key,
			format:  f,
			sample:  sample,
			readErr: errors.New("not read yet"),
		}
		t.load()
		if t.err != nil && isReload() {
			return nil, fmt.Errorf("%s: %w", file, t.err)
		}
		if t.err != nil {
			t.log(logger)
		}
		return t, nil
	})
	if err != nil {
		return nil, err
	}
	t := value.(*fileTemplate)
	t.look(logger)
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

// showsRequestID reports whether the template may show the placeholder. No template shows nothing.
func (t *fileTemplate) showsRequestID() bool {
	if t == nil {
		return false
	}
	v := t.used.Load()
	return v != nil && v.showsRequestID
}

// render writes a page, unless the template cannot be used or makes a page that its format does not allow. It logs that
// at most once between two looks at the file.
func (t *fileTemplate) render(body *bytes.Buffer, pg *Page, logger *zap.Logger) bool {
	t.look(logger)
	v := t.used.Load()
	if v == nil {
		return false
	}
	err := v.execute(body, t.format, *pg)
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

// look reads the file, and logs a change. One request at a time looks at the file; the others do not wait.
func (t *fileTemplate) look(logger *zap.Logger) {
	if !t.mu.TryLock() {
		return
	}
	defer t.mu.Unlock()
	if time.Since(t.looked) < pause {
		return
	}
	t.failed.Store(false)
	if t.load() {
		t.log(logger)
	}
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

// load reads the file, and uses it if it is valid. It reports whether the text or the error is another than before.
// Time and size do not tell: after a chmod, the file cannot be read, and has both.
func (t *fileTemplate) load() (changed bool) {
	t.looked = time.Now()
	source, err := t.read()
	if bytes.Equal(source, t.source) && fmt.Sprint(err) == fmt.Sprint(t.readErr) {
		return false
	}
	t.source = source
	t.readErr = err
	var v *parsedTemplate
	if err == nil {
		v, err = t.format.parse(filepath.Base(t.key.file), source, t.sample)
	}
	if err == nil {
		t.used.Store(v)
	}
	t.err = err
	return true
}

// read reads the file. It looks before it opens, because a named pipe would hold up whoever opens it.
func (t *fileTemplate) read() ([]byte, error) {
	info, err := os.Stat(t.key.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w; for the built-in page to begin with, run caddy not-found export-template %s",
			err, t.format.name)
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	return os.ReadFile(t.key.file)
}

// parse parses a template and tries it: on a harmless page, and on one whose texts would break the format if they stood
// where no text can be.
func (f *format) parse(name string, source []byte, sample func() Page) (*parsedTemplate, error) {
	if err := checkBraces(source); err != nil {
		return nil, err
	}
	v := &parsedTemplate{showsRequestID: bytes.Contains(source, []byte(requestID))}
	var err error
	if f.name == "html" {
		v.template, err = htmltemplate.New(name).Parse(string(source))
	} else {
		v.template, err = texttemplate.New(name).Parse(string(source))
	}
	if err != nil {
		return nil, explain(err)
	}

	var body bytes.Buffer
	if err := v.execute(&body, f, sample()); err != nil {
		return nil, fmt.Errorf("trying it on a sample page: %w", err)
	}
	if len(bytes.TrimSpace(body.Bytes())) == 0 {
		return nil, errors.New("it renders a blank page; write the page at the top level of the file, outside of define")
	}
	if f.name == "html" {
		return v, nil // html/template escapes each text for its place
	}
	body.Reset()
	if err := v.execute(&body, f, hostile(sample())); err != nil {
		return nil, fmt.Errorf("trying it on a sample page with quotes and brackets: %w", err)
	}
	return v, nil
}

// execute renders a page, and checks it, because a template can also cut and compare what a client sends.
func (v *parsedTemplate) execute(body *bytes.Buffer, f *format, pg Page) error {
	if f.name != "html" {
		pg = pg.with(f.escape.of, f.escapeURI.of)
		pg.escaped = f
	}
	if err := v.template.Execute(body, pg); err != nil {
		return explain(err)
	}
	if !utf8.Valid(body.Bytes()) {
		return errors.New("the page is not in UTF-8; save the file in UTF-8, and mind that slice can cut a character in two")
	}
	if f.check == nil {
		return nil
	}
	return f.check(body.Bytes())
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

// newSample returns a function that makes a harmless page. It has no option of a handler.
func newSample(server string, placeholders func() Placeholders) func() Page {
	m := &Maker{server: server}
	asked := &Asked{
		Method:    http.MethodGet,
		Target:    "/docs/apis?x=1",
		Scheme:    "https",
		Authority: "www.example.com",
	}
	return func() Page { return m.Make(asked, placeholders()) }
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

// actions matches the actions of a template.
var actions = regexp.MustCompile(`(?s)\{\{.*?\}\}`)

// singleBraces matches one of Caddy's placeholders as in a Caddyfile. ${…} is a script's.
var singleBraces = regexp.MustCompile(`(?:^|[^$])(\{(http|env|system|err|header|cookie|query|vars)\.[\w.-]+\})`)

// checkBraces refuses placeholders in single braces outside of actions, which would be printed as they stand.
func checkBraces(source []byte) error {
	found := singleBraces.FindSubmatch(actions.ReplaceAll(source, nil))
	if found == nil {
		return nil
	}
	return fmt.Errorf("it has %s, which would be printed as it stands; "+
		`write {{.Placeholder "http.…"}}, or for plain braces {{"{"}}%s, and in a script { %[2]s`,
		found[1], found[1][1:])
}

// explain adds a hint to an error of a template, for the mistakes that people make.
func explain(err error) error {
	text := err.Error()
	for mistake, hint := range hints {
		if strings.Contains(text, mistake) {
			return fmt.Errorf("%w; %s", err, hint)
		}
	}
	return err
}

const listOfFields = `.Heading, .URI, .Status, .Message, .Footer and .Placeholder "http.request.uuid"`

var hints = map[string]string{
	" not defined":         "the fields begin with a dot: " + listOfFields,
	"can't evaluate field": "the fields are " + listOfFields + "; within with and range, they begin with $.",
	"ends in a non-text context": "look for a quote, a tag or a comment that is not closed, " +
		"or a script or style element without its end",
}
