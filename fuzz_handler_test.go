package notfound

import (
	"bufio"
	"errors"
	"fmt"
	"io"
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

	err, panic any

	calls []string // of the writer, as they come
}

// run has a handler make a response to a GET or HEAD request.
func (e *recording) run(h caddyhttp.Handler, method string) {
	e.header = make(http.Header)
	r := httptest.NewRequest(method, "http://a.test/x", nil)
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
	if len(p) > 0 && !e.nothing {
		e.begin(200)
		e.sent = append(e.sent, string(p))
	}
	return len(p), nil
}

func (e *recording) ReadFrom(r io.Reader) (int64, error) {
	b, err := io.ReadAll(r)
	e.call("ReadFrom", string(b))
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

// script is a handler that does what each of its bytes says.
func script(steps []byte) caddyhttp.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		header := w.Header()
		for _, step := range steps {
			switch step % 28 {
			case 0, 1, 2:
				header["Content-Type"] = []string{[...]string{"text/html", "text/plain", "application/grpc"}[step%28]}
			case 3:
				delete(header, "Content-Type")
			case 4, 5:
				header["Content-Length"] = []string{[...]string{"0", "6"}[step%28-4]}
			case 6:
				header["Etag"] = []string{`"1"`}
			case 7:
				header["X-Own"] = []string{"1"}
			case 8:
				header["X-Own"] = append(header["X-Own"], "2")
			case 9:
				if own := header["X-Own"]; own != nil {
					own[0] = "3"
				}
			case 10:
				header[http.TrailerPrefix+"X-Sum"] = []string{"1"}
			case 11, 12, 13, 14, 15:
				w.WriteHeader([...]int{0, 100, 200, 404, 500}[step%28-11])
			case 16, 17:
				_, _ = io.WriteString(w, [...]string{"", "theirs"}[step%28-16])
			case 18, 19:
				_, _ = w.(io.ReaderFrom).ReadFrom(strings.NewReader([...]string{"", "theirs"}[step%28-18]))
			case 20:
				_ = http.NewResponseController(w).Flush()
			case 21:
				_ = testcaddy.EndOfChain(w, r)
			case 22, 23:
				return [...]error{errMissing, errBroken}[step%28-22]
			case 24, 25:
				panic([...]any{http.ErrAbortHandler, "a bug"}[step%28-24])
			case 26:
				w.WriteHeader(http.StatusSwitchingProtocols)
			case 27:
				_, _, _ = http.NewResponseController(w).Hijack()
			}
		}
		return nil
	}
}

// FuzzHandler has a handler do anything with its response. The client gets the page if the handler's response is a 404
// page, if it returns a 404 error before it sends anything, or if nothing answers, and otherwise what it gets without
// not_found. With dry_run, the writer has the same calls as without it.
func FuzzHandler(f *testing.F) {
	for _, steps := range [][]byte{
		{}, {7}, {12}, {13}, {20}, {26}, {27}, {13, 14}, // answers
		{21}, {12, 21}, {21, 11, 17}, {21, 13, 17}, {21, 11, 19, 20}, {21, 11, 27, 17}, {21, 11, 7, 17, 19, 20, 23}, {21, 15}, {21, 23}, {13, 22}, {18, 14, 21},
		{22}, {16, 22}, {12, 22}, {6, 10, 22}, {13, 17, 22}, {26, 22}, {19, 22}, {20, 22}, {27, 22}, {15, 23},
		{24}, {25}, {13, 24}, {14, 24}, {14, 25}, // panics
		{14, 7, 17}, {14, 17, 23}, {14, 27, 22}, {2, 4, 14, 20}, {1, 14, 17}, {1, 5, 14, 17}, {1, 4, 14}, {4, 14, 25},
		{0, 5, 6, 7, 8, 12, 14, 9, 10, 17, 20, 19, 8, 24},
	} {
		f.Add(steps, false)
		f.Add(steps, true)
	}
	h, dry := provision(f, &Handler{}), provision(f, &Handler{DryRun: true})
	h.logger, dry.logger = zap.NewNop(), zap.NewNop()
	f.Fuzz(func(t *testing.T, steps []byte, head bool) {
		method := http.MethodGet
		if head {
			method = http.MethodHead
		}
		var with, without, inDryRun recording
		handler := script(steps)
		without.run(handler, method)
		with.run(caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error { return h.ServeHTTP(w, r, handler) }), method)
		missed.Take()
		inDryRun.run(caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error { return dry.ServeHTTP(w, r, handler) }), method)
		if !slices.Equal(inDryRun.calls, without.calls) || inDryRun.err != without.err || inDryRun.panic != without.panic {
			t.Errorf("in a dry run, got\n%q, %v, %v\nwant\n%q, %v, %v", inDryRun.calls, inDryRun.err, inDryRun.panic, without.calls, without.err, without.panic)
		}
		outcomes, _ := missed.Take()

		want := without
		replaced := without.status == http.StatusNotFound && without.statusHeader.Get("Content-Type") != "application/grpc"
		cause := ""
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
		if counted := strings.Replace(outcomes.Links.None.Outcomes.String(), "replaceable", "response", 1); counted != cause && (cause != "" || without.panic == nil && counted != "passed") {
			t.Errorf("a dry run counts %q, want %q", counted, cause)
		}
		if !slices.Equal(with.sent, want.sent) || with.err != want.err || with.panic != want.panic {
			t.Errorf("got\n%q, %v, %v\nwant\n%q, %v, %v", with.sent, with.err, with.panic, want.sent, want.err, want.panic)
		}
	})
}
