package page

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddyserver/caddy/v2"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp" // the app of a running config
)

// TestTemplateIsRefused covers mistakes in the source.
func TestTemplateIsRefused(t *testing.T) {
	const (
		fields   = `.Heading, .URI, .Status, .Message, .Footer and .Placeholder "http.request.uuid"`
		inString = `not valid JSON: invalid character 'N' looking for beginning of value; a field belongs inside quotes, as in "{{.Message}}"`
		hostile  = "trying it on a sample page with quotes and brackets: "
	)
	for format, mistakes := range map[string]map[string]string{
		"html": {
			"{{.Uri}}":         "can't evaluate field Uri in type page.Page; the fields are " + fields + "; within with and range, they begin with $.",
			"<p>\n<p>{{.Uri}}": "trying it on a sample page: template: 404:2:5: executing",
			`{{with .URI}}{{.Placeholder "x"}}{{end}}`: "can't evaluate field Placeholder in type string; the fields are ",
			"<p>{{.URI":                           "template: 404:1: ",
			"<p>{{URI}}":                          `function "URI" not defined; the fields begin with a dot: ` + fields,
			"<p title='{{.URI}}>":                 "; look for a quote, a tag or a comment that is not closed",
			"<p>{http.request.uuid}</p>":          `it has {http.request.uuid}, which would be printed as it stands; write {{.Placeholder "http.…"}}, or for plain braces {{"{"}}http.request.uuid}, and in a script { http.request.uuid}`,
			"{{.URI}}{header.X-Id}":               "it has {header.X-Id}, ",
			"{{index .URI 99999}}":                "trying it on a sample page: template: 404:1:2: executing",
			"<p>Gr\xfc\xdfe":                      "the page is not in UTF-8; save the file in UTF-8",
			`{{printf "\xff"}}`:                   "the page is not in UTF-8; save the file in UTF-8, and mind that slice can cut a character in two",
			"":                                    "it renders a blank page; write the page at the top level of the file, outside of define",
			`{{define "page"}}<p>{{.URI}}{{end}}`: "it renders a blank page",
		},
		"json": {
			`{"message": {{.Message}}}`:      inString,
			`{"heading": "{{.Heading}}"} {}`: "not valid JSON: invalid character '{' after top-level value",
			"\uFEFF{}":                       "not valid JSON: invalid character 'ï'",
			`{"port": {{or (.Placeholder "http.vars.port") 80}}}`:              hostile + "the page is not valid JSON",
			`{"id": "x"{{with .Placeholder "id"}},{{.}}{{end}}}`:               hostile + "the page is not valid JSON",
			`{"x": "{{.Placeholder "http.request.method" | printf "%.2s"}}\"}`: "the page is not valid JSON",
			"{\"x\": \"\xff\"}":       "the page is not in UTF-8; save the file in UTF-8",
			" {{if false}}x{{end}}\n": "not valid JSON: unexpected end of JSON input",
		},
		"problem": {`{"detail": {{.Message}}}`: inString},
		"xml": {
			"<a>{{.Message}}":             "not well-formed XML: ",
			"<a b={{.Message}}/>":         "; a field belongs inside an element, or inside the quotes of an attribute",
			"<a/><b/>":                    "the page has 2 root elements; XML has one",
			"<!-- nothing -->":            "the page has 0 root elements",
			"text<a/>":                    `the page has "text" where it has no place`,
			"<a/>\u00A0":                  `where it has no place`,
			"<a/>&#32;":                   `the page has "&#32;" where it has no place`,
			"<a/><![CDATA[ ]]>":           `where it has no place`,
			"\uFEFF<a/>":                  `where it has no place`,
			"\n<?xml version='1.0'?><a/>": "the page has \"<?xml version='1.0'?>\" where it has no place",
			"<!DOCTYPE a><a/>":            `the page has "<!DOCTYPE a>" where it has no place`,
			"<a><!-- {{.Footer}} --></a>": hostile + "the page is not well-formed XML",
			"<a>{{html .URI}}</b>":        "not well-formed XML",
		},
		"text": {
			"{{.Uri}}": "can't evaluate field Uri",
			"\t\n":     "it renders a blank page",
			"\xfc":     "the page is not in UTF-8; save the file in UTF-8",
		},
		"markdown": {"# {{.Heading": "template: 404:1: ", `{{printf "\xff"}}`: "the page is not in UTF-8"},
	} {
		f, err := formatOf(format)
		if err != nil {
			t.Fatal(err)
		}
		for source, want := range mistakes {
			if _, err := f.parse("404", []byte(source), sample); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %s: got the error\n%v\nwant\n%s", format, source, err, want)
			}
		}
	}
}

