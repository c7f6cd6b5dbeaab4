//go:build unix

package page

import (
	"os"
	"syscall"
	"testing"
	"time"
)

// TestNamedPipeIsNotOpened puts a named pipe in the place of a template. Opening it would block until somebody writes
// to it, which the test does after ten seconds.
func TestNamedPipeIsNotOpened(t *testing.T) {
	e := newEditedTemplate(t, "one", 0)
	e.must(os.Remove(e.file))
	e.must(syscall.Mkfifo(e.file, 0o600))
	unblock := func() { _ = os.WriteFile(e.file, []byte("a pipe"), 0) }
	defer time.AfterFunc(10*time.Second, unblock).Stop()
	e.template().looked = time.Time{}
	e.wants("one")
	e.wantsLogged("is not a regular file")
}
