package notfound

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// recording is a response as a client sees it, and how its handler ended. What stands for no answer at all leaves no trace
// in it: an empty write, and once the end of the chain is reached, the status 0 and a 200 without a body.
type recording struct {
	request *http.Request
	header  http.Header
	sent    []string // status lines with their header, bytes of the body, and flushes

	begun        bool
	nothing      bool        // a status 0 came, and what follows is made of nothing
	status       int         // the final one, if a handler said it
	statusHeader http.Header // when it did

	first      string // the first write that is not empty
	isReadFrom bool   // a ReadFrom came before

	err, panic any

	calls []string // of the writer, as they come
}

// run has a handler make a response to a GET or HEAD request.
func (e *recording) run(h caddyhttp.Handler, method, accept string) {
	e.header = make(http.Header)
	r := httptest.NewRequest(method, "http://a.test/x", nil)
	r.Header.Set("Accept", accept)
	e.request = prepare(e, r)
	defer func() { e.panic = recover() }()
	e.err = h.ServeHTTP(e, e.request)
}

func (e *recording) call(method string, args ...any) {
	e.calls = append(e.calls, fmt.Sprint(method, args))
}

func (e *recording) reachedEnd() bool {
	unhandled, _ := caddyhttp.GetVar(e.request.Context(), "unhandled").(bool)
	return unhandled
}

func (e *recording) Header() http.Header { return e.header }

func (e *recording) WriteHeader(status int) {
	e.call("WriteHeader", status, e.header)
	length := e.header.Get("Content-Length")
	switch {
	case e.begun, e.nothing:
	case status == 100:
		e.sent = append(e.sent, fmt.Sprint(status, e.header))
	case status == 0 && e.reachedEnd():
		e.nothing, e.statusHeader = true, e.header.Clone()
	case status == 200 && e.reachedEnd() && (length == "" || length == "0"):
	default:
		e.status, e.statusHeader = status, e.header.Clone()
		e.begin(status)
	}
}

func (e *recording) begin(status int) {
	if !e.begun && !e.nothing {
		e.begun = true
		e.sent = append(e.sent, fmt.Sprint(status, e.header))
	}
}

func (e *recording) Write(p []byte) (int, error) {
	e.call("Write", string(p))
	if e.first == "" {
		e.first = string(p)
	}
	if len(p) > 0 && !e.nothing {
		e.begin(200)
		e.sent = append(e.sent, string(p))
	}
	return len(p), nil
}

func (e *recording) ReadFrom(r io.Reader) (int64, error) {
	b, err := io.ReadAll(r)
	e.call("ReadFrom", string(b))
	e.isReadFrom = e.isReadFrom || e.first == ""
	if e.begin(200); err == nil {
		_, err = e.Write(b)
	}
	return int64(len(b)), err
}

func (e *recording) FlushError() error {
	e.call("FlushError")
	if e.begin(200); !e.nothing {
		e.sent = append(e.sent, "flush")
	}
	return nil
}

func (e *recording) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	e.call("Hijack")
	if e.nothing {
		return nil, nil, errors.New("the 404 page replaced this response")
	}
	e.begun = true
	e.sent = append(e.sent, "hijack")
	return nil, nil, nil
}

var (
	errMissing = caddyhttp.Error(http.StatusNotFound, errors.New("missing"))
	errBroken  = caddyhttp.Error(http.StatusBadGateway, errors.New("broken"))
)

// step is a thing that a handler may do with its response. If it returns an error, so does the handler.
type step struct {
	name string
	do   func(w http.ResponseWriter, r *http.Request) error
}

func set(field, value string) step {
	return step{"set " + field + ": " + value, func(w http.ResponseWriter, _ *http.Request) error {
		w.Header()[field] = []string{value}
		return nil
	}}
}

func status(status int) step {
	return step{fmt.Sprint("status ", status), func(w http.ResponseWriter, _ *http.Request) error {
		w.WriteHeader(status)
		return nil
	}}
}

func body(text string) step {
	return step{fmt.Sprintf("body %q", text), func(w http.ResponseWriter, _ *http.Request) error {
		_, _ = io.WriteString(w, text)
		return nil
	}}
}

func readFrom(text string) step {
	return step{fmt.Sprintf("read from %q", text), func(w http.ResponseWriter, _ *http.Request) error {
		_, _ = w.(io.ReaderFrom).ReadFrom(strings.NewReader(text))
		return nil
	}}
}

func fail(err error) step {
	return step{"return " + err.Error(), func(http.ResponseWriter, *http.Request) error { return err }}
}

func panics(value any) step {
	return step{fmt.Sprint("panic: ", value), func(http.ResponseWriter, *http.Request) error { panic(value) }}
}