// sample returns a page to try a template with.
func sample() Page {
	return newSample("Powered by Caddy", func() Placeholders { return placeholders(nil) })()
}

// TestTemplateIsTried loads templates that are unusual and right.
func TestTemplateIsTried(t *testing.T) {
	const optional = `"{{slice .Message 0 20}}"{{with .Placeholder "http.auth.user.id"}},"user":"{{.}}"{{end}}`
	for format, source := range map[string]string{
		"html":     `{{slice .URI 0 7}}{{slice .Message 0 11}}{{slice .Footer 0 7}}{{slice .Heading 0 14}}{{if ne .Status 404}}{{index .URI 99999}}{{end}}`,
		"text":     "{{slice .Message 0 20}}",
		"markdown": "{{slice .Message 0 20}} {{slice .URI 0 20}}",
		"json":     `{"message":` + optional + `}`,
		"problem":  `{"detail":` + optional + `, "braces": "${err.message} {{"{"}}header.title}"}`,
		"xml":      "<?xml version='1.0'?>\n<!-- ours --><?x y?><a b='{{.Message}}' c=\"{{.URI}}\">{{.Footer}}<![CDATA[{{.URI}}]]></a>\n<!-- end -->",
	} {
		f, err := formatOf(format)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.parse("404", []byte(source), sample); err != nil {
			t.Errorf("%s: %v", format, err)
		}
	}
}

// TestTextsAreEscapedForTheFormat has a template of each format show every field, and placeholders with what their
// format escapes or cannot have. TestExportedTemplateIsTheBuiltInPage shows that the built-in pages escape the same.
func TestTextsAreEscapedForTheFormat(t *testing.T) {
	const (
		line   = `<b>"'&amp;'</b> \ ü€😀 ]]> *_[x](y)_* {a} b|c www.a.test WWW.a.test`
		inHTML = `&lt;b&gt;&#34;&#39;&amp;amp;&#39;&lt;/b&gt; \ ü€😀 ]]&gt; *_[x](y)_* {a} b|c www.a.test WWW.a.test`
	)
	values := placeholders(map[string]string{
		"line":    " \n" + line + "\x00\r\n",
		"item":    "- x",
		"list":    "1. x",
		"control": "a\\\n\x00\uFFFE",
		"latin":   "\xfc",
	})
	const source = `{{.Heading}}|{{.URI}}|{{.Status}}|{{.Message}}|{{.Footer}}|{{.Placeholder "control"}}|` +
		`{{.Placeholder "{list}"}}|{{.Placeholder "latin"}}|{{.Placeholder "unknown"}}|{{with .URI}}{{$.Placeholder "list"}}{{end}}`
	for format, tt := range map[string]struct {
		around string // the source, as it has to be for a valid page
		line   string // escaped
		page   string
	}{
		"text": {
			around: "SOURCE",
			line:   line,
			page:   "HTTP ERROR 404 LINE|http://a.test/?x&y|404|LINE|- x|a\\|1. x|\uFFFD||1. x",
		},
		"markdown": {
			around: "SOURCE",
			line:   `\<b\>"'\&amp;'\</b\> \\ ü€😀 \]\]\> \*\_\[x\](y)\_\* \{a\} b\|c www\.a.test WWW\.a.test`,
			page:   `HTTP ERROR 404 LINE|<http://a.test/?x&y>|404|LINE|&#45; x|a\\|&#49;. x|` + "\uFFFD||&#49;. x",
		},
		"json": {
			around: `"SOURCE"`,
			line:   `<b>\"'&amp;'</b> \\ ü€😀 ]]> *_[x](y)_* {a} b|c www.a.test WWW.a.test`,
			page:   `HTTP ERROR 404 LINE|http://a.test/?x&y|404|LINE|- x|a\\\u000a\u0000` + "\uFFFE|1. x|\uFFFD||1. x",
		},
		"xml": {
			around: "<a>SOURCE</a>",
			line:   inHTML,
			page:   "HTTP ERROR 404 LINE|http://a.test/?x&amp;y|404|LINE|- x|a\\|1. x|\uFFFD||1. x",
		},
		"html": {
			around: "SOURCE",
			line:   inHTML,
			page:   "HTTP ERROR 404 LINE|http://a.test/?x&amp;y|404|LINE|- x|a\\\n\uFFFD\uFFFE|1. x|\uFFFD||1. x",
		},
	} {
		file := tempFile(t, strings.ReplaceAll(tt.around, "SOURCE", source))
		m := newMaker(t, Options{Message: "{line}", Footer: "{item}", Templates: map[string]string{format: file}})
		pg := m.Make(&Asked{Method: "GET", Target: "/?x&y", Scheme: "http", Authority: "a.test"}, values)
		want := strings.ReplaceAll(tt.around, "SOURCE", strings.ReplaceAll(tt.page, "LINE", tt.line))
		if got := body(t, m, pg, format); got != want {
			t.Errorf("%s: got\n%q\nwant\n%q", format, got, want)
		}
	}
}

