package notfound

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/websocket"

	"github.com/caddyserver/caddy/v2"
)

var enduranceTime = flag.Duration("endurance", 2*time.Second, "how long TestEndurance keeps Caddy under load")

// TestEndurance keeps a Caddy under a mixed load, over HTTP/1.1 and HTTP/2, while its config is reloaded again and
// again and a backend comes and goes. No answer is wrong, and nothing stays behind. For real:
//
//	go test -race -run TestEndurance -timeout 10m -endurance 5m .
func TestEndurance(t *testing.T) {
	before := stacks()
	t.Cleanup(func() { awaitStacks(t, before) })

	app := httptest.NewServer(http.HandlerFunc(tireless))
	t.Cleanup(app.Close)
	t.Cleanup(app.CloseClientConnections) // or exchanges that are wrongly not cut would hold up the report of it
	l := &mixedLoad{
		logs:     captureLogs(t),
		root:     t.TempDir(),
		storage:  t.TempDir(),
		port:     freePort(t),
		tlsPort:  freePort(t),
		app:      app.Listener.Addr().String(),
		mortal:   "127.0.0.1:" + freePort(t),
		outcomes: make(map[string]int),
	}
	if err := os.WriteFile(filepath.Join(l.root, "hello.txt"), []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	startConfig(t, adapt(t, l.caddyfile(0)))
	awaitTLS(t, "127.0.0.1:"+l.tlsPort, "a.test")
	idle := stacks()

	defer l.report(t)
	l.run(t, *enduranceTime/5) // the warm-up, after which memory is not to grow
	awaitStacks(t, idle)
	heap := heapInUse()
	l.run(t, *enduranceTime*4/5)
	awaitStacks(t, idle)
	awaitHeap(t, heap)
}

// mixedLoad is what the clients of TestEndurance share.
type mixedLoad struct {
	logs          *logBuffer
	root, storage string
	port, tlsPort string
	app, mortal   string // backends

	// Each config has a number, which its answers name. begun is the last one that began to load, and settled the
	// last one whose predecessors answer no more.
	begun, settled atomic.Int64

	// changes of the mortal backend, which is in turn down, on its way up, up, and on its way down
	changes atomic.Int64

	requests, resent atomic.Int64

	mu       sync.Mutex
	outcomes map[string]int
}

// kind is a kind of load: it has one exchange with Caddy, and tells how it went.
type kind func(context.Context, *loadClient) (outcome string, err error)

// The outcomes of an exchange that are right.
const (
	answered = "answered"
	refused  = "refused" // by a backend that is not there
	cut      = "cut"     // by a backend that went away
)

func (l *mixedLoad) kinds() map[string]kind {
	return map[string]kind{
		"nothing answers":          l.exchange("GET", "/nothing", pageOf),
		"nothing answers HEAD":     l.exchange("HEAD", "/nothing", pageOf),
		"nothing answers POST":     l.exchange("POST", "/nothing", pageOf),
		"nothing answers, in JSON": l.exchange("GET", "/nothing.json", jsonPageOf),
		"error 404":                l.exchange("GET", "/error", pageOf),
		"file_server misses":       l.exchange("GET", "/files/none", pageOf),
		"file_server hits":         l.exchange("GET", "/files/hello.txt", hello),
		"route of some configs":    l.exchange("GET", "/even", evenRoute),
		"404":                      l.exchange("GET", "/app/length", pageOf),
		"404 to HEAD":              l.exchange("HEAD", "/app/length", pageOf),
		"404 to POST":              l.exchange("POST", "/app/length", pageOf),
		"404 in chunks":            l.exchange("GET", "/app/chunked", pageOf),
		"404 with trailers":        l.exchange("GET", "/app/both-trailers", pageOf),
		"404 of 200 KiB":           l.exchange("GET", "/app/medium", pageOf),
		"404 without end":          l.exchange("GET", "/app/endless", pageOf),
		"404 that stalls":          l.exchange("GET", "/app/stalls", pageOf),
		"404 in JSON":              l.exchange("GET", "/app/json", repeated(404, 1)),
		"200":                      l.exchange("GET", "/app/small", repeated(200, 1)),
		"200 of 1 MB":              l.exchange("GET", "/app/large", repeated(200, large)),
		"200 in 100 ms":            l.exchange("GET", "/app/slow", repeated(200, slow)),
		"upload":                   l.exchange("POST", "/app/upload", uploaded),
		"mortal 404":               l.mortalExchange("/mortal/length", pageOf, false),
		"mortal 404 that stalls":   l.mortalExchange("/mortal/stalls", pageOf, false),
		"mortal 200 in 100 ms":     l.mortalExchange("/mortal/slow", repeated(200, slow), true),
		"leaving an upload":        l.leaveUpload,
		"leaving a 200":            l.leave("/app/slow", 200),
		"leaving a stalled 404":    l.leave("/app/stalls", 404),
		"WebSocket":                l.webSocket,
	}
}

// caddyfile is the config with a number. The route to /even is in every second one.
//
// The WebSockets have a reverse_proxy for themselves, for one that delays the closing of streams races with itself when a reload
// meets other responses.
func (l *mixedLoad) caddyfile(generation int64) string {
	even := ""
	if generation%2 == 0 {
		even = "respond /even even"
	}
	return strings.NewReplacer("PORT", l.port, "TLSPT", l.tlsPort, "APP", l.app, "MORTAL", l.mortal, "ROOT", l.root, "EVEN", even,
		"NUMBER", fmt.Sprint(generation), "STORAGE", l.storage, "GLOBAL", globalOptions, "LOG", l.logs.output).Replace(`
{
	GLOBAL
	auto_https disable_redirects
	storage file_system STORAGE
	log default {
		output LOG
		level WARN
	}
	servers {
		protocols h1 h2 h2c
	}
}
(proxy) {
	handle_path {args[0]} {
		reverse_proxy {args[1]} {
			transport http {
				keepalive 1s
				dial_timeout 10s
			}
		}
	}
}
(site) {
	header X-Generation NUMBER
	not_found {
		context_path /gNUMBER
	}
	import proxy /app/* APP
	import proxy /mortal/* MORTAL
	handle /websocket {
		reverse_proxy APP {
			stream_close_delay 1h
		}
	}
	handle_path /files/* {
		root ROOT
		file_server
	}
	error /error 404
	EVEN
}
http://a.test:PORT {
	import site
}
https://a.test:TLSPT {
	tls internal
	import site
}
`)
}

// tireless is a backend whose answers repeat the query, so that each request has its own.
func tireless(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	switch r.URL.Path {
	case "/websocket":
		websocket.Handler(func(ws *websocket.Conn) {
			var message string
			for websocket.Message.Receive(ws, &message) == nil {
				websocket.Message.Send(ws, message)
			}
		}).ServeHTTP(w, r)
	case "/small":
		io.WriteString(w, r.URL.RawQuery)
	case "/json":
		h.Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, r.URL.RawQuery)
	case "/large":
		h.Set("Content-Length", strconv.Itoa(large*len(r.URL.RawQuery)))
		io.WriteString(w, strings.Repeat(r.URL.RawQuery, large))
	case "/slow":
		h.Set("Content-Length", strconv.Itoa(slow*len(r.URL.RawQuery)))
		for range 10 {
			io.WriteString(w, strings.Repeat(r.URL.RawQuery, slow/10))
			_ = http.NewResponseController(w).Flush()
			time.Sleep(10 * time.Millisecond)
		}
	case "/upload", "/left":
		h.Set("Content-Type", "application/octet-stream")
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		w.Write(body)
	default:
		unknown(w, r)
	}
}

