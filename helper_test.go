package notfound

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/judge"
	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// modes are the modes of the option replace.
var modes = []string{judge.Pages, judge.Browsers, judge.All, judge.None}

var (
	errMissing = caddyhttp.Error(http.StatusNotFound, errors.New("missing"))
	errBroken  = caddyhttp.Error(http.StatusBadGateway, errors.New("broken"))
)

// provision sets up a handler as Caddy does when it loads a config.
func provision(t testing.TB, h *Handler) *Handler {
	t.Helper()
	if err := provisionErr(t, h); err != nil {
		t.Fatal(err)
	}
	return h
}

func provisionErr(t testing.TB, h *Handler) error {
	t.Helper()
	background := caddy.Context{Context: context.Background()}
	ctx, cancel := caddy.NewContext(background)
	t.Cleanup(cancel)
	err := h.Provision(ctx)
	h.logger = zap.NewNop() // or a test that fails prints a debug line for each page
	return err
}

// inside returns a handler with another one as the next.
func inside(h *Handler, next caddyhttp.HandlerFunc) caddyhttp.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		return h.ServeHTTP(w, r, next)
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// ourPage is the address of get, as it is on the page.
const ourPage = "http://a.test/x"

func get() *http.Request {
	return httptest.NewRequest(http.MethodGet, ourPage, nil)
}

// prepare prepares a request, as Caddy's server does.
func prepare(w http.ResponseWriter, r *http.Request) *http.Request {
	server := new(caddyhttp.Server)
	return caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, server)
}

// inErrorRoute returns a prepared request as it is in the error route of an error.
func inErrorRoute(r *http.Request, handled error) *http.Request {
	ctx := context.WithValue(r.Context(), caddyhttp.ErrorCtxKey, handled)
	return r.WithContext(ctx)
}

// answer has a handler answer a request.
func answer(t testing.TB, h caddyhttp.HandlerFunc, r *http.Request) testcaddy.Response {
	t.Helper()
	w := httptest.NewRecorder()
	if err := h(w, prepare(w, r)); err != nil {
		t.Fatal(err)
	}
	return testcaddy.Recorded(w)
}

// compile compiles the routes of a site, as Caddy's server does it. They end in the next handler.
func compile(t testing.TB, directives string, next caddyhttp.HandlerFunc) caddyhttp.HandlerFunc {
	t.Helper()
	adapted := testcaddy.Adapt(t, testcaddy.Caddyfile("http://:0 {\n"+directives+"\n}"))
	config := new(caddy.Config)
	if err := json.Unmarshal(adapted, config); err != nil {
		t.Fatal(err)
	}
	app := new(caddyhttp.App)
	err := json.Unmarshal(config.AppsRaw["http"], app)
	if err != nil {
		t.Fatal(err)
	}
	delete(config.AppsRaw, "http") // so that nothing listens
	ctx, err := caddy.ProvisionContext(config)
	if err != nil {
		t.Fatal(err)
	}
	routes := app.Servers["srv0"].Routes
	if err := routes.Provision(ctx); err != nil {
		t.Fatal(err)
	}
	return routes.Compile(next).ServeHTTP
}

// step is a thing that a handler may do with its response: set a field of the header, or write. If it returns an error,
// so does the handler. The steps below have names with the same prefix, and script makes a handler of some.
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

func stepSet(field string, lines ...string) step {
	return quietly(fmt.Sprint("set ", field, ": ", lines), func(w http.ResponseWriter) {
		w.Header()[field] = slices.Clone(lines)
	})
}

func stepStatus(status int) step {
	return quietly(fmt.Sprint("status ", status), func(w http.ResponseWriter) {
		w.WriteHeader(status)
	})
}

func stepBody(text string) step {
	return quietly(fmt.Sprintf("body %q", text), func(w http.ResponseWriter) {
		_, _ = io.WriteString(w, text)
	})
}

func stepReadFrom(text string) step {
	return quietly(fmt.Sprintf("read from %q", text), func(w http.ResponseWriter) {
		readerFrom := w.(io.ReaderFrom)
		_, _ = readerFrom.ReadFrom(strings.NewReader(text))
	})
}

func stepFail(err error) step {
	return step{
		name: "return " + err.Error(),
		do:   func(http.ResponseWriter, *http.Request) error { return err },
	}
}

func stepPanic(value any) step {
	return quietly(fmt.Sprint("panic: ", value), func(http.ResponseWriter) {
		panic(value)
	})
}

var (
	stepEnd  = step{"end of the chain", testcaddy.EndOfChain}
	stepMuch = quietly("more than is drained", func(w http.ResponseWriter) {
		_, _ = w.Write(much)
	})
	stepFlush = quietly("flush", func(w http.ResponseWriter) {
		_ = http.NewResponseController(w).Flush()
	})
	stepHijack = quietly("hijack", func(w http.ResponseWriter) {
		_, _, _ = http.NewResponseController(w).Hijack()
	})
	stepUnsetType = quietly("no type", func(w http.ResponseWriter) {
		delete(w.Header(), "Content-Type")
	})
	stepAppendOwn = quietly("append to X-Own", func(w http.ResponseWriter) {
		w.Header().Add("X-Own", "2")
	})
	stepChangeOwn = quietly("change X-Own in place", func(w http.ResponseWriter) {
		if own := w.Header()["X-Own"]; own != nil {
			own[0] = "3"
		}
	})

	stepHTML    = stepSet("Content-Type", "text/html")
	stepText    = stepSet("Content-Type", "text/plain")
	stepGRPC    = stepSet("Content-Type", "application/grpc+proto")
	stepEmpty   = stepSet("Content-Length", "0")
	stepLong    = stepSet("Content-Length", "6")
	stepCoded   = stepSet("Content-Encoding", "gzip")
	stepETag    = stepSet("Etag", `"1"`)
	stepOwn     = stepSet("X-Own", "1")
	stepTrailer = stepSet(http.TrailerPrefix+"X-Sum", "1")

	step404     = stepStatus(http.StatusNotFound)
	stepZero    = stepStatus(0)
	stepNothing = stepBody("")
	stepTheirs  = stepBody("theirs")
	stepBrace   = stepBody("{")
	stepObject  = stepBody(" \r\n{}")
	stepMissing = stepFail(errMissing)
	stepBroken  = stepFail(errBroken)
	stepAbort   = stepPanic(http.ErrAbortHandler)
	stepBug     = stepPanic("a bug")
)

// much is a body that is longer than what is drained.
var much = make([]byte, 256<<10+1)

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