// TestExportedTemplateIsTheBuiltInPage renders the built-in pages as templates. html/template escapes more in HTML.
func TestExportedTemplateIsTheBuiltInPage(t *testing.T) {
	files := make(map[string]string)
	for _, format := range Formats() {
		source, err := BuiltIn(format)
		if err != nil {
			t.Fatal(err)
		}
		files[format] = tempFile(t, source)
	}
	exported := newMaker(t, Options{Message: "{m}", Footer: "{f}", Templates: files})
	builtIn := newMaker(t, Options{Message: "{m}", Footer: "{f}"})
	for _, uri := range []string{"https://a.test/?a&b", "javascript:&a;"} {
		values := placeholders(map[string]string{"m": "<\"a\\\n*'&>", "f": "1. x"})
		pg := builtIn.Make(&Asked{Method: "GET", Target: uri}, values)
		for _, format := range Formats() {
			if got, want := body(t, exported, pg, format), body(t, builtIn, pg, format); got != want {
				t.Errorf("%s: got\n%s\nwant\n%s", format, got, want)
			}
		}
	}
}

// TestBrokenPageIsReplaced has a client make templates fail, or make pages that are not valid in their format. The
// built-in page is sent, and the error is logged at most once between two looks at the file.
func TestBrokenPageIsReplaced(t *testing.T) {
	for source, want := range map[string]struct{ format, value, err string }{
		`{{slice (.Placeholder "x" | printf "%-9s") 0 9}}{{.URI}}`: {
			"html",
			"ääääää",
			"the page is not in UTF-8",
		},
		`{{slice (.Placeholder "x" | printf "%-9s") 0 9}}.`: {
			"text",
			"ääääää",
			"the page is not in UTF-8",
		},
		`{{if eq (.Placeholder "x") "yes"}}{{index .URI 99999}}{{end}}a`: {"markdown", "yes", "index out of range"},
		`{"x":"{{.Placeholder "x" | printf "%.3s"}}"}`:                   {"json", `ab"`, "the page is not valid JSON"},
		`{"x":{{if eq (.Placeholder "x") "yes"}},{{end}}1}`: {
			"problem",
			"yes",
			"the page is not valid JSON",
		},
		`<a>{{.Placeholder "x" | printf "%.10s"}}{{.URI | printf "%.0s"}}</a>`: {"xml", "aaaaaaa<", "the page is not well-formed XML"},
		`<a/>{{if eq (.Placeholder "x") "yes"}}<b/>{{end}}`: {
			"xml",
			"yes",
			"the page has 2 root elements",
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			core, logs := observer.New(zapcore.DebugLevel)
			files := map[string]string{want.format: tempFile(t, source)}
			m := newMaker(t, Options{Templates: files, Logger: zap.New(core)})
			asked := Asked{Method: "GET", Target: "/", Scheme: "https", Authority: "a.test"}
			broken := m.Make(&asked, placeholders(map[string]string{"x": want.value}))
			builtIn := body(t, newMaker(t, Options{}), broken, want.format)
			for range 3 {
				for range 3 {
					if got := body(t, m, broken, want.format); got != builtIn {
						t.Errorf("%s: got\n%s\nwant\n%s", source, got, builtIn)
					}
				}
				time.Sleep(pause)
			}
			wantLogged(t, logs, files[want.format], want.err, want.err, want.err)
			if body(t, m, m.Make(&asked, placeholders(nil)), want.format) == builtIn {
				t.Errorf("%s: the harmless page is the built-in one", source)
			}
		})
	}
}

