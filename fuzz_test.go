package notfound

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
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
	sent   []string // status lines with their header but for Vary, bytes of the body, and flushes
	vary   string   // in the header that was sent
	begun  bool

	err, panic any
	cause      string // the placeholder
	counted    string // the outcome in the report
	reachedEnd bool
}

func (e *recording) Header() http.Header { return e.header }

// WriteHeader records a status. The first final one counts, as for net/http.
func (e *recording) WriteHeader(status int) {
	if e.begun {
		return
	}
	e.begun = status != http.StatusContinue
	e.vary = e.header.Get("Vary")
	header := e.header.Clone()
	header.Del("Vary")
	e.sent = append(e.sent, fmt.Sprint(status, header))
}

// Write records bytes. An empty write leaves no trace, because with not_found it is no answer.
func (e *recording) Write(p []byte) (int, error) {
	if len(p) > 0 {
		e.WriteHeader(http.StatusOK)
		e.sent = append(e.sent, string(p))
	}
	return len(p), nil
}

func (e *recording) ReadFrom(r io.Reader) (int64, error) {
	e.WriteHeader(http.StatusOK)
	b, _ := io.ReadAll(r)
	n, err := e.Write(b)
	return int64(n), err
}

func (e *recording) FlushError() error {
	e.WriteHeader(http.StatusOK)
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
func (f fuzzed) record(h caddyhttp.HandlerFunc) *recording {
	e := &recording{header: make(http.Header)}
	r := httptest.NewRequest(f.method, ourPage, nil)
	r.Header.Set("Accept", f.accept)
	r = prepare(e, r)
	if f.handled != nil {
		r = inErrorRoute(r, f.handled)
	}
	report.Missed.Take()
	e.run(h, r)
	counted, _ := report.Missed.Take()
	e.counted = counted.Links.None.Outcomes.String()
	ctx := r.Context()
	e.reachedEnd, _ = caddyhttp.GetVar(ctx, "unhandled").(bool)
	replacer := ctx.Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	e.cause, _ = replacer.GetString("http.not_found.cause")
	return e
}

func (e *recording) run(h caddyhttp.HandlerFunc, r *http.Request) {
	defer func() { e.panic = recover() }()
	e.err = h(e, r)
}

// wantSame compares what is sent, how the handler ends, and the header at the end, which has trailers.
func wantSame(t *testing.T, what string, got, want *recording) {
	t.Helper()
	isSameSent := slices.Equal(got.sent, want.sent) && got.vary == want.vary
	isSameEnd := got.err == want.err && got.panic == want.panic
	isSameHeader := want.panic != nil || reflect.DeepEqual(got.header, want.header)
	if !isSameSent || !isSameEnd || !isSameHeader {
		t.Errorf("%s: got\n%+v\nwant\n%+v", what, *got, *want)
	}
}

// step is a thing that a handler may do with its response. If it returns an error, so does the handler.
type step struct {
	name string
	do   caddyhttp.HandlerFunc
}

func (s step) String() string { return s.name }

// quietly returns a step that returns no error.
func quietly(name string, do func(w http.ResponseWriter)) step {
	return step{name, func(w http.ResponseWriter, _ *http.Request) error {
		do(w)
		return nil
	}}
}

func set(field, value string) step {
	return quietly("set "+field+": "+value, func(w http.ResponseWriter) {
		w.Header()[field] = []string{value}
	})
}

func status(status int) step {
	return quietly(fmt.Sprint("status ", status), func(w http.ResponseWriter) {
		w.WriteHeader(status)
	})
}

func body(text string) step {
	return quietly(fmt.Sprintf("body %q", text), func(w http.ResponseWriter) {
		_, _ = io.WriteString(w, text)
	})
}

func readFrom(text string) step {
	return quietly(fmt.Sprintf("read from %q", text), func(w http.ResponseWriter) {
		readerFrom := w.(io.ReaderFrom)
		_, _ = readerFrom.ReadFrom(strings.NewReader(text))
	})
}

func fail(err error) step {
	return step{
		name: "return " + err.Error(),
		do:   func(http.ResponseWriter, *http.Request) error { return err },
	}
}

func panics(value any) step {
	return quietly(fmt.Sprint("panic: ", value), func(http.ResponseWriter) {
		panic(value)
	})
}

var (
	end   = step{"end of the chain", testcaddy.EndOfChain}
	flush = quietly("flush", func(w http.ResponseWriter) {
		_ = http.NewResponseController(w).Flush()
	})
	hijack = quietly("hijack", func(w http.ResponseWriter) {
		_, _, _ = http.NewResponseController(w).Hijack()
	})
	unsetType = quietly("no type", func(w http.ResponseWriter) {
		delete(w.Header(), "Content-Type")
	})
	appendOwn = quietly("append to X-Own", func(w http.ResponseWriter) {
		w.Header().Add("X-Own", "2")
	})
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

	is404   = status(http.StatusNotFound)
	isZero  = status(0)
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
	html, text, grpc, unsetType,
	empty, long, coded, etag,
	own, appendOwn, changeOwn, trailer,
	isZero, is404, status(100), status(101), status(200), status(500),
	nothing, theirs, brace, object, body(" "), body("[1]"),
	readFrom(""), readFrom("theirs"), readFrom("{}"),
	flush, hijack, end,
	missing, broken, abort, bug,
}

// seed returns the input that stands for steps.
func seed(steps ...step) (input []byte) {
	for _, s := range steps {
		i := slices.IndexFunc(allSteps, func(other step) bool {
			return other.name == s.name
		})
		input = append(input, byte(i))
	}
	return input
}

// stepsOf returns what an input stands for.
func stepsOf(input []byte) (steps []step) {
	for _, b := range input {
		steps = append(steps, allSteps[int(b)%len(allSteps)])
	}
	return steps
}

// script is a handler that takes steps.
func script(steps ...step) caddyhttp.HandlerFunc {
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
				seed(first, is404, second),
				seed(is404, first, second),
				seed(end, isZero, first, second),
			)
		}
	}
	return append(inputs,
		seed(grpc, empty, is404, flush),
		seed(text, long, is404, theirs),
		seed(is404, status(500), brace, status(500)),
		seed(is404, flush, flush, nothing, brace, abort),
		seed(html, own, is404, unsetType, appendOwn, object),
		seed(end, isZero, own, theirs, readFrom("theirs"), flush, broken),
		seed(
			html, long, etag, own, appendOwn, status(100), is404,
			changeOwn, trailer, theirs, flush, appendOwn, abort,
		),
		seed(
			html, own, trailer, is404,
			flush, changeOwn, trailer, brace, flush, readFrom("theirs"), appendOwn,
		),
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
	keepOwn := caddyhttp.ResponseMatcher{Headers: http.Header{"X-Own": {"*"}}}
	keeping := provision(f, &Handler{
		Keep: []caddyhttp.ResponseMatcher{keepOwn},
	})
	replacing := provision(f, &Handler{
		Replace: judge.All,
		Formats: []string{"json"},
	})

	f.Fuzz(func(t *testing.T, input []byte, isHead, namesHTML, inErrorRoute bool) {
		request := fuzzed{method: http.MethodGet, accept: "text/plain"}
		if isHead {
			request.method = http.MethodHead
		}
		if namesHTML {
			request.accept = "text/plain, TEXT/HTML;q=0.5"
		}
		if inErrorRoute {
			request.handled = errMissing
		}
		steps := stepsOf(input)
		t.Log(steps)
		next := script(steps...)
		inLive := inside(live, next)
		inDry := inside(dry, next)
		inKeeping := inside(keeping, next)

		without := request.record(next)
		dryRun := request.record(inDry)
		wantSame(t, "a dry run", dryRun, without)
		one := request.record(inLive)
		wantSame(t, "a dry run around", request.record(inside(dry, inLive)), one)
		wantSame(t, "a dry run inside", request.record(inside(live, inDry)), one)
		wantSame(t, "two handlers", request.record(inside(live, inLive)), one)
		kept := request.record(inKeeping)
		wantSame(t, "an inner handler", request.record(inside(replacing, inKeeping)), kept)

		want := strings.Replace(one.counted, "response", "replaceable", 1)
		if without.panic == nil && dryRun.counted != want {
			t.Errorf("a dry run counts %q, want %q", dryRun.counted, want)
		}
		wantPageOrTheirs(t, one, without, isHead)
	})
}

