package page

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// TestTemplateIsRefused covers mistakes in the source.
func TestTemplateIsRefused(t *testing.T) {
	const fields = `; the fields are .Heading, .URI, .Status, .Message, .Footer and .Placeholder "name"`
	for source, want := range map[string]string{
		"{{.Uri}}":                                 "can't evaluate field Uri in type page.Page" + fields,
		"{{with .URI}}{{$.uri}}{{end}}":            fields,
		"{{.URI.Host}}":                            "can't evaluate field Host in type string",
		"{{.Placeholder}}":                         "wrong number of args for Placeholder: want 1 got 0",
		"<p>{{.URI":                                "parsing FILE: ",
		"<p>{{URI}}":                               `function "URI" not defined; the fields begin with a dot: .Heading, `,
		"<p>{{nothing}}":                           `function "nothing" not defined`,
		"<a href='{{if .URI}}x'{{end}}>":           "trying FILE on a sample page: ",
		"<p title='{{.URI}}>":                      "; look for a quote, a tag or a comment that is not closed",
		`{{with .URI}}{{.Placeholder "x"}}`:        "unexpected EOF",
		`{{with .URI}}{{.Placeholder "x"}}{{end}}`: `can't evaluate field Placeholder in type string; within with and range, write {{$.Placeholder "http.request.uuid"}}`,
		"<p>{http.request.uuid}</p>":               `FILE has {http.request.uuid}, which would be printed as it stands; write {{.Placeholder "http.request.uuid"}}, or for plain braces {{"{"}}http.request.uuid}, and in a script { http.request.uuid}`,
		"{err.status_code}":                        `FILE has {err.status_code}, which would be printed as it stands; write {{.Placeholder "http.error.status_code"}}`,
		"{{.URI}}{header.X-Id}":                    `write {{.Placeholder "http.request.header.X-Id"}}`,
		"<p>\n<p>{{.Uri}}":                         "trying FILE on a sample page: template: 404.html:2:5: executing",
		"<p>\n\n{{index .URI 99999}}":              "trying FILE on a sample page: template: 404.html:3:2: executing",
		"":                                         "FILE renders a blank page; write the page at the top level of the file, outside of define",
		" \n\t{{if false}}x{{end}}\n":              "FILE renders a blank page",
		`{{define "page"}}<p>{{.URI}}{{end}}`:      "FILE renders a blank page",
		"<p>Gr\xfc\xdfe":                           "is not in UTF-8, in which the page is sent; save it in UTF-8",
		`<p>{{placeholder "x"}}`:                   `function "placeholder" not defined; write {{.Placeholder "http.request.uuid"}}, and within with and range {{$.Placeholder "http.request.uuid"}}`,
		`<p>{{if eq (placeholder "x") ""}}`:        `write {{.Placeholder "http.request.uuid"}}`,
	} {
		file := tempFile(t, source)
		wantRefused(t, source, file, strings.ReplaceAll(want, "FILE", file))
	}
	folder := t.TempDir()
	wantRefused(t, "a folder", folder, folder+" is not a regular file")
}

func wantRefused(t *testing.T, what, file, want string) {
	t.Helper()
	_, err := NewMaker(Options{Template: file, Sample: placeholders(nil)})
	if err == nil || !strings.HasPrefix(err.Error(), "template: ") || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: got the error %v, want %s", what, err, want)
	}
}

