package notfound

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/judge"
	"github.com/caddy-notfound/notfound/internal/report"
	"github.com/caddy-notfound/notfound/internal/request"
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

	timesCounted uint64
}

func (rec *recording) Header() http.Header { return rec.header }

// WriteHeader records a status. The first final one counts, as for net/http.
func (rec *recording) WriteHeader(status int) {
	if rec.begun {
		return
	}
	rec.begun = status != http.StatusContinue
	rec.vary = rec.header.Get("Vary")
	header := rec.header.Clone()
	header.Del("Vary")
	rec.sent = append(rec.sent, fmt.Sprint(status, header))
}

// Write records bytes. An empty write leaves no trace, because with not_found it is no answer.
func (rec *recording) Write(p []byte) (int, error) {
	if len(p) > 0 {
		rec.WriteHeader(http.StatusOK)
		begins := p[:min(len(p), 1000)]
		rec.sent = append(rec.sent, string(begins))
	}
	return len(p), nil
}

func (rec *recording) ReadFrom(r io.Reader) (int64, error) {
	rec.WriteHeader(http.StatusOK)
	b, _ := io.ReadAll(r)
	n, err := rec.Write(b)
	return int64(n), err
}

func (rec *recording) FlushError() error {
	rec.WriteHeader(http.StatusOK)
	rec.sent = append(rec.sent, "flush")
	return nil
}

func (rec *recording) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	rec.begun = true
	rec.sent = append(rec.sent, "hijack")
	return nil, nil, nil
}

// fuzzed is a request of a fuzzing input.
type fuzzed struct {
	method  string
	accept  string
	handled error // the request is in the error route of this error
}

// allRequests are the requests that each script is tried with.
var allRequests = []fuzzed{
	{method: http.MethodGet, accept: "text/plain"},
	{method: http.MethodHead, accept: "text/plain"},
	{method: http.MethodGet, accept: "text/plain, TEXT/HTML;q=0.5"},
	{method: http.MethodGet, accept: "text/plain", handled: errMissing},
}

var anyRequest = get() // of which a clone costs less than a new one

// record has a handler respond to the request. Its counter is no other test's.
func (f fuzzed) record(counter *report.Counter, h caddyhttp.HandlerFunc) *recording {
	rec := &recording{header: make(http.Header)}
	r := anyRequest.Clone(context.Background())
	r.Method = f.method
	r.Header.Set("Accept", f.accept)
	r = prepare(rec, r)
	if f.handled != nil {
		r = inErrorRoute(r, f.handled)
	}
	before, _ := counter.Snapshot()
	rec.run(h, r)
	after, _ := counter.Snapshot()
	rec.timesCounted = after.Links[report.NoLink].Count - before.Links[report.NoLink].Count
	counted := after.Links[report.NoLink].Outcomes
	for outcome, n := range before.Links[report.NoLink].Outcomes {
		counted[outcome] -= n
	}
	rec.counted = counted.String()
	ctx := r.Context()
	rec.reachedEnd, _ = caddyhttp.GetVar(ctx, "unhandled").(bool)
	replacer := ctx.Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	rec.cause, _ = replacer.GetString("http.not_found.cause")
	return rec
}

func (rec *recording) run(h caddyhttp.HandlerFunc, r *http.Request) {
	defer func() { rec.panic = recover() }()
	rec.err = h(rec, r)
}