// wantPageOrTheirs checks that a response is the page, or the same as without us. The two may differ where the end of
// the chain is reached, because a status that is no answer is not sent. A bug in the handler stays a panic, which loses
// a response that was held.
func wantPageOrTheirs(t *testing.T, got, without *recording, isHead bool) {
	t.Helper()
	isBug := without.panic != nil && without.panic != http.ErrAbortHandler
	switch {
	case isBug:
		if got.panic != without.panic {
			t.Errorf("got the panic %v, want %v", got.panic, without.panic)
		}
	case got.cause != "":
		wantPage(t, got, isHead)
	case !without.reachedEnd:
		wantTheirs(t, got, without)
	}
}

// wantPage checks that a page is all that is sent, except for what comes before a final response.
func wantPage(t *testing.T, got *recording, isHead bool) {
	t.Helper()
	body := testcaddy.TextPage(http.MethodGet, ourPage, "")
	want := http.Header{
		"Content-Type":           {"text/plain; charset=utf-8"},
		"Content-Length":         {fmt.Sprint(len(body))},
		"X-Content-Type-Options": {"nosniff"},
		"Cache-Control":          {"no-store"},
	}
	if own := got.header["X-Own"]; own != nil { // the only field of a handler that says nothing about its body
		want["X-Own"] = own
	}
	page := &recording{header: want, vary: "Accept"}
	page.sent = []string{fmt.Sprint(http.StatusNotFound, want)}
	if !isHead {
		page.sent = append(page.sent, body)
	}
	want.Set("Vary", page.vary)
	got.sent = slices.DeleteFunc(got.sent, func(sent string) bool {
		return strings.HasPrefix(sent, "100")
	})
	wantSame(t, "the page", got, page)
	if got.counted != got.cause {
		t.Errorf("the page for the cause %q counts as %q", got.cause, got.counted)
	}
}

