package notfound

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/judge"
	"github.com/caddy-notfound/notfound/internal/report"
	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// recording is what a client and the writer below a handler see of a response, and how the handler ended.
type recording struct {
	header http.Header
	sent   []string // status lines with their header, bytes of the body, and flushes
	begun  bool

	err, panic any
	cause      string // the placeholder
	counted    string // the outcome in the report
	reachedEnd bool
}

func (e *recording) Header() http.Header { return e.header }

// WriteHeader records a status. The first final one counts, as for net/http.
func (e *recording) WriteHeader(status int) {
	if !e.begun {
		e.begun = status != 100
		e.sent = append(e.sent, fmt.Sprint(status, e.header))
	}
}

// Write records bytes. An empty write leaves no trace, because with not_found it is no answer.
func (e *recording) Write(p []byte) (int, error) {
	if len(p) > 0 {
		e.WriteHeader(200)
		e.sent = append(e.sent, string(p))
	}
	return len(p), nil
}

func (e *recording) ReadFrom(r io.Reader) (int64, error) {
	e.WriteHeader(200)
	b, err := io.ReadAll(r)
	if err == nil {
		_, err = e.Write(b)
	}
	return int64(len(b)), err
}

func (e *recording) FlushError() error {
	e.WriteHeader(200)
	e.sent = append(e.sent, "flush")
	return nil
}

func (e *recording) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	e.begun = true
	e.sent = append(e.sent, "hijack")
	return nil, nil, nil
}

// fuzzed is a request of a fuzzing input.
type fuzzed struct {
	method  string
	accept  string
	handled error // the request is in the error route of this error
}

// record has a handler respond to the request.
func (f fuzzed) record(h caddyhttp.Handler) *recording {
	e := &recording{header: make(http.Header)}
	r := httptest.NewRequest(f.method, "http://a.test/x", nil)
	r.Header.Set("Accept", f.accept)
	r = prepare(e, r)
	if f.handled != nil {
		r = r.WithContext(context.WithValue(r.Context(), caddyhttp.ErrorCtxKey, f.handled))
	}
	report.Missed.Take()
	func() {
		defer func() { e.panic = recover() }()
		e.err = h.ServeHTTP(e, r)
	}()
	counted, _ := report.Missed.Take()
	e.counted = counted.Links.None.Outcomes.String()
	e.reachedEnd, _ = caddyhttp.GetVar(r.Context(), "unhandled").(bool)
	e.cause, _ = r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer).GetString("http.not_found.cause")
	return e
}

// inside returns a handler with another one as the next.
func inside(h *Handler, next caddyhttp.Handler) caddyhttp.Handler {
	return caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		return h.ServeHTTP(w, r, next)
	})
}