// TestChangedTemplateIsReadAgain changes a template in each way that a file can change. The clock is synctest's; the
// files, whose times are set by it, are real.
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
		"with the same time and size": func(e *editedTemplate) {
			e.write("two", long)
			e.becomes("two")
			e.wantsLogged(inUse)
		},
		"broken, then corrected": func(e *editedTemplate) {
			for _, content := range []string{"{{.URI", "{{.Uri}}", "", "\xff"} {
				e.write(content, long)
				for range 3 {
					e.becomes("one")
				}
			}
			e.wantsLogged("unclosed action", "can't evaluate field Uri", "renders a blank page", "not in UTF-8")
			e.write("one", long)
			e.becomes("one")
			e.wantsLogged(inUse)
		},
		"removed, and back": func(e *editedTemplate) {
			e.must(os.Rename(e.file, e.file+".bak"))
			for range 3 {
				e.becomes("one")
			}
			e.must(os.Mkdir(e.file, 0o700))
			for range 3 {
				e.becomes("one")
			}
			e.wantsLogged("stat "+e.file, "is not a regular file")
			e.must(errors.Join(os.Remove(e.file), os.Rename(e.file+".bak", e.file)))
			e.becomes("one")
			e.wantsLogged(inUse)
		},
		"untouched, with another time": func(e *editedTemplate) {
			before := e.template().used.Load()
			e.write("one", 0)
			for range 3 {
				e.becomes("one")
			}
			if e.template().used.Load() != before {
				e.Error("the template was parsed again")
			}
		},
		"while another request looks": func(e *editedTemplate) {
			e.write("two", 0)
			time.Sleep(pause)
			e.template().mu.Lock()
			e.wants("one")
			e.template().mu.Unlock()
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

// editedTemplate is a template for text, and the file that it comes from.
type editedTemplate struct {
	testing.TB
	file  string
	maker *Maker
	logs  *observer.ObservedLogs
}

// newEditedTemplate loads a template from a file that was written some time ago.
func newEditedTemplate(t testing.TB, content string, age time.Duration) *editedTemplate {
	t.Helper()
	core, logs := observer.New(zapcore.DebugLevel)
	e := &editedTemplate{TB: t, file: tempFile(t, ""), logs: logs}
	e.write(content, age)
	e.maker = newMaker(t, Options{Templates: map[string]string{"text": e.file}, Logger: zap.New(core)})
	return e
}

func (e *editedTemplate) template() *fileTemplate { return e.maker.templates[0] }

func (e *editedTemplate) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

func (e *editedTemplate) write(content string, age time.Duration) {
	e.Helper()
	e.must(os.WriteFile(e.file, []byte(content), 0o600))
	modified := time.Now().Add(-age)
	e.must(os.Chtimes(e.file, modified, modified))
}

// wants renders the template.
func (e *editedTemplate) wants(content string) {
	e.Helper()
	if got := body(e, e.maker, Page{}, "text"); got != content {
		e.Errorf("got %q, want %q", got, content)
	}
}

// becomes renders the template after the next look.
func (e *editedTemplate) becomes(content string) {
	e.Helper()
	time.Sleep(pause)
	e.wants(content)
}

const inUse = "the changed template is in use"

func (e *editedTemplate) wantsLogged(parts ...string) {
	e.Helper()
	wantLogged(e, e.logs, e.file, parts...)
}

// wantLogged takes the log entries about a template: that it is in use, or an error with this part in its text.
func wantLogged(t testing.TB, logs *observer.ObservedLogs, file string, parts ...string) {
	t.Helper()
	entries := logs.TakeAll()
	if len(entries) != len(parts) {
		t.Errorf("got %d log entries, want %d: %v", len(entries), len(parts), entries)
		return
	}
	for i, entry := range entries {
		fields := entry.ContextMap()
		text, _ := fields["error"].(string)
		isInfo := entry.Level == zapcore.InfoLevel && entry.Message == parts[i]
		isError := entry.Level == zapcore.ErrorLevel && strings.Contains(text, parts[i])
		if fields["template"] != file || !isInfo && !isError {
			t.Errorf("got the log entry %v %v, want %s", entry.Entry, fields, parts[i])
		}
	}
}

// TestHandlersShareATemplate has several handlers name a file. What they log goes to the logger of the one that looks.
func TestHandlersShareATemplate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := tempFile(t, "{{.Message}}")
		html := func(message, file string) (*Maker, *observer.ObservedLogs) {
			core, logs := observer.New(zapcore.DebugLevel)
			templates := map[string]string{"html": file}
			return newMaker(t, Options{Message: message, Templates: templates, Logger: zap.New(core)}), logs
		}
		first, firstLogs := html("first", file)
		t.Chdir(filepath.Dir(file))
		second, secondLogs := html("second", filepath.Base(file))
		text := newMaker(t, Options{Templates: map[string]string{"text": file}})
		t.Chdir(t.TempDir()) // the key stays
		if first.templates[1] != second.templates[1] || first.templates[1] == text.templates[0] {
			t.Error("handlers have templates of their own, or share one for different formats")
		}

		change := func(content string) {
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			time.Sleep(pause)
		}
		for content, want := range map[string]string{"{{.URI": "unclosed action", "x": inUse} {
			change(content)
			for _, m := range []*Maker{second, first} {
				pg := m.Make(&Asked{Method: "GET", Target: "/"}, placeholders(nil))
				body(t, m, pg, "html")
			}
			wantLogged(t, firstLogs, file)
			wantLogged(t, secondLogs, file, want)
		}
		change("y")
		_, thirdLogs := html("third", file) // of a reload
		wantLogged(t, thirdLogs, file, inUse)
		closeNow(second)
		wantReferences(t, file, "html", 2)
	})
}

