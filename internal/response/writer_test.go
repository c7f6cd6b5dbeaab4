package response

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
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

func (c *connection) Push(target string, _ *http.PushOptions) error {
	return c.call("Push " + target)
}

func (c *connection) Flush() {
	_ = c.call("Flush")
}

func (c *connection) SetReadDeadline(time.Time) error {
	return c.call("SetReadDeadline")
}

func (c *connection) SetWriteDeadline(time.Time) error {
	return c.call("SetWriteDeadline")
}

func (c *connection) EnableFullDuplex() error {
	return c.call("EnableFullDuplex")
}

// verdicts is a judge that gives a verdict on each status, and has a body that begins with a brace pass.
type verdicts map[int]Verdict

func (v verdicts) Status(status int, _ http.Header) Verdict {
	return v[status]
}

func (v verdicts) Body(first []byte, _ http.Header) bool {
	return strings.HasPrefix(string(first), "{")
}

func (v verdicts) Sending(header http.Header) {
	header.Set("Vary", "Accept")
}

// newWriter returns a writer that holds every 404, and ignores every 200.
func newWriter(below http.ResponseWriter) *Writer {
	w := new(Writer)
	w.Rules = verdicts{404: Hold, 200: Ignore}
	w.ResponseWriter = below
	return w
}

// heldWriter returns a writer that holds a 404.
func heldWriter() *Writer {
	w := newWriter(newConnection())
	w.WriteHeader(http.StatusNotFound)
	return w
}

// TestKeepsInterfaces uses everything that the writer below implements.
func TestKeepsInterfaces(t *testing.T) {
	below := newConnection()
	writer := newWriter(below)
	w := writer.ForHandler()
	rc := http.NewResponseController(w)
	w.(http.Flusher).Flush()
	onlyReader := io.LimitReader(strings.NewReader("theirs"), 6) // without WriteTo, which io.Copy prefers
	_, copyErr := io.Copy(w, onlyReader)
	_, _, hijackErr := w.(http.Hijacker).Hijack()
	err := errors.Join(
		copyErr,
		hijackErr,
		rc.SetReadDeadline(time.Time{}),
		rc.SetWriteDeadline(time.Time{}),
		rc.EnableFullDuplex(),
		w.(http.Pusher).Push("/style.css", nil),
		rc.Flush(),
	)
	const want = "Flush, ReadFrom, Hijack, SetReadDeadline, SetWriteDeadline, EnableFullDuplex, Push /style.css, Flush"
	got := strings.Join(below.calls, ", ")
	if got != want || err != nil {
		t.Errorf("got the calls %s, want %s: %v", got, want, err)
	}
}

// TestIsNoFlusherWhereTheWriterBelowIsNone has a writer such as Caddy's, which flushes only by http.ResponseController.
func TestIsNoFlusherWhereTheWriterBelowIsNone(t *testing.T) {
	noFlusher := struct{ http.ResponseWriter }{newConnection()}
	w := newWriter(noFlusher).ForHandler()
	if _, ok := w.(http.Flusher); ok {
		t.Error("the writer is a flusher")
	}
	err := http.NewResponseController(w).Flush()
	if !errors.Is(err, http.ErrNotSupported) || w.(*Writer).HasAnswered() {
		t.Errorf("got the error %v, and a response by a flush that was not possible", err)
	}
}

// TestHeldResponseIsNotSent has a handler go on in every possible way after its response is held.
func TestHeldResponseIsNotSent(t *testing.T) {
	below := newConnection()
	w := newWriter(below)
	w.Header().Set("X-Theirs", "1")
	w.WriteHeader(http.StatusNotFound)
	w.Header()["X-Theirs"][0] = "2"
	w.Header().Set("X-Late", "1")
	w.WriteHeader(http.StatusOK)
	flushErr := w.FlushError()
	written, writeErr := w.Write([]byte("theirs"))
	read, readErr := w.ReadFrom(strings.NewReader("theirs"))
	err := errors.Join(flushErr, writeErr, readErr)
	if err != nil || written != 6 || read != 6 {
		t.Errorf("%d bytes were written, and %d read: %v", written, read, err)
	}
	if _, _, err := w.Hijack(); err == nil {
		t.Error("it was hijacked")
	}
	// Caddy's own writers are no http.Hijacker, and http.ResponseController unwraps them.
	w.ResponseWriter = struct{ http.ResponseWriter }{below}
	rc := http.NewResponseController(w.ForHandler())
	if _, _, err := rc.Hijack(); err == nil {
		t.Error("the writer below was hijacked")
	}

	if below.Body.Len() > 0 || len(below.calls) > 0 {
		t.Errorf("%q was sent, with the calls %v", below.Body, below.calls)
	}
	if !w.IsHeld() || w.HasAnswered() {
		t.Error("the response is not held")
	}
	w.RestoreHeader()
	want := http.Header{"X-Theirs": {"1"}}
	if got := w.Header(); !reflect.DeepEqual(got, want) {
		t.Errorf("got the header %v, want it as it was when the response began", got)
	}
}

