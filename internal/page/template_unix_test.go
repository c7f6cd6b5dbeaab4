//go:build unix

package page

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"time"
)

// TestNamedPipeIsNotOpened has a named pipe for a template, from the start and later. Whoever opened it would wait until
// somebody writes it, which the test does in the end.
func TestNamedPipeIsNotOpened(t *testing.T) {
	e := newEditedTemplate(t, "one", time.Hour)
	if err := errors.Join(os.Remove(e.file), syscall.Mkfifo(e.file, 0o600)); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(10*time.Second, func() {
		for range 2 {
			_ = os.WriteFile(e.file, []byte("a pipe"), 0)
		}
	}).Stop()
	wantRefused(t, "a pipe", e.file, e.file+" is not a regular file")

	e.looked = time.Time{}
	e.wants("one")
	e.wantsLogged(e.file + " is not a regular file")
}
