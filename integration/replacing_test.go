package integration

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// proxyTo returns directives that pass requests on to a backend with [testcaddy.MissingPage]. Caddy waits for what stalls
// until read_timeout.
func proxyTo(backend string) string {
	return "reverse_proxy /stalls* " + backend + " {\ntransport http {\nread_timeout 300ms\n}\n}\nreverse_proxy " + backend
}

// TestReplacesOverEveryProtocol replaces every kind of 404 page over every version of HTTP. Whatever becomes of the
// backend's body, the client has its whole page, and no trailer.
func TestReplacesOverEveryProtocol(t *testing.T) {
	testcaddy.CheckGoroutines(t)
	const logged = "log\nlog_append cause {http.not_found.cause}\nnot_found\n"
	app := proxyTo(testcaddy.Backend(t, testcaddy.MissingPage))
	s, clients := testcaddy.StartAllProtocols(t, map[string]string{
		"plain.test": logged + app,
		"h2c.test":   logged + proxyTo("h2c://"+testcaddy.H2CBackend(t, testcaddy.MissingPage)),
		"chain.test": logged + `
			encode
			intercept {
				@teapot status 418
				handle_response @teapot {
					respond "a teapot"
				}
			}
			templates {
				mime text/x-template
			}
			` + app,
	})
	skip := func(client, host, method, path string) bool {
		switch path {
		case "/stalls", "/stalls-at-once": // until read_timeout, so not in every combination
			return method == "POST" || host != "plain.test" && client != "HTTP/1.1"
		case "/breaks": // and closes the connection, on which the proxy does not send a POST again
			return method == "POST"
		}
		return false
	}

	var requests atomic.Int64
	t.Run("clients", func(t *testing.T) {
		for _, c := range clients {
			for _, host := range []string{"plain.test", "h2c.test", "chain.test"} {
				t.Run(c.Name+" "+host, func(t *testing.T) {
					t.Parallel()
					for _, path := range []string{
						"/length", "/gzip", "/chunked", "/both-trailers", "/none", "/missing-type", "/early-hints", "/medium", "/endless",
						"/stalls", "/stalls-at-once", "/breaks",
					} {
						for _, method := range []string{"GET", "HEAD", "POST"} {
							if skip(c.Name, host, method, path) {
								continue
							}
							requests.Add(1)
							res := c.Do(t, method, c.Scheme+"://"+host+path, "Range: bytes=0-1", "Accept-Encoding: gzip")
							wantPageInstead(t, res, method, c.Scheme+"://"+host+path)
							for field, want := range map[string]string{
								"Content-Encoding": "", "Etag": "", "Server": "Caddy", "Set-Cookie": "a=1", "Access-Control-Allow-Origin": "*", "Traceparent": "00-1-2-03",
							} {
								res.WantHeader(t, field, want)
							}
							if t.Failed() {
								t.Fatalf("at %s %s", method, path)
							}
						}
					}
				})
			}
		}
	})
	for _, entry := range s.Logs.WaitFor(t, "handled request", int(requests.Load())) {
		if entry["cause"] != "response" || entry["status"] != 404.0 {
			t.Errorf("the access log has %v", entry)
		}
		for field := range entry["resp_headers"].(map[string]any) {
			if strings.Contains(field, "nnounced") {
				t.Errorf("the access log has the trailer %s", field)
			}
		}
	}
}

// wantPageInstead checks that a response is the page in one piece, and has no trailers.
func wantPageInstead(t *testing.T, res testcaddy.Response, method, uri string) {
	t.Helper()
	if method == http.MethodHead {
		if want := int64(len(testcaddy.TextPage("GET", uri, ""))); res.StatusCode != 404 || res.Content != "" || res.ContentLength != want {
			t.Errorf("got %d, Content-Length %d and %q, want 404, %d and no body", res.StatusCode, res.ContentLength, res.Content, want)
		}
	} else {
		res.WantPage(t, method, uri, "")
	}
	if len(res.Trailer) > 0 || len(res.TransferEncoding) > 0 {
		t.Errorf("got the trailers %v and the transfer encoding %v", res.Trailer, res.TransferEncoding)
	}
	for field, want := range map[string]string{
		"Content-Type": "text/plain; charset=utf-8", "Trailer": "", "Transfer-Encoding": "", "X-Announced": "", "X-Unannounced": "",
	} {
		res.WantHeader(t, field, want)
	}
}

