package page

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// withActions is a page that a template would change.
const withActions = `<p>{{.Placeholder "env.PATH"}} {{`

// newSites returns a folder with a folder for each site, which has a 404.html. The one beside them is no site's.
func newSites(t testing.TB, pages map[string]string) (root string) {
	dir := t.TempDir()
	root = filepath.Join(dir, "sites")
	for site, page := range pages {
		if err := os.MkdirAll(filepath.Join(root, site), 0o700); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(root, site, "404.html"), page)
	}
	writeFile(t, filepath.Join(dir, "404.html"), "no site's")
	return root
}

// sites returns options for the pages of sites in a format, each in the folder that a placeholder names.
func sites(root, placeholder, format string) Options {
	return Options{Templates: rows{format: {root + "/{" + placeholder + "}/404.html"}}}
}

const host, variable = "http.request.host", "http.vars.site"

// noSuchFile is in the words of the system.
var noSuchFile = syscall.ENOENT.Error()

// TestPageOfASite sends the file of a site as it is, or the built-in page. The mistakes of sites and of their operator
// are logged, and a file that does not exist is at the level debug.
func TestPageOfASite(t *testing.T) {
	root := newSites(t, map[string]string{
		"a.test":   withActions,
		"json":     `{"a": "b"}`,
		"empty":    "",
		"latin1":   "f\xfcr",
		"too long": strings.Repeat("x", maxSize+1),

		"folder/404.html": "",
	})
	for _, tt := range []struct {
		placeholder, value string
		format             string // empty: html
		want               string // empty: the built-in page
		missing            string // the end of the path of a file that does not exist
		logged             string // the mistake; empty: none
	}{
		{placeholder: host, value: "a.test", want: withActions},
		{placeholder: variable, value: "./a.test/", want: withActions},
		{placeholder: variable, value: "json", format: "json", want: `{"a": "b"}`},
		{placeholder: variable, value: "a.test", format: "json", want: withActions}, // not validated: it is the site's
		{placeholder: variable, value: "latin1", want: "f\xfcr"},

		{placeholder: host, value: "b.test", missing: "/b.test/404.html"},
		{placeholder: host, value: "", missing: "/{http.request.host}/404.html"},
		{placeholder: host, value: strings.Repeat("x", 1000), missing: "xx/404.html"},
		{placeholder: host, value: strings.Repeat("x", 40_000), missing: "xx/404.html"},
		{placeholder: host, value: "\xff", missing: "\xff/404.html"},
		{placeholder: host, value: "\x00", missing: "\x00/404.html"},
		{placeholder: host, value: "\"*\x01", missing: "\"*\x01/404.html"},      // no name on Windows
		{placeholder: variable, value: "a.test/404.html", missing: "/404.html"}, // has no file, because it is one

		{placeholder: variable, logged: "the placeholder {http.vars.site} is unknown or empty"},
		{placeholder: "http.request.x", logged: "the placeholder {http.request.x} is unknown or empty"},
		{placeholder: variable, value: "empty", logged: "it is empty"},
		{placeholder: variable, value: "too long", logged: "more than 1 MiB"},
		{placeholder: variable, value: "folder", logged: "not a regular file"},
	} {
		format := cmp.Or(tt.format, "html")
		known := values{host: "", variable: ""}
		if tt.value != "" {
			known[tt.placeholder] = tt.value
		}
		m, logs := observed(t, sites(root, tt.placeholder, format))
		pg := m.Make(ask("GET", "/"), placeholders(known))
		want := tt.want
		if want == "" {
			want = body(t, newMaker(t, Options{}), pg, format)
		}
		if got := body(t, m, pg, format); got != want {
			t.Errorf("{%s}, %.20q: got\n%.500s\nwant\n%s", tt.placeholder, tt.value, got, want)
		}
		missing := ""
		for _, entry := range logs.FilterLevelExact(zapcore.DebugLevel).All() {
			missing += entry.ContextMap()["template"].(string)
		}
		if !strings.HasSuffix(missing, tt.missing) || (missing == "") != (tt.missing == "") {
			t.Errorf("{%s}, %.20q: the file %q is missing, want %q", tt.placeholder, tt.value, missing, tt.missing)
		}
		wantMistake(t, logs, tt.logged)
	}
}