// emptyConfig is a config with an HTTP app. It serves, stores and logs nothing.
const emptyConfig = `{
	"admin": {"disabled": true, "config": {"persist": false}},
	"logging": {"logs": {"default": {"writer": {"output": "discard"}}}},
	"apps": {"http": {}, "tls": {"disable_storage_clean": true}}
}`

// TestStartAndReload loads configs with templates that cannot be used, when no config is running and when one is.
func TestStartAndReload(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	good := tempFile(t, "good")
	broken := tempFile(t, "{{.Uri}}")
	missing := filepath.Join(t.TempDir(), "404.html")
	options := func(text, html string) Options {
		return Options{
			Templates: map[string]string{"text": text, "html": html},
			Sample:    func() Placeholders { return placeholders(nil) },
			Logger:    zap.New(core),
		}
	}

	// a start
	running := newMaker(t, options(good, broken))
	wantLogged(t, logs, broken, "can't evaluate field Uri")
	second := newMaker(t, options(good, broken))
	wantLogged(t, logs, broken)
	pg := second.Make(&Asked{Method: "GET", Target: "/", Scheme: "https", Authority: "a.test"}, placeholders(nil))
	if got := body(t, second, pg, "html"); got != body(t, newMaker(t, Options{}), pg, "html") {
		t.Errorf("while the template is broken, the page is\n%s", got)
	}
	wantReferences(t, broken, "html", 2)

	// a reload
	if err := caddy.Load([]byte(emptyConfig), true); err != nil {
		t.Fatal(err)
	}
	defer caddy.Stop()
	reloaded := newMaker(t, options(good, broken)) // as is running
	wantReferences(t, broken, "html", 3)
	for file, want := range map[string]string{
		missing: "; for the built-in page to begin with, run caddy not-found export-template html",
		good:    "",
	} {
		m, err := NewMaker(options(good, file))
		if m != nil {
			m.Close()
		}
		if want != "" && (m != nil || err == nil || !strings.Contains(err.Error(), want)) || want == "" && err != nil {
			t.Errorf("%s: got %v, the error %v, want %s", file, m, err, want)
		}
	}
	if m, err := NewMaker(options(broken, good)); m != nil || err == nil { // it runs as HTML, and not as text
		t.Errorf("got %v, the error %v", m, err)
	}
	wantReferences(t, good, "text", 3)
	wantReferences(t, missing, "html", 0)
	wantReferences(t, broken, "text", 0)
	wantLogged(t, logs, broken)

	// the end
	closeNow(running, second, reloaded)
	wantReferences(t, broken, "html", 0)
	wantReferences(t, good, "text", 0)
}

// closeNow closes what newMaker would close at the end of the test.
func closeNow(makers ...*Maker) {
	for _, m := range makers {
		m.Close()
		m.templates = nil
	}
}

func wantReferences(t *testing.T, file, format string, want int) {
	t.Helper()
	if got, _ := pool.References(templateKey{file, format}); got != want {
		t.Errorf("%s as %s: the pool counts %d handlers, want %d", file, format, got, want)
	}
}

// BenchmarkLook looks at a file of 100 kB that has not changed.
func BenchmarkLook(b *testing.B) {
	file := tempFile(b, strings.Repeat("x", 100_000))
	m := newMaker(b, Options{Templates: map[string]string{"text": file}})
	for b.Loop() {
		m.templates[0].looked = time.Time{}
		m.templates[0].look(m.logger)
	}
}
