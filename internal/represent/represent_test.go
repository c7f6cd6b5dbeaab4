package represent

import (
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
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-notfound/notfound/internal/page"
	"github.com/caddy-notfound/notfound/internal/userfile"
)

// values are those of placeholders, by name.
type values map[string]string

// rows are rows of files, by format.
type rows = map[string][]string

// placeholders returns those of a request, as Caddy has them.
func placeholders(known values) *caddy.Replacer {
	repl := caddy.NewReplacer()
	for name, value := range known {
		repl.Set(name, value)
	}
	return repl
}

// pageWith returns a page with a message. Its footer names a version that no Caddy has, so that it stays when a new
// Caddy comes.
func pageWith(message, uri string) *page.Page {
	return &page.Page{
		Heading: "HTTP ERROR 404 " + message,
		URI:     uri,
		Status:  404,
		Message: message,
		Footer:  "Powered by Caddy v0.0.0",
	}
}

// anyPage is a page whose texts a test does not look at.
var anyPage = pageWith("No endpoint GET /missing.html.", "https://www.example.com/docs/apis?x=1")

// trial has what templates are tried with. It knows the shorthands host and os, and os is a full name as well.
var trial = Trial{
	Sample: func() (page.Page, *caddy.Replacer) { return *anyPage, placeholders(nil) },
	FullName: func(name string) string {
		if name == "host" || name == "system.os" {
			return "full." + name
		}
		return name
	},
}

// newFormats returns the representations on offer. Without a logger, they must log no error.
func newFormats(t testing.TB, o Options) *Formats {
	t.Helper()
	o.Trial = trial
	if o.Logger == nil {
		failOnError := zap.Hooks(func(e zapcore.Entry) error {
			if e.Level >= zapcore.ErrorLevel {
				t.Error(e.Message)
			}
			return nil
		})
		o.Logger = zaptest.NewLogger(t, zaptest.Level(zapcore.InfoLevel), zaptest.WrapOptions(failOnError))
	}
	formats, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return formats
}

// observed returns the representations on offer, and what they log.
func observed(t testing.TB, o Options) (*Formats, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zapcore.DebugLevel)
	o.Logger = zap.New(core)
	return newFormats(t, o), logs
}

// body renders a page in a format.
func body(t testing.TB, formats *Formats, pg *page.Page, repl *caddy.Replacer, format string) string {
	t.Helper()
	f, err := formatOf(format)
	if err != nil {
		t.Fatal(err)
	}
	rep := formats.Represent(&Input{Page: *pg, Placeholders: repl, Accept: f.offer.Types[0]})
	defer rep.Free()
	var b strings.Builder
	_, err = rep.WriteTo(&b)
	if err != nil || int64(b.Len()) != rep.content.size {
		t.Errorf("%s: wrote %d bytes of %d: %v", format, b.Len(), rep.content.size, err)
	}
	return b.String()
}

// wantBody checks a page in a format.
func wantBody(t testing.TB, formats *Formats, pg *page.Page, repl *caddy.Replacer, format, want string) {
	t.Helper()
	if got := body(t, formats, pg, repl, format); got != want {
		t.Errorf("%s: got\n%s\nwant\n%s", format, got, want)
	}
}

// wantError checks that an error has a text. A failure names what was refused.
func wantError(t *testing.T, what string, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: got the error\n%v\nwant one with\n%s", what, err, text)
	}
}

func tempFile(t testing.TB, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "404.html")
	writeFile(t, file, content)
	return file
}

func writeFile(t testing.TB, file, content string) {
	t.Helper()
	err := os.WriteFile(file, []byte(content), 0o600)
	if err != nil {
		t.Fatal(err)
	}
}

// TestDefaultPage compares the page without options, byte for byte, with that of the first version. A client that
// only accepts a structured suffix gets it, too.
func TestDefaultPage(t *testing.T) {
	formats := newFormats(t, Options{})
	pg := pageWith("No endpoint GET /missing.html.", "https://www.example.com/docs/apis?x=1&y=2")
	for _, format := range FormatNames() {
		want, err := os.ReadFile("testdata/default." + format)
		if err != nil {
			t.Fatal(err)
		}
		wantBody(t, formats, pg, nil, format, string(want))
	}
	for mediaType, want := range map[string]string{
		"application/vnd.api+json": "json",
		"application/atom+xml":     "xml",
	} {
		rep := formats.Represent(&Input{Page: *pg, Accept: mediaType})
		if rep.Format() != want {
			t.Errorf("%s: got %s, want %s", mediaType, rep.Format(), want)
		}
		rep.Free()
	}
}

