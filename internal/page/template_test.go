package page

import (
	"errors"
	"html/template"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/net/html"
)

// TestUnknownFieldOfTemplate has fields that the data of a template do not have, and other mistakes.
func TestUnknownFieldOfTemplate(t *testing.T) {
	for source, unknown := range map[string]bool{
		"{{.Uri}}": true, "{{with .URI}}{{$.uri}}{{end}}": true, "{{.URI.Host}}": false, "{{index .URI 99999}}": false,
	} {
		_, err := Parse(Options{Template: tempFile(t, source)})
		if err == nil || strings.HasSuffix(err.Error(), "; the fields are .Heading, .URI, .Status, .Message, .Footer") != unknown {
			t.Errorf("%s: got the error %v", source, err)
		}
	}
}

// TestChangedTemplateIsReadAgain changes a template in each way that a file can change. The clock is synctest's; the files,
// whose times are set by it, are real.
func TestChangedTemplateIsReadAgain(t *testing.T) {
	const long = time.Hour // since a file was written
	for name, change := range map[string]func(e *editedTemplate){
		"edited": func(e *editedTemplate) {
			time.Sleep(1500 * time.Millisecond)
			e.write("two", 0)
			e.wants("one") // it may be half-written
			time.Sleep(990 * time.Millisecond)
			e.wants("one")
			time.Sleep(10 * time.Millisecond)
			e.wants("two")
		},
		"edited some time ago": func(e *editedTemplate) {
			e.write("two", time.Second)
			e.wants("one") // it is not looked at within a second
			time.Sleep(990 * time.Millisecond)
			e.wants("one")
			time.Sleep(10 * time.Millisecond)
			e.wants("two")
			e.write("six", time.Second/2)
			time.Sleep(990 * time.Millisecond)
			e.wants("two")
			time.Sleep(10 * time.Millisecond)
			e.wants("six")
		},
		"edited again and again": func(e *editedTemplate) {
			for i, content := range []string{"two", "six", "ten"} {
				e.write(content, long-time.Duration(i+1)*time.Minute)
				e.becomes(content)
			}
		},
		"with an older time":         func(e *editedTemplate) { e.write("two", 2*long); e.becomes("two") },
		"with the same time":         func(e *editedTemplate) { e.write("three", long); e.becomes("three") },
		"with a time to come":        func(e *editedTemplate) { e.write("two", -long); time.Sleep(pause); e.wants("one"); e.becomes("two") },
		"replaced by another file":   func(e *editedTemplate) { e.replace("two", long); e.becomes("two") },
		"replaced by one just begun": func(e *editedTemplate) { time.Sleep(pause); e.replace("two", 0); e.wants("one"); e.becomes("two") },
		"half-written": func(e *editedTemplate) {
			for _, content := range []string{"t", "tw", "two", "two a", "two an"} {
				e.write(content, 0)
				e.wants("one")
				time.Sleep(700 * time.Millisecond)
				e.wants("one")
			}
			e.write("two and", 0)
			time.Sleep(2 * pause)
			e.wants("two and")
		},
		"broken, then mended": func(e *editedTemplate) {
			for _, content := range []string{"{{.URI", "{{.Uri}}", " "} {
				e.write(content, long)
				for range 3 {
					time.Sleep(pause)
					e.wants("one")
				}
			}
			e.wantsLogged("parsing "+e.file, "can't evaluate field Uri in type page.templateData; the fields are .Heading, .URI", "renders a blank page")
			e.write("two", long)
			e.becomes("two")
		},
		"removed, and back": func(e *editedTemplate) {
			if err := os.Rename(e.file, e.file+".bak"); err != nil {
				e.Fatal(err)
			}
			for range 4 {
				time.Sleep(pause)
				e.wants("one")
			}
			e.wantsLogged("reading the file: open " + e.file)
			e.write("two", long)
			e.becomes("two")
			if err := os.Rename(e.file+".bak", e.file); err != nil {
				e.Fatal(err)
			}
			e.becomes("one")
		},
		"removed for a moment": func(e *editedTemplate) {
			if err := os.Remove(e.file); err != nil {
				e.Fatal(err)
			}
			time.Sleep(pause)
			e.wants("one")
			e.write("two", 0)
			time.Sleep(pause)
			e.wants("two")
		},
		"no good, then good without a change": func(e *editedTemplate) {
			e.write(`{{slice (placeholder "page") 0 3}}`, long)
			for range 2 {
				time.Sleep(pause)
				e.wants("one")
			}
			e.wantsLogged("out of range")
			e.values["page"] = "two"
			e.becomes("two")
		},
		"untouched": func(e *editedTemplate) {
			before := e.parsed.Load()
			for range 3 {
				time.Sleep(pause)
				e.wants("one")
			}
			if e.parsed.Load() != before {
				e.Error("the file was read again")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEditedTemplate(t, "one", long)
				e.wants("one")
				change(e)
				e.wantsLogged()
			})
		})
	}

	t.Run("while many requests come", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newEditedTemplate(t, "0", long)
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					last := ""
					for range 500 {
						pg := samplePage()
						if err := e.latest().render(pg, values{}); err != nil || string(pg.body) < last {
							t.Errorf("got %q, %v, after %q", pg.body, err, last)
						}
						last = string(pg.body)
						time.Sleep(10 * time.Millisecond)
					}
				})
			}
			for _, content := range []string{"1", "2", "{{", "3"} {
				time.Sleep(1100 * time.Millisecond)
				e.write(content, time.Second)
			}
			wg.Wait()
			e.wants("3")
			e.wantsLogged("parsing " + e.file)
		})
	})

	t.Run("after it was loaded half-written", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newEditedTemplate(t, "one", 0)
			e.write("two", 0) // within what the file system takes for one moment
			e.wants("one")
			e.becomes("two")
		})
	})
}

