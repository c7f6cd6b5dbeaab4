package page

import (
	"bytes"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"go.uber.org/zap"
)

// fileTemplate is a template that the user wrote. It is read again when its file has changed.
type fileTemplate struct {
	file   string // absolute
	sample Page   // to try it with
	logger *zap.Logger
	parsed atomic.Pointer[template.Template] // the last one that could be used

	mu     sync.Mutex  // held by the request that looks at the file
	looked time.Time   // when the last look was
	read   os.FileInfo // the file before it was last read; nil: there was none
}

// pause is the time from one look at a file to the next.
const pause = time.Second

// loadTemplate reads and parses a template, and tries it on a sample page.
func loadTemplate(file string, sample Page, logger *zap.Logger) (*fileTemplate, error) {
	file, err := filepath.Abs(file)
	if err != nil {
		return nil, fmt.Errorf("finding the working directory: %w", err)
	}
	t := &fileTemplate{file: file, sample: sample, logger: logger, looked: time.Now()}
	return t, t.load()
}

// latest returns the template as it is in the file, if that can be used. One request at a time looks; the others go on
// with the template that is there.
func (t *fileTemplate) latest() *template.Template {
	if t.mu.TryLock() {
		defer t.mu.Unlock()
		if time.Since(t.looked) >= pause {
			t.look()
			t.looked = time.Now()
		}
	}
	return t.parsed.Load()
}

// look reads the file again if it has changed.
func (t *fileTemplate) look() {
	found, _ := os.Stat(t.file)
	if found == nil && t.read == nil || found != nil && t.read != nil &&
		os.SameFile(found, t.read) && found.Size() == t.read.Size() && found.ModTime().Equal(t.read.ModTime()) {
		return
	}
	if err := t.load(); err != nil {
		t.logger.Error("reading the changed template; the last good one stays in use", zap.String("template", t.file), zap.Error(err))
	}
}

// load reads the file, which takes the place of the template if it can be used.
func (t *fileTemplate) load() error {
	var err error
	if t.read, err = os.Stat(t.file); err != nil {
		return fmt.Errorf("reading the file: %w", err)
	}
	if !t.read.Mode().IsRegular() { // a named pipe would hold up whoever opens it
		return fmt.Errorf("%s is not a regular file", t.file)
	}
	source, err := os.ReadFile(t.file)
	if err != nil {
		return fmt.Errorf("reading the file: %w", err)
	}
	if !utf8.Valid(source) {
		return fmt.Errorf("%s is not in UTF-8, in which the page is sent; save it in UTF-8", t.file)
	}
	parsed, err := template.New(filepath.Base(t.file)).Parse(string(source))
	if err != nil {
		if strings.HasSuffix(err.Error(), `function "placeholder" not defined`) {
			err = fmt.Errorf(`%w; write it as in {{.Placeholder "http.request.uuid"}}, within with and range as in {{$.Placeholder "http.request.uuid"}}`, err)
		}
		return fmt.Errorf("parsing %s: %w", t.file, err)
	}
	var body bytes.Buffer
	if err := render(&body, parsed, t.sample); err != nil {
		return fmt.Errorf("trying %s on a sample page: %w", t.file, err)
	}
	if len(bytes.TrimSpace(body.Bytes())) == 0 {
		return fmt.Errorf("%s renders a blank page; write the page at the top level of the file, outside of define", t.file)
	}
	t.parsed.Store(parsed)
	return nil
}

// render renders a page by a template.
func render(body *bytes.Buffer, t *template.Template, pg Page) error {
	err := t.Execute(body, pg)
	if data := reflect.TypeFor[Page](); err != nil && strings.HasSuffix(err.Error(), "in type "+data.String()) {
		var fields []string
		for _, f := range reflect.VisibleFields(data) {
			if f.IsExported() {
				fields = append(fields, "."+f.Name)
			}
		}
		err = fmt.Errorf(`%w; the fields are %s and .Placeholder "name"`, err, strings.Join(fields, ", "))
	}
	return err
}