// wantSame compares what is sent, how the handler ends, and the header at the end, which has trailers. The first
// difference is in a sentence.
func wantSame(t *testing.T, what string, got, want *recording) {
	t.Helper()
	isSameHeader := want.panic != nil || reflect.DeepEqual(got.header, want.header)
	switch {
	case got.timesCounted > 1:
		t.Errorf("%s: the request is counted %d times", what, got.timesCounted)
	case got.panic != want.panic:
		t.Errorf("%s: it ends in the panic %v, want %v", what, got.panic, want.panic)
	case got.err != want.err:
		t.Errorf("%s: it returns the error %v, want %v", what, got.err, want.err)
	case len(got.sent) > len(want.sent) && slices.Equal(got.sent[:len(want.sent)], want.sent):
		t.Errorf("%s: after %q, it also sends %q", what, want.sent, got.sent[len(want.sent):])
	case !slices.Equal(got.sent, want.sent):
		t.Errorf("%s: it sends\n%q, want\n%q", what, got.sent, want.sent)
	case got.vary != want.vary:
		t.Errorf("%s: it sends Vary %q, want %q", what, got.vary, want.vary)
	case !isSameHeader:
		t.Errorf("%s: at the end, the header is\n%v, want\n%v", what, got.header, want.header)
	}
}

// allSteps has what a byte of the input stands for.
var allSteps = []step{
	stepHTML, stepText, stepGRPC, stepUnsetType,
	stepEmpty, stepLong, stepCoded, stepETag,
	stepOwn, stepAppendOwn, stepChangeOwn, stepTrailer,
	stepZero, step404, stepStatus(100), stepStatus(101), stepStatus(200), stepStatus(500),
	stepNothing, stepTheirs, stepBrace, stepObject, stepBody(" "), stepBody("[1]"),
	stepReadFrom(""), stepReadFrom("theirs"), stepReadFrom("{}"),
	stepFlush, stepHijack, stepEnd,
	stepMissing, stepBroken, stepAbort, stepBug,
}

// stepsOf returns what an input stands for.
func stepsOf(input []byte) (steps []step) {
	for _, b := range input {
		steps = append(steps, allSteps[int(b)%len(allSteps)])
	}
	return steps
}

// ruleCheck has a handler take steps, and checks the rules. It reports whether the handler can take more steps, because
// none of these has ended it.
type ruleCheck func(t *testing.T, request fuzzed, steps ...step) (goesOn bool)

// checkIn returns a check of rules that need no second judge, in a mode:
//
//   - A dry run changes nothing, around another handler, inside one or alone. It counts what a live handler would do.
//   - Two handlers send what one does. What an inner one sends or lets pass stands.
//   - A response that is no 404, where something answered, is as without not_found.
//   - What is sent is the page or the handler's response, and nothing follows either.
func checkIn(t testing.TB, mode string) ruleCheck {
	live := provision(t, &Handler{Replace: mode, Report: true})
	dry := provision(t, &Handler{Replace: mode, DryRun: true})
	keepOwn := caddyhttp.ResponseMatcher{Headers: http.Header{"X-Own": {"*"}}}
	keeping := provision(t, &Handler{
		Replace: mode,
		Keep:    []caddyhttp.ResponseMatcher{keepOwn},
	})
	replacing := provision(t, &Handler{
		Replace: judge.All,
		Formats: []string{"json"},
	})
	counter := new(report.Counter)
	live.counter, dry.counter = counter, counter

	return func(t *testing.T, request fuzzed, steps ...step) bool {
		t.Helper()
		next := script(steps...)
		inLive := inside(live, next)
		inDry := inside(dry, next)
		inKeeping := inside(keeping, next)

		without := request.record(counter, next)
		goesOn := without.err == nil && without.panic == nil
		dryRun := request.record(counter, inDry)
		wantSame(t, "a dry run", dryRun, without)
		one := request.record(counter, inLive)
		wantSame(t, "a dry run around", request.record(counter, inside(dry, inLive)), one)
		wantSame(t, "a dry run inside", request.record(counter, inside(live, inDry)), one)
		wantSame(t, "two handlers", request.record(counter, inside(live, inLive)), one)
		kept := request.record(counter, inKeeping)
		wantSame(t, "an inner handler", request.record(counter, inside(replacing, inKeeping)), kept)

		want := strings.Replace(one.counted, "response", "replaceable", 1)
		if without.panic == nil && dryRun.counted != want {
			t.Errorf("a dry run counts %q, want %q", dryRun.counted, want)
		}
		wantPageOrTheirs(t, one, without, mode, request.method == http.MethodHead)
		if t.Failed() {
			t.Fatalf("%+v, replace %s: %v", request, mode, steps)
		}
		return goesOn
	}
}