// wantMistake takes the log entry of a mistake. If the mistake is empty, there is none.
func wantMistake(t *testing.T, logs *observer.ObservedLogs, mistake string) {
	t.Helper()
	got := ""
	for _, entry := range logs.TakeAll() {
		if entry.Level == zapcore.DebugLevel {
			continue
		}
		fields := entry.ContextMap()
		got += fmt.Sprintln(fields["template"], fields["error"])
	}
	isOne := strings.Count(got, "404.html ") == 1 && strings.Contains(got, mistake)
	if mistake == "" && got != "" || mistake != "" && !isOne {
		t.Errorf("got the log\n%s\nwant the mistake %q", got, mistake)
	}
}

// TestMistakesOfSitesAreLoggedOnceAMinute also mends a page, which is used at once.
func TestMistakesOfSitesAreLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := newSites(t, map[string]string{"a.test": "", "b.test": ""})
		m, logs := observed(t, sites(root, host, "html"))
		pageOf := func(site string) Page { return m.Make(ask("GET", "/"), placeholders(values{host: site})) }
		for want := 1; want <= 3; want++ {
			for range 2 {
				body(t, m, pageOf("a.test"), "html")
				body(t, m, pageOf("b.test"), "html")
				if got := logs.Len(); got != want {
					t.Errorf("got %d log entries, want %d", got, want)
				}
				time.Sleep(30 * time.Second)
			}
		}
		writeFile(t, filepath.Join(root, "a.test", "404.html"), "mended")
		wantBody(t, m, pageOf("a.test"), "html", "mended")
	})
}

// TestNoValueLeavesItsFolder covers what means the same on each system.
func TestNoValueLeavesItsFolder(t *testing.T) {
	const path = `C:\sites\a.test`
	for value, want := range map[string]error{
		"":     fs.ErrNotExist,
		".":    fs.ErrNotExist,
		" .":   fs.ErrNotExist,
		"a/b":  fs.ErrNotExist,
		`a\b`:  fs.ErrNotExist,
		"a..b": nil,
	} {
		for _, sent := range []string{host, "http.reverse_proxy.header.X-Site"} {
			both := file{isOfSite: true, path: "{" + sent + "}{" + variable + "}"}
			got, err := both.expand(placeholders(values{sent: value, variable: path}))
			if err != want || err == nil && got != value+path {
				t.Errorf("{%s}, %q: got %q, %v, want the error %v", sent, value, got, err, want)
			}
		}
	}
	for _, value := range []string{"..", "/a.test/../..", `\a\..`, `\a\.. .\b`, "/.. ./x"} {
		site := file{isOfSite: true, path: "{" + variable + "}"}
		got, err := site.expand(placeholders(values{variable: value}))
		if err != fs.ErrNotExist {
			t.Errorf("%q: got %q, %v", value, got, err)
		}
	}
}

