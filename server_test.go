package notfound

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
)

// globalOptions begin every Caddyfile of the tests: ports of the kernel's choice, loopback only, and
// nothing that outlives the test.
const globalOptions = `
	admin off
	persist_config off
	default_bind 127.0.0.1
	auto_https off
	skip_install_trust
`

// goHandler is a Caddy handler that is a function of a test's, as a plugin could be. In a Caddyfile it is `go <name>`.
type goHandler struct {
	Name string `json:"name"`
}

// goFunc is what a goHandler calls.
type goFunc func(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error

var goFuncs sync.Map // by name

// goDirective returns the directive that calls a function, until the test ends.
func goDirective(t testing.TB, f goFunc) string {
	t.Helper()
	name := fmt.Sprintf("%s %p", t.Name(), &f)
	goFuncs.Store(name, f)
	t.Cleanup(func() { goFuncs.Delete(name) })
	return "go " + strconv.Quote(name)
}

func init() {
	caddy.RegisterModule(goHandler{})
	httpcaddyfile.RegisterHandlerDirective("go", func(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
		handler := new(goHandler)
		h.Next() // consume directive name
		if !h.AllArgs(&handler.Name) {
			return nil, h.ArgErr()
		}
		return handler, nil
	})
	httpcaddyfile.RegisterDirectiveOrder("go", httpcaddyfile.Before, "invoke")
}

func (goHandler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.go", New: func() caddy.Module { return new(goHandler) }}
}

func (h *goHandler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	f, ok := goFuncs.Load(h.Name)
	if !ok {
		return fmt.Errorf("no function %q", h.Name)
	}
	return f.(goFunc)(w, r, next)
}

// server is a running Caddy.
type server struct {
	addr string
	logs *logBuffer
	http.Client
}

// startCaddy runs a Caddy with the given sites, written as http://name.test:0, until the test ends.
// Caddy runs one config at a time, so the tests that call it don't run in parallel; their subtests do.
func startCaddy(t *testing.T, sites string, options ...string) *server {
	t.Helper()
	logs := captureLogs(t)
	caddyfile := "{\n" + globalOptions + strings.Join(options, "\n") +
		"\nlog default {\noutput " + logs.output + "\nlevel DEBUG\n}\n}\n" + sites
	s := startConfig(t, adapt(t, caddyfile))
	s.logs = logs
	return s
}

// startSites is startCaddy for sites by the names of their test cases, each behind not_found and with its cause in the
// access log. It returns their hosts by the same names; preamble stands ahead of the sites.
func startSites(t *testing.T, preamble string, sites map[string]string) (s *server, hosts map[string]string) {
	t.Helper()
	caddyfile := preamble
	hosts = make(map[string]string)
	for name, site := range sites {
		hosts[name] = fmt.Sprintf("site%d.test", len(hosts))
		caddyfile += fmt.Sprintf("http://%s:0 {\nlog\nlog_append cause {http.not_found.cause}\nnot_found\n%s\n}\n", hosts[name], site)
	}
	return startCaddy(t, caddyfile), hosts
}

// startConfig is startCaddy for a config in JSON. It takes no logs.
func startConfig(t testing.TB, config []byte) *server {
	t.Helper()
	if err := caddy.Load(config, true); err != nil {
		t.Fatalf("loading the config: %v\n%s", err, config)
	}
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Errorf("stopping Caddy: %v", err)
		}
	})

	s := &server{addr: listeners(t)[0]}
	s.Transport = &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", s.addr)
		},
		DisableCompression: true,
	}
	s.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	t.Cleanup(s.CloseIdleConnections)
	return s
}

// adapt turns a Caddyfile into JSON.
func adapt(t testing.TB, caddyfile string) []byte {
	t.Helper()
	config, err := adaptErr(caddyfile)
	if err != nil {
		t.Fatalf("adapting the Caddyfile: %v\n%s", err, caddyfile)
	}
	return config
}

func adaptErr(caddyfile string) ([]byte, error) {
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(caddyfile), map[string]any{"filename": "Caddyfile"})
	return config, err
}

