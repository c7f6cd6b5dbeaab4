//go:build unix

package page

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"
)

// TestNamedPipeIsNotOpened has a named pipe for a template, from the start and later. Whoever opened it would wait until
// somebody writes it.
func TestNamedPipeIsNotOpened(t *testing.T) {
	e := newEditedTemplate(t, "one", time.Hour)
	if err := errors.Join(os.Remove(e.file), syscall.Mkfifo(e.file, 0o600)); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		_, err := loadTemplate(e.file, Page{}, zap.NewNop())
		done <- err
		e.looked = time.Time{}
		e.wants("one")
		e.wantsLogged(e.file + " is not a regular file")
		done <- nil
	}()
	for _, want := range []string{e.file + " is not a regular file", ""} {
		select {
		case err := <-done:
			if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("got the error %v", err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("it waits for the pipe")
		}
	}
}