// TestSitesTakeNoMemory has clients ask for made-up hosts, and for many sites.
func TestSitesTakeNoMemory(t *testing.T) {
	pages := make(map[string]string)
	for i := range 3000 {
		pages[strconv.Itoa(i)] = withActions
	}
	m := newMaker(t, sites(newSites(t, pages), host, "html"))
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // or a collection would close files
	askAll := func(hosts int) uint64 {
		for i := range hosts {
			pg := m.Make(ask("GET", "/"), placeholders(values{host: strconv.Itoa(i)}))
			rep := m.Represent(&pg, "text/html")
			rep.Free()
		}
		if open, _ := os.ReadDir("/proc/self/fd"); len(open) > 100 { // none, except on Linux
			t.Error(len(open), "files are open")
		}
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	before := askAll(10)
	if after := askAll(23_000); after > before+256<<10 {
		t.Errorf("23,000 hosts took %d bytes", after-before)
	}
}

// TestChangedFileIsReadAgain changes a kept file in each way that a file can change. The clock is synctest's; the
// files, whose times are set by it, are real.
func TestChangedFileIsReadAgain(t *testing.T) {
	const long = time.Hour // since a file was written
	for name, change := range map[string]func(e *editedFile){
		"edited, with actions and without": func(e *editedFile) {
			e.write("{{.Status}}", 0)
			time.Sleep(pause - time.Millisecond)
			e.wants("one")
			time.Sleep(time.Millisecond)
			e.wants("0")
			e.write("two", 0)
			e.becomes("two")
			e.wantsLogged(inUse, inUse)
		},
		"with the same time and size": func(e *editedFile) {
			e.write("two", long)
			e.becomes("two")
			e.wantsLogged(inUse)
		},
		"too long": func(e *editedFile) {
			e.must(os.Truncate(e.file, maxSize+1))
			e.becomes("one")
			e.wantsLogged("it has more than 1 MiB")
		},
		"broken, then corrected": func(e *editedFile) {
			for _, content := range []string{"{{.URI", "{{.Uri}}"} {
				e.write(content, long)
				for range 3 {
					e.becomes("one")
				}
			}
			e.wantsLogged("unclosed action", "can't evaluate field Uri")
			e.write("one", long)
			e.becomes("one")
			e.wantsLogged(inUse)
		},
		"removed, and back": func(e *editedFile) {
			e.must(os.Remove(e.file))
			for range 3 {
				e.becomes("one")
			}
			e.must(os.Mkdir(e.file, 0o700))
			e.becomes("one")
			e.wantsLogged("run caddy not-found export-template text", "is not a regular file")
			e.must(os.Remove(e.file))
			e.write("one", long)
			e.becomes("one")
			e.wantsLogged(inUse)
		},
		"untouched, with another time": func(e *editedFile) {
			before := e.kept().kept.Load()
			e.write("one", 0)
			for range 3 {
				e.becomes("one")
			}
			if e.kept().kept.Load() != before {
				e.Error("the file was parsed again")
			}
		},
		"while another request looks": func(e *editedFile) {
			e.write("two", 0)
			time.Sleep(pause)
			e.kept().reading.Lock()
			e.wants("one")
			e.kept().reading.Unlock()
			e.wants("two")
			e.wantsLogged(inUse)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEditedFile(t, "one", long)
				change(e)
				e.wantsLogged()
			})
		})
	}
}

// editedFile is a kept file for text.
type editedFile struct {
	testing.TB
	file  string
	maker *Maker
	logs  *observer.ObservedLogs
}

// newEditedFile loads a file that was written some time ago.
func newEditedFile(t testing.TB, content string, age time.Duration) *editedFile {
	t.Helper()
	e := &editedFile{TB: t, file: tempFile(t, "")}
	e.write(content, age)
	e.maker, e.logs = observed(t, Options{Templates: rows{"text": {e.file}}})
	return e
}

func (e *editedFile) kept() *file {
	return e.maker.files[0]
}

func (e *editedFile) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

func (e *editedFile) write(content string, age time.Duration) {
	e.Helper()
	writeFile(e, e.file, content)
	modified := time.Now().Add(-age)
	e.must(os.Chtimes(e.file, modified, modified))
}

// wants renders the template.
func (e *editedFile) wants(content string) {
	e.Helper()
	wantBody(e, e.maker, Page{}, "text", content)
}

// becomes renders the template after the file is read again.
func (e *editedFile) becomes(content string) {
	e.Helper()
	time.Sleep(pause)
	e.wants(content)
}

const inUse = "the changed file of a page is in use"

func (e *editedFile) wantsLogged(parts ...string) {
	e.Helper()
	wantLogged(e, e.logs, e.file, parts...)
}

// wantLogged takes the log entries about a file: that it is in use, or an error with this part in its text.
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