// TestReplacesAcrossOtherHandlers has other handlers between not_found and the backend.
func TestReplacesAcrossOtherHandlers(t *testing.T) {
	app := testcaddy.Backend(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/auth":
			w.Header().Set("X-User", "me")
			return
		case "/health":
			return
		}
		testcaddy.MissingPage(w, r)
	})
	fcgi := testcaddy.FastCGI(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Powered-By", "FastCGI")
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, "<h1>File not found.</h1>")
	})
	root := filepath.Dir(testcaddy.TempFile(t, "index.php", "<?php"))
	sites := map[string]string{
		"intercept":   "intercept {\n@missing status 404\nhandle_response @missing {\nrespond \"<b>theirs</b>\" 404\n}\n}\nreverse_proxy APP",
		"header":      "header {\nX-Set yes\n>X-Deferred yes\n-Traceparent\ndefer\n}\nreverse_proxy APP",
		"basic_auth":  "basic_auth {\nBob $2a$04$rjMeG7ZsCsZO.baFFzQhTOQ/dJkqE8xTFR.ejDxkRAW7PGzqRi8GS\n}\nrequest_header Host x\nreverse_proxy APP",
		"handle_path": "handle_path /strip/* {\nreverse_proxy APP\n}",
		"php":         "root " + root + "\nphp_fastcgi " + fcgi,
		"auth":        "forward_auth APP {\nuri /auth\ncopy_headers X-User\n}\nreverse_proxy APP",
		"balanced":    "reverse_proxy 127.0.0.1:1 APP {\nlb_policy round_robin\nlb_try_duration 5s\nlb_try_interval 1ms\nlb_retry_match {\nmethod GET\n}\nhealth_uri /health\nhealth_interval 10ms\nmax_fails 1\nfail_duration 1s\nunhealthy_status 5xx\n}",
	}
	for name, site := range sites {
		sites[name] = strings.ReplaceAll(site, "APP", app)
	}
	s, hosts := testcaddy.StartSites(t, "", sites)
	for name := range sites {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			paths := []string{"/length", "/gzip", "/chunked", "/trailers", "/none", "/medium"}
			switch name {
			case "intercept": // which holds back a response until its end
			default:
				paths = append(paths, "/breaks")
			}
			if name == "handle_path" {
				for i := range paths {
					paths[i] = "/strip" + paths[i]
				}
			}
			for _, path := range paths {
				uri := "http://" + hosts[name] + path
				// bob:hiccup
				res := s.Get(t, uri, "Accept-Encoding: gzip", "Authorization: Basic Qm9iOmhpY2N1cA==")
				res.WantPage(t, "GET", uri, "")
				res.WantHeader(t, "Content-Encoding", "")
				switch name {
				case "header":
					res.WantHeader(t, "X-Set", "yes")
					res.WantHeader(t, "X-Deferred", "yes")
					res.WantHeader(t, "Traceparent", "")
				case "php":
					res.WantHeader(t, "X-Powered-By", "FastCGI")
				}
			}
			for _, entry := range s.Logs.WaitForHost(t, "handled request", hosts[name], len(paths)) {
				if entry["cause"] != "response" {
					t.Errorf("the access log has the cause %v", entry["cause"])
				}
			}
		})
	}
}

