package represent

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// TestSidecarThatCannotBeRead links the first one to a file of the kernel, which has a size but cannot be read. The page
// itself is sent in its place, which is no mistake.
func TestSidecarThatCannotBeRead(t *testing.T) {
	root := newSites(t, map[string]string{"a.test": "theirs"})
	path := root + "/a.test/404.html"
	err := os.Chtimes(path, time.Unix(0, 0), time.Unix(0, 0)) // the sidecar is newer
	if err == nil {
		err = os.Symlink("/sys/class/net/lo/duplex", path+".br")
	}
	if err != nil {
		t.Fatal(err)
	}
	formats, logs := observed(t, Options{Templates: rows{"html": {ofSite(root)}}, Encodings: encodings, Suffixes: suffixes})
	if text, encoding, _ := sentFor(t, formats, "br"); text != "theirs" || encoding != "" {
		t.Errorf("got %q, encoded by %q", text, encoding)
	}
	wantMistake(t, logs, "")
}

// TestSidecarOfAPageThatNobodyMayRead asks as nobody, because root may read any file. The sidecar may be read.
func TestSidecarOfAPageThatNobodyMayRead(t *testing.T) {
	root := newSites(t, map[string]string{"a.test": "secret"})
	path := filepath.Join(root, "a.test", "404.html")
	writeFile(t, path+".br", "br")
	for dir := filepath.Dir(path); dir != filepath.Clean(os.TempDir()); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Chmod(path, 0), os.Chmod(path+".br", 0o644)); err != nil {
		t.Fatal(err)
	}
	if uid := os.Geteuid(); uid == 0 {
		runtime.LockOSThread() // which alone is nobody
		defer runtime.UnlockOSThread()
		defer syscall.Setfsuid(uid)
		if err := syscall.Setfsuid(65534); err != nil {
			t.Fatal(err)
		}
	}
	wantNoSidecar(t, root, "permission denied")
}
