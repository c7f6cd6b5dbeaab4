package page

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap/zaptest/observer"
)

// withActions is a page that a template would change.
const withActions = `<p>{{.Placeholder "env.PATH"}} {{`

// newSites returns a folder with a folder for each site, which has a 404.html. The one beside them is no site's.
func newSites(t testing.TB, pages files) (root string) {
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
	return Options{SiteFiles: files{format: root + "/{" + placeholder + "}/404.html"}}
}

const host, variable = "http.request.host", "http.vars.site"

// TestPageOfASite sends the file of a site as it is, or the built-in page. Only the mistakes of sites and of their
// operator are logged.
func TestPageOfASite(t *testing.T) {
	root := newSites(t, files{
		"a.test":   withActions,
		"json":     `{"a": "b"}`,
		"blank":    " \n",
		"latin1":   "f\xfcr",
		"too long": strings.Repeat("x", maxSize+1),

		"folder/404.html": "",
	})
	for _, tt := range []struct {
		placeholder, value string
		format             string // empty: html
		want               string // empty: the built-in page
		logged             string // empty: nothing
	}{
		{placeholder: host, value: "a.test", want: withActions},
		{placeholder: variable, value: "./a.test/", want: withActions},
		{placeholder: variable, value: "json", format: "json", want: `{"a": "b"}`},

		{placeholder: host, value: "b.test"},
		{placeholder: host, value: ""},
		{placeholder: host, value: strings.Repeat("x", 1000)},
		{placeholder: host, value: "\xff"},
		{placeholder: variable, value: "a.test/404.html"}, // has no file, because it is one

		{placeholder: variable, logged: "the placeholder {http.vars.site} is unknown or empty"},
		{placeholder: "http.request.x", logged: "the placeholder {http.request.x} is unknown or empty"},
		{placeholder: variable, value: "blank", logged: "the page is blank"},
		{placeholder: variable, value: "latin1", logged: "not in UTF-8"},
		{placeholder: variable, value: "too long", logged: "more than 1 MiB"},
		{placeholder: variable, value: "folder", logged: "not a regular file"},
		{placeholder: variable, value: "a.test", format: "json", logged: "not valid JSON"},
		{placeholder: variable, value: "a.test", format: "xml", logged: "not well-formed XML"},
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
		wantMistake(t, logs, tt.logged)
	}
}

// wantMistake takes the log entry of a mistake. If the mistake is empty, nothing is logged.
func wantMistake(t *testing.T, logs *observer.ObservedLogs, mistake string) {
	t.Helper()
	got := ""
	for _, entry := range logs.TakeAll() {
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
		root := newSites(t, files{"a.test": "", "b.test": ""})
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

// TestNoValueLeavesItsFolder covers Windows as well, where a colon of a client's could name another file.
func TestNoValueLeavesItsFolder(t *testing.T) {
	defer func(before string) { reserved = before }(reserved)
	reserved += ":"
	const path = `C:\sites\a.test`
	both := siteFile{path: "{" + host + "}{" + variable + "}"}
	for value, want := range map[string]error{
		"":     fs.ErrNotExist,
		".":    fs.ErrNotExist,
		" .":   fs.ErrNotExist,
		"a/b":  fs.ErrNotExist,
		`a\b`:  fs.ErrNotExist,
		"a:b":  fs.ErrNotExist,
		"a..b": nil,
	} {
		got, err := both.expand(placeholders(values{host: value, variable: path}))
		if err != want || err == nil && got != value+path {
			t.Errorf("%q: got %q, %v, want the error %v", value, got, err, want)
		}
	}
	for _, value := range []string{"..", "/a.test/../..", `\a\..`, `\a\.. .\b`, "/.. ./x", "/a.test\x00"} {
		site := siteFile{path: "{" + variable + "}"}
		got, err := site.expand(placeholders(values{variable: value}))
		if err != fs.ErrNotExist {
			t.Errorf("%q: got %q, %v", value, got, err)
		}
	}
}

// TestSitesTakeNoMemory has clients ask for made-up hosts, and for many sites.
func TestSitesTakeNoMemory(t *testing.T) {
	pages := make(files)
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