// TestReplaceModes has 404 responses of every kind, in each mode.
func TestReplaceModes(t *testing.T) {
	app := testcaddy.Backend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Content-Type"] = nil
		if contentType := r.URL.Query().Get("type"); contentType != "" {
			w.Header().Set("Content-Type", contentType)
		}
		if r.URL.Path == "/empty" {
			w.Header().Set("Content-Length", "0")
		}
		w.WriteHeader(http.StatusNotFound)
		if r.URL.Path != "/empty" {
			io.WriteString(w, "theirs")
		}
	})
	sites := make(map[string]string)
	for _, mode := range []string{"default", "pages", "all", "none"} {
		option := "replace " + mode
		if mode == "default" {
			option = ""
		}
		sites[mode] = "not_found {\n" + option + "\n}\nhandle /error {\nerror 404\n}\nhandle /unanswered {\n}\nhandle {\nreverse_proxy " + app + "\n}"
	}
	s, hosts := testcaddy.StartSites(t, "", sites)
	answers := []string{
		"application/json", "application/problem+json; charset=utf-8", "APPLICATION/VND.API+JSON", "application/xml", "image/png",
		"application/grpc", "text/css", "text/event-stream", "text/htmlx",
	}
	for _, contentType := range append(answers, "", "text/html", "TEXT/HTML; charset=utf-8", "application/xhtml+xml", " text/plain ;x=y", ";") {
		t.Run(contentType, func(t *testing.T) {
			t.Parallel()
			isAnswer := slices.Contains(answers, contentType)
			for mode, replaced := range map[string]bool{"default": !isAnswer, "pages": !isAnswer, "all": true, "none": false} {
				uri := "http://" + hosts[mode] + "/x?type=" + url.QueryEscape(contentType)
				if res := s.Get(t, uri); replaced {
					res.WantPage(t, "GET", uri, "")
				} else {
					res.Want(t, 404, "theirs")
				}
			}
		})
	}
	for _, uri := range []string{
		"http://" + hosts["pages"] + "/empty?type=application/json", // of which there is none
		"http://" + hosts["none"] + "/error", "http://" + hosts["none"] + "/unanswered",
	} {
		s.Get(t, uri).WantPage(t, "GET", uri, "")
	}
}

// TestPageLeavesAfterTheHandler has handlers that begin a 404, flush it and work on. The client has nothing until they have
// ended, and nothing at all of a page if they panic, unless it is by the panic with which reverse_proxy aborts a response
// that breaks off.
func TestPageLeavesAfterTheHandler(t *testing.T) {
	var hasEnded sync.Map // by the path of the request
	ends := map[string]struct {
		end    func() error
		isPage bool
	}{
		"returns":          {func() error { return nil }, true},
		"returns-an-error": {func() error { return errors.New("too late") }, true},
		"aborts":           {func() error { panic(http.ErrAbortHandler) }, true},
		"panics":           {func() error { panic("a panic of the test's") }, false},
	}
	works := testcaddy.Directive(t, func(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusNotFound)
		for range 2 {
			_, _ = w.Write(make([]byte, 100_000)) // more than any buffer on the way
			_ = http.NewResponseController(w).Flush()
			time.Sleep(100 * time.Millisecond)
		}
		hasEnded.Store(r.URL.Path, true)
		_, name, _ := strings.Cut(r.URL.Path, ".")
		return ends[name].end()
	})
	file := testcaddy.TempFile(t, "404.html", "<h1>{{.Heading}}</h1>"+strings.Repeat("x", 100_000))
	_, clients := testcaddy.StartAllProtocols(t, map[string]string{"a.test": "not_found {\ntemplate " + file + "\n}\n" + works})
	for i, c := range clients {
		for name, tt := range ends {
			t.Run(name+" over "+c.Name, func(t *testing.T) {
				t.Parallel()
				path := fmt.Sprintf("/%d.%s", i, name)
				req, err := http.NewRequest("POST", c.Scheme+"://a.test"+path, nil) // which no client sends again
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Accept", "text/html")
				res, err := c.HTTP.Do(req)
				if _, ok := hasEnded.Load(path); !ok {
					t.Error("the client has an answer before the handler has ended")
				}
				if !tt.isPage {
					if err == nil {
						t.Errorf("got %s, want no response", res.Status)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if page := testcaddy.ReadBody(t, res, path); res.StatusCode != 404 || !strings.Contains(page.Content, "HTTP ERROR 404 No endpoint POST") {
					t.Errorf("got %s %.200q, want the page", res.Status, page.Content)
				}
			})
		}
	}
}

// TestOrdinaryPageComesToItsEnd has pages of 60 kB come in three windows of 200 ms, as they do from far away. They are
// read to their end: nothing is logged above debug, and the next request takes the same connection.
func TestOrdinaryPageComesToItsEnd(t *testing.T) {
	app, connections := countingBackend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path == "/length" {
			w.Header().Set("Content-Length", "60000")
		}
		w.WriteHeader(http.StatusNotFound)
		_ = http.NewResponseController(w).Flush()
		for range 3 {
			time.Sleep(200 * time.Millisecond)
			_, _ = w.Write(make([]byte, 20_000))
			_ = http.NewResponseController(w).Flush()
		}
	})
	s := testcaddy.Start(t, "http://a.test:0 {\nnot_found\nencode\nreverse_proxy "+app+"\n}")
	for _, path := range []string{"/length", "/chunked", "/length"} {
		s.Get(t, "http://a.test"+path, "Accept-Encoding: gzip").WantPage(t, "GET", "http://a.test"+path, "")
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("got %d connections to the backend, want 1", n)
	}
	if warnings := s.Logs.Select(t, isWarning); len(warnings) > 0 {
		t.Errorf("the log has %v", warnings)
	}
}