// how often the query is repeated
const (
	large = 100_000
	slow  = 10_000
)

// loadClient is a client that sends one request at a time.
type loadClient struct {
	*protocolClient
	oldest int64 // the oldest config that may answer
}

// run keeps Caddy under load for a while, with a client for each kind of load and version of HTTP, which rest a quarter of a
// second on the average, so that two processors can do it with the race detector as well.
func (l *mixedLoad) run(t *testing.T, d time.Duration) {
	t.Helper()
	end := time.Now().Add(d)
	on := func() bool { return time.Now().Before(end) && !t.Failed() }
	var wg sync.WaitGroup
	var clients []*protocolClient
	for name, kind := range l.kinds() {
		all := protocolClients(t, "127.0.0.1:"+l.port, "127.0.0.1:"+l.tlsPort)[1:4]
		if name == "WebSocket" {
			all = all[:1]
		}
		clients = append(clients, all...)
		for _, c := range all {
			wg.Go(func() {
				client := &loadClient{protocolClient: c}
				for ok := true; ok; ok = on() {
					time.Sleep(rand.N(500 * time.Millisecond))
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					outcome, err := kind(ctx, client)
					cancel()
					if err != nil {
						t.Errorf("%s over %s: %v", name, c.name, err)
						return
					}
					l.mu.Lock()
					l.outcomes[name+" "+outcome]++
					l.mu.Unlock()
				}
			})
		}
	}
	wg.Go(func() { l.reload(t, on, min(time.Second, *enduranceTime/8)) })
	wg.Go(func() { l.comeAndGo(t, on) })
	wg.Wait()
	for _, c := range clients {
		c.CloseIdleConnections()
	}
	l.checkLog(t)
	if t.Failed() {
		t.FailNow()
	}
}

