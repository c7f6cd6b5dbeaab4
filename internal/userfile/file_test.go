package userfile

import (
	"errors"
	"io/fs"
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

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// text is the format of the tests. Its pages are strings. A text that begins with "broken" is none.
var text = Format[string]{
	Name:      "text",
	IfMissing: "write one",
	Parse: func(name string, text []byte) (*string, error) {
		page := string(text)
		if strings.HasPrefix(page, "broken") {
			return nil, errors.New(name + " is " + page)
		}
		return &page, nil
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

// take returns a row of files in the format text, which is closed at the end of the test.
func take(t testing.TB, paths ...string) Row[string] {
	t.Helper()
	row, err := Take(paths, text, new(OnceAMinute))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(row.Close)
	return row
}

// newConfig identifies a config.
func newConfig() any { return new(int) }

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
			both := "{" + sent + "}{" + variable + "}"
			got, err := expand(both, placeholders(values{sent: value, variable: path}))
			if !errors.Is(err, want) || err == nil && got != value+path {
				t.Errorf("{%s}, %q: got %q, %v, want the error %v", sent, value, got, err, want)
			}
		}
	}
	for _, value := range []string{"..", "/a.test/../..", `\a\..`, `\a\.. .\b`, "/.. ./x"} {
		got, err := expand("{"+variable+"}", placeholders(values{variable: value}))
		if err == nil || !strings.Contains(err.Error(), "has the element ..") {
			t.Errorf("%q: got %q, %v", value, got, err)
		}
	}
}

// TestChangedFileIsReadAgain changes a kept file in each way that a file can change. The clock is synctest's; the
// files, whose times are set by it, are real.
func TestChangedFileIsReadAgain(t *testing.T) {
	const long = time.Hour // since a file was written
	for name, change := range map[string]func(e *editedFile){
		"edited twice": func(e *editedFile) {
			e.write("another", 0)
			time.Sleep(pause - time.Millisecond)
			e.wants("one")
			time.Sleep(time.Millisecond)
			e.wants("another")
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
			e.must(os.Truncate(e.file, MaxSize+1))
			e.becomes("one")
			e.wantsLogged("it has more than 1 MiB")
		},
		"broken, then corrected": func(e *editedFile) {
			for _, content := range []string{"broken", "broken again"} {
				e.write(content, long)
				for range 3 {
					e.becomes("one")
				}
			}
			e.wantsLogged("404.html is broken", "404.html is broken again")
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
			e.wantsLogged("; write one", "is not a regular file")
			e.must(os.Remove(e.file))
			e.write("one", long)
			e.becomes("one")
			e.wantsLogged(inUse)
		},
		"untouched, with another time": func(e *editedFile) {
			before := e.row[0].kept.Load()
			e.write("one", 0)
			for range 3 {
				e.becomes("one")
			}
			if e.row[0].kept.Load() != before {
				e.Error("the file was parsed again")
			}
		},
		"while another request looks": func(e *editedFile) {
			e.write("two", 0)
			time.Sleep(pause)
			e.row[0].reading.Lock()
			e.wants("one")
			e.row[0].reading.Unlock()
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

// editedFile is a row of one kept file.
type editedFile struct {
	testing.TB
	file   string
	row    Row[string]
	logger *zap.Logger
	logs   *observer.ObservedLogs
}

// newEditedFile loads a file that was written some time ago.
func newEditedFile(t testing.TB, content string, age time.Duration) *editedFile {
	t.Helper()
	e := &editedFile{TB: t, file: testcaddy.TempFile(t, "404.html", "")}
	e.write(content, age)
	e.row = take(t, e.file)
	e.logger, e.logs = observed()
	e.must(e.row.Load(newConfig(), e.logger))
	return e
}

func (e *editedFile) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

func (e *editedFile) write(content string, age time.Duration) {
	e.Helper()
	e.must(os.WriteFile(e.file, []byte(content), 0o600))
	modified := time.Now().Add(-age)
	e.must(os.Chtimes(e.file, modified, modified))
}

// wants opens the file.
func (e *editedFile) wants(content string) {
	e.Helper()
	wantKept(e, e.row[0], content, e.logger)
}

func wantKept(t testing.TB, f *File[string], content string, logger *zap.Logger) {
	t.Helper()
	opened, ok := f.Open(nil, logger)
	if !ok || *opened.Kept != content || opened.Path != f.path {
		t.Errorf("got %+v, %v, want %q", opened, ok, content)
	}
}

// becomes opens the file once it is due to be read again.
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
		t.Chdir(filepath.Dir(first.file))
		second, err := Take([]string{filepath.Base(first.file)}, text, new(OnceAMinute))
		first.must(err)
		secondLogger, secondLogs := observed()
		t.Chdir(t.TempDir()) // the key stays
		if second[0] != first.row[0] {
			t.Error("the handlers have files of their own")
		}
		html := text
		html.Name = "html"
		other, err := Take([]string{first.file}, html, new(OnceAMinute))
		first.must(err)
		defer other.Close()
		if other[0] == first.row[0] {
			t.Error("two formats share a file")
		}

		for _, change := range []struct{ content, page, logged string }{
			{content: "broken", page: "one", logged: "is broken"},
			{content: "two", page: "two", logged: inUse},
		} {
			first.write(change.content, 0)
			time.Sleep(pause)
			wantKept(t, second[0], change.page, secondLogger)
			first.wants(change.page)
			wantLogged(t, secondLogs, first.file, change.logged)
			first.wantsLogged()
		}
		first.write("three", 0)
		reloadedLogger, reloadedLogs := observed()
		first.must(take(t, first.file).Load(newConfig(), reloadedLogger))
		wantLogged(t, reloadedLogs, first.file, inUse)
		second.Close()
		wantReferences(t, first.file, 2)
	})
}

