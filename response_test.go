package notfound

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// fakeWriter is the writer of a connection, and can do all that one can. It records what is called, except its methods of
// http.ResponseWriter.
type fakeWriter struct {
	*httptest.ResponseRecorder
	calls []string
}

func (w *fakeWriter) call(method string) error {
	w.calls = append(w.calls, method)
	return nil
}

func (w *fakeWriter) ReadFrom(r io.Reader) (int64, error) {
	_ = w.call("ReadFrom")
	return io.Copy(w.ResponseRecorder, r)
}

func (w *fakeWriter) Hijack() (net.Conn, *bufio.ReadWriter, error)  { return nil, nil, w.call("Hijack") }
func (w *fakeWriter) Push(target string, _ *http.PushOptions) error { return w.call("Push " + target) }
func (w *fakeWriter) Flush()                                        { _ = w.call("Flush") }
func (w *fakeWriter) SetReadDeadline(time.Time) error               { return w.call("SetReadDeadline") }
func (w *fakeWriter) SetWriteDeadline(time.Time) error              { return w.call("SetWriteDeadline") }
func (w *fakeWriter) EnableFullDuplex() error                       { return w.call("EnableFullDuplex") }

// TestWriterKeepsItsInterfaces uses everything that the underlying writer implements.
func TestWriterKeepsItsInterfaces(t *testing.T) {
	for _, h := range []*Handler{{}, {DryRun: true}} {
		underlying := &fakeWriter{ResponseRecorder: httptest.NewRecorder()}
		err := serve(provision(t, h), underlying, "GET", "/x", func(w http.ResponseWriter, _ *http.Request) error {
			rc := http.NewResponseController(w)
			err := errors.Join(rc.SetReadDeadline(time.Time{}), rc.SetWriteDeadline(time.Time{}), rc.EnableFullDuplex(),
				w.(http.Pusher).Push("/style.css", nil), rc.Flush())
			w.(http.Flusher).Flush()
			_, copyErr := io.Copy(w, io.LimitReader(testcaddy.Endless{}, 10)) // a reader without WriteTo
			_, _, hijackErr := w.(http.Hijacker).Hijack()
			return errors.Join(err, copyErr, hijackErr)
		})
		if err != nil {
			t.Error(err)
		}
		want := "SetReadDeadline, SetWriteDeadline, EnableFullDuplex, Push /style.css, Flush, Flush, ReadFrom, Hijack"
		if got := strings.Join(underlying.calls, ", "); got != want {
			t.Errorf("dry run: %v: got the calls %s, want %s", h.DryRun, got, want)
		}
	}
}

