package notfound

import (
	"bufio"
	"errors"
	"fmt"
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

// TestWriterKeepsItsInterfaces uses everything that the underlying writer implements.
func TestWriterKeepsItsInterfaces(t *testing.T) {
	underlying := &recordingWriter{ResponseWriter: httptest.NewRecorder()}
	err := serve(provision(t, &Handler{}), underlying, "GET", "/x", func(w http.ResponseWriter, _ *http.Request) error {
		rc := http.NewResponseController(w)
		err := errors.Join(rc.SetReadDeadline(time.Time{}), rc.SetWriteDeadline(time.Time{}), rc.EnableFullDuplex(),
			w.(http.Pusher).Push("/style.css", nil), rc.Flush())
		if err != nil {
			return err
		}
		_, err = io.Copy(w, io.LimitReader(testcaddy.Endless{}, 10)) // a reader without WriteTo
		return err
	})
	if err != nil {
		t.Error(err)
	}
	want := "SetReadDeadline, SetWriteDeadline, EnableFullDuplex, Push /style.css, Flush, ReadFrom"
	if got := strings.Join(underlying.calls, ", "); got != want {
		t.Errorf("got the calls %s, want %s", got, want)
	}
}

// TestWriterFlushesAsTheOneWithoutThePage has a writer that is a Flusher and no Hijacker, as that of HTTP/2 is.
func TestWriterFlushesAsTheOneWithoutThePage(t *testing.T) {
	rec := httptest.NewRecorder()
	err := serve(provision(t, &Handler{}), rec, "GET", "/x", func(w http.ResponseWriter, _ *http.Request) error {
		if _, isHijacker := w.(http.Hijacker); isHijacker {
			t.Error("the writer is a Hijacker")
		}
		w.(http.Flusher).Flush()
		return nil
	})
	if err != nil || !rec.Flushed {
		t.Errorf("got the error %v, flushed: %v", err, rec.Flushed)
	}
}

// TestReadFromReachesTheConnection sends a file as file_server does, over real connections, with not_found and without
// it, and compares how the underlying writer was written to.
func TestReadFromReachesTheConnection(t *testing.T) {
	file := testcaddy.TempFile(t, "file.bin", strings.Repeat("0123456789abcdef", 64<<10))
	h := provision(t, &Handler{})
	sendFile := func(w http.ResponseWriter, r *http.Request) error {
		http.ServeFile(w, r, file)
		return nil
	}
	calls := make(map[string]string)
	for name, handle := range map[string]caddyhttp.HandlerFunc{
		"with": func(w http.ResponseWriter, r *http.Request) error {
			return h.ServeHTTP(w, r, caddyhttp.HandlerFunc(sendFile))
		},
		"without": sendFile,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			underlying := &recordingWriter{ResponseWriter: w}
			if err := handle(underlying, prepare(underlying, r)); err != nil {
				t.Error(err)
			}
			calls[name] = strings.Join(underlying.calls, ", ")
		}))
		res, err := http.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, res.Body)
		res.Body.Close()
		server.Close()
		if err != nil || n != 1<<20 {
			t.Errorf("%s: got %d bytes, %v", name, n, err)
		}
	}
	if calls["with"] != "ReadFrom" || calls["without"] != "ReadFrom" {
		t.Errorf("got the calls %v, want one ReadFrom for each", calls)
	}
}

// recordingWriter records which of its methods are called, except those of http.ResponseWriter.
type recordingWriter struct {
	http.ResponseWriter
	calls []string
}

func (w *recordingWriter) ReadFrom(r io.Reader) (int64, error) {
	w.calls = append(w.calls, "ReadFrom")
	return io.Copy(w.ResponseWriter, r)
}

func (w *recordingWriter) Push(target string, _ *http.PushOptions) error {
	w.calls = append(w.calls, "Push "+target)
	return nil
}

func (w *recordingWriter) FlushError() error {
	w.calls = append(w.calls, "Flush")
	return nil
}

func (w *recordingWriter) SetReadDeadline(time.Time) error {
	w.calls = append(w.calls, "SetReadDeadline")
	return nil
}

func (w *recordingWriter) SetWriteDeadline(time.Time) error {
	w.calls = append(w.calls, "SetWriteDeadline")
	return nil
}

func (w *recordingWriter) EnableFullDuplex() error {
	w.calls = append(w.calls, "EnableFullDuplex")
	return nil
}

