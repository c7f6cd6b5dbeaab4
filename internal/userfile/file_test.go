package userfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddyserver/caddy/v2"
)

// text is the format of the tests. Its pages are strings. A text that begins with "broken" is none.
var text = Format{
	Name: "text",
	Parse: func(name string, text []byte) (any, error) {
		page := string(text)
		if strings.HasPrefix(page, "broken") {
			return nil, errors.New(name + " is " + page)
		}
		return page, nil
	},
}

// values are those of placeholders, by name.
type values map[string]string

// placeholders returns those of a request, as Caddy has them.
func placeholders(known values) *caddy.Replacer {
	repl := caddy.NewReplacer()
	for name, value := range known {
		repl.Set(name, value)
	}
	return repl
}

const host, variable = "http.request.host", "http.vars.site"

// noSuchFile is in the words of the system.
var noSuchFile = syscall.ENOENT.Error()

// take returns a file in the format text, which logs to a logger.
func take(t testing.TB, path string, logger *zap.Logger) *File {
	t.Helper()
	f, err := New(path, text, new(OnceAMinute), logger)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// observed returns a logger and what it logs.
func observed() (*zap.Logger, *observer.ObservedLogs) {
	core, logs := observer.New(zapcore.DebugLevel)
	return zap.New(core), logs
}

// wantError checks that an error has a text. A failure names what was refused.
func wantError(t *testing.T, what string, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: got the error\n%v\nwant one with\n%s", what, err, text)
	}
}

// TestFileOfASite opens the file of a site. The mistakes of sites and of their operator are logged, and a file that
// does not exist is at the level debug.
func TestFileOfASite(t *testing.T) {
	dir := t.TempDir()
	for site, content := range map[string]string{
		"a.test":   "{{.Broken",
		"empty":    "",
		"latin1":   "f\xfcr",
		"longest":  strings.Repeat("x", MaxSize),
		"too long": strings.Repeat("x", MaxSize+1),

		"folder/404.html": "",
	} {
		writeFile(t, filepath.Join(dir, "sites", site, "404.html"), content)
	}
	writeFile(t, filepath.Join(dir, "404.html"), "no site's")
	for _, tt := range []struct {
		placeholder, value string

		want    string // empty: there is nothing to send
		missing string // why no file is opened, at the level debug
		mistake string // why, at the level error
	}{
		{placeholder: host, value: "a.test", want: "{{.Broken"},
		{placeholder: variable, value: "./a.test/", want: "{{.Broken"},
		{placeholder: variable, value: "latin1", want: "f\xfcr"},
		{placeholder: variable, value: "longest", want: strings.Repeat("x", MaxSize)},

		{placeholder: host, value: "b.test", missing: "b.test"},
		{placeholder: host, value: "", missing: `{http.request.host} is "", which is not one element of a path`},
		{placeholder: host, value: "../x", missing: `{http.request.host} is "../x", which is not one element of a path`},
		{placeholder: host, value: strings.Repeat("x", 1000), missing: "xx"},
		{placeholder: host, value: strings.Repeat("x", 40_000), missing: "xx"},
		{placeholder: host, value: "\xff", missing: "\xff"},
		{placeholder: host, value: "\x00", missing: "invalid argument"},
		{placeholder: host, value: "\"*\x01", missing: "\"*\x01"},              // no name on Windows
		{placeholder: variable, value: "a.test/404.html", missing: "404.html"}, // has no file, because it is one

		{placeholder: variable, mistake: "the placeholder {http.vars.site} is unknown or empty"},
		{placeholder: "http.vars.root", mistake: "{http.vars.root} is what the directive root of a site sets"},
		{placeholder: "http.request.x", mistake: "the placeholder {http.request.x} is unknown or empty"},
		{placeholder: variable, value: "empty", mistake: "it is empty"},
		{placeholder: variable, value: "too long", mistake: "more than 1 MiB"},
		{placeholder: variable, value: "folder", mistake: "not a regular file"},
	} {
		known := values{host: "", variable: ""}
		if tt.value != "" {
			known[tt.placeholder] = tt.value
		}
		logger, logs := observed()
		f := take(t, dir+"/sites/{"+tt.placeholder+"}/404.html", logger)
		opened, ok := f.Open(placeholders(known), logger)
		if got := read(t, opened); got != tt.want || ok != (tt.want != "") {
			t.Errorf("{%s}, %.20q: got %.20q, %v, want %.20q", tt.placeholder, tt.value, got, ok, tt.want)
		}
		for level, want := range map[zapcore.Level]string{zapcore.DebugLevel: tt.missing, zapcore.ErrorLevel: tt.mistake} {
			logged := ""
			for _, entry := range logs.FilterLevelExact(level).All() {
				logged += entry.ContextMap()["error"].(string)
			}
			if !strings.Contains(logged, want) || (logged == "") != (want == "") {
				t.Errorf("{%s}, %.20q: %s: got %.300q, want %q", tt.placeholder, tt.value, level, logged, want)
			}
		}
	}
}

// read returns what an opened file of a site has, and closes it. It is empty if there is none.
func read(t *testing.T, opened Opened) string {
	t.Helper()
	if opened.File == nil {
		return ""
	}
	defer opened.File.Close()
	text, err := io.ReadAll(opened.File)
	if err != nil || int64(len(text)) != opened.Info.Size() {
		t.Errorf("read %d bytes of %d, %v", len(text), opened.Info.Size(), err)
	}
	return string(text)
}

// writeFile writes a file, whose folder need not be there.
func writeFile(t testing.TB, file, content string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(file), 0o700)
	if err == nil {
		err = os.WriteFile(file, []byte(content), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestMistakesOfSitesAreLoggedOnceAMinute also mends a page, which is used at once.
func TestMistakesOfSitesAreLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := t.TempDir()
		for _, site := range []string{"a.test", "b.test"} {
			writeFile(t, filepath.Join(root, site, "404.html"), "")
		}
		logger, logs := observed()
		f := take(t, root+"/{"+host+"}/404.html", logger)
		for want := 1; want <= 3; want++ {
			for range 2 {
				f.Open(placeholders(values{host: "a.test"}), logger)
				f.Open(placeholders(values{host: "b.test"}), logger)
				if got := logs.FilterLevelExact(zapcore.ErrorLevel).Len(); got != want {
					t.Errorf("got %d log entries, want %d", got, want)
				}
				time.Sleep(30 * time.Second)
			}
		}
		if got := logs.FilterLevelExact(zapcore.DebugLevel).Len(); got != 9 {
			t.Errorf("the debug log has %d of the other 9 entries", got)
		}
		writeFile(t, filepath.Join(root, "a.test", "404.html"), "mended")
		opened, _ := f.Open(placeholders(values{host: "a.test"}), logger)
		if got := read(t, opened); got != "mended" {
			t.Errorf("got %q", got)
		}
	})
}
