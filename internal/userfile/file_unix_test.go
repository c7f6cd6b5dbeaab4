//go:build unix

package userfile

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestNamedPipeHoldsNobodyUp puts a named pipe in the place of a kept file and of a site's own. Opening it would block
// until somebody writes to it, which the test does after ten seconds. What the kernel makes up is no page either.
func TestNamedPipeHoldsNobodyUp(t *testing.T) {
	e := newEditedFile(t, "one", 0)
	e.must(os.Remove(e.file))
	e.must(syscall.Mkfifo(e.file, 0o600))
	defer time.AfterFunc(10*time.Second, func() { panic("the page waits for somebody to write") }).Stop()
	e.kept.readAt = time.Time{}
	e.wants("one")
	e.wantsLogged("is not a regular file")

	for what, replace := range map[string]func() error{
		"is not a regular file": func() error { return syscall.Mkfifo(e.file, 0o600) },
		"it is empty":           func() error { return os.Symlink("/proc/self/environ", e.file) },
		syscall.ELOOP.Error():   func() error { return os.Symlink(e.file, e.file) },
	} {
		e.must(os.Remove(e.file))
		e.must(replace())
		ofSite := take(t, filepath.Dir(e.file)+"/{"+variable+"}", e.logger)
		opened, ok := ofSite.Open(placeholders(values{variable: filepath.Base(e.file)}), e.logger)
		if ok {
			t.Errorf("got %+v, want that %s", opened, what)
		}
		e.wantsLogged(what)
	}
}

// TestOddSidecarsDoNotCount puts what is no regular file beside a site's own one. Opening a named pipe would block
// until somebody writes to it.
func TestOddSidecarsDoNotCount(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "404.html")
	writeAt(t, path, "page", time.Unix(0, 0))
	defer time.AfterFunc(10*time.Second, func() { panic("the page waits for somebody to write") }).Stop()
	for what, replace := range map[string]func(string) error{
		"a named pipe":         func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a folder":             func(path string) error { return os.Mkdir(path, 0o700) },
		"what the kernel has":  func(path string) error { return os.Symlink("/proc/self/environ", path) },
		"a device without end": func(path string) error { return os.Symlink("/dev/zero", path) },
	} {
		_ = os.Remove(path + ".br")
		if err := replace(path + ".br"); err != nil {
			t.Fatal(err)
		}
		if got, err := openSidecar(t, dir); err == nil {
			t.Errorf("%s: got %.20q", what, got)
		}
	}
}
