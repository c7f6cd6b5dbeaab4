package represent

import (
	"os"
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