// TestWriterThatIsUnwrappedByHand writes past not_found, which the README says it cannot notice.
func TestWriterThatIsUnwrappedByHand(t *testing.T) {
	for name, tt := range map[string]struct {
		next caddyhttp.HandlerFunc
		want string
	}{
		"and answers":  {func(http.ResponseWriter, *http.Request) error { return nil }, "theirs"},
		"and goes on":  {testcaddy.EndOfChain, "theirs" + testcaddy.TextPage("GET", "http://a.test/x", "")},
		"and responds": {func(w http.ResponseWriter, _ *http.Request) error { w.WriteHeader(404); return nil }, "theirs" + testcaddy.TextPage("GET", "http://a.test/x", "")},
	} {
		t.Run(name, func(t *testing.T) {
			rec := httptest.NewRecorder()
			err := serve(provision(t, &Handler{}), rec, "GET", "/x", func(w http.ResponseWriter, r *http.Request) error {
				underlying := w.(interface{ Unwrap() http.ResponseWriter }).Unwrap()
				underlying.WriteHeader(http.StatusNotFound)
				io.WriteString(underlying, "theirs")
				return tt.next(w, r)
			})
			if err != nil || rec.Body.String() != tt.want {
				t.Errorf("got %q, %v, want %q", rec.Body, err, tt.want)
			}
		})
	}
}

// TestAfterThePage has a handler go on in every possible way after the page has replaced its response.
func TestAfterThePage(t *testing.T) {
	t.Parallel()
	rec := httptest.NewRecorder()
	var early http.Header
	err := serve(provision(t, &Handler{}), &hijackable{rec}, "GET", "/x", func(w http.ResponseWriter, _ *http.Request) error {
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
		if rec.Body.Len() > 0 || rec.Flushed {
			t.Errorf("%q has left before the handler returned, flushed: %v", rec.Body, rec.Flushed)
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

// hijackable is a recorder whose connection can be hijacked.
type hijackable struct{ *httptest.ResponseRecorder }

func (*hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, nil }

// TestPanicsPassOn has a handler panic before its response is replaced and after it. Only reverse_proxy's way to abort a
// response does not pass then: the client gets the page.
func TestPanicsPassOn(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		value  any
		passes bool
	}{
		"abort before":   {0, http.ErrAbortHandler, true},
		"abort of a 200": {200, http.ErrAbortHandler, true},
		"abort of a 404": {404, http.ErrAbortHandler, false},
		"other before":   {0, "other", true},
		"other of a 404": {404, "other", true},
	} {
		t.Run(name, func(t *testing.T) {
			h := provision(t, &Handler{})
			rec := httptest.NewRecorder()
			defer func() {
				if p := recover(); (p != nil) != tt.passes || p != nil && p != tt.value {
					t.Errorf("got the panic %v", p)
				}
				if isPage := strings.HasPrefix(rec.Body.String(), "HTTP ERROR 404 "); isPage == tt.passes {
					t.Errorf("got the body %q", rec.Body)
				}
			}()
			if err := serve(h, rec, "GET", "/x", func(w http.ResponseWriter, _ *http.Request) error {
				if tt.status > 0 {
					w.WriteHeader(tt.status)
				}
				panic(tt.value)
			}); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestPanicOfThePageItselfPasses has the underlying writer panic while the page is sent. The client has no page then, so
// that an abort passes, too.
func TestPanicOfThePageItselfPasses(t *testing.T) {
	for _, at := range []string{"WriteHeader", "Write"} {
		for _, p := range []any{"a panic", http.ErrAbortHandler} {
			for name, next := range map[string]caddyhttp.HandlerFunc{
				"response": func(w http.ResponseWriter, _ *http.Request) error { w.WriteHeader(404); return nil },
				"end":      testcaddy.EndOfChain,
			} {
				t.Run(fmt.Sprint(at, p, name), func(t *testing.T) {
					defer func() {
						if got := recover(); got != p {
							t.Errorf("got the panic %v, want %v", got, p)
						}
					}()
					w := &brokenWriter{httptest.NewRecorder(), at, p}
					err := serve(provision(t, &Handler{}), w, "GET", "/x", next)
					t.Errorf("got %v, want a panic", err)
				})
			}
		}
	}
}

// brokenWriter panics in one of its methods.
type brokenWriter struct {
	http.ResponseWriter
	at string
	p  any
}

func (w *brokenWriter) WriteHeader(status int) {
	if w.at == "WriteHeader" {
		panic(w.p)
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *brokenWriter) Write(p []byte) (int, error) {
	if w.at == "Write" {
		panic(w.p)
	}
	return w.ResponseWriter.Write(p)
}