// patience is how long a client waits for the end of a response.
const patience = 10 * time.Second

// reload loads a new config again and again.
func (l *mixedLoad) reload(t *testing.T, on func() bool, interval time.Duration) {
	for time.Sleep(interval); on(); time.Sleep(interval) {
		generation := l.begun.Add(1)
		if err := caddy.Load(adapt(t, l.caddyfile(generation)), true); err != nil {
			t.Errorf("reload %d: %v", generation, err)
			return
		}
		// Load returns when the old servers are about to close what is idle, not when they have.
		time.AfterFunc(2*time.Second, func() { l.settled.Store(generation) })
		l.checkLog(t)
	}
}

// comeAndGo starts the mortal backend, always on the same port, and closes it with all its connections.
func (l *mixedLoad) comeAndGo(t *testing.T, on func() bool) {
	for on() {
		l.changes.Add(1)
		ln, err := net.Listen("tcp", l.mortal)
		if err != nil {
			t.Errorf("starting the backend again: %v", err)
			return
		}
		srv := &http.Server{Handler: http.HandlerFunc(tireless)}
		var served sync.WaitGroup
		served.Go(func() { srv.Serve(ln) })
		l.changes.Add(1)
		time.Sleep(300*time.Millisecond + rand.N(time.Second))
		l.changes.Add(1)
		srv.Close()
		served.Wait()
		l.changes.Add(1)
		time.Sleep(100*time.Millisecond + rand.N(400*time.Millisecond))
	}
}

// answer is a response, read to its end, and what it answers.
type answer struct {
	response
	sent string // the request's body
	err  error  // that broke it off
}

// want tells what the answer of a config must be.
type want func(a *answer, generation int64) (status int, body string)

func pageOf(a *answer, generation int64) (int, string) {
	method := a.Request.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	return http.StatusNotFound, textPage(method, a.Request.URL.String(), fmt.Sprintf("/g%d", generation))
}

func jsonPageOf(a *answer, generation int64) (int, string) {
	message := fmt.Sprintf("No endpoint GET /g%d/missing.html.", generation)
	body, err := json.Marshal(fields{Heading: "HTTP ERROR 404 " + message, URI: a.Request.URL.String(), Status: 404, Message: message, Footer: footer()})
	if err != nil {
		panic(err)
	}
	return http.StatusNotFound, string(body) + "\n"
}

func hello(*answer, int64) (int, string) { return http.StatusOK, "hello" }

func evenRoute(a *answer, generation int64) (int, string) {
	if generation%2 == 0 {
		return http.StatusOK, "even"
	}
	return pageOf(a, generation)
}

func uploaded(a *answer, _ int64) (int, string) { return http.StatusOK, a.sent }

func repeated(status, times int) want {
	return func(a *answer, _ int64) (int, string) {
		return status, strings.Repeat(a.Request.URL.RawQuery, times)
	}
}