var (
	end   = step{"end of the chain", testcaddy.EndOfChain}
	flush = step{"flush", func(w http.ResponseWriter, _ *http.Request) error {
		_ = http.NewResponseController(w).Flush()
		return nil
	}}
	hijack = step{"hijack", func(w http.ResponseWriter, _ *http.Request) error {
		_, _, _ = http.NewResponseController(w).Hijack()
		return nil
	}}
	unsetType = step{"no type", func(w http.ResponseWriter, _ *http.Request) error {
		delete(w.Header(), "Content-Type")
		return nil
	}}
	appendOwn = step{"append to X-Own", func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Add("X-Own", "2")
		return nil
	}}
	changeOwn = step{"change X-Own in place", func(w http.ResponseWriter, _ *http.Request) error {
		if own := w.Header()["X-Own"]; own != nil {
			own[0] = "3"
		}
		return nil
	}}

	html, text, grpc = set("Content-Type", "text/html"), set("Content-Type", "text/plain"), set("Content-Type", "application/grpc+proto")
	empty, long      = set("Content-Length", "0"), set("Content-Length", "6")
	etag, own, coded = set("Etag", `"1"`), set("X-Own", "1"), set("Content-Encoding", "gzip")
	trailer          = set(http.TrailerPrefix+"X-Sum", "1")
	theirs, nothing  = body("theirs"), body("")
	brace, object    = body("{"), body(" \r\n{}")
	missing, broken  = fail(errMissing), fail(errBroken)
	abort, bug       = panics(http.ErrAbortHandler), panics("a bug")
)

// allSteps has what a byte of the input stands for.
var allSteps = []step{
	html, text, grpc, unsetType, empty, long, etag, own, appendOwn, changeOwn, trailer, coded,
	status(0), status(100), status(101), status(200), status(404), status(500),
	nothing, theirs, brace, object, body(" "), body("[1]"), readFrom(""), readFrom("theirs"), readFrom("{}"),
	flush, hijack, end, missing, broken, abort, bug,
}

// seed returns the input that stands for steps.
func seed(steps ...step) (input []byte) {
	for _, s := range steps {
		i := slices.IndexFunc(allSteps, func(other step) bool { return other.name == s.name })
		if i < 0 {
			panic(s.name + " is not one of all steps")
		}
		input = append(input, byte(i))
	}
	return input
}

// steps returns what an input stands for.
func steps(input []byte) (steps []step) {
	for _, b := range input {
		steps = append(steps, allSteps[int(b)%len(allSteps)])
	}
	return steps
}

// script is a handler that takes steps.
func script(steps []step) caddyhttp.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		for _, s := range steps {
			if err := s.do(w, r); err != nil {
				return err
			}
		}
		return nil
	}
}