// TestHeldBodyIsDrainedWithinLimits writes a body that does not end, and one that comes late.
func TestHeldBodyIsDrainedWithinLimits(t *testing.T) {
	w := heldWriter()
	piece := make([]byte, maxDrained)
	if _, err := w.Write(piece); err != nil {
		t.Errorf("within the limit: %v", err)
	}
	if _, err := w.Write(piece[:1]); err != ErrReplaced {
		t.Errorf("past the limit, got the error %v", err)
	}

	synctest.Test(t, func(t *testing.T) {
		late := heldWriter()
		time.Sleep(2 * time.Second)
		_, inTime := late.Write(piece[:1])
		time.Sleep(time.Nanosecond)
		_, err := late.Write(piece[:1])
		if inTime != nil || err != ErrReplaced {
			t.Errorf("at the deadline, got the error %v, and past it %v", inTime, err)
		}
	})
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
		w.WriteHeader(http.StatusNotFound)
		w.Header().Del("X-Removed")
		w.Header().Set(http.TrailerPrefix+"X-Sum", "3")
		_ = http.NewResponseController(w).Flush()
		_, _ = io.WriteString(w, "{}")
	}
	want := securing{newConnection()}
	got := securing{newConnection()}
	handler(want)
	handler(newWriter(got).ForHandler())

	want.Header().Set("Vary", "Accept") // as the judge does
	if !reflect.DeepEqual(got.Header(), want.Header()) {
		t.Errorf("at the end, the header is %v, want %v", got.Header(), want.Header())
	}
	sent := got.Result().Header
	wantSent := want.Result().Header
	wantSent.Set("Vary", "Accept")
	if !reflect.DeepEqual(sent, wantSent) {
		t.Errorf("got the header %v, want %v", sent, wantSent)
	}
	body := got.Body.String()
	if body != "{}" || !slices.Equal(got.calls, want.calls) {
		t.Errorf("got %q and the calls %q, want %q", body, got.calls, want.calls)
	}
}

// TestOnlyThe404ThatPassesIsChanged has the judge change the header of a response that it never held.
func TestOnlyThe404ThatPassesIsChanged(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		vary   string
	}{
		"a 404":          {status: http.StatusNotFound, vary: "Accept"},
		"another status": {status: http.StatusForbidden},
	} {
		w := newWriter(newConnection())
		w.Rules = verdicts{} // every status passes
		w.WriteHeader(tt.status)
		if got := w.Header().Get("Vary"); got != tt.vary {
			t.Errorf("%s: got Vary %q, want %q", name, got, tt.vary)
		}
	}
}

// statusAlone is a judge that holds a 404 only if nothing follows its status.
type statusAlone struct{ verdicts }

func (statusAlone) Body([]byte, http.Header) bool { return true }

func TestWhateverFollowsA404IsJudged(t *testing.T) {
	for name, follow := range map[string]func(w *Writer) error{
		"a flush": (*Writer).FlushError,
		"a reader": func(w *Writer) error {
			_, err := w.ReadFrom(strings.NewReader("theirs"))
			return err
		},
		"a hijack": func(w *Writer) error {
			_, _, err := w.Hijack()
			return err
		},
	} {
		w := heldWriter()
		w.Rules = statusAlone{}
		if err := follow(w); err != nil || !w.HasAnswered() {
			t.Errorf("%s: the response is held: %v, %v", name, w.IsHeld(), err)
		}
	}
}

// TestReaderIsNotJudged has a held body begin with a brace, and come from a reader, which is not looked into.
func TestReaderIsNotJudged(t *testing.T) {
	w := heldWriter()
	_, _ = w.ReadFrom(strings.NewReader("{}"))
	if !w.IsHeld() {
		t.Error("it passes")
	}
}

// TestStatusThatAnswers has a handler write statuses, the last of which may be an answer.
func TestStatusThatAnswers(t *testing.T) {
	for _, tt := range []struct {
		statuses []int
		answers  bool
	}{
		{statuses: []int{100}},
		{statuses: []int{199}},
		{statuses: []int{101}, answers: true},
		{statuses: []int{204}, answers: true},
		{statuses: []int{200}}, // is ignored
		{statuses: []int{200, 500}},
		{statuses: []int{404}}, // is held
	} {
		w := newWriter(newConnection())
		for _, status := range tt.statuses {
			w.WriteHeader(status)
		}
		if w.HasAnswered() != tt.answers {
			t.Errorf("%d is an answer: %v", tt.statuses, !tt.answers)
		}
	}
}

// TestNothingIsNoAnswer has a handler write no bytes, and fail to hijack the connection.
func TestNothingIsNoAnswer(t *testing.T) {
	below := newConnection()
	below.hijackErr = io.EOF
	w := newWriter(below)
	_, writeErr := w.Write(nil)
	_, _, hijackErr := w.Hijack()
	if writeErr != nil || hijackErr != io.EOF || w.HasAnswered() {
		t.Errorf("got the errors %v and %v, and an answer: %v", writeErr, hijackErr, w.HasAnswered())
	}
}