// generation returns the number of the config that a response came from, if it may.
func (l *mixedLoad) generation(c *loadClient, header http.Header) (int64, error) {
	newest := l.begun.Load()
	generation, err := strconv.ParseInt(header.Get("X-Generation"), 10, 64)
	if err != nil || generation < c.oldest || generation > newest {
		return 0, fmt.Errorf("got an answer of the config %q, want one of %d to %d", header["X-Generation"], c.oldest, newest)
	}
	return generation, nil
}

// check compares an answer with that of the config that it came from.
func (l *mixedLoad) check(c *loadClient, a *answer, want want) error {
	generation, err := l.generation(c, a.Header)
	if err != nil {
		return err
	}
	status, body := want(a, generation)
	length := int64(len(body))
	if a.Request.Method == http.MethodHead {
		body = ""
	} else if a.ContentLength < 0 { // not known beforehand
		length = -1
	}
	if a.err != nil || a.StatusCode != status || a.ContentLength != length || a.body != body || len(a.Trailer) > 0 {
		return fmt.Errorf("got %s, Content-Length %d, %.500q of %d bytes, the trailers %v, and %v; want %d, Content-Length %d, %.500q",
			a.Status, a.ContentLength, a.body, len(a.body), a.Trailer, a.err, status, length, body)
	}
	return nil
}

// exchange has exchanges with one right answer.
func (l *mixedLoad) exchange(method, path string, want want) kind {
	return func(ctx context.Context, c *loadClient) (string, error) {
		a, err := l.ask(ctx, c, method, path)
		if err != nil {
			return "", err
		}
		return answered, l.check(c, a, want)
	}
}

// mortalExchange asks the backend that comes and goes. While it is up, it answers; while it is down, Caddy says so with an
// empty 502; and where it changed meanwhile, it is either. Then a response that is the backend's own can break off as well,
// after bytes that are right. A page cannot: Caddy has it, whatever becomes of the backend.
func (l *mixedLoad) mortalExchange(path string, want want, own bool) kind {
	badGateway := func(*answer, int64) (int, string) { return http.StatusBadGateway, "" }
	return func(ctx context.Context, c *loadClient) (string, error) {
		before := l.changes.Load()
		a, err := l.ask(ctx, c, http.MethodGet, path)
		const down, up = 0, 2
		state := before % 4
		if l.changes.Load() != before {
			state = -1
		}
		switch {
		case err != nil:
			return "", err
		case state == down, state != up && a.StatusCode == http.StatusBadGateway:
			return refused, l.check(c, a, badGateway)
		case a.err != nil && a.StatusCode == http.StatusOK && state != up && own:
			if _, body := want(a, 0); !strings.HasPrefix(body, a.body) {
				return "", fmt.Errorf("got %.500q before %v", a.body, a.err)
			}
			return cut, nil
		default:
			return answered, l.check(c, a, want)
		}
	}
}

// request makes a request whose address no other has.
func (l *mixedLoad) request(ctx context.Context, c *loadClient, method, path string, body io.Reader) *http.Request {
	url := fmt.Sprintf("%s://a.test%s?%09d", c.scheme, path, l.requests.Add(1))
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		panic(err)
	}
	if strings.HasSuffix(path, ".json") {
		req.Header.Set("Accept", "application/json")
	}
	return req
}

