package userfile

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

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
			e.wantsLogged(noSuchFile, "is not a regular file")
			e.must(os.Remove(e.file))
			e.write("one", long)
			e.becomes("one")
			e.wantsLogged(inUse)
		},
		"untouched, with another time": func(e *editedFile) {
			before := e.kept.last.Load()
			e.write("one", 0)
			for range 3 {
				e.becomes("one")
			}
			if e.kept.last.Load() != before {
				e.Error("the file was parsed again")
			}
		},
		"while another request looks": func(e *editedFile) {
			e.write("two", 0)
			time.Sleep(pause)
			e.kept.reading.Lock()
			e.wants("one")
			e.kept.reading.Unlock()
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

// editedFile is a kept file.
type editedFile struct {
	testing.TB
	*File
	file   string
	logger *zap.Logger
	logs   *observer.ObservedLogs
}

// newEditedFile loads a file that was written some time ago.
func newEditedFile(t testing.TB, content string, age time.Duration) *editedFile {
	t.Helper()
	e := &editedFile{TB: t, file: filepath.Join(t.TempDir(), "404.html")}
	e.write(content, age)
	e.logger, e.logs = observed()
	e.File = take(t, e.file, e.logger)
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
	wantKept(e, e.File, content, e.logger)
}

func wantKept(t testing.TB, f *File, content string, logger *zap.Logger) {
	t.Helper()
	opened, ok := f.Open(nil, logger)
	if !ok || opened.Page != content || opened.Path != f.kept.path {
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
		secondLogger, secondLogs := observed()
		second := take(t, filepath.Base(first.file), secondLogger)
		t.Chdir(t.TempDir()) // the key stays
		if second.kept != first.kept {
			t.Error("the handlers have files of their own")
		}
		html := text
		html.Name = "html"
		other, err := New(first.file, html, new(OnceAMinute), first.logger)
		first.must(err)
		if other.kept == first.kept {
			t.Error("two formats share a file")
		}

		for _, change := range []struct{ content, page, logged string }{
			{content: "broken", page: "one", logged: "is broken"},
			{content: "two", page: "two", logged: inUse},
		} {
			first.write(change.content, 0)
			time.Sleep(pause)
			wantKept(t, second, change.page, secondLogger)
			first.wants(change.page)
			wantLogged(t, secondLogs, first.file, change.logged)
			first.wantsLogged()
		}
		first.write("three", 0)
		time.Sleep(pause)
		reloadedLogger, reloadedLogs := observed()
		take(t, first.file, reloadedLogger)
		wantLogged(t, reloadedLogs, first.file, inUse)
	})
}

// TestMistakeIsLoggedOnceAMinute has two handlers of each config name a broken file.
func TestMistakeIsLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEditedFile(t, "broken", 0)
		load := func(logged ...string) {
			t.Helper()
			for range 2 {
				if _, ok := take(t, e.file, e.logger).Open(nil, e.logger); ok {
					t.Error("the file can be sent")
				}
			}
			e.wantsLogged(logged...)
		}
		load("404.html is broken")
		time.Sleep(30 * time.Second)
		load()
		e.write("broken again", 0)
		time.Sleep(pause)
		load("404.html is broken again") // less than a minute later
		time.Sleep(59 * time.Second)
		load()
		time.Sleep(time.Second)
		load("404.html is broken again")
	})
}

// TestLastGoodPageOutlastsAReload breaks a file before a reload.
func TestLastGoodPageOutlastsAReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEditedFile(t, "good", 0)
		e.write("broken", 0)
		time.Sleep(pause)
		e.File = take(t, e.file, e.logger)
		runtime.GC()
		e.wantsLogged("is broken")
		e.wants("good")
	})
}

// TestFileThatIsCutWhileItIsReadIsAMistake would otherwise be half a page until it is read again.
func TestFileThatIsCutWhileItIsReadIsAMistake(t *testing.T) {
	for _, cut := range []string{"", "pa"} {
		text, err := readAll(strings.NewReader(cut), int64(len("page")))
		if text != nil || err == nil || err.Error() != "it was cut while it was read" {
			t.Errorf("%q: got %q and the error %v", cut, text, err)
		}
	}
}

// TestNewFileOfAPathIsNotForgotten has the old one be forgotten only after a handler has a new one.
func TestNewFileOfAPathIsNotForgotten(t *testing.T) {
	key := keptKey{newEditedFile(t, "good", 0).file, text.Name}
	f := keptFileOf(key.path, text)
	forget(key)
	if keptFileOf(key.path, text) != f {
		t.Error("two handlers do not share the file")
	}
}

// TestFileOfNoHandlerIsForgotten takes a file for a handler that is gone.
func TestFileOfNoHandlerIsForgotten(t *testing.T) {
	file := newEditedFile(t, "good", 0).file
	isKept := func() bool {
		runtime.GC()
		keptFiles.Lock()
		defer keptFiles.Unlock()
		_, ok := keptFiles.byKey[keptKey{file, text.Name}]
		return ok
	}
	for deadline := time.Now().Add(10 * time.Second); isKept(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the file is kept for nobody")
		}
	}
}