// countingBackend starts a backend that counts its connections.
func countingBackend(t *testing.T, h http.HandlerFunc) (addr string, connections *atomic.Int64) {
	t.Helper()
	connections = new(atomic.Int64)
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	srv.Start()
	t.Cleanup(srv.Close)
	return srv.Listener.Addr().String(), connections
}

// TestOldBodyIsReadToItsLimits has bodies at and past the limits of what is read of them. The page comes when the body
// has ended, or with the first write past a limit, which costs a warning of reverse_proxy's and the connection to the
// backend. Then the client's connection has the answer to the next request.
func TestOldBodyIsReadToItsLimits(t *testing.T) {
	const readTimeout, never = "{\ntransport http {\nread_timeout 1s\n}\n}", time.Hour
	seconds := func(f float64) time.Duration { return time.Duration(f * float64(time.Second)) }
	type body struct {
		declared, piece, pieces int           // bytes; a chunked body declares none
		pause, end              time.Duration // before each piece, and before the end
	}
	cases := map[string]struct {
		body    body
		options string        // of reverse_proxy
		after   time.Duration // when the page comes, at the earliest; at the latest, a second later
		cost    int           // in warnings, and in connections
	}{
		"256 KiB":                {body{256 << 10, 256 << 10, 1, 0, 0}, "", 0, 0},
		"a byte more":            {body{256<<10 + 2, 256<<10 + 1, 1, 0, never}, "", 0, 1},
		"endless":                {body{0, 1 << 40, 1, 0, 0}, "", 0, 1},
		"trickles without end":   {body{0, 1, 100, seconds(.1), 0}, "", seconds(2), 1},
		"a byte after 2.3 s":     {body{0, 1, 1, seconds(2.3), never}, "", seconds(2.3), 1},
		"only ends after 2.3 s":  {body{0, 1, 1, 0, seconds(2.3)}, "", seconds(2.3), 0},
		"incomplete after 2.4 s": {body{3, 1, 3, seconds(1.2), 0}, "", seconds(2.4), 1},
		"stalls":                 {body{0, 1, 1, 0, never}, readTimeout, seconds(1), 1},
		"stalls at once":         {body{0, 0, 0, 0, never}, readTimeout, seconds(1), 1},
	}
	write := func(w http.ResponseWriter, r *http.Request, b body) {
		w.Header().Set("Content-Type", "text/html")
		if b.declared > 0 {
			w.Header().Set("Content-Length", fmt.Sprint(b.declared))
		}
		w.WriteHeader(http.StatusNotFound)
		wait := func(d time.Duration) {
			_ = http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
			case <-time.After(d):
			}
		}
		for i := 0; i < b.pieces && r.Context().Err() == nil; i++ {
			wait(b.pause)
			_, _ = io.CopyN(w, testcaddy.Endless{}, int64(b.piece))
		}
		wait(b.end)
	}

	sites, backendConnections := make(map[string]string), make(map[string]*atomic.Int64)
	for name, tt := range cases {
		app, connections := countingBackend(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/next" {
				write(w, r, tt.body)
			}
		})
		backendConnections[name] = connections
		sites[name] = "reverse_proxy " + app + " " + tt.options
	}
	responder, _ := testcaddy.StallingFastCGI(t)
	sites["stalls over FastCGI"] = "handle /next {\nrespond 200\n}\nreverse_proxy " + responder + " {\ntransport fastcgi {\nroot /srv\nread_timeout 1s\n}\n}"
	stalls := testcaddy.Backend(t, func(w http.ResponseWriter, r *http.Request) { write(w, r, cases["stalls"].body) })
	s, hosts := testcaddy.StartSites(t, "http://bare.test:0 {\nlog\nreverse_proxy "+stalls+" "+readTimeout+"\n}\n", sites)
	hosts["stalls without not_found"] = "bare.test"

	// all at the same time, because most of it is waiting
	type seen struct {
		wire  []byte
		after time.Duration
		err   error
	}
	var mu sync.Mutex
	results := make(map[string]seen)
	var clients sync.WaitGroup
	for name, host := range hosts {
		conn := s.Connect(t)
		clients.Go(func() {
			begin := time.Now()
			fmt.Fprintf(conn, "GET /x HTTP/1.1\r\nHost: %s\r\n\r\nGET /next HTTP/1.1\r\nHost: %[1]s\r\nConnection: close\r\n\r\n", host)
			r := bufio.NewReader(conn)
			_, _ = r.Peek(1)
			result := seen{after: time.Since(begin)}
			result.wire, result.err = io.ReadAll(r)
			mu.Lock()
			results[name] = result
			mu.Unlock()
		})
	}
	clients.Wait()
	warnings := func(host string) []testcaddy.Entry {
		s.Logs.WaitForHost(t, "handled request", host, 1)
		return s.Logs.Select(t, func(e testcaddy.Entry) bool { return isWarning(e) && e.Host() == host })
	}
	if got := warnings("bare.test"); len(got) != cases["stalls"].cost {
		t.Errorf("one that stalls costs the warnings %v without not_found", got)
	}
	cases["stalls over FastCGI"] = cases["stalls"]
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			result := results[name]
			if result.err != nil {
				t.Fatal(result.err)
			}
			r := bufio.NewReader(bytes.NewReader(result.wire))
			testcaddy.ReadResponse(t, r, "GET", "/x").WantPage(t, "GET", "http://"+hosts[name]+"/x", "")
			testcaddy.ReadResponse(t, r, "GET", "/next").Want(t, 200, "")
			if result.after < tt.after || result.after > tt.after+time.Second {
				t.Errorf("the page came after %v, want %v, or up to a second more", result.after, tt.after)
			}
			if got := warnings(hosts[name]); len(got) != tt.cost {
				t.Errorf("got the warnings %v, want %d", got, tt.cost)
			}
			if connections := backendConnections[name]; connections != nil && connections.Load() != int64(1+tt.cost) {
				t.Errorf("got %d connections to the backend, want %d", connections.Load(), 1+tt.cost)
			}
		})
	}
}