// ask sends a request and reads the response to its end, wherever that is.
func (l *mixedLoad) ask(ctx context.Context, c *loadClient, method, path string) (*answer, error) {
	a := new(answer)
	var body io.Reader
	if method == http.MethodPost {
		a.sent = strings.Repeat(strconv.FormatUint(rand.Uint64(), 36), rand.N(5000))
		body = strings.NewReader(a.sent)
	}
	req := l.request(ctx, c, method, path, body)
	// not sent, it lets http.Transport send a POST again if the connection was closed before
	req.Header["Idempotency-Key"] = nil
	var err error
	if a.Response, err = l.send(c, req); err != nil {
		return nil, err
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	a.body, a.err = string(b), err
	return a, nil
}

// send sends a request, and sends it again where a reload was the reason that Caddy did not read it. Most of that
// http.Transport does itself, but not where the request is the first one of a connection, or its body takes more than one write.
func (l *mixedLoad) send(c *loadClient, req *http.Request) (*http.Response, error) {
	settled := l.settled.Load()
	ctx := httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		// A connection over HTTP/2 that is accepted as the listener closes does not hear of the end of its server. All its
		// requests are the old config's.
		if !info.Reused || c.name == "HTTP/1.1" {
			c.oldest = settled
		}
	}})
	for {
		res, err := c.Do(req.WithContext(ctx))
		if err == nil || ctx.Err() != nil || l.begun.Load() == settled || !isUnread(err) {
			return res, err
		}
		l.resent.Add(1)
		if req.GetBody != nil {
			if req.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}

// isUnread reports whether an error is one of a connection that was idle or just about to be accepted when a reload closed it. The
// end of a connection without a response is unexpected to HTTP/2 and to http.ReadResponse; where it comes before the server's
// settings, the error of HTTP/2 has no name.
func isUnread(err error) bool {
	if strings.HasSuffix(err.Error(), "http2: client conn could not be established") {
		return true
	}
	return slices.ContainsFunc([]error{syscall.ECONNRESET, syscall.EPIPE, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed}, func(target error) bool {
		return errors.Is(err, target)
	})
}

// leave begins to read a response, and leaves.
func (l *mixedLoad) leave(path string, status int) kind {
	return func(ctx context.Context, c *loadClient) (string, error) {
		ctx, leave := context.WithCancel(ctx)
		defer leave()
		req := l.request(ctx, c, http.MethodGet, path, nil)
		res, err := l.send(c, req)
		if err != nil {
			return "", err
		}
		defer res.Body.Close()
		if _, err := l.generation(c, res.Header); err != nil {
			return "", err
		}
		want := req.URL.RawQuery
		if status == http.StatusNotFound {
			want = heading
		}
		got := make([]byte, len(want))
		if _, err := io.ReadFull(res.Body, got); err != nil || res.StatusCode != status || string(got) != want {
			return "", fmt.Errorf("got %s and %q, %v; want %d and %q", res.Status, got, err, status, want)
		}
		time.Sleep(rand.N(50 * time.Millisecond))
		return answered, nil
	}
}

// leaveUpload sends the first half of a body, and leaves.
func (l *mixedLoad) leaveUpload(ctx context.Context, c *loadClient) (string, error) {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	req := l.request(ctx, c, http.MethodPost, "/app/left", nil)
	req.ContentLength = 128 << 10
	req.GetBody = func() (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(io.LimitReader(endless{}, 64<<10), readerFunc(func([]byte) (int, error) {
			time.Sleep(rand.N(50 * time.Millisecond))
			leave()
			return 0, ctx.Err()
		}))), nil
	}
	req.Body, _ = req.GetBody()
	res, err := l.send(c, req)
	if err == nil {
		// before it leaves, the client may still see what Caddy makes of it
		defer res.Body.Close()
		if res.StatusCode != http.StatusBadGateway {
			return "", fmt.Errorf("got %s", res.Status)
		}
	} else if !errors.Is(err, context.Canceled) {
		return "", err
	}
	return answered, nil
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// webSocket exchanges messages for a while, in which the config changes.
func (l *mixedLoad) webSocket(context.Context, *loadClient) (string, error) {
	config, err := websocket.NewConfig("ws://a.test/websocket", "http://a.test")
	if err != nil {
		return "", err
	}
	ws, err := l.dialWebSocket(config)
	if err != nil {
		return "", err
	}
	defer ws.Close()
	for i := range 10 {
		if err := ws.SetDeadline(time.Now().Add(patience)); err != nil {
			return "", err
		}
		message := strings.Repeat(strconv.Itoa(i), rand.N(10_000))
		if err := websocket.Message.Send(ws, message); err != nil {
			return "", err
		}
		var got string
		if err := websocket.Message.Receive(ws, &got); err != nil || got != message {
			return "", fmt.Errorf("message %d: got %.100q, %v; want %.100q", i, got, err, message)
		}
		time.Sleep(rand.N(200 * time.Millisecond))
	}
	return answered, nil
}

func (l *mixedLoad) dialWebSocket(config *websocket.Config) (*websocket.Conn, error) {
	dial := func() (*websocket.Conn, error) {
		conn, err := net.Dial("tcp", "127.0.0.1:"+l.port)
		if err != nil {
			return nil, err
		}
		if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
			return nil, err
		}
		ws, err := websocket.NewClient(config, conn)
		if err != nil {
			conn.Close()
		}
		return ws, err
	}
	for settled := l.settled.Load(); ; l.resent.Add(1) {
		ws, err := dial()
		if err == nil || l.begun.Load() == settled || !isUnread(err) {
			return ws, err
		}
	}
}