// TestWriterFlushesAndHijacksAsTheOneBelow has writers such as HTTP/2's, which flushes and cannot be hijacked.
func TestWriterFlushesAndHijacksAsTheOneBelow(t *testing.T) {
	w := &fakeWriter{ResponseRecorder: httptest.NewRecorder()}
	for name, below := range map[string]http.ResponseWriter{
		"neither":  struct{ http.ResponseWriter }{w},
		"flusher":  struct{ flusher }{w},
		"hijacker": struct{ hijacker }{w},
		"both":     w,
	} {
		_, isFlusher := below.(http.Flusher)
		_, isHijacker := below.(http.Hijacker)
		for _, h := range []*Handler{{}, {DryRun: true}} {
			err := serve(provision(t, h), below, "GET", "/x", func(w http.ResponseWriter, _ *http.Request) error {
				_, flushes := w.(http.Flusher)
				_, hijacks := w.(http.Hijacker)
				if flushes != isFlusher || hijacks != isHijacker {
					t.Errorf("%s: it is a Flusher: %v, a Hijacker: %v", name, flushes, hijacks)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}
	}
}

type (
	flusher interface {
		http.ResponseWriter
		http.Flusher
	}
	hijacker interface {
		http.ResponseWriter
		http.Hijacker
	}
)

// TestStatusZeroOfAHandlerPasses has a mistake that net/http panics over.
func TestStatusZeroOfAHandlerPasses(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("want the panic of net/http")
		}
	}()
	_ = serve(provision(t, &Handler{}), httptest.NewRecorder(), "GET", "/x", func(w http.ResponseWriter, _ *http.Request) error {
		w.WriteHeader(0)
		return nil
	})
}

// TestAfterThePage has a handler go on in every possible way after the page has replaced its response.
func TestAfterThePage(t *testing.T) {
	t.Parallel()
	rec := &fakeWriter{ResponseRecorder: httptest.NewRecorder()}
	var early http.Header
	err := serve(provision(t, &Handler{}), rec, "GET", "/x", func(w http.ResponseWriter, _ *http.Request) error {
		early = w.Header()
		early.Set("X-Theirs", "1")
		early.Set("X-Others", "1")
		w.WriteHeader(http.StatusNotFound)
		early["X-Theirs"][0] = "2"
		w.WriteHeader(http.StatusOK)
		early.Set(http.TrailerPrefix+"X-Early", "1")
		w.Header().Set(http.TrailerPrefix+"X-Late", "1")
		w.Header().Set("Content-Type", "text/x-theirs")
		rc := http.NewResponseController(w)
		if err := rc.Flush(); err != nil {
			t.Errorf("flushing: %v", err)
		}
		if n, err := io.WriteString(w, "theirs"); n != 6 || err != nil {
			t.Errorf("writing: %d, %v", n, err)
		}
		if n, err := w.(io.ReaderFrom).ReadFrom(strings.NewReader("theirs")); n != 6 || err != nil {
			t.Errorf("reading from: %d, %v", n, err)
		}
		if _, _, err := rc.Hijack(); err == nil {
			t.Error("hijacked")
		}
		if n, err := io.Copy(w, io.LimitReader(testcaddy.Endless{}, 1<<30)); err == nil || n > maxDrained {
			t.Errorf("copying 1 GiB: %d, %v", n, err)
		}
		if rec.Body.Len() > 0 || len(rec.calls) > 0 {
			t.Errorf("%q has left before the handler returned, with the calls %v", rec.Body, rec.calls)
		}
		return errors.New("too late")
	})
	if err != nil {
		t.Errorf("got the error %v", err)
	}
	if want := testcaddy.TextPage("GET", "http://a.test/x", ""); rec.Body.String() != want || rec.Code != 404 {
		t.Errorf("got %d %q, want the page", rec.Code, rec.Body)
	}
	for field, values := range early {
		if strings.Contains(field, "Early") || strings.Contains(field, "Late") {
			t.Errorf("the header has %s", field)
		}
		if cap(values) > len(values) {
			t.Errorf("who appends to %s may change another field", field)
		}
	}
	if contentType, theirs := early.Get("Content-Type"), early.Get("X-Theirs"); contentType != "text/plain; charset=utf-8" || theirs != "1" {
		t.Errorf("the header has Content-Type %s and X-Theirs %s", contentType, theirs)
	}
}

// TestBareStatus has an error route write an empty 404 where no response is replaced, and perhaps go on.
func TestBareStatus(t *testing.T) {
	keep := []caddyhttp.ResponseMatcher{{Headers: http.Header{"X-Kept": {"*"}}}}
	h := provision(t, &Handler{Replace: replaceNone, Keep: keep})
	for name, tt := range map[string]struct {
		status int    // of the error
		field  string // that the error route sets
		goOn   func(w http.ResponseWriter) error
		isPage bool
	}{
		"what the failing handler left": {404, "", nil, true},
		"of another error":              {500, "", nil, false},
		"with a type":                   {404, "Content-Type", nil, false},
		"with a length":                 {404, "Content-Length", nil, false},
		"that is kept":                  {404, "X-Kept", nil, false},
		"kept before the error route":   {404, "", nil, true},
		"write":                         {404, "", func(w http.ResponseWriter) error { _, err := io.WriteString(w, "theirs"); return err }, false},
		"read":                          {404, "", func(w http.ResponseWriter) error { _, err := io.Copy(w, strings.NewReader("theirs")); return err }, false},
		"flush":                         {404, "", func(w http.ResponseWriter) error { return http.NewResponseController(w).Flush() }, false},
		"hijack":                        {404, "", func(w http.ResponseWriter) error { _, _, err := http.NewResponseController(w).Hijack(); return err }, false},
		"second status":                 {404, "", func(w http.ResponseWriter) error { w.WriteHeader(http.StatusOK); return nil }, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := &fakeWriter{ResponseRecorder: httptest.NewRecorder()}
			w.Header().Set("Content-Type", "text/html")
			if strings.HasPrefix(name, "kept before") {
				w.Header().Set("X-Kept", "1") // by the handler that failed
			}
			r := prepare(w, httptest.NewRequest("GET", "http://a.test/x", nil))
			r = r.WithContext(context.WithValue(r.Context(), caddyhttp.ErrorCtxKey, error(caddyhttp.Error(tt.status, nil))))
			err := h.ServeHTTP(w, r, caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
				if tt.field != "" {
					w.Header().Set(tt.field, "0")
				}
				w.WriteHeader(http.StatusNotFound)
				if tt.goOn != nil {
					return tt.goOn(w)
				}
				return nil
			}))
			isPage := strings.HasPrefix(w.Body.String(), "HTTP ERROR 404")
			if err != nil || w.Code != http.StatusNotFound || isPage != tt.isPage {
				t.Errorf("got %d %q, %v, and want the page: %v", w.Code, w.Body, err, tt.isPage)
			}
		})
	}
}