// FuzzHandler has a handler do anything with its response. The client gets the page if the handler's response is a 404
// page, if it returns a 404 error before it sends anything, or if nothing answers, and otherwise what it gets without
// not_found. With dry_run, the writer has the same calls as without it.
func FuzzHandler(f *testing.F) {
	for _, steps := range [][]step{
		{}, {own}, {status(0)}, {status(100)}, {status(200)}, {flush}, {status(101)}, {hijack}, {status(200), status(404)}, // answers
		{end}, {status(100), end}, {end, status(0), theirs}, {end, status(200), theirs}, {end, status(0), readFrom("theirs"), flush},
		{end, status(0), hijack, theirs}, {end, status(0), own, theirs, readFrom("theirs"), flush, broken}, {end, status(0), brace},
		{end, status(500)}, {end, broken}, {status(200), missing}, {readFrom(""), status(404), end},
		{missing}, {nothing, missing}, {status(100), missing}, {etag, trailer, missing}, {status(200), theirs, missing}, {status(101), missing},
		{readFrom("theirs"), missing}, {flush, missing}, {hijack, missing}, {status(500), broken},
		{abort}, {bug}, {status(200), abort}, {status(404), abort}, {status(404), bug}, {end, status(0), abort},
		{status(404), own, theirs}, {status(404), theirs, broken}, {status(404), hijack, missing}, {grpc, empty, status(404), flush},
		{text, status(404), theirs}, {text, long, status(404), theirs}, {text, empty, status(404)}, {empty, status(404), bug},
		{html, long, etag, own, appendOwn, status(100), status(404), changeOwn, trailer, theirs, flush, readFrom("theirs"), appendOwn, abort},
		{text, status(404), brace, theirs}, {status(404), object}, {html, own, trailer, status(404), flush, changeOwn, trailer, brace, flush, readFrom("theirs"), appendOwn}, // JSON
		{status(404), flush, flush, nothing, brace, abort}, {status(404), brace, bug}, {status(404), brace, missing}, {status(404), status(500), brace, status(500)},
		{status(404), body("[1]"), brace}, {status(404), body(" "), brace}, {coded, status(404), brace}, {status(404), coded, brace}, {status(404), readFrom("{}")},
		{status(404), readFrom(""), brace}, {grpc, status(404), brace}, {brace}, {status(404), hijack, brace}, {html, own, status(404), unsetType, appendOwn, object},
	} {
		f.Add(seed(steps...), false, false)
		f.Add(seed(steps...), true, false)
		f.Add(seed(steps...), false, true)
	}
	h, dry := provision(f, &Handler{}), provision(f, &Handler{DryRun: true})
	h.logger, dry.logger = zap.NewNop(), zap.NewNop()
	f.Fuzz(func(t *testing.T, input []byte, head, namesHTML bool) {
		method, accept := http.MethodGet, "text/plain"
		if head {
			method = http.MethodHead
		}
		if namesHTML {
			accept = "text/plain, TEXT/HTML;q=0.5"
		}
		var with, without, inDryRun recording
		steps := steps(input)
		defer func() {
			if t.Failed() {
				for _, s := range steps {
					t.Log(s.name)
				}
			}
		}()
		handler := script(steps)
		without.run(handler, method, accept)
		with.run(caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error { return h.ServeHTTP(w, r, handler) }), method, accept)
		for _, handled := range []error{errMissing, nil} { // in an error route, and in none
			inDryRun = recording{}
			missed.Take()
			inDryRun.run(caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
				return dry.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), caddyhttp.ErrorCtxKey, handled)), handler)
			}), method, accept)
			if !slices.Equal(inDryRun.calls, without.calls) || inDryRun.err != without.err || inDryRun.panic != without.panic {
				t.Errorf("in a dry run, handling %v, got\n%q, %v, %v\nwant\n%q, %v, %v", handled,
					inDryRun.calls, inDryRun.err, inDryRun.panic, without.calls, without.err, without.panic)
			}
		}
		outcomes, _ := missed.Take()

		want := without
		is404 := without.status == http.StatusNotFound
		isJSON := !head && !namesHTML && !without.isReadFrom && without.statusHeader.Get("Content-Encoding") == "" &&
			strings.HasPrefix(strings.TrimSpace(without.first), "{")
		isGRPC := without.statusHeader.Get("Content-Type") == "application/grpc+proto"
		replaced := is404 && !isJSON && !isGRPC
		if is404 && isJSON && !isGRPC { // before the body, it might have become the page, which nobody hijacks
			i := slices.Index(want.sent, without.first)
			want.sent = append(slices.DeleteFunc(slices.Clone(want.sent[:i]), func(sent string) bool { return sent == "hijack" }), want.sent[i:]...)
		}
		cause, counted := "", ""
		switch {
		case without.panic != nil && without.panic != http.ErrAbortHandler: // it passes
		case without.nothing && !without.begun:
			cause = "unanswered"
		case replaced:
			cause = "response"
		case without.begun || without.panic != nil:
		case without.err == errMissing:
			cause = "error"
		case without.err == nil && without.reachedEnd():
			cause = "unanswered"
		}
		if replaced || cause != "" {
			want.sent = slices.DeleteFunc(want.sent, func(sent string) bool { return !strings.HasPrefix(sent, "100") })
		}
		if replaced || without.nothing {
			want.header = without.statusHeader
		}
		if cause != "" {
			delete(want.header, "Etag")
			delete(want.header, "Content-Encoding")
			delete(want.header, http.TrailerPrefix+"X-Sum")
			body := testcaddy.TextPage("GET", "http://a.test/x", "")
			want.header["Content-Type"] = []string{"text/plain; charset=utf-8"}
			want.header["Content-Length"] = []string{fmt.Sprint(len(body))}
			want.header["X-Content-Type-Options"] = []string{"nosniff"}
			want.header["Cache-Control"] = []string{"no-store"}
			want.header["Vary"] = []string{"Accept"}
			want.sent, want.err, want.panic = append(want.sent, fmt.Sprint(404, want.header)), nil, nil
			if !head {
				want.sent = append(want.sent, body)
			}
		}
		got, _ := with.request.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer).GetString("http.not_found.cause")
		if got != cause {
			t.Errorf("got the cause %q, want %q", got, cause)
		}
		switch { // in a dry run; what is aborted, but by the status 0, counts nothing
		case without.nothing && !without.begun:
			counted = "unanswered"
		case without.panic != nil:
		case cause == "response":
			counted = "replaceable"
		case cause != "":
			counted = cause
		case is404:
			counted = "passed"
		}
		if got := outcomes.Links.None.Outcomes.String(); got != counted {
			t.Errorf("a dry run counts %q, want %q", got, counted)
		}
		oneFlush := func(a, b string) bool { return a == "flush" && b == a } // those before JSON are one
		if !slices.Equal(slices.CompactFunc(with.sent, oneFlush), slices.CompactFunc(want.sent, oneFlush)) || with.err != want.err || with.panic != want.panic {
			t.Errorf("got\n%q, %v, %v\nwant\n%q, %v, %v", with.sent, with.err, with.panic, want.sent, want.err, want.panic)
		}
		if want.panic == nil && !maps.EqualFunc(with.header, want.header, slices.Equal) { // trailers, too
			t.Errorf("at the end, the header is %q, want %q", with.header, want.header)
		}
	})
}