// listeners returns the addresses of the running Caddy.
func listeners(t testing.TB) (addrs []string) {
	t.Helper()
	app, err := caddy.ActiveContext().App("http")
	if err != nil {
		t.Fatal(err)
	}
	for _, srv := range app.(*caddyhttp.App).Servers {
		for _, ln := range srv.Listeners() {
			addrs = append(addrs, ln.Addr().String())
		}
	}
	if len(addrs) == 0 {
		t.Fatal("Caddy does not listen anywhere")
	}
	return addrs
}

// awaitTLS waits until Caddy has made its certificate for a host, which it does in the background.
func awaitTLS(t testing.TB, addr, host string) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		var conn *tls.Conn
		if conn, err = tls.Dial("tcp", addr, &tls.Config{ServerName: host, InsecureSkipVerify: true}); err == nil {
			conn.Close()
			return
		}
	}
	t.Fatal(err)
}

// response is a response, read to its end.
type response struct {
	*http.Response
	body string
}

// get sends a GET request; fields are header fields, as in "Accept: text/html".
func (s *server) get(t testing.TB, url string, fields ...string) response {
	t.Helper()
	return s.do(t, http.MethodGet, url, fields...)
}

func (s *server) do(t testing.TB, method, url string, fields ...string) response {
	t.Helper()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range fields {
		name, value, _ := strings.Cut(field, ":")
		req.Header.Add(name, strings.TrimSpace(value))
	}
	return s.send(t, req)
}

func (s *server) send(t testing.TB, req *http.Request) response {
	t.Helper()
	res, err := s.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", req.Method, req.URL, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s %s: reading the body: %v", req.Method, req.URL, err)
	}
	return response{res, string(body)}
}

// raw sends bytes as they are, and reads one response. method is that of the request, for the response to
// a HEAD has no body.
func (s *server) raw(t testing.TB, method, request string) response {
	t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	return readResponse(t, bufio.NewReader(conn), method, fmt.Sprintf("%.200q", request))
}

// readResponse reads the response to a request with a method; what says which, should it fail.
func readResponse(t testing.TB, r *bufio.Reader, method, what string) response {
	t.Helper()
	res, err := http.ReadResponse(r, &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s: reading the body: %v", what, err)
	}
	return response{res, string(body)}
}

// footer is the last line of a page.
func footer() string {
	version, _ := caddy.Version()
	return "Powered by Caddy " + version
}

// textPage is the page as plain text.
func textPage(method, uri, contextPath string) string {
	message := "No endpoint " + method + " " + contextPath + "/missing.html."
	return "HTTP ERROR 404 " + message + "\nURI: " + uri + "\nSTATUS: 404\nMESSAGE: " + message + "\n" + footer() + "\n"
}

// wantPage checks that a response is the page as plain text.
func (r response) wantPage(t testing.TB, method, uri, contextPath string) {
	t.Helper()
	if r.StatusCode != http.StatusNotFound {
		t.Errorf("got status %d, want 404", r.StatusCode)
	}
	if got, want := r.body, textPage(method, uri, contextPath); got != want {
		t.Errorf("got the body\n%.1000s\nwant\n%.1000s", got, want)
	}
}

// want checks the status and the body of a response that passed.
func (r response) want(t testing.TB, status int, body string) {
	t.Helper()
	if r.StatusCode != status || r.body != body {
		t.Errorf("got %d %.1000q, want %d %q", r.StatusCode, r.body, status, body)
	}
}

// backend starts a backend.
func backend(t testing.TB, h http.HandlerFunc) (hostport string) {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.Listener.Addr().String()
}

// logBuffer holds what Caddy logs, as one JSON object a line.
type logBuffer struct {
	output string // as the Caddyfile's log directive takes it

	mu  sync.Mutex
	buf bytes.Buffer
}

// acceptTCP serves each connection to a port of the kernel's choice, until the test ends, which closes what is left.
func acceptTCP(t testing.TB, serve func(net.Conn)) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer conn.Close()
				defer context.AfterFunc(ctx, func() { conn.Close() })()
				serve(conn)
			})
		}
	})
	t.Cleanup(func() {
		ln.Close()
		stop()
		serving.Wait()
	})
	return ln.Addr().String()
}

// captureLogs receives logs over TCP, which Caddy's net writer sends.
func captureLogs(t testing.TB) *logBuffer {
	t.Helper()
	l := new(logBuffer)
	l.output = "net " + acceptTCP(t, func(conn net.Conn) {
		lines := bufio.NewScanner(conn)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			l.mu.Lock()
			l.buf.Write(append(lines.Bytes(), '\n'))
			l.mu.Unlock()
		}
	})
	return l
}

