package represent

import (
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
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

// sentFor returns the body, the Content-Encoding and the Vary of an HTML page.
func sentFor(t *testing.T, formats *Formats, acceptEncoding string) (text, encoding, vary string) {
	t.Helper()
	rep := formats.Represent(&Input{
		Page:           *anyPage,
		Placeholders:   placeholders(values{host: "a.test"}),
		Accept:         "text/html",
		AcceptEncoding: acceptEncoding,
	})
	defer rep.Free()
	header := make(http.Header)
	rep.SetHeader(header, nil)
	var b strings.Builder
	if _, err := rep.WriteTo(&b); err != nil {
		t.Error(err)
	}
	return b.String(), header.Get("Content-Encoding"), header.Get("Vary")
}

const varyByEncoding = "Accept, Accept-Encoding"

// TestSidecarThatAClientAccepts asks for a site's own file of either length, which has the sidecars br and gzip, and
// one of zstd that is older. No file stays open.
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
		o := Options{Templates: rows{"html": {ofSite(root)}}, Encodings: encodings, Suffixes: suffixes}
		formats := newFormats(t, o)
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
			text, encoding, vary := sentFor(t, formats, accepted)
			wantEncoding := map[string]string{".br": "br", ".gz": "gzip"}[want]
			if text != texts[want] || encoding != wantEncoding || vary != varyByEncoding {
				t.Errorf("%q: got %.20q, encoded by %q, Vary %q, want %.20q", accepted, text, encoding, vary, texts[want])
			}
		}
	}
	if after, _ := os.ReadDir("/proc/self/fd"); len(after) > len(before)+3 {
		t.Errorf("%d files are open, and were %d", len(after), len(before))
	}
}

// TestRepeatedEncodingCountsOnce has a client that names encodings again. Each one that counts may cost an attempt to
// open a file.
func TestRepeatedEncodingCountsOnce(t *testing.T) {
	formats := newFormats(t, Options{Encodings: encodings, Suffixes: suffixes})
	got := formats.acceptedEncodings("gzip;q=0.5, br, br, GZIP, BR;q=0.9, zstd;q=0, compress")
	if want := []string{"br", "gzip"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestSidecarOfAnEmptyPage has a page that is a mistake, whatever a client accepts.
func TestSidecarOfAnEmptyPage(t *testing.T) {
	root := newSites(t, map[string]string{"a.test": ""})
	writeFile(t, filepath.Join(root, "a.test", "404.html.br"), "br")
	wantNoSidecar(t, root, "it is empty")
}

// wantNoSidecar wants the built-in page in place of a site's own one, which has a sidecar and is a mistake.
func wantNoSidecar(t *testing.T, root, mistake string) {
	t.Helper()
	for _, acceptEncoding := range []string{"", "br"} {
		o := Options{Templates: rows{"html": {ofSite(root)}}, Encodings: encodings, Suffixes: suffixes}
		formats, logs := observed(t, o)
		if text, encoding, _ := sentFor(t, formats, acceptEncoding); !strings.Contains(text, "<html") || encoding != "" {
			t.Errorf("%q: got %q, encoded by %q", acceptEncoding, text, encoding)
		}
		wantMistake(t, logs, mistake)
	}
}

// TestWhatHasNoSidecars has the built-in page, and a handler without the option.
func TestWhatHasNoSidecars(t *testing.T) {
	root := newSites(t, map[string]string{"a.test": "page"})
	writeFile(t, filepath.Join(root, "a.test", "404.html.br"), "br")
	for name, o := range map[string]Options{
		"built-in":  {Templates: rows{"text": {ofSite(root)}}, Encodings: encodings, Suffixes: suffixes},
		"no option": {Templates: rows{"html": {ofSite(root)}}},
		"kept":      {Templates: rows{"html": {tempFile(t, "page")}}, Encodings: encodings, Suffixes: suffixes, Trial: trial},
	} {
		text, encoding, vary := sentFor(t, newFormats(t, o), "br")
		if text == "br" || encoding != "" || vary == varyByEncoding {
			t.Errorf("%s: got %q, encoded by %q", name, text, encoding)
		}
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