// TestEveryShortScript checks every script of up to three of these steps, in every mode, with every request. With
// -short, it is up to two.
func TestEveryShortScript(t *testing.T) {
	before := debug.SetGCPercent(1000) // or the collector takes a third of the time
	t.Cleanup(func() { debug.SetGCPercent(before) })
	steps := []step{
		stepOwn, stepGRPC, stepZero, step404, stepStatus(100), stepStatus(101), stepStatus(200),
		stepNothing, stepTheirs, stepBrace, stepMuch, stepReadFrom("theirs"), stepFlush, stepHijack, stepEnd,
		stepMissing, stepBroken, stepAbort, stepBug,
	}
	longest := 3
	if testing.Short() {
		longest = 2
	}
	for _, mode := range modes {
		for _, request := range allRequests {
			t.Run(fmt.Sprintf("%s %+v", mode, request), func(t *testing.T) {
				t.Parallel()
				check := checkIn(t, mode)
				var try func(taken ...step)
				try = func(taken ...step) {
					if !check(t, request, taken...) || len(taken) == longest {
						return
					}
					for _, next := range steps {
						try(append(slices.Clip(taken), next)...)
					}
				}
				try()
			})
		}
	}
}

// FuzzHandler checks the same rules for scripts of any length, of all steps.
func FuzzHandler(f *testing.F) {
	var everyStep []byte
	for i := range allSteps {
		everyStep = append(everyStep, byte(i))
	}
	f.Add(everyStep, uint8(0), uint8(0))
	var checks []ruleCheck
	for _, mode := range modes {
		checks = append(checks, checkIn(f, mode))
	}

	f.Fuzz(func(t *testing.T, input []byte, mode, request uint8) {
		check := checks[int(mode)%len(checks)]
		check(t, allRequests[int(request)%len(allRequests)], stepsOf(input)...)
	})
}

// wantPageOrTheirs checks that a response is the page, or the same as without us. The two may differ where the end of
// the chain is reached, because a status that is no answer is not sent. If nothing else is, the page is. A bug in the
// handler stays a panic, which loses a response that was held.
func wantPageOrTheirs(t *testing.T, got, without *recording, mode string, isHead bool) {
	t.Helper()
	isBug := without.panic != nil && without.panic != http.ErrAbortHandler
	switch {
	case isBug:
		if got.panic != without.panic {
			t.Errorf("a bug's panic does not pass on: it ends in the panic %v, want %v", got.panic, without.panic)
		}
	case got.cause != "":
		wantPage(t, got, mode, isHead)
	case !without.reachedEnd:
		wantTheirs(t, got, without)
	case !without.begun && without.err == nil && without.panic == nil:
		t.Error("nothing answers, and there is no page")
	}
}

// wantPage checks that a page is all that is sent, except for what comes before a final response.
func wantPage(t *testing.T, got *recording, mode string, isHead bool) {
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
	if got.cause == judge.Response.String() && mode != judge.All { // other clients get the response
		page.vary = request.VaryByClient
	}
	page.sent = []string{fmt.Sprint(http.StatusNotFound, want)}
	if isHead && len(got.sent) > 0 && got.sent[len(got.sent)-1] == body {
		t.Error("the page for HEAD has a body")
	}
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
	is404 := strings.Contains(strings.Join(without.sent, ""), "404 map[")
	if got.counted != "" && !is404 {
		t.Errorf("a response that is no 404 counts as %q", got.counted)
	}
	if got.vary == request.VaryByClient {
		if !is404 {
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

		h.counter.Take()
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
		missing, _ := h.counter.Snapshot()
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