// TestHandlersShareAFile has several handlers name a file. What they log goes to the logger of the one that reads it.
func TestHandlersShareAFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := newEditedFile(t, "one", 0)
		byPath := Options{Templates: rows{"text": {first.file}}}
		byName := Options{Templates: rows{"text": {filepath.Base(first.file)}}}
		t.Chdir(filepath.Dir(first.file))
		second, secondLogs := observed(t, byName)
		t.Chdir(t.TempDir()) // the key stays
		if second.files[0] != first.kept() {
			t.Error("the handlers have files of their own")
		}
		other := newMaker(t, Options{Templates: rows{"html": {first.file}}})
		if other.files[0] == first.kept() {
			t.Error("two formats share a file")
		}

		for _, change := range []struct{ content, logged string }{
			{"{{.URI", "unclosed action"},
			{"two", inUse},
		} {
			first.write(change.content, 0)
			time.Sleep(pause)
			body(t, second, Page{}, "text")
			body(t, first.maker, Page{}, "text")
			wantLogged(t, secondLogs, first.file, change.logged)
			first.wantsLogged()
		}
		first.write("three", 0)
		_, reloadedLogs := observed(t, byPath)
		wantLogged(t, reloadedLogs, first.file, inUse)
		closeNow(second)
		wantReferences(t, first.file, "text", 2)
	})
}

// TestRowThatCannotBeSent loads configs with rows of files that cannot be used, after a config that has some of them.
// The error is for a reload. A mistake is logged once for each config, by the first of its handlers.
func TestRowThatCannotBeSent(t *testing.T) {
	good := tempFile(t, "good")
	broken := tempFile(t, "{{.Uri}}")
	missing := filepath.Join(t.TempDir(), "404.html")
	const (
		ofSite    = "{http.vars.root}/404.html"
		noField   = "can't evaluate field Uri"
		noFile    = "; for the built-in page to begin with, run caddy not-found export-template html"
		isAllowed = ""
	)

	running, logs := observed(t, Options{Templates: rows{"html": {broken}}})
	wantLogged(t, logs, broken, noField)
	if got := running.offers.Choose("text/html"); got != 1 {
		t.Fatal("HTML is not the second format")
	}

	for name, tt := range map[string]struct {
		row    []string
		err    string
		logged map[string]string // the mistake of each file
	}{
		"no file is there": {
			row:    []string{missing},
			err:    noFile,
			logged: map[string]string{missing: noSuchFile},
		},
		"a file that the running config has": {
			row:    []string{broken},
			logged: map[string]string{broken: noField},
		},
		"one that it has and one that it has not": {
			row:    []string{broken, missing},
			err:    noFile,
			logged: map[string]string{broken: noField, missing: noSuchFile},
		},
		"a later file can be sent": {
			row:    []string{missing, good},
			logged: map[string]string{missing: noSuchFile},
		},
		"an earlier file can be sent": {
			row:    []string{good, broken},
			logged: map[string]string{broken: noField},
		},
		"a site's own file": {
			row:    []string{missing, ofSite},
			logged: map[string]string{missing: noSuchFile},
		},
		"only a site's own file": {row: []string{ofSite}},
	} {
		core, logs := observer.New(zapcore.DebugLevel)
		o := Options{
			Server:    defaultFooter,
			Sample:    noPlaceholders,
			FullName:  fullName,
			Logger:    zap.New(core),
			Templates: rows{"html": tt.row},
		}
		config := new(int)
		var handlers []*Maker
		for range 2 {
			m, err := load(t, o, config)
			handlers = append(handlers, m)
			if tt.err != isAllowed {
				wantError(t, name, err, tt.err)
			} else if err != nil {
				t.Errorf("%s: got the error %v", name, err)
			}
		}
		closeNow(handlers...)
		for file, mistake := range tt.logged {
			entries := logs.FilterField(zap.String("template", file)).All()
			text := ""
			for _, entry := range entries {
				text, _ = entry.ContextMap()["error"].(string)
			}
			if len(entries) != 1 || !strings.Contains(text, mistake) {
				t.Errorf("%s: got the log entries %v about %s, want one with %s", name, entries, file, mistake)
			}
		}
		if logs.Len() != len(tt.logged) {
			t.Errorf("%s: got the log entries %v", name, logs.All())
		}
	}
}