// wantSame compares what is sent, how the handler ends, and the header at the end, which has trailers.
func wantSame(t *testing.T, what string, got, want *recording) {
	t.Helper()
	if !slices.Equal(got.sent, want.sent) || got.err != want.err || got.panic != want.panic {
		t.Errorf("%s: got\n%q, %v, %v\nwant\n%q, %v, %v", what,
			got.sent, got.err, got.panic, want.sent, want.err, want.panic)
	}
	if want.panic == nil && !maps.EqualFunc(got.header, want.header, slices.Equal) {
		t.Errorf("%s: at the end, the header is %q, want %q", what, got.header, want.header)
	}
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

// quietly returns a step that returns no error.
func quietly(name string, do func(w http.ResponseWriter)) step {
	return step{name, func(w http.ResponseWriter, _ *http.Request) error {
		do(w)
		return nil
	}}
}

func set(field, value string) step {
	return quietly("set "+field+": "+value, func(w http.ResponseWriter) { w.Header()[field] = []string{value} })
}

func status(status int) step {
	return quietly(fmt.Sprint("status ", status), func(w http.ResponseWriter) { w.WriteHeader(status) })
}

func body(text string) step {
	return quietly(fmt.Sprintf("body %q", text), func(w http.ResponseWriter) { _, _ = io.WriteString(w, text) })
}

func readFrom(text string) step {
	return quietly(fmt.Sprintf("read from %q", text), func(w http.ResponseWriter) {
		_, _ = w.(io.ReaderFrom).ReadFrom(strings.NewReader(text))
	})
}

func fail(err error) step {
	return step{"return " + err.Error(), func(http.ResponseWriter, *http.Request) error { return err }}
}

func panics(value any) step {
	return quietly(fmt.Sprint("panic: ", value), func(http.ResponseWriter) { panic(value) })
}

var (
	end       = step{"end of the chain", testcaddy.EndOfChain}
	flush     = quietly("flush", func(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() })
	hijack    = quietly("hijack", func(w http.ResponseWriter) { _, _, _ = http.NewResponseController(w).Hijack() })
	unsetType = quietly("no type", func(w http.ResponseWriter) { delete(w.Header(), "Content-Type") })
	appendOwn = quietly("append to X-Own", func(w http.ResponseWriter) { w.Header().Add("X-Own", "2") })
	changeOwn = quietly("change X-Own in place", func(w http.ResponseWriter) {
		if own := w.Header()["X-Own"]; own != nil {
			own[0] = "3"
		}
	})

	html    = set("Content-Type", "text/html")
	text    = set("Content-Type", "text/plain")
	grpc    = set("Content-Type", "application/grpc+proto")
	empty   = set("Content-Length", "0")
	long    = set("Content-Length", "6")
	coded   = set("Content-Encoding", "gzip")
	etag    = set("Etag", `"1"`)
	own     = set("X-Own", "1")
	trailer = set(http.TrailerPrefix+"X-Sum", "1")

	nothing = body("")
	theirs  = body("theirs")
	brace   = body("{")
	object  = body(" \r\n{}")
	missing = fail(errMissing)
	broken  = fail(errBroken)
	abort   = panics(http.ErrAbortHandler)
	bug     = panics("a bug")
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

// seeds returns every pair of steps: alone, around a 404 status, after one, and after the end of the chain with a
// status that is none. Some longer ones follow.
func seeds() (inputs [][]byte) {
	for _, first := range allSteps {
		for _, second := range allSteps {
			inputs = append(inputs,
				seed(first, second),
				seed(first, status(404), second),
				seed(status(404), first, second),
				seed(end, status(0), first, second),
			)
		}
	}
	return append(inputs,
		seed(grpc, empty, status(404), flush),
		seed(text, long, status(404), theirs),
		seed(status(404), status(500), brace, status(500)),
		seed(status(404), flush, flush, nothing, brace, abort),
		seed(html, own, status(404), unsetType, appendOwn, object),
		seed(end, status(0), own, theirs, readFrom("theirs"), flush, broken),
		seed(html, long, etag, own, appendOwn, status(100), status(404), changeOwn, trailer, theirs, flush, appendOwn, abort),
		seed(html, own, trailer, status(404), flush, changeOwn, trailer, brace, flush, readFrom("theirs"), appendOwn),
	)
}

// FuzzHandler has a handler do anything with its response, and holds rules that need no second judge:
//
//   - A dry run changes nothing, around another handler, inside one or alone. It counts what a live handler would do.
//   - Two handlers send what one does. What an inner one sends or lets pass stands.
//   - A response that is no 404, where something answered, is as without not_found.
//   - What is sent is the page or the handler's response, and nothing follows either.
func FuzzHandler(f *testing.F) {
	for i, input := range seeds() {
		f.Add(input, i%5 == 1, i%5 == 2, i%5 == 3)
	}
	live := provision(f, &Handler{Report: true})
	dry := provision(f, &Handler{DryRun: true})
	all := provision(f, &Handler{Replace: judge.All, Formats: []string{"json"}})
	keeping := provision(f, &Handler{Keep: []caddyhttp.ResponseMatcher{{Headers: http.Header{"X-Own": {"*"}}}}})
	f.Fuzz(func(t *testing.T, input []byte, head, namesHTML, inErrorRoute bool) {
		fuzzed := fuzzed{method: http.MethodGet, accept: "text/plain"}
		if head {
			fuzzed.method = http.MethodHead
		}
		if namesHTML {
			fuzzed.accept = "text/plain, TEXT/HTML;q=0.5"
		}
		if inErrorRoute {
			fuzzed.handled = errMissing
		}
		steps := steps(input)
		next := script(steps)
		defer func() {
			if t.Failed() {
				for _, s := range steps {
					t.Log(s.name)
				}
			}
		}()

		without := fuzzed.record(next)
		one := fuzzed.record(inside(live, next))
		inDryRun := fuzzed.record(inside(dry, next))
		wantSame(t, "a dry run", inDryRun, without)
		wantSame(t, "a dry run around", fuzzed.record(inside(dry, inside(live, next))), one)
		wantSame(t, "a dry run inside", fuzzed.record(inside(live, inside(dry, next))), one)
		wantSame(t, "two handlers", fuzzed.record(inside(live, inside(live, next))), one)
		kept := fuzzed.record(inside(keeping, next))
		wantSame(t, "an inner handler", fuzzed.record(inside(all, inside(keeping, next))), kept)

		if without.panic == nil {
			if want := countedInDryRun(one); want != inDryRun.counted {
				t.Errorf("a dry run counts %q, want %q", inDryRun.counted, want)
			}
		}
		if one.cause != "" {
			wantPage(t, one, head)
			return
		}
		isBug := without.panic != nil && without.panic != http.ErrAbortHandler // what was held is lost with it
		if isBug && one.panic != without.panic {
			t.Errorf("got the panic %v, want %v", one.panic, without.panic)
		}
		if !without.reachedEnd && !isBug {
			wantTheirs(t, one, without)
		}
	})
}

// countedInDryRun returns what a dry run counts where a live handler has sent a page, or has let a response pass.
func countedInDryRun(live *recording) string {
	switch {
	case live.cause == "response":
		return "replaceable"
	case live.cause != "":
		return live.cause
	}
	return live.counted
}

// wantPage checks that a page is all that is sent, except for what comes before a final response.
func wantPage(t *testing.T, got *recording, head bool) {
	t.Helper()
	body := testcaddy.TextPage("GET", "http://a.test/x", "")
	header := got.header.Clone()
	for field, want := range map[string]string{
		"Content-Type":           "text/plain; charset=utf-8",
		"Content-Length":         fmt.Sprint(len(body)),
		"X-Content-Type-Options": "nosniff",
		"Cache-Control":          "no-store",
		"Vary":                   "Accept",
	} {
		if header.Get(field) != want {
			t.Errorf("the page has %s %q, want %q", field, header[field], want)
		}
		header.Del(field)
	}
	header.Del("X-Own") // the only field of a handler that says nothing about its body
	if len(header) > 0 {
		t.Errorf("the page has the fields %q of another body", header)
	}
	sent := slices.DeleteFunc(got.sent, func(sent string) bool { return strings.HasPrefix(sent, "100") })
	want := []string{fmt.Sprint(404, got.header)}
	if !head {
		want = append(want, body)
	}
	if !slices.Equal(sent, want) || got.err != nil || got.panic != nil {
		t.Errorf("got\n%q, %v, %v\nwant the page alone\n%q", sent, got.err, got.panic, want)
	}
}

// wantTheirs checks that a response is the handler's. A 404 that passes because of its body has Vary, and was held
// until its first byte: it cannot be hijacked before, and several flushes are one.
func wantTheirs(t *testing.T, got, without *recording) {
	t.Helper()
	if vary := got.header["Vary"]; slices.Equal(vary, []string{"Accept, Sec-Fetch-Mode"}) {
		if !strings.Contains(strings.Join(without.sent, ""), "404 map[") {
			t.Errorf("a response that is no 404 has Vary %q", vary)
		}
		for i := range got.sent {
			got.sent[i] = withoutVary.Replace(got.sent[i])
		}
		got.header.Del("Vary")
		without.sent = slices.DeleteFunc(without.sent, func(sent string) bool { return sent == "hijack" })
		got.sent = slices.DeleteFunc(got.sent, func(sent string) bool { return sent == "hijack" })
		isSecondFlush := func(a, b string) bool { return a == "flush" && b == a }
		without.sent = slices.CompactFunc(without.sent, isSecondFlush)
		got.sent = slices.CompactFunc(got.sent, isSecondFlush)
	}
	wantSame(t, "a response that passes", got, without)
}

// withoutVary removes Vary from a printed header.
var withoutVary = strings.NewReplacer(
	"Vary:[Accept, Sec-Fetch-Mode] ", "",
	" Vary:[Accept, Sec-Fetch-Mode]", "",
	"Vary:[Accept, Sec-Fetch-Mode]", "",
)

// FuzzRequest asks for the page in every representation, with a request as a client may send it: over HTTP/2 and
// HTTP/3, the method and the authority may have every byte that a field may have. All representations say the same, and
// HEAD gets the header of GET. FuzzMake of internal/page tests what the address and the message must be.
func FuzzRequest(f *testing.F) {
	f.Add("GET", "/docs/nothing?x=1", "a.test", "", "", false, false)
	f.Add("POST", "/<script>alert(\"x\")</script>?{{.}}&%zz%", "a.test:8080", "https", "b.test", true, false)
	f.Add("OPTIONS", "*", "[2001:db8::1]:81", "", "", false, true)
	f.Add("CONNECT", "b.test:443", "b.test:443", "", "", false, false)
	f.Add("GET", "http://me:secret@b.test:81/x?y", "a.test", "", "", false, false)
	f.Add("GET", "http:me:secret@b.test/x?y=@", "a.test", "", "", false, false)
	f.Add("GET", "x:/me@//b.test/@//[/?y", "a.test", "", "", false, false)
	f.Add("A <b>\"\xff", "/\xff?\u20ac", "b\u00fccher.test", "gopher", "\"><script>", true, false)

	h := provision(f, &Handler{Report: true})
	f.Fuzz(func(t *testing.T, method, target, host, forwardedProto, forwardedHost string, trusted, secure bool) {
		u, err := url.ParseRequestURI(target)
		inFields := method + target + host + forwardedProto + forwardedHost
		if err != nil || method == "" || method == http.MethodHead || strings.ContainsFunc(inFields, unicode.IsControl) {
			return // net/http refuses the request, or it is HEAD, which is asked below
		}
		r := (&http.Request{Method: method, URL: u, RequestURI: target, Host: host}).WithContext(context.Background())
		r.Header = http.Header{"X-Forwarded-Proto": {forwardedProto}, "X-Forwarded-Host": {forwardedHost}}
		if secure {
			r.TLS = new(tls.ConnectionState)
		}
		report.Missed.Take()
		var inText testcaddy.Fields
		for _, format := range testcaddy.Formats {
			r.Method = method
			r.Header.Set("Accept", format.MediaType)
			res := ask(t, h, r, trusted)
			res.WantHeader(t, "Content-Type", format.ContentType)
			for field, values := range res.Header {
				if strings.ContainsFunc(strings.Join(values, ""), unicode.IsControl) {
					t.Errorf("%s has the value %q", field, values)
				}
			}
			fields := testcaddy.FieldsOf(t, res)
			if format.Name == "text" {
				inText = fields
			}
			if fields != inText {
				t.Errorf("%s: got %+v, want %+v as in text", format.Name, fields, inText)
			}
			if method != http.MethodGet {
				continue
			}
			r.Method = http.MethodHead
			head := ask(t, h, r, trusted)
			if head.Content != "" || !reflect.DeepEqual(head.Header, res.Header) {
				t.Errorf("HEAD: got %v %q, want %v and no body", head.Header, head.Content, res.Header)
			}
		}

		// whatever a client sends, the report has one address, which is the page's
		missing, _ := report.Missed.Snapshot()
		if len(missing.Addresses) != 1 {
			t.Fatalf("got the report %+v", missing)
		}
		address := missing.Addresses[0].Host + missing.Addresses[0].Path
		if !strings.Contains(strings.ToLower(inText.URI), strings.ToLower(address)) {
			t.Errorf("the report has the address %q, and the page %q", address, inText.URI)
		}
	})
}

// ask has a handler at the end of the chain answer a request, which comes from a trusted proxy or not.
func ask(t *testing.T, h *Handler, r *http.Request, trusted bool) testcaddy.Response {
	t.Helper()
	rec := httptest.NewRecorder()
	r = prepare(rec, r)
	caddyhttp.SetVar(r.Context(), caddyhttp.TrustedProxyVarKey, trusted)
	if err := h.ServeHTTP(rec, r, caddyhttp.HandlerFunc(testcaddy.EndOfChain)); err != nil {
		t.Fatal(err)
	}
	return testcaddy.Recorded(rec)
}
