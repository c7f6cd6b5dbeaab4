package page

import (
	"cmp"
	"fmt"
	"io"
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

	"github.com/caddy-notfound/notfound/internal/userfile"
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
		"too long": strings.Repeat("x", userfile.MaxSize+1),

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
		{placeholder: "http.vars.root", logged: "{http.vars.root} is what the directive root of a site sets"},
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
		time.Sleep(time.Second)
		wantBody(t, m, pageOf("b.test"), "html", "fixed") // its last good page
		wantMistake(t, logs, noSuchFile)
	})
}

// TestLongFileIsStreamed sends files as long as they may be, and frees what they are in.
func TestLongFileIsStreamed(t *testing.T) {
	for _, size := range []int{1, maxBuffered, maxBuffered + 1, userfile.MaxSize} {
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
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		c, err := contentOfFile(f, 2*maxBuffered)
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
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, "")
	_, err = contentOfFile(f, int64(len("page")))
	wantError(t, "cut", err, "it is empty")
}

// TestReloadsEditsAndRequestsAtOnce reloads configs, edits a file and removes it, while
// requests run. The last good page stays, whatever happens at once. The race detector looks at it.
func TestReloadsEditsAndRequestsAtOnce(t *testing.T) {
	path := tempFile(t, "good {{.Status}}")
	o := Options{DefaultFooter: defaultFooter, Sample: noPlaceholders, FullName: fullName, Logger: zap.NewNop()}
	o.Templates = rows{"html": {path}}
	loadNext := func() *Maker {
		m, err := NewMaker(o)
		if err != nil {
			t.Error(err)
		}
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
			current.Store(loadNext())
			loadNext() // of a config that another module refuses
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
}