// TestOwnPagesComeFirst has a client that accepts anything, one that names no type, and one that accepts no format.
// With formats, their order holds. A site that has no page of its own gets the built-in one in the format as without a
// template. Handlers share an order.
func TestOwnPagesComeFirst(t *testing.T) {
	ofSite := ofSite(newSites(t, map[string]string{"a.test": "page"}))
	for _, tt := range []struct {
		o                Options
		want, wantOfNone string
	}{
		{Options{}, "text", "text"},
		{Options{Templates: rows{"html": {ofSite}}}, "html", "text"},
		{Options{Templates: rows{"xml": {ofSite}, "json": {ofSite}}}, "json", "text"},
		{Options{Templates: rows{"html": {ofSite}, "text": {ofSite}}}, "text", "text"},
		{Options{Templates: rows{"html": {ofSite}}, Formats: []string{"markdown", "html"}}, "markdown", "markdown"},
		{Options{Templates: rows{"html": {ofSite}}, Formats: []string{"html", "text"}}, "html", "html"},
	} {
		formats := newFormats(t, tt.o)
		for _, accepted := range []string{"", "*/*", "image/*,*/*;q=0.8", "image/png"} {
			for site, want := range map[string]string{"a.test": tt.want, "b.test": tt.wantOfNone} {
				rep := formats.Represent(&Input{Page: *anyPage, Placeholders: placeholders(values{host: site}), Accept: accepted})
				if got := rep.Format(); got != want {
					t.Errorf("%v, %s, %q: got %s, want %s", tt.o.Templates, site, accepted, got, want)
				}
				rep.Free()
			}
		}
		if again := newFormats(t, tt.o); again.order != formats.order {
			t.Errorf("%v: a second handler has an order of its own", tt.o.Templates)
		}
	}
}

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

// ofSite is the path of a site's own file, by its host.
func ofSite(root string) string { return root + "/{" + host + "}/404.html" }

const host = "http.request.host"

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

// TestSitesTakeNoMemory has clients ask for made-up hosts, and for many sites.
func TestSitesTakeNoMemory(t *testing.T) {
	pages := make(map[string]string)
	for i := range 1000 {
		pages[strconv.Itoa(i)] = withActions
	}
	formats := newFormats(t, Options{Templates: rows{"html": {ofSite(newSites(t, pages))}}})
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // or a collection would close files
	askAll := func(hosts int) uint64 {
		for i := range hosts {
			rep := formats.Represent(&Input{Page: *anyPage, Placeholders: placeholders(values{host: strconv.Itoa(i)}), Accept: "text/html"})
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
	if after := askAll(9000); after > before+256<<10 {
		t.Errorf("9,000 hosts took %d bytes", after-before)
	}
}

// TestFirstFileOfARowThatCanBeSentIsThePage has each file of a row come and go. A site's own file is sent as it is, and
// not validated in its format.
func TestFirstFileOfARowThatCanBeSentIsThePage(t *testing.T) {
	for _, format := range []string{"html", "json"} {
		synctest.Test(t, func(t *testing.T) {
			root := newSites(t, map[string]string{"a.test": withActions})
			const text = `"fixed"`
			fixed := tempFile(t, text)
			formats, logs := observed(t, Options{Templates: rows{format: {ofSite(root), fixed}}})
			ofA := placeholders(values{host: "a.test"})
			ofB := placeholders(values{host: "b.test"})
			wantBody(t, formats, anyPage, ofA, format, withActions)
			wantBody(t, formats, anyPage, ofB, format, text)
			wantMistake(t, logs, "")

			writeFile(t, filepath.Join(root, "a.test", "404.html"), "")
			wantBody(t, formats, anyPage, ofA, format, text)
			wantMistake(t, logs, "it is empty")

			if err := os.Remove(fixed); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			wantBody(t, formats, anyPage, ofB, format, text) // its last good page
			wantMistake(t, logs, fixed)
		})
	}
	missing := newFormats(t, Options{Templates: rows{"html": {ofSite(t.TempDir())}}})
	builtIn := body(t, newFormats(t, Options{}), anyPage, nil, "html")
	wantBody(t, missing, anyPage, placeholders(values{host: "a.test"}), "html", builtIn)
}

// TestLongFileIsStreamed sends files as long as they may be, and frees what they are in.
func TestLongFileIsStreamed(t *testing.T) {
	for _, size := range []int{1, maxBuffered, maxBuffered + 1, userfile.MaxSize} {
		want := strings.Repeat("x", size)
		root := newSites(t, map[string]string{"a.test": want})
		formats := newFormats(t, Options{Templates: rows{"html": {ofSite(root)}}})
		repl := placeholders(values{host: "a.test"})
		rep := formats.Represent(&Input{Page: *anyPage, Placeholders: repl, Accept: "text/html"})
		if isStreamed := rep.content.file != nil; isStreamed != (size > maxBuffered) {
			t.Errorf("%d bytes are streamed: %v", size, isStreamed)
		}
		rep.Free()
		wantBody(t, formats, anyPage, repl, "html", want)
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

// TestFileCutAfterItIsOpened would otherwise be half a page.
func TestFileCutAfterItIsOpened(t *testing.T) {
	path := tempFile(t, "page")
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, "pa")
	_, err = contentOfFile(f, int64(len("page")))
	wantError(t, "cut", err, "it was cut while it was read")
}

// TestReloadsEditsAndRequestsAtOnce reloads configs, edits a file and removes it, while requests run. The last good
// page stays, whatever happens at once. The race detector looks at it.
func TestReloadsEditsAndRequestsAtOnce(t *testing.T) {
	path := tempFile(t, "good {{.Status}}")
	loadNext := func() *Formats {
		return newFormats(t, Options{Logger: zap.NewNop(), Templates: rows{"html": {path}}})
	}
	var current atomic.Pointer[Formats]
	current.Store(loadNext())
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			for range 300 {
				formats := current.Load()
				formats.ShowsRequestID()
				if got := body(t, formats, anyPage, placeholders(nil), "html"); !strings.HasPrefix(got, "good") {
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