// isWarning reports whether a handler has logged something above debug.
func isWarning(e testcaddy.Entry) bool {
	return e["level"] != "debug" && strings.HasPrefix(fmt.Sprint(e["logger"]), "http.handlers")
}

// TestCallerGoesOnAfterAnExchangeThatEndedEarly has the handlers before not_found use the request after it has returned:
// intercept asks another backend with it.
func TestCallerGoesOnAfterAnExchangeThatEndedEarly(t *testing.T) {
	other := testcaddy.Backend(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "an error page") })
	s := testcaddy.Start(t, strings.NewReplacer("OTHER", other, "APP", testcaddy.Backend(t, testcaddy.MissingPage)).Replace(`
http://a.test:0 {
	intercept {
		@missing status 404
		handle_response @missing {
			header -Content-Length # which intercept leaves in place, whatever it intercepts
			reverse_proxy OTHER
		}
	}
	handle {
		not_found
		reverse_proxy APP {
			# A request that takes an idle connection leaves its dial running. The dial reads Caddy's variables, which have
			# no lock, while the other reverse_proxy sets one (caddyserver/caddy#7859 fixed half of that).
			transport http {
				keepalive off
			}
		}
	}
}`))
	for _, path := range []string{"/breaks", "/endless", "/length"} {
		s.Get(t, "http://a.test"+path).Want(t, 200, "an error page")
	}
}

// TestEarlyHintsComeBeforeThePage has a backend send a 103 before its 404.
func TestEarlyHintsComeBeforeThePage(t *testing.T) {
	s := testcaddy.Start(t, "http://a.test:0 {\nnot_found\nreverse_proxy "+testcaddy.Backend(t, testcaddy.MissingPage)+"\n}")
	var hints []string
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(code int, header textproto.MIMEHeader) error {
			hints = append(hints, fmt.Sprint(code, header["Link"]))
			return nil
		},
	})
	req, err := http.NewRequestWithContext(ctx, "GET", "http://a.test/early-hints", nil)
	if err != nil {
		t.Fatal(err)
	}
	res := s.Send(t, req)
	res.WantPage(t, "GET", "http://a.test/early-hints", "")
	res.WantHeader(t, "Link", "")
	if want := []string{"103 [</style.css>; rel=preload]"}; !slices.Equal(hints, want) {
		t.Errorf("got the hints %q, want %q", hints, want)
	}
}
