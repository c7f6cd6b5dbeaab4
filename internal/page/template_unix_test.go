//go:build unix

package page

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestNamedPipeHoldsNobodyUp puts a named pipe in the place of a template and of the page of a site. Opening it would
// block until somebody writes to it, which the test does after ten seconds.
func TestNamedPipeHoldsNobodyUp(t *testing.T) {
	e := newEditedTemplate(t, "one", 0)
	e.must(os.Remove(e.file))
	e.must(syscall.Mkfifo(e.file, 0o600))
	defer time.AfterFunc(10*time.Second, func() { panic("the page waits for somebody to write") }).Stop()
	e.template().readAt = time.Time{}
	e.wants("one")
	e.wantsLogged("is not a regular file")

	m, logs := observed(t, Options{SiteFiles: files{"text": filepath.Dir(e.file) + "/{" + variable + "}"}})
	pg := m.Make(ask("GET", "/"), placeholders(values{variable: filepath.Base(e.file)}))
	wantBody(t, m, pg, "text", body(t, newMaker(t, Options{}), pg, "text"))
	wantMistake(t, logs, "is not a regular file")
	e.must(os.Remove(e.file))
	e.must(os.Symlink("/proc/self/environ", e.file))
	wantBody(t, m, pg, "text", body(t, newMaker(t, Options{}), pg, "text"))
	e.must(os.Remove(e.file))
	e.must(os.Symlink(e.file, e.file))
	later, logs := observed(t, Options{SiteFiles: files{"text": filepath.Dir(e.file) + "/{" + variable + "}"}})
	body(t, later, pg, "text")
	wantMistake(t, logs, syscall.ELOOP.Error())
}
