package userfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
)

// openSidecar opens a sidecar of the 404.html of a site, which is a folder, and returns its text.
func openSidecar(t *testing.T, site string) (text string, err error) {
	t.Helper()
	f := take(t, site+"/{"+variable+"}.html", zap.NewNop())
	opened, ok := f.Open(placeholders(values{variable: "404"}), zap.NewNop())
	if !ok {
		t.Fatal("the file cannot be sent")
	}
	defer opened.File.Close()
	sidecar, info, err := opened.OpenSidecar(".br")
	return read(t, Opened{File: sidecar, Info: info}), err
}

// TestSidecarThatCounts puts a sidecar of each kind beside a site's own file.
func TestSidecarThatCounts(t *testing.T) {
	written := time.Date(2026, 1, 2, 3, 4, 5, 999_999_999, time.UTC)
	const older = "it is more than two seconds older than the page"
	for name, tt := range map[string]struct {
		text    string
		after   time.Duration // since the page was written
		isAbout string        // why it does not count; empty: it does
	}{
		"newer":             {text: "br", after: time.Hour},
		"two seconds older": {text: "br", after: -2_999_999_999},
		"even older":        {text: "br", after: -3_000_000_000, isAbout: older},
		"empty":             {after: time.Hour, isAbout: "it is empty"},
		"as long as may be": {text: strings.Repeat("x", MaxSize), after: time.Hour},
		"too long":          {text: strings.Repeat("x", MaxSize+1), after: time.Hour, isAbout: "it has more than 1 MiB"},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "404.html")
		writeAt(t, path, "page", written)
		writeAt(t, path+".br", tt.text, written.Add(tt.after))
		got, err := openSidecar(t, dir)
		if tt.isAbout != "" {
			wantError(t, name, err, tt.isAbout)
		} else if got != tt.text || err != nil {
			t.Errorf("%s: got %.20q, %v", name, got, err)
		}
	}
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "404.html"), "page")
	_, err := openSidecar(t, dir)
	wantError(t, "none", err, noSuchFile)
}

func writeAt(t testing.TB, path, text string, modified time.Time) {
	t.Helper()
	writeFile(t, path, text)
	if err := os.Chtimes(path, modified, modified); err != nil {
		t.Fatal(err)
	}
}
