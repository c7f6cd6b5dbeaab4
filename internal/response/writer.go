// Package response provides the writer for the next handler's response. The writer asks its [Rules] whether the
// response is passed on as it comes, or held back so that another one can be sent in its place. A held body is drained,
// and never buffered.
package response

import (
	"bufio"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// Rules say what becomes of a response. Package judge implements them.
type Rules interface {
	// Status judges the status of a response that has not begun.
	Status(status int, header http.Header) Verdict

	// Body judges what follows the final status of any response, held or not: the first bytes of the body, or none for a
	// flush, a hijack and a reader, which is not looked into. It reports whether a 404 that is held passes after all. The
	// header is the one that the response began with.
	Body(first []byte, header http.Header) (passes bool)

	// Sending may change the header of a 404 response that passes, before it is sent.
	Sending(header http.Header)
}

// Verdict is what becomes of a status.
type Verdict uint8

const (
	Pass   Verdict = iota // It is sent.
	Ignore                // It is no answer, and is not sent. A body that follows implies the status 200.
	Hold                  // It is not sent, nor what follows it, unless Body lets the response pass.
)

type state uint8

const (
	pending state = iota // the response has not begun
	passed               // it is sent as it comes
	held                 // it is not sent
)

// Writer is the writer of one response. By its first status, or what implies one, a response is
//
//	passed    if the rules say Pass, or a body, a flush or a hijack comes first
//	held      if the rules say Hold; what follows a 404 may let it pass after all
//	pending   until then, and after Ignore
//
// A handler may keep its writer after it has returned, so a writer is never used for another response.
type Writer struct {
	caddyhttp.ResponseWriterWrapper
	Rules Rules

	// A write of no bytes is passed on. Otherwise it is no answer: a 404 error may follow.
	PassesEmptyWrites bool

	state         state
	isIgnored     bool // a status was ignored
	hasEmptyWrite bool // an empty write was ignored
	awaitsBody    bool // the first bytes of the body are still to be judged
	heldResponse  *heldResponse
}

// heldResponse is what is kept of a response that is held.
type heldResponse struct {
	header    http.Header // as it was when the response began
	isFlushed bool        // by the handler, before the body
	drained   int64       // bytes of the body
	deadline  time.Time   // a later write fails
}

// HasAnswered reports whether the next handler's response is sent.
func (w *Writer) HasAnswered() bool { return w.state == passed }

// IsHeld reports whether the response is held, and the client waits for another one.
func (w *Writer) IsHeld() bool { return w.state == held }

// HeldHeader returns the header that a held response began with.
func (w *Writer) HeldHeader() http.Header { return w.heldResponse.header }

// RestoreHeader restores the header that a held response began with. It drops what the handler has set since.
func (w *Writer) RestoreHeader() {
	replaceHeader(w.Header(), w.heldResponse.header)
}

// End ends a response that nothing replaces. If all that a handler wrote is a status or an empty write that was ignored,
// it meant an empty 200, which End sends by an empty write. net/http would send a 200 as well, but Caddy's header handler
// applies its deferred operations only when something is written.
func (w *Writer) End() {
	wasIgnored := w.hasEmptyWrite || w.isIgnored
	if wasIgnored && w.state == pending {
		_, _ = w.ResponseWriter.Write(nil)
	}
}

// WriteHeader implements http.ResponseWriter.
func (w *Writer) WriteHeader(status int) {
	if w.decide(status) {
		w.ResponseWriter.WriteHeader(status)
	}
}

// decide asks the rules about a status, and reports whether it is sent. Only the first one counts, as for net/http.
func (w *Writer) decide(status int) (sends bool) {
	if w.state == passed {
		return true
	}
	if w.state == held || w.isIgnored {
		return false
	}
	switch w.Rules.Status(status, w.Header()) {
	case Ignore:
		w.isIgnored = true
		return false
	case Hold:
		w.hold()
		w.awaitsBody = true
		return false
	}
	if IsFinal(status) {
		w.state = passed
		w.awaitsBody = true
		if status == http.StatusNotFound {
			w.Rules.Sending(w.Header())
		}
	}
	return true
}

// IsFinal reports whether a response begins with a status, which is not one of those that may precede it.
func IsFinal(status int) bool {
	return status < 100 || status >= 200 || status == http.StatusSwitchingProtocols
}

func (w *Writer) hold() {
	w.state = held
	w.heldResponse = &heldResponse{
		header:   w.Header().Clone(),
		deadline: time.Now().Add(maxDrainTime),
	}
}

// judgeBody judges what follows a final status, and releases a held response that passes after all.
func (w *Writer) judgeBody(first []byte) {
	if !w.awaitsBody {
		return
	}
	if w.state == passed {
		w.Rules.Body(first, w.Header())
	} else if w.Rules.Body(first, w.heldResponse.header) {
		w.release()
	}
}

// release sends the held header, then re-applies what the handler changed since. The changes are found before the
// header is sent, because sending it may change it, too: if a handler writes a 404 with a cookie and then sets a
// trailer, and the site's header directive marks cookies as Secure, the client gets the marked cookie and the trailer.
func (w *Writer) release() {
	w.state = passed
	header := w.Header()
	changes := changesOf(w.heldResponse.header, header)
	replaceHeader(header, w.heldResponse.header)
	w.Rules.Sending(header)
	w.ResponseWriter.WriteHeader(http.StatusNotFound)
	applyChanges(header, changes)
	if w.heldResponse.isFlushed { // otherwise, net/http would guess a Content-Type
		_ = w.FlushError()
	}
}

// changesOf returns the fields that differ between two headers, with their later values: nil if one was removed.
func changesOf(before, after http.Header) http.Header {
	changes := make(http.Header)
	for field, values := range after {
		if !slices.Equal(values, before[field]) {
			changes[field] = values
		}
	}
	for field := range before {
		if _, ok := after[field]; !ok {
			changes[field] = nil
		}
	}
	return changes
}

func replaceHeader(header, by http.Header) {
	clear(header)
	maps.Copy(header, by)
}

func applyChanges(header, changes http.Header) {
	for field, values := range changes {
		if values == nil {
			delete(header, field)
		} else {
			header[field] = values
		}
	}
}

// A held body is drained, so that the connection to the upstream can be reused. The client waits meanwhile, so a write
// beyond these limits fails, as net/http limits the rest of a request's body. A body that stalls writes nothing, and
// these limits do not bound it.
const (
	maxDrained   = 256 << 10 // bytes
	maxDrainTime = 2 * time.Second
)

// ErrReplaced is the error of a write beyond the limits.
var ErrReplaced = errors.New("the 404 page replaced this response")

// drain takes n bytes of the body.
func (r *heldResponse) drain(n int) (int, error) {
	r.drained += int64(n)
	if r.drained > maxDrained || time.Now().After(r.deadline) {
		return 0, ErrReplaced
	}
	return n, nil
}

// Write implements http.ResponseWriter.
func (w *Writer) Write(p []byte) (int, error) {
	if len(p) == 0 {
		if w.PassesEmptyWrites {
			return w.ResponseWriter.Write(nil)
		}
		w.hasEmptyWrite = true
		return 0, nil
	}
	w.judgeBody(p)
	w.awaitsBody = false
	if w.IsHeld() {
		return w.heldResponse.drain(len(p))
	}
	w.state = passed
	return w.ResponseWriter.Write(p)
}

// ReadFrom implements io.ReaderFrom, which reaches the connection if Caddy's writers let it. Unlike an empty write, an
// empty reader is an answer, because Caddy's recorder, which is there if the request is logged, sends a 200 for it.
func (w *Writer) ReadFrom(r io.Reader) (int64, error) {
	w.judgeBody(nil)
	w.awaitsBody = false
	if w.IsHeld() {
		return io.Copy(struct{ io.Writer }{w}, r) // without ReadFrom, which would call itself
	}
	w.state = passed
	return w.ResponseWriterWrapper.ReadFrom(r)
}

// FlushError implements the flushing of http.ResponseController. Like Write, it implies a 200.
func (w *Writer) FlushError() error {
	w.judgeBody(nil) // and awaitsBody stays: a flush does not use up the first bytes
	if w.IsHeld() {
		w.heldResponse.isFlushed = true
		return nil
	}
	err := http.NewResponseController(w.ResponseWriter).Flush()
	if !errors.Is(err, http.ErrNotSupported) {
		w.state = passed
	}
	return err
}

// Hijack implements http.Hijacker, even if the writer below does not, as Caddy's own recorder does. Otherwise,
// http.ResponseController would unwrap this writer and hijack a response that is held.
func (w *Writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.judgeBody(nil)
	if w.IsHeld() {
		return nil, nil, ErrReplaced
	}
	conn, buf, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		w.state = passed
	}
	return conn, buf, err
}

// ForHandler returns the writer for the next handler. It is an http.Flusher exactly if the writer below is one. By
// default, that is one of Caddy's own, which is not: an early flush would cost an HTTP/1.1 client the rest of its
// request's body. Without Caddy's idle timeouts, it is net/http's, which plugins such as durable-streams expect to
// flush.
func (w *Writer) ForHandler() http.ResponseWriter {
	if _, ok := w.ResponseWriter.(http.Flusher); ok {
		return flushingWriter{w}
	}
	return w
}

type flushingWriter struct{ *Writer }

func (w flushingWriter) Flush() { _ = w.FlushError() }

// Interface guards
var (
	_ http.Hijacker = (*Writer)(nil)
	_ io.ReaderFrom = (*Writer)(nil)
	_ http.Flusher  = flushingWriter{}
)