// wantTheirs checks that a response is the handler's. A 404 that passes because of its body has Vary, and was held
// until its first byte: it cannot be hijacked before, and several flushes are one.
func wantTheirs(t *testing.T, got, without *recording) {
	t.Helper()
	if got.vary == "Accept, Sec-Fetch-Mode" {
		if !strings.Contains(strings.Join(without.sent, ""), "404 map[") {
			t.Errorf("a response that is no 404 has Vary %q", got.vary)
		}
		got.vary = ""
		got.header.Del("Vary")
		got.sent = asHeld(got.sent)
		without.sent = asHeld(without.sent)
	}
	wantSame(t, "a response that passes", got, without)
}

func asHeld(sent []string) []string {
	sent = slices.DeleteFunc(sent, func(sent string) bool {
		return sent == "hijack"
	})
	return slices.CompactFunc(sent, func(a, b string) bool {
		return a == "flush" && b == a
	})
}

// FuzzRequest asks for the page in every representation, with a request as a client may send it: over HTTP/2 and
// HTTP/3, the method and the authority may have every byte that a field may have. All representations say the same.
// FuzzMake of internal/page tests what the address and the message must be.
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
		fields := method + target + host + forwardedProto + forwardedHost
		if err != nil || method == "" || strings.ContainsFunc(fields, unicode.IsControl) {
			return // net/http refuses the request
		}
		if method == http.MethodHead {
			return // its page cannot be read
		}
		r := get()
		r.Method = method
		r.URL = u
		r.RequestURI = target
		r.Host = host
		r.Header.Set("X-Forwarded-Proto", forwardedProto)
		r.Header.Set("X-Forwarded-Host", forwardedHost)
		if secure {
			r.TLS = new(tls.ConnectionState)
		}
		fromProxy := func(w http.ResponseWriter, r *http.Request) error {
			caddyhttp.SetVar(r.Context(), caddyhttp.TrustedProxyVarKey, trusted)
			return inside(h, testcaddy.EndOfChain)(w, r)
		}

		report.Missed.Take()
		var inText testcaddy.Fields
		for i, format := range testcaddy.Formats {
			r.Header.Set("Accept", format.MediaType)
			res := answer(t, fromProxy, r)
			res.WantHeader(t, "Content-Type", format.ContentType)
			fields := testcaddy.FieldsOf(t, res)
			if i == 0 {
				inText = fields
			}
			if fields != inText {
				t.Errorf("%s: got %+v, want %+v as in text", format.Name, fields, inText)
			}
		}

		// Whatever a client sends, the report has one address, which is the page's.
		missing, _ := report.Missed.Snapshot()
		if len(missing.Addresses) != 1 {
			t.Fatalf("got the report %+v", missing)
		}
		missed := missing.Addresses[0]
		address := strings.ToLower(missed.Host + missed.Path)
		if !strings.Contains(strings.ToLower(inText.URI), address) {
			t.Errorf("the report has the address %q, and the page %q", address, inText.URI)
		}
	})
}