// take returns what was logged since the last call, and forgets it.
func (l *logBuffer) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.buf.Reset()
	return l.buf.String()
}

// matching returns the log entries that a filter accepts.
func (l *logBuffer) matching(t testing.TB, filter func(map[string]any) bool) (entries []map[string]any) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.buf.String()) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("log line %q: %v", line, err)
		}
		if filter(entry) {
			entries = append(entries, entry)
		}
	}
	return entries
}

// entries returns the log entries with a message that a filter accepts.
func (l *logBuffer) entries(t testing.TB, message string, filter func(map[string]any) bool) []map[string]any {
	t.Helper()
	return l.matching(t, func(entry map[string]any) bool { return entry["msg"] == message && filter(entry) })
}

// waitFor waits for n log entries with a message: Caddy logs after the client has its response.
func (l *logBuffer) waitFor(t testing.TB, message string, n int) []map[string]any {
	t.Helper()
	return l.waitForMatch(t, message, n, func(map[string]any) bool { return true })
}

// waitForHost waits for n log entries with a message about requests to a host.
func (l *logBuffer) waitForHost(t testing.TB, message, host string, n int) []map[string]any {
	t.Helper()
	return l.waitForMatch(t, message, n, func(entry map[string]any) bool {
		request, _ := entry["request"].(map[string]any)
		return request["host"] == host
	})
}

func (l *logBuffer) waitForMatch(t testing.TB, message string, n int, filter func(map[string]any) bool) []map[string]any {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if entries := l.entries(t, message, filter); len(entries) >= n {
			return entries
		}
	}
	t.Fatalf("there are not %d log entries %q", n, message)
	return nil
}

// wantHeader checks the value of a header field, or that it is absent if value is empty.
func (r response) wantHeader(t testing.TB, field, value string) {
	t.Helper()
	if got := strings.Join(r.Header.Values(field), " | "); got != value {
		t.Errorf("%s: got %q, want %q", field, got, value)
	}
}

// provision sets a handler up as Caddy does when it loads a config.
func provision(t testing.TB, h *Handler) *Handler {
	t.Helper()
	if err := provisionErr(t, h); err != nil {
		t.Fatal(err)
	}
	return h
}

func provisionErr(t testing.TB, h *Handler) error {
	t.Helper()
	ctx, cancel := caddy.NewContext(caddy.Context{Context: context.Background()})
	t.Cleanup(cancel)
	if err := h.Provision(ctx); err != nil {
		return err
	}
	return h.Validate()
}

// prepare prepares a request, as Caddy's server does.
func prepare(w http.ResponseWriter, r *http.Request) *http.Request {
	return caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, new(caddyhttp.Server))
}

// endOfChain is what Caddy has at the end of each chain of handlers.
func endOfChain(_ http.ResponseWriter, r *http.Request) error {
	caddyhttp.SetVar(r.Context(), "unhandled", true)
	return nil
}

// serve passes a request to a handler, as Caddy's server does, and to the next one behind it.
func serve(h *Handler, w http.ResponseWriter, method, target string, next caddyhttp.HandlerFunc) error {
	r := httptest.NewRequest(method, target, nil)
	r.Host = "a.test"
	return h.ServeHTTP(w, prepare(w, r), next)
}

// memory tells what memory is in use, without garbage.
func memory() (m runtime.MemStats) {
	// what is in a sync.Pool outlives one collection
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m
}

// checkGoroutines fails a test that leaves a goroutine of this module's or of a proxied request's behind.
func checkGoroutines(t *testing.T) {
	t.Helper()
	count := func() (n int, stacks string) {
		buf := make([]byte, 8<<20)
		for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if strings.Contains(stack, "notfound.(*") || strings.Contains(stack, "reverseproxy.(*Handler).ServeHTTP") {
				n++
				stacks += stack + "\n\n"
			}
		}
		return n, stacks
	}
	t.Cleanup(func() {
		var n int
		var stacks string
		for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			if n, stacks = count(); n == 0 {
				return
			}
		}
		t.Errorf("%d goroutines are left behind:\n%s", n, stacks)
	})
}
