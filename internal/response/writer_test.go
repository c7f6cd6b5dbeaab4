package response

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// connection is the writer of a connection, and can do all that one can. It records what is called, except its methods
// of http.ResponseWriter.
type connection struct {
	*httptest.ResponseRecorder
	calls     []string
	hijackErr error
}

func newConnection() *connection {
	return &connection{ResponseRecorder: httptest.NewRecorder()}
}

func (c *connection) call(method string) error {
	c.calls = append(c.calls, method)
	return nil
}

func (c *connection) ReadFrom(r io.Reader) (int64, error) {
	_ = c.call("ReadFrom")
	return io.Copy(c.ResponseRecorder, r)
}

func (c *connection) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	_ = c.call("Hijack")
	return nil, nil, c.hijackErr
}

func (c *connection) Push(target string, _ *http.PushOptions) error { return c.call("Push " + target) }
func (c *connection) Flush()                                        { _ = c.call("Flush") }
func (c *connection) SetReadDeadline(time.Time) error               { return c.call("SetReadDeadline") }
func (c *connection) SetWriteDeadline(time.Time) error              { return c.call("SetWriteDeadline") }
func (c *connection) EnableFullDuplex() error                       { return c.call("EnableFullDuplex") }

// verdicts is a judge that gives a verdict on each status, and has a body that begins with a brace pass.
type verdicts map[int]Verdict

func (v verdicts) Status(status int, _ http.Header) Verdict { return v[status] }

func (v verdicts) Body(first []byte, _ http.Header) bool {
	return strings.HasPrefix(string(first), "{")
}

func (v verdicts) Sending(header http.Header) { header.Set("Vary", "Accept") }

// holding holds every 404.
var holding = verdicts{404: Hold}

func newWriter(below http.ResponseWriter, judge Judge) *Writer {
	w := &Writer{Judge: judge}
	w.ResponseWriter = below
	return w
}

// TestKeepsInterfaces uses everything that the writer below implements.
func TestKeepsInterfaces(t *testing.T) {
	for _, isDry := range []bool{false, true} {
		below := newConnection()
		writer := newWriter(below, holding)
		writer.DryRun = isDry
		w := writer.ForHandler()
		rc := http.NewResponseController(w)
		err := errors.Join(
			rc.SetReadDeadline(time.Time{}),
			rc.SetWriteDeadline(time.Time{}),
			rc.EnableFullDuplex(),
			w.(http.Pusher).Push("/style.css", nil),
			rc.Flush(),
		)
		w.(http.Flusher).Flush()
		_, copyErr := io.Copy(w, io.LimitReader(strings.NewReader("theirs"), 6)) // a reader without WriteTo
		_, _, hijackErr := w.(http.Hijacker).Hijack()
		if err := errors.Join(err, copyErr, hijackErr); err != nil {
			t.Errorf("dry run: %v: %v", isDry, err)
		}
		const want = "SetReadDeadline, SetWriteDeadline, EnableFullDuplex, Push /style.css, Flush, Flush, ReadFrom, Hijack"
		if got := strings.Join(below.calls, ", "); got != want {
			t.Errorf("dry run: %v: got the calls %s, want %s", isDry, got, want)
		}
	}
}

// TestIsAFlusherWhereTheWriterBelowIs has a writer such as Caddy's, which flushes only by http.ResponseController.
func TestIsAFlusherWhereTheWriterBelowIs(t *testing.T) {
	below := newConnection()
	if _, ok := newWriter(below, holding).ForHandler().(http.Flusher); !ok {
		t.Error("above a flusher, the writer is none")
	}
	noFlusher := struct{ http.ResponseWriter }{below}
	if _, ok := newWriter(noFlusher, holding).ForHandler().(http.Flusher); ok {
		t.Error("above no flusher, the writer is one")
	}
}