// TestLastGoodPageOutlastsAReload breaks a file before a reload, which is not refused.
func TestLastGoodPageOutlastsAReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEditedFile(t, "good {{.Message}}", 0)
		e.write("{{.Uri}}", 0)
		core, logs := observer.New(zapcore.DebugLevel)
		o := Options{Sample: noPlaceholders, FullName: fullName, Logger: zap.New(core)}
		o.Templates = rows{"text": {e.file}}
		next, err := load(t, o, "the next config")
		if err != nil {
			t.Error(err)
		}
		closeNow(e.maker)
		wantLogged(t, logs, e.file, "can't evaluate field Uri")
		wantBody(t, next, Page{Message: "page"}, "text", "good page")
		closeNow(next)
		wantReferences(t, e.file, "text", 0)
	})
}

// TestFirstFileOfARowThatCanBeSentIsThePage has each file of a row come and go.
func TestFirstFileOfARowThatCanBeSentIsThePage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := newSites(t, map[string]string{"a.test": "a.test's"})
		fixed := tempFile(t, "fixed")
		m, logs := observed(t, Options{Templates: rows{"html": {root + "/{" + host + "}/404.html", fixed}}})
		pageOf := func(site string) Page { return m.Make(ask("GET", "/"), placeholders(values{host: site})) }
		wantBody(t, m, pageOf("a.test"), "html", "a.test's")
		wantBody(t, m, pageOf("b.test"), "html", "fixed")
		wantMistake(t, logs, "")

		writeFile(t, filepath.Join(root, "a.test", "404.html"), "")
		wantBody(t, m, pageOf("a.test"), "html", "fixed")
		wantMistake(t, logs, "it is empty")

		if err := os.Remove(fixed); err != nil {
			t.Fatal(err)
		}
		time.Sleep(pause)
		wantBody(t, m, pageOf("b.test"), "html", "fixed") // its last good page
		wantMistake(t, logs, noSuchFile)
	})
}

// TestPathIsRefused has placeholders that no path can have.
func TestPathIsRefused(t *testing.T) {
	t.Setenv("NOT_FOUND_TEST_EMPTY", "")
	for path, want := range map[string]string{
		"":                              "a path is empty",
		"{http.request.host}/404.html":  "begins with what a client or an upstream sends",
		"{http.regexp.lang.1}/404.html": "begins with what a client or an upstream sends",
		"{http.auth.user.id}/404.html":  "begins with what a client or an upstream sends",
		"{http.error.message}/404.html": "begins with what a client or an upstream sends",

		"{http.reverse_proxy.header.X-Site}/404.html": "begins with what a client or an upstream sends",
		"{http.intercept.header.X-Site}/404.html":     "begins with what a client or an upstream sends",
		"{http.response.header.X-Site}/404.html":      "begins with what a client or an upstream sends",
		"{http.url_pattern.search.page}/404.html":     "begins with what a client or an upstream sends",
		"{http.error}":                    "begins with what a client or an upstream sends",
		"{http.of_a_new_module}/404.html": "begins with what a client or an upstream sends",
		"{http.matchers.file.absolute}":   "may become a file of the next handlers",
		"/srv/{http.request.body}":        "may still be on its way to an upstream",

		"{http.vars.root}/{file./etc/x}": "has a placeholder of the file or the time",
		"/srv/{time.now.year}/404.html":  "has a placeholder of the file or the time",
		"{http.vars.root}/{http.matchers.file.relative}": "may become a file of the next handlers, such as a script; " +
			"write the files in a row",
		"{env.NOT_FOUND_TEST_EMPTY}/404.html": "the placeholder {env.NOT_FOUND_TEST_EMPTY}, which is not set or empty",
		"{env.NOT_FOUND_TEST_UNSET}/404.html": "the placeholder {env.NOT_FOUND_TEST_UNSET}, which is not set or empty",
	} {
		o := Options{Templates: rows{"html": {"404.html", path}}}
		err := CheckTemplates(o.Templates, nil)
		if err == nil {
			_, err = NewMaker(o)
		}
		wantError(t, path, err, want)
	}
	wantReferences(t, "404.html", "html", 0)
}