// TestPlaceholderOfTemplate covers names with and without braces, a value that is not UTF-8, and the braces of a text and of a script.
func TestPlaceholderOfTemplate(t *testing.T) {
	m := newMaker(t, Options{Template: tempFile(t, `{{.Placeholder "x"}}|{{.Placeholder "{x}"}}|{{.Placeholder "unknown"}}|{{.Placeholder "latin"}}|{{with .URI}}{{$.Placeholder "x"}}{{end}}<b>{{"{"}}header.title}</b><script>f({ header.title})`+"`${err.message} ${http.status}`"+`</script>`)})
	pg := m.Make(&Asked{Method: "GET", Target: "/"}, placeholders(map[string]string{"x": "<a>", "latin": "\xfc"}))
	if got, want := body(t, m, pg, "html"), "&lt;a&gt;|&lt;a&gt;||\uFFFD|&lt;a&gt;<b>{header.title}</b><script>f({ header.title})`${err.message} ${http.status}`</script>"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestChangedTemplateIsReadAgain changes a template in each way that a file can change. The clock is synctest's; the files,
// whose times are set by it, are real.
func TestChangedTemplateIsReadAgain(t *testing.T) {
	const long = time.Hour // since a file was written
	for name, change := range map[string]func(e *editedTemplate){
		"edited": func(e *editedTemplate) {
			before := "one"
			for _, content := range []string{"two", "six", "ten"} {
				e.write(content, 0)
				time.Sleep(990 * time.Millisecond)
				e.wants(before) // it is not looked at within a second
				time.Sleep(10 * time.Millisecond)
				e.wants(content)
				before = content
			}
			e.wantsLogged(inUse, inUse, inUse)
		},
		"with an older time": func(e *editedTemplate) { e.write("two", 2*long); e.becomes("two"); e.wantsLogged(inUse) },
		"with the same time": func(e *editedTemplate) { e.write("three", long); e.becomes("three"); e.wantsLogged(inUse) },
		"replaced by another file": func(e *editedTemplate) {
			if err := os.Rename(newEditedTemplate(e, "two", long).file, e.file); err != nil {
				e.Fatal(err)
			}
			e.becomes("two")
			e.wantsLogged(inUse)
		},
		"broken, then corrected": func(e *editedTemplate) {
			for _, content := range []string{"{{.URI", "{{.Uri}}", " ", "\xff"} {
				e.write(content, long)
				for range 3 {
					e.becomes("one")
				}
			}
			e.wantsLogged("parsing "+e.file, "can't evaluate field Uri", "renders a blank page", "is not in UTF-8")
			e.write("two", long)
			e.becomes("two")
			e.wantsLogged(inUse)
		},
		"removed, and back": func(e *editedTemplate) {
			if err := os.Rename(e.file, e.file+".bak"); err != nil {
				e.Fatal(err)
			}
			for range 3 {
				e.becomes("one")
			}
			e.wantsLogged("reading the file: stat " + e.file)
			e.write("two", long)
			e.becomes("two")
			if err := os.Rename(e.file+".bak", e.file); err != nil {
				e.Fatal(err)
			}
			e.becomes("one")
			e.wantsLogged(inUse, inUse)
		},
		"untouched": func(e *editedTemplate) {
			before := e.parsed.Load()
			for range 3 {
				e.becomes("one")
			}
			if e.parsed.Load() != before {
				e.Error("the file was read again")
			}
		},
		"while another request looks": func(e *editedTemplate) {
			e.write("two", 0)
			time.Sleep(pause)
			e.mu.Lock()
			e.wants("one")
			e.mu.Unlock()
			e.wants("two")
			e.wantsLogged(inUse)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEditedTemplate(t, "one", long)
				change(e)
				e.wantsLogged()
			})
		})
	}
}

// editedTemplate is a template, and the file that it comes from.
type editedTemplate struct {
	testing.TB
	*fileTemplate
	logs *observer.ObservedLogs
}

// newEditedTemplate loads a template from a file that was written some time ago.
func newEditedTemplate(t testing.TB, content string, age time.Duration) *editedTemplate {
	t.Helper()
	core, logs := observer.New(zapcore.DebugLevel)
	e := &editedTemplate{t, &fileTemplate{file: tempFile(t, "")}, logs}
	e.write(content, age)
	var err error
	if e.fileTemplate, err = loadTemplate(e.file, Page{}, zap.New(core)); err != nil {
		t.Fatal(err)
	}
	return e
}

func (e *editedTemplate) write(content string, age time.Duration) {
	e.Helper()
	modified := time.Now().Add(-age)
	if err := errors.Join(os.WriteFile(e.file, []byte(content), 0o600), os.Chtimes(e.file, modified, modified)); err != nil {
		e.Fatal(err)
	}
}

// wants renders the template.
func (e *editedTemplate) wants(content string) {
	e.Helper()
	var body bytes.Buffer
	if err := render(&body, e.latest(), Page{}); err != nil || body.String() != content {
		e.Errorf("got %q, %v, want %q", body.String(), err, content)
	}
}

// becomes renders the template after the next look.
func (e *editedTemplate) becomes(content string) {
	e.Helper()
	time.Sleep(pause)
	e.wants(content)
}

const inUse = "the changed template is in use"

// wantsLogged takes the log entries: that a template is in use, or an error with this part in its text.
func (e *editedTemplate) wantsLogged(parts ...string) {
	e.Helper()
	entries := e.logs.TakeAll()
	if len(entries) != len(parts) {
		e.Errorf("got %d log entries, want %d: %v", len(entries), len(parts), entries)
		return
	}
	for i, entry := range entries {
		fields := entry.ContextMap()
		if entry.Level == zapcore.InfoLevel && entry.Message == parts[i] && fields["template"] == e.file {
			continue
		}
		if text, _ := fields["error"].(string); entry.Level != zapcore.ErrorLevel || fields["template"] != e.file || !strings.Contains(text, parts[i]) {
			e.Errorf("got the log entry %v %v, want an error with %s", entry.Entry, fields, parts[i])
		}
	}
}