// TestHeldResponseIsNotSent has a handler go on in every possible way after its response is held.
func TestHeldResponseIsNotSent(t *testing.T) {
	below := newConnection()
	writer := newWriter(below, holding)
	w := writer.ForHandler()
	w.Header().Set("X-Theirs", "1")
	w.WriteHeader(http.StatusNotFound)
	w.Header()["X-Theirs"][0] = "2"
	w.Header().Set("X-Late", "1")
	w.WriteHeader(http.StatusOK)
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
		t.Error("it was hijacked")
	}
	// Caddy's own writers are no http.Hijacker, and http.ResponseController unwraps them
	writer.ResponseWriter = struct{ http.ResponseWriter }{below}
	if _, _, err := http.NewResponseController(writer.ForHandler()).Hijack(); err == nil {
		t.Error("the writer below was hijacked")
	}

	if below.Body.Len() > 0 || len(below.calls) > 0 {
		t.Errorf("%q was sent, with the calls %v", below.Body, below.calls)
	}
	if !writer.IsHeld() || writer.HasAnswered() {
		t.Error("the response is not held")
	}
	writer.RestoreHeader()
	if got := w.Header(); len(got) != 1 || got.Get("X-Theirs") != "1" {
		t.Errorf("got the header %v, want it as it was when the response began", got)
	}
}

// TestHeldBodyIsDrainedWithinLimits copies a body that does not end, and one that comes late.
func TestHeldBodyIsDrainedWithinLimits(t *testing.T) {
	writer := newWriter(newConnection(), holding)
	writer.WriteHeader(http.StatusNotFound)
	piece := make([]byte, 32<<10)
	for n := 0; n < maxDrained; n += len(piece) {
		if _, err := writer.Write(piece); err != nil {
			t.Fatalf("after %d bytes: %v", n, err)
		}
	}
	if _, err := writer.Write(piece[:1]); !errors.Is(err, ErrReplaced) {
		t.Errorf("past the limit, got the error %v", err)
	}

	late := newWriter(newConnection(), holding)
	late.WriteHeader(http.StatusNotFound)
	late.heldResponse.deadline = time.Now()
	if _, err := late.Write(piece); !errors.Is(err, ErrReplaced) {
		t.Errorf("past the deadline, got the error %v", err)
	}
}

// securing marks cookies as Secure when the header is sent, as a deferred operation of Caddy's header handler does.
type securing struct{ *connection }

func (s securing) WriteHeader(status int) {
	for i, cookie := range s.Header()["Set-Cookie"] {
		s.Header()["Set-Cookie"][i] = cookie + "; Secure"
	}
	s.connection.WriteHeader(status)
}

// TestReleasedResponseIsAsIfItWasNeverHeld sends a response that passes by its body, and compares it with what the
// handler writes without this writer.
func TestReleasedResponseIsAsIfItWasNeverHeld(t *testing.T) {
	handler := func(w http.ResponseWriter) {
		w.Header()["Set-Cookie"] = []string{"a=1"}
		w.Header().Set("X-Removed", "1")
		w.Header().Set("X-Replaced", "1")
		w.WriteHeader(http.StatusNotFound)
		w.Header().Del("X-Removed")
		w.Header().Set("X-Replaced", "2")
		w.Header().Set(http.TrailerPrefix+"X-Sum", "3")
		_ = http.NewResponseController(w).Flush()
		_, _ = io.WriteString(w, "{}")
		_, _ = w.(io.ReaderFrom).ReadFrom(strings.NewReader("theirs"))
	}
	want, got := securing{newConnection()}, securing{newConnection()}
	handler(want)
	writer := newWriter(got, holding)
	handler(writer.ForHandler())

	sent := got.Result().Header
	if sent.Get("Vary") != "Accept" {
		t.Errorf("the header lacks what the judge has set: %v", sent)
	}
	sent.Del("Vary")
	for field := range want.Result().Header {
		if !slices.Equal(sent[field], want.Result().Header[field]) {
			t.Errorf("%s: got %q, want %q", field, sent[field], want.Result().Header[field])
		}
		delete(sent, field)
	}
	if len(sent) > 0 {
		t.Errorf("got the further fields %v", sent)
	}
	if got.Body.String() != want.Body.String() || !slices.Equal(got.calls, want.calls) {
		t.Errorf("got %q and the calls %q, want %q and %q", got.Body, got.calls, want.Body, want.calls)
	}
	cookie, replaced, removed := got.Header().Get("Set-Cookie"), got.Header().Get("X-Replaced"), got.Header()["X-Removed"]
	if cookie != "a=1; Secure" || replaced != "2" || removed != nil {
		t.Errorf("at the end, the header is %v", got.Header())
	}
}