// checkLog looks for panics, and for errors other than those of the backend that is not there and of the uploads that
// clients leave, which Caddy takes for the backend's.
func (l *mixedLoad) checkLog(t *testing.T) {
	for line := range strings.Lines(l.logs.take()) {
		var entry struct {
			Level, Msg, Error string
			Request           struct{ URI string }
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Errorf("log line %q: %v", line, err)
		}
		expected := entry.Level == "warn" || strings.HasPrefix(entry.Request.URI, "/mortal/") || strings.HasPrefix(entry.Request.URI, "/app/left?")
		if strings.Contains(line, "panic") || !expected {
			t.Errorf("the log has %.3000s", line)
		}
	}
}

// report says what there was, and fails if there was not everything.
func (l *mixedLoad) report(t *testing.T) {
	t.Helper()
	t.Logf("%d requests, %d of them sent again; %d reloads; the mortal backend rose %d times",
		l.requests.Load(), l.resent.Load(), l.begun.Load(), l.changes.Load()/4)
	complete, refusals := l.begun.Load() > 0, 0
	for _, name := range slices.Sorted(maps.Keys(l.kinds())) {
		n := func(outcome string) int { return l.outcomes[name+" "+outcome] }
		t.Logf("%-24s %6d answered, %5d refused, %5d cut", name, n(answered), n(refused), n(cut))
		complete = complete && n(answered) > 0
		refusals += n(refused)
	}
	if !complete || refusals == 0 {
		t.Error("there was no reload, or a kind of load had no answer, or the mortal backend was never missed")
	}
}

func heapInUse() int64 {
	m := memory()
	return int64(m.HeapAlloc)
}

// awaitHeap waits for the heap to be as large as it was before, and a little more, however long the load was.
func awaitHeap(t *testing.T, before int64) {
	t.Helper()
	rise := heapInUse() - before
	for deadline := time.Now().Add(settling); rise > maxRise && time.Now().Before(deadline); rise = heapInUse() - before {
		time.Sleep(100 * time.Millisecond)
	}
	t.Logf("the heap rose by %d KiB from %d KiB", rise>>10, before>>10)
	if rise > maxRise {
		t.Errorf("the heap rose by %d KiB, want %d at most", rise>>10, maxRise>>10)
	}
}

// What may be left of a load, and how long it takes Caddy to be done with it.
const (
	maxRise  = 8 << 20
	settling = 10 * time.Second
)

// stacks returns the stacks of all goroutines, by what started them.
func stacks() map[string][]string {
	buf := make([]byte, 16<<20)
	stacks := make(map[string][]string)
	for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(stack, "captureLogs") {
			continue // what Caddy logs after it closed its logs opens their connection again
		}
		_, creator, _ := strings.Cut(stack, "\ncreated by ")
		creator, _, _ = strings.Cut(creator, " in goroutine ")
		stacks[creator] = append(stacks[creator], stack)
	}
	return stacks
}

// awaitStacks waits until there are no more goroutines than before.
func awaitStacks(t *testing.T, before map[string][]string) {
	t.Helper()
	var left []string
	for deadline := time.Now().Add(settling); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		left = nil
		for creator, now := range stacks() {
			if n := len(now) - len(before[creator]); n > 0 {
				left = append(left, fmt.Sprintf("%d more that %s started, such as\n%s", n, creator, now[len(now)-1]))
			}
		}
		if len(left) == 0 {
			return
		}
	}
	t.Errorf("goroutines are left behind: %s", strings.Join(left, "\n\n"))
}
