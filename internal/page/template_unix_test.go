//go:build unix

package page

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestNamedPipeIsNotOpened uses a named pipe as a template. Opening it would block until somebody writes to it, which
// the test does after ten seconds.
func TestNamedPipeIsNotOpened(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "404.html")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(10*time.Second, func() { _ = os.WriteFile(pipe, []byte("a pipe"), 0) }).Stop()
	wantRefused(t, "a pipe", pipe, pipe+" is not a regular file")
}