// TestRowThatCannotBeSent loads configs with rows of files that cannot be used, after a config that has some of them.
// The error is for a reload. A mistake is logged once for each config, by the first of its handlers.
func TestRowThatCannotBeSent(t *testing.T) {
	good := testcaddy.TempFile(t, "404.html", "good")
	broken := testcaddy.TempFile(t, "404.html", "broken")
	missing := filepath.Join(t.TempDir(), "404.html")
	const (
		ofSite    = "{http.vars.root}/404.html"
		isBroken  = "404.html is broken"
		noFile    = "; write one"
		isAllowed = ""
	)

	logger, logs := observed()
	err := take(t, broken).Load(newConfig(), logger)
	wantError(t, "the first config", err, isBroken)
	wantLogged(t, logs, broken, isBroken)

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
			logged: map[string]string{broken: isBroken},
		},
		"one that it has and one that it has not": {
			row:    []string{broken, missing},
			err:    noFile,
			logged: map[string]string{broken: isBroken, missing: noSuchFile},
		},
		"a later file can be sent": {
			row:    []string{missing, good},
			logged: map[string]string{missing: noSuchFile},
		},
		"an earlier file can be sent": {
			row:    []string{good, broken},
			logged: map[string]string{broken: isBroken},
		},
		"a site's own file": {
			row:    []string{missing, ofSite},
			logged: map[string]string{missing: noSuchFile},
		},
		"only a site's own file": {row: []string{ofSite}},
	} {
		logger, logs := observed()
		config := newConfig()
		var handlers []Row[string]
		for range 2 {
			row, err := Take(tt.row, text, new(OnceAMinute))
			if err != nil {
				t.Fatal(err)
			}
			handlers = append(handlers, row)
			err = row.Load(config, logger)
			if tt.err != isAllowed {
				wantError(t, name, err, tt.err)
			} else if err != nil {
				t.Errorf("%s: got the error %v", name, err)
			}
		}
		for _, row := range handlers {
			for _, f := range row {
				if _, hasMistake := tt.logged[f.path]; !hasMistake {
					continue
				}
				if _, ok := f.Open(nil, logger); ok {
					t.Errorf("%s: %s can be sent", name, f.path)
				}
			}
			row.Close()
		}
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
		file := testcaddy.TempFile(t, "404.html", "good")
		running, err := Take([]string{file}, text, new(OnceAMinute))
		if err != nil {
			t.Fatal(err)
		}
		logger, logs := observed()
		if err := running.Load(newConfig(), logger); err != nil {
			t.Error(err)
		}
		if err := os.WriteFile(file, []byte("broken"), 0o600); err != nil {
			t.Fatal(err)
		}
		next, err := Take([]string{file}, text, new(OnceAMinute))
		if err != nil {
			t.Fatal(err)
		}
		if err := next.Load(newConfig(), logger); err != nil {
			t.Error(err)
		}
		running.Close()
		wantLogged(t, logs, file, "is broken")
		wantKept(t, next[0], "good", logger)
		next.Close()
		wantReferences(t, file, 0)
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

		"{http.vars.root}/{http.request.uri.path}/404.html": "has the placeholder {http.request.uri.path}, " +
			"whose value has a slash in every request, and so is never one element of a path; " +
			"write {http.request.uri.path.0}, or what a path_regexp finds",
		"/srv/{http.request.uri}":            "has the placeholder {http.request.uri}, ",
		"/srv/{http.request.orig_uri}.html":  "has the placeholder {http.request.orig_uri}, ",
		"/srv/{http.request.uri.path.dir}/x": "has the placeholder {http.request.uri.path.dir}, ",
		"/srv/x{http.request.orig_uri.path}": "has the placeholder {http.request.orig_uri.path}, ",
		"/srv/{http.request.proto}/404.html": "has the placeholder {http.request.proto}, ",

		"{http.vars.root}/{file./etc/x}": "has a placeholder of the file or the time",
		"/srv/{time.now.year}/404.html":  "has a placeholder of the file or the time",
		"{http.vars.root}/{http.matchers.file.relative}": "may become a file of the next handlers, such as a script; " +
			"write the files in a row",
		"{env.NOT_FOUND_TEST_EMPTY}/404.html": "the placeholder {env.NOT_FOUND_TEST_EMPTY}, which is not set or empty",
		"{env.NOT_FOUND_TEST_UNSET}/404.html": "the placeholder {env.NOT_FOUND_TEST_UNSET}, which is not set or empty",
	} {
		err := CheckPath(path)
		if err == nil {
			_, err = Take([]string{"404.html", path}, text, new(OnceAMinute))
		}
		wantError(t, path, err, want)
	}
	wantReferences(t, "404.html", 0)
}

func wantReferences(t *testing.T, path string, want int) {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := pool.References(fileKey{path, text.Name})
	if got != want {
		t.Errorf("%s: the pool counts %d handlers, want %d", path, got, want)
	}
}