// TestOnlyTheFirstBytesAreJudged has a brace come later, or from a reader, which is not looked into.
func TestOnlyTheFirstBytesAreJudged(t *testing.T) {
	for name, begin := range map[string]func(w *Writer){
		"after other bytes": func(w *Writer) { _, _ = io.WriteString(w, "[") },
		"after a reader":    func(w *Writer) { _, _ = w.ReadFrom(strings.NewReader("")) },
		"from a reader":     func(w *Writer) { _, _ = w.ReadFrom(strings.NewReader("{}")) },
	} {
		w := newWriter(newConnection(), holding)
		w.WriteHeader(http.StatusNotFound)
		begin(w)
		_, _ = io.WriteString(w, "{")
		if !w.IsHeld() {
			t.Errorf("%s, it passes", name)
		}
	}
}

// TestWhatAnswers has a handler write what is an answer, and what is none.
func TestWhatAnswers(t *testing.T) {
	judge := verdicts{404: Hold, 200: Ignore, 0: Hold}
	for name, tt := range map[string]struct {
		handler func(w *Writer, below *connection)
		answers bool
	}{
		"an empty write":       {func(w *Writer, _ *connection) { _, _ = w.Write(nil) }, false},
		"an empty reader":      {func(w *Writer, _ *connection) { _, _ = w.ReadFrom(strings.NewReader("")) }, true},
		"a body":               {func(w *Writer, _ *connection) { _, _ = io.WriteString(w, "theirs") }, true},
		"a flush":              {func(w *Writer, _ *connection) { _ = w.FlushError() }, true},
		"status 100":           {func(w *Writer, _ *connection) { w.WriteHeader(100) }, false},
		"status 199":           {func(w *Writer, _ *connection) { w.WriteHeader(199) }, false},
		"an upgrade":           {func(w *Writer, _ *connection) { w.WriteHeader(101) }, true},
		"status 204":           {func(w *Writer, _ *connection) { w.WriteHeader(204) }, true},
		"an ignored status":    {func(w *Writer, _ *connection) { w.WriteHeader(200) }, false},
		"a status after it":    {func(w *Writer, _ *connection) { w.WriteHeader(200); w.WriteHeader(500) }, false},
		"a held status":        {func(w *Writer, _ *connection) { w.WriteHeader(404) }, false},
		"a hijack":             {func(w *Writer, _ *connection) { _, _, _ = w.Hijack() }, true},
		"a hijack that failed": {func(w *Writer, c *connection) { c.hijackErr = io.EOF; _, _, _ = w.Hijack() }, false},
	} {
		below := newConnection()
		w := newWriter(below, judge)
		tt.handler(w, below)
		if got := w.HasAnswered(); got != tt.answers {
			t.Errorf("%s is an answer: %v", name, got)
		}
	}
}

// TestEmptyWriteIsSentAtTheEnd has the writer below send a header only once something is written, as Caddy's deferred
// header operations do.
func TestEmptyWriteIsSentAtTheEnd(t *testing.T) {
	below := &lastWrite{ResponseWriter: httptest.NewRecorder()}
	w := newWriter(below, holding)
	_, _ = w.Write([]byte{})
	if below.writes > 0 {
		t.Error("an empty write is sent at once, and no page can follow")
	}
	w.End()
	if below.writes != 1 {
		t.Errorf("at the end, there are %d writes, want one", below.writes)
	}
	newWriter(below, holding).End()
	if below.writes != 1 {
		t.Error("without a write, one is sent")
	}

	dry := newWriter(below, verdicts{200: Ignore})
	dry.DryRun = true
	dry.WriteHeader(200)
	if dry.End(); below.writes != 1 {
		t.Error("in a dry run, the ignored status is sent twice")
	}
}

type lastWrite struct {
	http.ResponseWriter
	writes int
}

func (w *lastWrite) Write(p []byte) (int, error) {
	w.writes++
	return w.ResponseWriter.Write(p)
}