// editedTemplate is a template, and the file that it comes from.
type editedTemplate struct {
	testing.TB
	*fileTemplate
	values values
	logs   *observer.ObservedLogs
}

// newEditedTemplate loads a template from a file that was written some time ago.
func newEditedTemplate(t testing.TB, content string, age time.Duration) *editedTemplate {
	t.Helper()
	core, logs := observer.New(zapcore.DebugLevel)
	e := &editedTemplate{t, &fileTemplate{file: tempFile(t, "")}, values{}, logs}
	e.write(content, age)
	var err error
	if e.fileTemplate, err = loadTemplate(e.file, samplePage(), e.values, zap.New(core)); err != nil {
		t.Fatal(err)
	}
	return e
}

func (e *editedTemplate) write(content string, age time.Duration) {
	e.Helper()
	e.writeTo(e.file, content, age)
}

// replace puts another file in the place of the file.
func (e *editedTemplate) replace(content string, age time.Duration) {
	e.Helper()
	e.writeTo(e.file+".new", content, age)
	if err := os.Rename(e.file+".new", e.file); err != nil {
		e.Fatal(err)
	}
}

func (e *editedTemplate) writeTo(file, content string, age time.Duration) {
	e.Helper()
	modified := time.Now().Add(-age)
	if err := errors.Join(os.WriteFile(file, []byte(content), 0o600), os.Chtimes(file, modified, modified)); err != nil {
		e.Fatal(err)
	}
}

// wants renders the template.
func (e *editedTemplate) wants(content string) {
	e.Helper()
	pg := samplePage()
	if err := e.latest().render(pg, e.values); err != nil || string(pg.body) != content {
		e.Errorf("got %q, %v, want %q", pg.body, err, content)
	}
}

// becomes renders the template after the next look.
func (e *editedTemplate) becomes(content string) {
	e.Helper()
	time.Sleep(pause)
	e.wants(content)
}

// wantsLogged takes the errors from the log. Each has a part of its text.
func (e *editedTemplate) wantsLogged(parts ...string) {
	e.Helper()
	entries := e.logs.TakeAll()
	if len(entries) != len(parts) {
		e.Errorf("got %d log entries, want %d: %v", len(entries), len(parts), entries)
		return
	}
	for i, entry := range entries {
		fields := entry.ContextMap()
		if text, _ := fields["error"].(string); entry.Level != zapcore.ErrorLevel || fields["template"] != e.file || !strings.Contains(text, parts[i]) {
			e.Errorf("got the log entry %v %v, want an error with %s", entry.Entry, fields, parts[i])
		}
	}
}

// TestBuiltInPageIsItsTemplate compares the page, which is put together from pieces of its template, with what html/template
// renders.
func TestBuiltInPageIsItsTemplate(t *testing.T) {
	p := &Page{URI: []byte("http://a.test/x?y&z='1'+"), Message: []byte("No endpoint G'&ET /app/missing.html."), Footer: `<b>"Powered" & 'Ü' mark-of-URI`}
	var want strings.Builder
	if err := template.Must(template.New("").Parse(BuiltIn)).Execute(&want, templateData{
		"HTTP ERROR 404 " + string(p.Message), string(p.URI), 404, string(p.Message), p.Footer,
	}); err != nil {
		t.Fatal(err)
	}
	// html/template escapes the plus as well
	if got, want := html.UnescapeString(string(appendHTML(nil, p))), html.UnescapeString(want.String()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if strings.Contains(string(appendHTML(nil, p)), "<b>") {
		t.Error("the footer is not escaped")
	}
}

// TestBuiltInPageStandsAlone looks for anything that would make a browser send another request or run a script.
func TestBuiltInPageStandsAlone(t *testing.T) {
	document := string(appendHTML(nil, samplePage()))
	doc, err := html.Parse(strings.NewReader(document))
	if err != nil {
		t.Fatal(err)
	}
	for n := range doc.Descendants() {
		for _, a := range n.Attr {
			if a.Key == "src" || a.Key == "href" || a.Key == "style" || strings.HasPrefix(a.Key, "on") {
				t.Errorf("%s has %s", n.Data, a.Key)
			}
		}
		if n.Data == "script" || n.Data == "link" || n.Data == "img" {
			t.Errorf("the page has the element %s", n.Data)
		}
	}
	for _, part := range []string{`<html lang="en">`, "<title>404 Not Found</title>", `name="viewport"`, "prefers-color-scheme: dark"} {
		if !strings.Contains(document, part) {
			t.Errorf("the page lacks %s", part)
		}
	}
	if strings.Contains(document, "url(") || strings.Contains(document, "@import") {
		t.Error("the style needs another request")
	}
}
