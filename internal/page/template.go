package page

import (
	"bytes"
	"cmp"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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

	showsRequestID atomic.Bool // its source names the placeholder

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

// latest returns the template of the file, or the last good one. One request at a time looks at the file; the others do
// not wait.
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
	if found == nil && t.read == nil ||
		os.SameFile(found, t.read) && found.Size() == t.read.Size() && found.ModTime().Equal(t.read.ModTime()) {
		return
	}
	if err := t.load(); err != nil {
		t.logger.Error("reading the changed template; the last good one stays in use, but Caddy will not start with this file", zap.String("template", t.file), zap.Error(err))
		return
	}
	t.logger.Info("the changed template is in use", zap.String("template", t.file))
}

// load reads the file, and uses it if it is valid.
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
	if found := singleBraces.FindSubmatch(actions.ReplaceAll(source, nil)); found != nil {
		name := cmp.Or(shorthands[string(found[2])], string(found[2])) + string(found[3])
		return fmt.Errorf("%s has %s, which would be printed as it stands; write {{.Placeholder %q}}, or for plain braces %s, and in a script { %s",
			t.file, found[1], name, strings.Replace(string(found[1]), "{", `{{"{"}}`, 1), found[1][1:])
	}
	parsed, err := template.New(filepath.Base(t.file)).Parse(string(source))
	if err != nil {
		return fmt.Errorf("parsing %s: %w", t.file, explain(err))
	}
	var body bytes.Buffer
	if err := render(&body, parsed, t.sample); err != nil {
		return fmt.Errorf("trying %s on a sample page: %w", t.file, err)
	}
	if len(bytes.TrimSpace(body.Bytes())) == 0 {
		return fmt.Errorf("%s renders a blank page; write the page at the top level of the file, outside of define", t.file)
	}
	t.showsRequestID.Store(bytes.Contains(source, []byte(requestID)))
	t.parsed.Store(parsed)
	return nil
}

// singleBraces matches one of Caddy's placeholders in single braces, as in a Caddyfile, outside of actions. ${…} is a
// script's.
var (
	actions      = regexp.MustCompile(`(?s)\{\{.*?\}\}`)
	singleBraces = regexp.MustCompile(`(?:^|[^$])(\{(http|env|system|err|header|cookie|query|vars)(\.[\w.-]+)\})`)
	shorthands   = map[string]string{ // of a Caddyfile
		"err": "http.error", "header": "http.request.header", "cookie": "http.request.cookie", "query": "http.request.uri.query", "vars": "http.vars",
	}
)

func render(body *bytes.Buffer, t *template.Template, pg Page) error {
	if err := t.Execute(body, pg); err != nil {
		return explain(err)
	}
	return nil
}

// explain adds a hint to an error of html/template.
func explain(err error) error {
	text := err.Error()
	hint := ""
	switch name := functionPattern.FindStringSubmatch(text); {
	case name != nil && strings.EqualFold(name[1], "placeholder"):
		hint = `write {{.Placeholder "http.request.uuid"}}, and within with and range {{$.Placeholder "http.request.uuid"}}`
	case name != nil && slices.ContainsFunc(pageFields, func(field string) bool { return strings.EqualFold(field, name[1]) }):
		hint = "the fields begin with a dot: " + listOfFields
	case strings.Contains(text, "can't evaluate field Placeholder in type"):
		hint = `within with and range, write {{$.Placeholder "http.request.uuid"}}`
	case strings.HasSuffix(text, "in type page.Page"):
		hint = "the fields are " + listOfFields
	case strings.Contains(text, "ends in a non-text context"):
		hint = "look for a quote, a tag or a comment that is not closed, or a script or style element without its end"
	default:
		return err
	}
	return fmt.Errorf("%w; %s", err, hint)
}

var (
	functionPattern = regexp.MustCompile(`function "(\w+)" not defined$`)
	pageFields      = []string{"Heading", "URI", "Status", "Message", "Footer"}
	listOfFields    = "." + strings.Join(pageFields, ", .") + ` and .Placeholder "name"`
)