// TestLongFileIsStreamed sends files as long as they may be, and frees what they are in.
func TestLongFileIsStreamed(t *testing.T) {
	for _, size := range []int{1, maxBuffered, maxBuffered + 1, maxSize} {
		want := strings.Repeat("x", size)
		root := newSites(t, map[string]string{"a.test": want})
		m := newMaker(t, Options{Templates: rows{"html": {root + "/{" + host + "}/404.html"}}})
		pg := m.Make(ask("GET", "/"), placeholders(values{host: "a.test"}))
		rep := m.Represent(&pg, "text/html")
		if isStreamed := rep.content.file != nil; isStreamed != (size > maxBuffered) {
			t.Errorf("%d bytes are streamed: %v", size, isStreamed)
		}
		rep.Free()
		wantBody(t, m, pg, "html", want)
	}
}

// TestFileThatIsCutWhileItIsSentIsAnError has a site's own file that leaves in pieces, and one that cannot be read.
func TestFileThatIsCutWhileItIsSentIsAnError(t *testing.T) {
	for cut, sent := range map[string]int64{"cut": maxBuffered, "unreadable": 0} {
		name := tempFile(t, strings.Repeat("x", 2*maxBuffered))
		c, err := openFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if cut == "unreadable" {
			err = c.file.Close()
		} else {
			err = os.Truncate(name, maxBuffered)
		}
		if err != nil {
			t.Fatal(err)
		}
		r := Representation{content: c}
		n, err := r.WriteTo(io.Discard)
		r.Free()
		if n != sent || err != ErrCut {
			t.Errorf("%s: got %d bytes and the error %v", cut, n, err)
		}
	}
}

// TestFileCutAfterItIsOpened would otherwise be a page without a body.
func TestFileCutAfterItIsOpened(t *testing.T) {
	path := tempFile(t, "page")
	f, size, err := openRegular(path)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, "")
	_, err = contentOf(f, size)
	wantError(t, "cut", err, "it is empty")
}

// TestReloadsEditsAndRequestsAtOnce reloads configs, some of which are refused, edits a file and removes it, while
// requests run. The last good page stays, whatever happens at once. The race detector looks at it.
func TestReloadsEditsAndRequestsAtOnce(t *testing.T) {
	path := tempFile(t, "good {{.Status}}")
	o := Options{Server: defaultFooter, Sample: noPlaceholders, FullName: fullName, Logger: zap.NewNop()}
	o.Templates = rows{"html": {path}}
	loadNext := func() *Maker {
		m, err := NewMaker(o)
		if err != nil {
			t.Error(err)
		}
		_ = m.Load(m)
		return m
	}
	var current atomic.Pointer[Maker]
	current.Store(loadNext())
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			for range 300 {
				m := current.Load()
				m.ExpandRequestID(placeholders(nil))
				pg := m.Make(ask("GET", "/"), placeholders(nil))
				if got := body(t, m, pg, "html"); !strings.HasPrefix(got, "good") {
					t.Errorf("got %.60q", got)
				}
			}
		})
	}
	running.Go(func() {
		for range 100 {
			last := current.Swap(loadNext())
			last.Close()
			loadNext().Close() // a config that is refused
		}
	})
	running.Go(func() {
		edits := []string{"good", "{{.Bogus}}", "{{", "", "good {{.URI}}"}
		for i := range 200 {
			if i%7 == 0 {
				_ = os.Remove(path)
			}
			writeFile(t, path+".new", edits[i%len(edits)])
			_ = os.Rename(path+".new", path) // whole, as an editor does
		}
	})
	running.Wait()
	current.Load().Close()
	wantReferences(t, path, "html", 0)
}

// closeNow closes what would be closed at the end of the test.
func closeNow(makers ...*Maker) {
	for _, m := range makers {
		m.Close()
		m.files = nil
	}
}

func wantReferences(t *testing.T, path, format string, want int) {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := pool.References(fileKey{path, format})
	if got != want {
		t.Errorf("%s as %s: the pool counts %d handlers, want %d", path, format, got, want)
	}
}
