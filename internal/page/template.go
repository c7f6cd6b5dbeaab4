package page

import (
	"bytes"
	"fmt"
	"html/template"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// templateData is the page as a template sees it.
type templateData struct {
	Heading string
	URI     string
	Status  int
	Message string
	Footer  string
}

// fileTemplate is a template that the user wrote. It is read again when its file has changed.
type fileTemplate struct {
	file         string // absolute
	sample       *Page  // to try it with
	placeholders Placeholders
	logger       *zap.Logger
	parsed       atomic.Pointer[parsedTemplate] // of the last file that was good

	loaded   time.Time
	nextLook atomic.Int64 // the time after loaded when the file may be looked at again; never, while a request does

	// For the request that looks at the file:
	seen          os.FileInfo // what the last look found; nil if there was no file
	taken, logged bool        // what has become of that: it was parsed; it is no good, and the log says so
}

// pause is the time from one look at a file to the next, and from the last write to a file until it is read: one that was
// just written may be half-written.
const pause = time.Second

// loadTemplate reads and parses a template, and tries it on a sample page.
func loadTemplate(file string, sample *Page, placeholders Placeholders, logger *zap.Logger) (*fileTemplate, error) {
	file, err := filepath.Abs(file)
	if err != nil {
		return nil, fmt.Errorf("finding the working directory: %w", err)
	}
	t := &fileTemplate{file: file, sample: sample, placeholders: placeholders, logger: logger, loaded: time.Now()}
	t.nextLook.Store(int64(pause))
	t.seen, _ = os.Stat(file)
	parsed, err := t.parse()
	if err != nil {
		return nil, err
	}
	t.parsed.Store(parsed)
	t.taken = isSettled(t.seen)
	return t, nil
}

// latest returns the template as it is in the file, if that is good. One request at a time looks; the others go on
// with the template that is there.
func (t *fileTemplate) latest() *parsedTemplate {
	next := t.nextLook.Load()
	if time.Since(t.loaded) >= time.Duration(next) && t.nextLook.CompareAndSwap(next, math.MaxInt64) {
		t.look()
	}
	return t.parsed.Load()
}

// look reads the file again if it has changed.
func (t *fileTemplate) look() {
	defer func() { t.nextLook.Store(int64(time.Since(t.loaded) + pause)) }()

	found, _ := os.Stat(t.file)
	if !isSame(found, t.seen) {
		t.seen, t.taken, t.logged = found, false, false
		if !isSettled(found) {
			return // if it is the same at the next look, it is taken then
		}
	}
	if t.taken {
		return
	}
	parsed, err := t.parse()
	if now, _ := os.Stat(t.file); !isSame(now, found) {
		return // it was written while it was read
	}
	switch {
	case err == nil:
		t.parsed.Store(parsed)
		t.taken = true
	case !t.logged:
		t.logger.Error("reading the changed template; the last good one stays in use", zap.String("template", t.file), zap.Error(err))
		t.logged = true
	}
}

// isSame reports whether a file has not changed.
func isSame(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == b
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// isSettled reports whether a file was last written long enough ago.
func isSettled(info os.FileInfo) bool { return info != nil && time.Since(info.ModTime()) >= pause }

// parsedTemplate is what a template file had in it.
//
// The placeholder function is bound to a template, but the values are those of a request. So each rendering has an
// instance to itself: a copy of the template, with a function of its own.
type parsedTemplate struct{ instances sync.Pool }

type templateInstance struct {
	template     *template.Template
	placeholders Placeholders
}

func (i *templateInstance) placeholder(name string) string {
	value, _ := i.placeholders.GetString(name)
	return value
}

func (f *fileTemplate) parse() (*parsedTemplate, error) {
	source, err := os.ReadFile(f.file)
	if err != nil {
		return nil, fmt.Errorf("reading the file: %w", err)
	}
	stub := template.FuncMap{"placeholder": new(templateInstance).placeholder}
	parsed, err := template.New(filepath.Base(f.file)).Funcs(stub).Parse(string(source))
	if err != nil {
		return nil, fmt.Errorf("parsing %s: %w", f.file, err)
	}

	t := &parsedTemplate{instances: sync.Pool{New: func() any {
		i := new(templateInstance)
		// Clone fails only for a template that was executed, and the parsed one never is
		i.template = template.Must(parsed.Clone()).Funcs(template.FuncMap{"placeholder": i.placeholder})
		return i
	}}}

	if err := t.render(f.sample, f.placeholders); err != nil {
		return nil, fmt.Errorf("trying %s on a sample page: %w", f.file, err)
	}
	if len(bytes.TrimSpace(f.sample.body)) == 0 {
		return nil, fmt.Errorf("%s renders a blank page; write the page at the top level of the file, outside of define", f.file)
	}
	return t, nil
}

// render fills in the body of a page.
func (t *parsedTemplate) render(pg *Page, placeholders Placeholders) error {
	i := t.instances.Get().(*templateInstance)
	defer t.instances.Put(i)
	i.placeholders = placeholders
	defer func() { i.placeholders = nil }()

	buf := bytes.NewBuffer(pg.body[:0])
	err := i.template.Execute(buf, templateData{
		Heading: headingStart + string(pg.Message),
		URI:     string(pg.URI),
		Status:  http.StatusNotFound,
		Message: string(pg.Message),
		Footer:  pg.Footer,
	})
	pg.body = buf.Bytes()
	if data := reflect.TypeFor[templateData](); err != nil && strings.HasSuffix(err.Error(), "in type "+data.String()) {
		var fields []string
		for _, f := range reflect.VisibleFields(data) {
			fields = append(fields, "."+f.Name)
		}
		err = fmt.Errorf("%w; the fields are %s", err, strings.Join(fields, ", "))
	}
	return err
}
