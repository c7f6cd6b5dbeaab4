package userfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/caddyserver/caddy/v2"
)

// unsent is the debug log's message about a sidecar that does not count.
const unsent = "a page has no such compressed file"

// takeWithSidecars returns a file in the format text, which may have sidecars.
func takeWithSidecars(t testing.TB, path string) *File {
	t.Helper()
	format := text
	format.Suffixes = []string{".br", ".gz"}
	f, err := Take(path, format, new(OnceAMinute), zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// sent opens a file for a client that accepts a sidecar. It returns what is sent, and why it is not the sidecar.
func sent(t *testing.T, f *File, request *caddy.Replacer, suffix string) (content, why string) {
	t.Helper()
	logger, logs := observed()
	opened, ok := f.Open(request, logger, suffix)
	if !ok {
		t.Fatal("the file cannot be sent")
	}
	isUsed := opened.Suffix == suffix
	for _, entry := range logs.FilterMessage(unsent).All() {
		why += entry.Level.String() + ": " + entry.ContextMap()["error"].(string)
	}
	if isUsed == (why != "") {
		t.Errorf("the sidecar is used: %v, but the log says %q", isUsed, why)
	}
	switch {
	case opened.File != nil:
		return read(t, opened), why
	case isUsed:
		return string(opened.Text), why
	}
	return opened.Page.(string), why
}

// ofSiteIn is the path of a site's own 404.html in a folder, and inDir the placeholders of a request for it.
func ofSiteIn(dir string) string { return dir + "/{" + variable + "}.html" }

func inDir() *caddy.Replacer { return placeholders(values{variable: "404"}) }

// TestSidecarThatCounts puts a sidecar of each kind beside a kept file and a site's own one.
func TestSidecarThatCounts(t *testing.T) {
	written := time.Date(2026, 1, 2, 3, 4, 5, 999_999_999, time.UTC)
	const older = "it is older than the page"
	for name, tt := range map[string]struct {
		text    string
		after   time.Duration // since the page was written
		isAbout string        // why it does not count; empty: it does
	}{
		"newer":              {text: "br", after: time.Hour},
		"of the same second": {text: "br", after: -999_999_999},
		"of another second":  {text: "br", after: -1_000_000_000, isAbout: older},
		"empty":              {after: time.Hour, isAbout: "it is empty"},
		"as long as may be":  {text: strings.Repeat("x", MaxSize), after: time.Hour},
		"too long":           {text: strings.Repeat("x", MaxSize+1), after: time.Hour, isAbout: "it has more than 1 MiB"},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "404.html")
		writeAt(t, path, "page", written)
		writeAt(t, path+".br", tt.text, written.Add(tt.after))
		want := tt.text
		if tt.isAbout != "" {
			want = "page"
		}
		for _, path := range []string{path, ofSiteIn(dir)} {
			f := takeWithSidecars(t, path)
			got, why := sent(t, f, inDir(), ".br")
			if got != want || !strings.HasPrefix(strings.TrimPrefix(why, "debug: "), tt.isAbout) {
				t.Errorf("%s, %s: got %.20q, %q, want %.20q, %q", name, path, got, why, want, tt.isAbout)
			}
			if got, why := sent(t, f, inDir(), ".gz"); got != "page" || !strings.Contains(why, noSuchFile) {
				t.Errorf("%s, %s: got %.20q, %q in place of a sidecar that there is not", name, path, got, why)
			}
		}
		_, notes, err := takeWithSidecars(t, path).Check()
		if note := strings.Join(notes, ""); !strings.Contains(note, tt.isAbout) || (note == "") != (tt.isAbout == "") || err != nil {
			t.Errorf("%s: got the notes %q, %v", name, notes, err)
		}
	}
}

func writeAt(t testing.TB, path, text string, modified time.Time) {
	t.Helper()
	writeFile(t, path, text)
	if err := os.Chtimes(path, modified, modified); err != nil {
		t.Fatal(err)
	}
}

// TestSidecarIsLive changes a kept file and its sidecar. The sidecar of a page that cannot be used is not sent.
func TestSidecarIsLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "404.html")
		write := func(suffix, text string) { writeAt(t, path+suffix, text, time.Now()) }
		write("", "one")
		f := takeWithSidecars(t, path)
		becomes := func(what, want string) {
			t.Helper()
			time.Sleep(pause)
			if got, _ := sent(t, f, nil, ".br"); got != want {
				t.Errorf("%s: got %q, want %q", what, got, want)
			}
		}
		becomes("no sidecar", "one")
		write(".br", "br")
		becomes("a new one", "br")
		write(".br", "br 2")
		becomes("a changed one", "br 2")
		write("", "two")
		becomes("a changed page", "two")
		write(".br", "br 3")
		becomes("its sidecar", "br 3")
		write("", "broken")
		write(".br", "of what is broken")
		becomes("a page that cannot be used", "two")
		becomes("the same again", "two")
		write("", "two")
		write(".br", "br 4")
		becomes("a page that can", "br 4")
		os.Remove(path + ".br")
		becomes("a sidecar that was removed", "two")
	})
}

// TestReloadAddsSidecars has a handler without the option keep the file, at the same second.
func TestReloadAddsSidecars(t *testing.T) {
	path := filepath.Join(t.TempDir(), "404.html")
	writeAt(t, path, "page", time.Unix(0, 0))
	writeAt(t, path+".br", "br", time.Unix(0, 0))
	without := take(t, path, zap.NewNop())
	if got, _ := sent(t, takeWithSidecars(t, path), nil, ".br"); got != "br" {
		t.Errorf("got %q", got)
	}
	if opened, _ := without.Open(nil, zap.NewNop()); opened.Page != "page" || opened.Suffix != "" {
		t.Errorf("without the option, got %v%s", opened.Page, opened.Suffix)
	}
}
