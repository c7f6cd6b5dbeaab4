package represent

import (
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

var (
	encodings = []string{"br", "zstd", "gzip"}
	suffixes  = []string{".br", ".zst", ".gz"}
)

// sentFor returns the body and the Content-Encoding of an HTML page, and whether another client may get another one.
func sentFor(t *testing.T, formats *Formats, acceptEncoding string) (text, encoding string, mayBeEncoded bool) {
	t.Helper()
	client := Accepted{Accept: "text/html", AcceptEncoding: acceptEncoding}
	rep := formats.Represent(anyPage, placeholders(values{host: "a.test"}), client)
	defer rep.Free()
	header := make(http.Header)
	rep.SetHeader(header, "Accept", nil)
	var b strings.Builder
	if _, err := rep.WriteTo(&b); err != nil {
		t.Error(err)
	}
	return b.String(), header.Get("Content-Encoding"), rep.MayBeEncoded
}

// TestSidecarThatAClientAccepts asks for a kept file, and for a site's own one of either length, which have the
// sidecars br and gzip, and one of zstd that is older. No file stays open.
func TestSidecarThatAClientAccepts(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // or a collection would close files
	before, _ := os.ReadDir("/proc/self/fd")         // none, except on Linux
	for _, length := range []int{1, maxBuffered + 1} {
		texts := make(map[string]string)
		root := newSites(t, map[string]string{"a.test": ""})
		path := filepath.Join(root, "a.test", "404.html")
		for _, suffix := range []string{"", ".br", ".gz", ".zst"} {
			texts[suffix] = strings.Repeat("x"+suffix, length)
			writeFile(t, path+suffix, texts[suffix])
		}
		if err := os.Chtimes(path+".zst", time.Unix(0, 0), time.Unix(0, 0)); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{path, ofSite(root)} {
			formats := newFormats(t, Options{Templates: rows{"html": {file}}, Encodings: encodings, Suffixes: suffixes})
			for accepted, want := range map[string]string{
				"":                        "",
				"identity":                "",
				"*":                       "", // as in file_server
				"gzip, deflate, br, zstd": ".br",
				"gzip, br;q=0":            ".gz",
				"br;q=0.5, GZIP":          ".gz",
				"zstd, gzip":              ".gz",
				"zstd":                    "",
			} {
				text, encoding, mayBeEncoded := sentFor(t, formats, accepted)
				wantEncoding := map[string]string{".br": "br", ".gz": "gzip"}[want]
				if text != texts[want] || encoding != wantEncoding || !mayBeEncoded {
					t.Errorf("%s, %q: got %.20q, encoded by %q, want %.20q", file, accepted, text, encoding, texts[want])
				}
			}
		}
	}
	if after, _ := os.ReadDir("/proc/self/fd"); len(after) > len(before)+3 {
		t.Errorf("%d files are open, and were %d", len(after), len(before))
	}
}

// TestWhatHasNoSidecars has a template, the built-in page, and a handler without the option.
func TestWhatHasNoSidecars(t *testing.T) {
	template := tempFile(t, "<p>{{.Status}}")
	literal := tempFile(t, "<p>404")
	for _, path := range []string{template, literal} {
		writeFile(t, path+".br", "br")
	}
	for name, o := range map[string]Options{
		"template":  {Templates: rows{"html": {template}}, Encodings: encodings, Suffixes: suffixes},
		"built-in":  {Templates: rows{"text": {literal}}, Encodings: encodings, Suffixes: suffixes},
		"no option": {Templates: rows{"html": {literal}}},
	} {
		text, encoding, mayBeEncoded := sentFor(t, newFormats(t, o), "br")
		if text == "br" || encoding != "" || mayBeEncoded {
			t.Errorf("%s: got %q, encoded by %q", name, text, encoding)
		}
	}
	withOlder := tempFile(t, "<p>{{.Status}}")
	writeFile(t, withOlder+".br", "br")
	if err := os.Chtimes(withOlder+".br", time.Unix(0, 0), time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	o := Options{Templates: rows{"html": {withOlder}}, Encodings: encodings, Suffixes: suffixes}
	if _, notes, err := newFormats(t, o).Check(); len(notes) > 0 || err != nil {
		t.Errorf("checking a template: %q, %v", notes, err)
	}
}

// TestKeptFileHasNothingOfAHandler has a second handler share the file of one that is gone, with its logger.
func TestKeptFileHasNothingOfAHandler(t *testing.T) {
	o := Options{Templates: rows{"html": {tempFile(t, "page")}}, Trial: trial}
	first := o
	first.Logger = zap.New(zapcore.NewTee()) // which allocates one
	gone := make(chan bool)
	runtime.AddCleanup(first.Logger, func(bool) { close(gone) }, true)
	if _, err := New(first); err != nil {
		t.Fatal(err)
	}
	second := newFormats(t, o)
	first.Logger = nil
	for range 100 {
		runtime.GC()
		select {
		case <-gone:
			runtime.KeepAlive(second)
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Error("the file keeps the logger")
}
