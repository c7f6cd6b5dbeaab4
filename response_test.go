package notfound

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
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

// TestBareStatus has an error route end where no response is replaced, as in JSON, or write an empty 404, as in a Caddyfile, and
// perhaps go on.
func TestBareStatus(t *testing.T) {
	h := provision(t, &Handler{Replace: replaceNone, Keep: []caddyhttp.ResponseMatcher{
		{StatusCode: []int{404}, Headers: http.Header{"X-Own": {"*"}}},
	}})
	for name, tt := range map[string]struct {
		status int // of the error
		route  []step
		isPage bool
	}{
		"the end":                       {404, []step{end}, true},
		"the end, of another error":     {500, []step{end}, false},
		"what the failing handler left": {404, []step{status(404)}, true},
		"of another error":              {500, []step{status(404)}, false},
		"with a type":                   {404, []step{text, status(404)}, false},
		"with a length":                 {404, []step{empty, status(404)}, false},
		"with another status":           {404, []step{status(500)}, false},
		"that is kept":                  {404, []step{own, status(404)}, false},
		"kept before the error route":   {404, []step{status(404)}, true},
		"write":                         {404, []step{status(404), theirs}, false},
		"a field, and write":            {404, []step{status(404), etag, theirs}, false},
		"read":                          {404, []step{status(404), readFrom("theirs")}, false},
		"flush":                         {404, []step{status(404), flush}, false},
		"hijack":                        {404, []step{status(404), hijack}, false},
		"second status":                 {404, []step{status(404), status(200)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w, want := &fakeWriter{ResponseRecorder: httptest.NewRecorder()}, &fakeWriter{ResponseRecorder: httptest.NewRecorder()}
			w.Header().Set("Content-Type", "text/html")
			want.Header().Set("Content-Type", "text/html")
			if strings.HasPrefix(name, "kept before") {
				w.Header().Set("X-Own", "1") // by the handler that failed
			}
			r := prepare(w, httptest.NewRequest("GET", "http://a.test/x", nil))
			_ = script(tt.route)(want, r)
			caddyhttp.SetVar(r.Context(), "unhandled", nil)
			r = r.WithContext(context.WithValue(r.Context(), caddyhttp.ErrorCtxKey, error(caddyhttp.Error(tt.status, nil))))
			err := h.ServeHTTP(w, r, script(tt.route))
			wantCause := ""
			if tt.isPage {
				wantCause = "error"
				want = &fakeWriter{ResponseRecorder: httptest.NewRecorder()}
				want.WriteHeader(404)
				_, _ = want.WriteString(testcaddy.TextPage("GET", "http://a.test/x", ""))
			}
			if cause, _ := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer).GetString(causePlaceholder); cause != wantCause {
				t.Errorf("got the cause %q, want %q", cause, wantCause)
			}
			if err != nil || w.Code != want.Code || w.Body.String() != want.Body.String() || !slices.Equal(w.calls, want.calls) || !tt.isPage && !reflect.DeepEqual(w.Result().Header, want.Result().Header) {
				t.Errorf("got %d %q, %v and the calls %q, want %d %q and %q", w.Code, w.Body, err, w.calls, want.Code, want.Body, want.calls)
			}
		})
	}
}
