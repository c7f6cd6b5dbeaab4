package notfound

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/html"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// connect opens a connection that a test may use for as long as a hang is not likelier.
func (s *server) connect(t testing.TB) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(40 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// only sends a request with Connection: close, and reads all that comes back: one response, and nothing else.
func (s *server) only(t testing.TB, method, request string) response {
	t.Helper()
	conn := s.connect(t)
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	wire, err := io.ReadAll(conn)
	if err != nil {
		t.Fatalf("%.200q: %v", request, err)
	}
	r := bufio.NewReader(bytes.NewReader(wire))
	res := readResponse(t, r, method, fmt.Sprintf("%.200q", request))
	if rest, _ := io.ReadAll(r); len(rest) > 0 {
		t.Errorf("%.200q: after the response there is %.200q", request, rest)
	}
	return res
}

// skeleton is an HTML document without its text, as a browser builds it: doctype, elements, attributes, comments, and
// what is in the style. The value of a title attribute counts as text, and of a link only whether it leads anywhere.
func skeleton(t testing.TB, page string) string {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for n := range doc.Descendants() {
		switch n.Type {
		case html.ElementNode:
			fmt.Fprintf(&b, "<%s", n.Data)
			for _, a := range n.Attr {
				switch {
				case a.Key == "title", a.Key == "href" && (strings.HasPrefix(a.Val, "http://") || a.Val == "#ZgotmplZ"):
					a.Val = ""
				}
				fmt.Fprintf(&b, " %s=%q", a.Key, a.Val)
			}
			b.WriteByte('>')
		case html.TextNode:
			if n.Parent.Data == "style" {
				b.WriteString(n.Data)
			}
		default:
			fmt.Fprintf(&b, "<%d %q>", n.Type, n.Data)
		}
	}
	return b.String()
}

// wantLikeHarmless checks that a page differs from that of a harmless request in its text alone: the header has the same
// fields, the document the same elements, and nobody who sniffs takes for HTML what is not.
func (r response) wantLikeHarmless(t testing.TB, f *format, harmless response) fields {
	t.Helper()
	header, want := r.Header.Clone(), harmless.Header.Clone()
	for _, field := range []string{"Date", "Content-Length"} {
		header.Del(field)
		want.Del(field)
	}
	if got, want := fmt.Sprint(header), fmt.Sprint(want); got != want {
		t.Errorf("got the header\n%s\nwant\n%s", got, want)
	}
	r.wantHeader(t, "Content-Type", f.contentType)

	sniffed := map[string]string{"html": "text/html; charset=utf-8", "xml": "text/xml; charset=utf-8"}[f.name]
	if sniffed == "" {
		sniffed = "text/plain; charset=utf-8"
	}
	if got := http.DetectContentType([]byte(r.body)); got != sniffed {
		t.Errorf("the body looks like %s, want %s", got, sniffed)
	}

	if f.name == "html" {
		if got, want := skeleton(t, r.body), skeleton(t, harmless.body); got != want {
			t.Errorf("got the document\n%s\nwant\n%s", got, want)
		}
	}
	got := fieldsOf(t, r)
	if i := strings.IndexFunc(got.URI+got.Message, func(c rune) bool {
		return c < ' ' || c > '~' || strings.ContainsRune(`"<>\{}`, c)
	}); i >= 0 {
		t.Errorf("the address or the message has %q", (got.URI + got.Message)[i])
	}
	return got
}

// hostileTexts are what a placeholder may bring in, from a percent-decoded query for example.
var hostileTexts = []string{
	`<script>alert(1)</script>`, `"><svg onload=alert(1)>`, `' onmouseover='alert(1)`, `</footer><iframe src=//evil.test>`,
	`</title></style></textarea>--><img src=x onerror=alert(1)>`, `<!--`, `--!><b>`, `]]><x/>`, `<?php ?>`, `<!DOCTYPE html><html>`,
	`<base href=//evil.test>`, `<meta http-equiv=refresh content=0>`, `javascript:alert(1)`, `//evil.test/`, `https://evil.test"><b>`,
	`&lt;script&gt;&#60;b&#62;&lt`, `\u003cscript\u003e`, `%3Cscript%3E`, `{{.}}`, `","status":200,"x":"`,
	"+ADw-script+AD4-alert(1)+ADw-/script+AD4-", // UTF-7
	"\ufeff<script>", "\xff\xfe<\x00s\x00>\x00", "\xfe\xff\x00<\x00s\x00>", "\xc0\xbcscript\xc0\xbe", "\x1b$B\x1b(J<b>",
	"\u2028alert(1)\u2029", "\u202e<b>", "\x00<b>", "a\x00", "\b\x7f\x1b[31m", "\ufffe\uffff\ud7ff",
	"a\r\nSet-Cookie: evil=1\r\n\r\n<script>alert(1)</script>", "a\nX-Evil: 1", "\rX-Evil: 1", "\u0085X-Evil: 1", "\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
}

// isControl reports whether c is a character that no header field can have.
func isControl(c rune) bool { return c < ' ' || c == '\x7f' }

// TestHostileRequestGetsAPageLikeAnyOther sends what would harm a careless page by every way there is into one, and
// compares with the page for a harmless request.
func TestHostileRequestGetsAPageLikeAnyOther(t *testing.T) {
	file := writeTemplate(t, `<!DOCTYPE html><title>{{.Heading}}</title><h1 title="{{placeholder "http.request.uri.query.x"}}">HTTP ERROR {{.Status}} {{.Message}}</h1>`+
		`<p>URI: <a href="{{.URI}}">{{.URI}}</a><p>STATUS: {{.Status}}<p>MESSAGE: {{.Message}}<p>{{placeholder "http.request.uri.query.x"}} {{.Footer}}`)
	fed := func(placeholder, template string) string {
		return "not_found {\ncontext_path {" + placeholder + "}\nbase_url {" + placeholder + "}\nfooter \"{" + placeholder + "}\"\n" + template + "\n}"
	}
	s := startCaddy(t, `
http://:0 {
	not_found
}
http://query.test:0 {
	`+fed("http.request.uri.query.x", "")+`
}
http://header.test:0 {
	`+fed("http.request.header.X-Evil", "")+`
}
http://template.test:0 {
	`+fed("http.request.uri.query.x", "template "+file)+`
}`)

	type request struct{ method, target, host, fields string }
	requests := []request{
		{"GET", "javascript://a.test/%0aalert(1)", "a.test", ""}, {"GET", "javascript:alert(1)", "a.test", ""}, {"GET", "data:text/html,<b>", "a.test", ""},
		{"GET", "javascript:alert(1)", "template.test", ""},
		{"&LT&AMP'#|`", "/x", "a.test", ""}, {"</SCRIPT>", "/x", "a.test", ""},
		{"GET", "/x", "a&lt'b;c=d", ""}, {"GET", "/x", "'onload='alert(1)'", ""}, {"GET", "/x", "javascript:alert(1)", ""}, {"GET", "/x", "%22%3e%3cb%3e", ""},
		{"GET", "/x", "[::1]<b>", ""},
	}
	for _, target := range hostileTargets {
		requests = append(requests, request{"GET", target, "a.test", ""})
	}
	for _, text := range hostileTexts {
		query := url.QueryEscape(text)
		requests = append(requests,
			request{"GET", "/x?x=" + query, "query.test", ""}, request{"GET", "/x?x=" + query, "template.test", ""}, request{"GET", "/" + query, "a.test", ""})
		if !strings.ContainsFunc(text, isControl) {
			requests = append(requests, request{"GET", "/x", "header.test", "X-Evil: " + text + "\r\n"})
		}
	}
	// Go's server refuses these itself: a method is a token, and markup is in no Host
	refused := map[string]bool{"</SCRIPT>": true, "[::1]<b>": true}

	for i := range formats {
		f := &formats[i]
		send := func(t *testing.T, r request) response {
			return s.only(t, r.method, r.method+" "+r.target+" HTTP/1.1\r\nHost: "+r.host+"\r\n"+r.fields+"Accept: "+f.mediaType+"\r\nConnection: close\r\n\r\n")
		}
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			harmless, ownTemplate := send(t, request{"GET", "/x", "a.test", ""}), send(t, request{"GET", "/x?x=/x", "template.test", ""})
			for _, r := range requests {
				res := send(t, r)
				switch {
				case refused[r.method] || refused[r.host]:
					if res.StatusCode != http.StatusBadRequest || strings.Contains(res.body, "<") {
						t.Errorf("got %d %q", res.StatusCode, res.body)
					}
				case r.host == "template.test":
					res.wantLikeHarmless(t, f, ownTemplate)
				default:
					res.wantLikeHarmless(t, f, harmless)
				}
				if t.Failed() {
					t.Fatalf("at %q", r)
				}
			}
		})
	}
}

// TestHostilePseudoHeaders sends over HTTP/2 what HTTP/1.1 cannot carry: any byte in the method, the authority and the path.
func TestHostilePseudoHeaders(t *testing.T) {
	s := startCaddy(t, "http://:0 {\nnot_found\n}", "servers {\nprotocols h1 h2c\n}")
	send := func(t *testing.T, method, authority, path, accept string) (res response, refused bool) {
		conn := s.connect(t)
		defer conn.Close()
		var block bytes.Buffer
		enc := hpack.NewEncoder(&block)
		for _, field := range []hpack.HeaderField{
			{Name: ":method", Value: method}, {Name: ":scheme", Value: "http"}, {Name: ":authority", Value: authority},
			{Name: ":path", Value: path}, {Name: "accept", Value: accept},
		} {
			if err := enc.WriteField(field); err != nil {
				t.Fatal(err)
			}
		}
		framer := http2.NewFramer(conn, conn)
		framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
		_, err := io.WriteString(conn, http2.ClientPreface)
		if err == nil {
			err = framer.WriteSettings()
		}
		if err == nil {
			err = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true})
		}
		if err != nil {
			t.Fatal(err)
		}
		res.Response = &http.Response{Header: make(http.Header), ContentLength: -1}
		for {
			frame, err := framer.ReadFrame()
			if err != nil {
				t.Fatalf("%q %q %q: %v", method, authority, path, err)
			}
			switch frame := frame.(type) {
			case *http2.MetaHeadersFrame:
				res.StatusCode, _ = strconv.Atoi(frame.PseudoValue("status"))
				for _, field := range frame.RegularFields() {
					res.Header.Add(field.Name, field.Value)
				}
				res.ContentLength, _ = strconv.ParseInt(res.Header.Get("Content-Length"), 10, 64)
			case *http2.DataFrame:
				res.body += string(frame.Data())
			case *http2.RSTStreamFrame:
				return res, true
			}
			if frame.Header().Flags.Has(http2.FlagDataEndStream) && frame.Header().StreamID == 1 {
				return res, false
			}
		}
	}
	for i := range formats {
		f := &formats[i]
		t.Run(f.name, func(t *testing.T) {
			harmless, _ := send(t, "GET", "a.test", "/x", f.mediaType)
			for _, text := range hostileTexts {
				for what, target := range map[string][3]string{
					"method": {text, "a.test", "/x"}, "authority": {"GET", text, "/x"}, "path": {"GET", "a.test", "/" + text},
				} {
					res, refused := send(t, target[0], target[1], target[2], f.mediaType)
					// Go's HTTP/2 server refuses line ends and an invalid authority, and Caddy a long method
					if refused || res.StatusCode == http.StatusMethodNotAllowed {
						if what == "path" && !strings.ContainsFunc(text, isControl) || what == "method" && !strings.ContainsFunc(text, isControl) && len(text) <= 32 {
							t.Errorf("the %s %q is refused: the test shows nothing", what, text)
						}
						continue
					}
					res.wantLikeHarmless(t, f, harmless)
					if t.Failed() {
						t.Fatalf("at the %s %q", what, text)
					}
				}
			}
		})
	}
}

// TestNothingThatAClientSendsIsExecuted puts Caddy's templates around the page and below it, and sends template actions
// and placeholders by every way there is into the page.
func TestNothingThatAClientSendsIsExecuted(t *testing.T) {
	const secret = "a-secret-of-the-server"
	t.Setenv("NOT_FOUND_TEST_SECRET", secret)
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "secret.txt"), []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	app := backend(t, unknown)
	file := writeTemplate(t, `<p>{{placeholder "http.request.header.X-Evil"}}<p>{{.URI}} {{.Message}} {{.Footer}}`)
	replacer := strings.NewReplacer(
		"FED", `{
			context_path "/{http.request.header.X-Evil}{http.request.uri.query.x}"
			base_url "http://a.test/{http.request.header.X-Evil}"
			footer "{http.request.header.X-Evil} {http.request.uri.query.x}"
		}`,
		"TEMPLATES", "templates {\nroot "+root+"\n}", "APP", app, "FILE", file)
	outside := map[string]string{
		"default order":           "TEMPLATES\nnot_found FED",
		"default order, error":    "TEMPLATES\nnot_found FED\nerror 404",
		"default order, respond":  "TEMPLATES\nnot_found FED\nrespond \"theirs\" 404",
		"default order, proxied":  "TEMPLATES\nnot_found FED\nreverse_proxy APP",
		"route":                   "route {\nnot_found FED\nTEMPLATES\n}",
		"route, proxied":          "route {\nnot_found FED\nTEMPLATES\nreverse_proxy APP\n}",
		"in handle_errors":        "error 404\nhandle_errors {\nTEMPLATES\nnot_found FED\n}",
		"a template of one's own": "TEMPLATES\nnot_found {\ntemplate FILE\nfooter \"{http.request.header.X-Evil} {http.request.uri.query.x}\"\n}",
	}
	// where it should not be: the address and the message have no braces, the rest is not a client's
	behind := map[string]string{
		"route, behind":                  "route {\nTEMPLATES\nnot_found\n}",
		"route, behind, proxied":         "route {\nTEMPLATES\nnot_found\nreverse_proxy APP\n}",
		"route, behind, error":           "route {\nTEMPLATES\nnot_found\nerror 404\n}",
		"in a handle block of the site":  "TEMPLATES\nhandle {\nnot_found\n}",
		"context path, percent-encoded":  "route {\nTEMPLATES\nnot_found {\ncontext_path \"/{http.request.header.X-Evil}{http.request.uri.query.x}\"\n}\n}",
		"behind, with a base URL":        "route {\nTEMPLATES\nnot_found {\nbase_url \"http://a.test/{http.request.header.X-Evil}\"\n}\n}",
		"behind, in handle_errors":       "error 404\nhandle_errors {\nroute {\nTEMPLATES\nnot_found\n}\n}",
		"behind, in handle_response":     "TEMPLATES\nreverse_proxy APP {\n@missing status 404\nhandle_response @missing {\nnot_found\n}\n}",
		"behind encode and, at last, it": "route {\nTEMPLATES\nencode\nnot_found\n}",
	}
	caddyfile, hosts := "", make(map[string]string)
	add := func(name, site string) {
		hosts[name] = fmt.Sprintf("site%d.test", len(hosts))
		caddyfile += "http://" + hosts[name] + ":0 {\nvars secret " + secret + "\n" + replacer.Replace(site) + "\n}\n"
	}
	for name, site := range outside {
		add(name, site)
	}
	for name, site := range behind {
		add(name, site)
	}
	warnedOf := map[string]string{
		"behind templates in a route":         "route {\nTEMPLATES\nnot_found FED\n}",
		"behind the templates around a block": "TEMPLATES\nhandle {\nnot_found FED\n}",
	}
	for name, site := range warnedOf {
		add(name, site)
	}
	s := startCaddy(t, caddyfile)

	texts := []string{
		`{{env "NOT_FOUND_TEST_SECRET"}}`, `{{"NOT_FOUND_TEST_SECRET"|env}}`, `{{placeholder "env.NOT_FOUND_TEST_SECRET"}}`,
		`{{include "secret.txt"}}`, `{{readFile "secret.txt"}}`, `{{.Req.Header}}`, `{{/*`, `{{define "x"}}`, `{{`,
		`{env.NOT_FOUND_TEST_SECRET}`, `{$NOT_FOUND_TEST_SECRET}`, `{http.vars.secret}`, `{file.` + root + `/secret.txt}`,
		`{http.request.header.X-Secret}`, `\{env.NOT_FOUND_TEST_SECRET\}`, `{{placeholder "http.request.header.X-Secret"}}`,
	}
	send := func(t *testing.T, name, text, accept string) response {
		target := "/" + strings.ReplaceAll(text, " ", "%20") + "/" + url.PathEscape(text) + "?" + strings.ReplaceAll(text, " ", "+") + "&x=" + url.QueryEscape(text)
		return s.only(t, "GET", "GET "+target+" HTTP/1.1\r\nHost: "+hosts[name]+"\r\nX-Evil: "+text+"\r\nX-Secret: "+secret+
			"\r\nAccept: "+accept+"\r\nConnection: close\r\n\r\n")
	}
	for _, name := range slices.Concat(slices.Collect(maps.Keys(outside)), slices.Collect(maps.Keys(behind))) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, text := range texts {
				for _, f := range formats {
					res := send(t, name, text, f.mediaType)
					if res.StatusCode != http.StatusNotFound || !strings.Contains(res.body, "No endpoint GET ") || strings.Contains(fmt.Sprint(res.Header, res.body), secret) {
						t.Fatalf("%s as %s: got %d %s", text, f.name, res.StatusCode, res.body)
					}
					if name == "a template of one's own" {
						if f.name == "html" && !strings.HasPrefix(res.body, "<p>"+html.EscapeString(text)+"<p>") {
							t.Errorf("%s: got %s", text, res.body)
						}
						continue
					}
					got, want := fieldsOf(t, res), footer()
					if outside[name] != "" && f.name != "problem" {
						want = text + " " + text // as it was sent, and not replaced again
					}
					if got.Footer != want || strings.ContainsAny(got.URI+got.Message, "{}") {
						t.Errorf("%s as %s: got %+v", text, f.name, got)
					}
				}
			}
		})
	}

	// what the README warns of is true, and this test would see it
	for name := range warnedOf {
		if res := send(t, name, texts[0], "text/plain"); !strings.Contains(res.body, "\n"+secret+" "+secret) {
			t.Errorf("%s: got %s", name, res.body)
		}
	}
}

// TestFieldsOfProxiesDoNotChangeThePage sends what some proxies and frameworks take an address, a host or a method from. Caddy
// believes nobody but its trusted proxies, and those in X-Forwarded-Host and X-Forwarded-Proto alone.
func TestFieldsOfProxiesDoNotChangeThePage(t *testing.T) {
	fields := []string{
		"X-Original-URL: /evil", "X-Rewrite-URL: /evil", "X-Original-URI: /evil", "X-Original-Path: /evil", "X-Envoy-Original-Path: /evil",
		"X-Forwarded-Prefix: /evil", "X-Forwarded-Path: /evil", "X-Forwarded-Uri: /evil", "X-Script-Name: /evil", "X-Forwarded-Method: EVIL",
		"Forwarded: for=192.0.2.1;host=evil.test;proto=https", "X-Host: evil.test", "X-Original-Host: evil.test", "X-Forwarded-Server: evil.test",
		"X-HTTP-Host-Override: evil.test", "X-Forwarded-Port: 666", "X-Forwarded-Scheme: https", "X-Forwarded-Ssl: on", "X-Url-Scheme: https",
		"Front-End-Https: on", "X-Scheme: https", "X-Forwarded-For: 192.0.2.1", "X-Real-Ip: 192.0.2.1", "Client-Ip: 192.0.2.1", "True-Client-Ip: 192.0.2.1",
		"X-HTTP-Method-Override: DELETE", "X-HTTP-Method: DELETE", "X-Method-Override: DELETE", "Accept-Charset: utf-7", "Accept-Language: de",
		"Origin: https://evil.test", "Referer: https://evil.test/", "Cookie: a=b", "Range: bytes=0-3", "If-None-Match: *", "If-Modified-Since: Sat, 21 Nov 2099 11:00:00 GMT",
		"Accept-Encoding: gzip, br", "User-Agent: <script>", "Via: 1.1 evil.test", "CDN-Loop: evil", "X-Caddy-Not-Found: 1",
	}
	for trust, network := range map[string]string{"trusted": "127.0.0.0/8", "other": "192.0.2.0/24"} {
		t.Run(trust, func(t *testing.T) {
			s := startCaddy(t, "http://a.test:0 {\nnot_found\n}", "servers {\ntrusted_proxies static "+network+"\n}")
			fields := fields
			if trust == "other" {
				fields = append(fields, "X-Forwarded-Host: evil.test", "X-Forwarded-Proto: https")
			}
			for i := range formats {
				accept := "Accept: " + formats[i].mediaType
				plain := s.get(t, "http://a.test/x?y", accept)
				fieldsOf(t, plain)
				plain.wantHeader(t, "Vary", "Accept")
				for _, field := range fields {
					if got := s.get(t, "http://a.test/x?y", accept, field); got.body != plain.body || fmt.Sprint(undated(got)) != fmt.Sprint(undated(plain)) {
						t.Errorf("%s as %s: got %v %s", field, formats[i].name, got.Header, got.body)
					}
				}
			}
		})
	}
}

// undated returns a header without its Date.
func undated(r response) http.Header {
	header := r.Header.Clone()
	header.Del("Date")
	return header
}

// rawBackend answers with bytes as they are. It records the requests as it reads them, and the connections that end.
type rawBackend struct {
	addr string
	ends chan struct{}

	mu       sync.Mutex
	requests []string
	faults   []string
}

// startRawBackend starts a backend that takes its answers from a function, for a method and a path. An empty one stands for
// an answer that tells whom it is for. A request to /unread… is answered ahead of its body.
func startRawBackend(t *testing.T, answer func(method, path string) string) *rawBackend {
	t.Helper()
	b := &rawBackend{ends: make(chan struct{}, 1000)}
	b.addr = acceptTCP(t, func(conn net.Conn) {
		b.serve(conn, answer)
		conn.Close()
		b.ends <- struct{}{}
	})
	return b
}

func (b *rawBackend) serve(conn net.Conn, answer func(method, path string) string) {
	var sent bytes.Buffer // by the client
	r := bufio.NewReader(io.TeeReader(conn, &sent))
	for {
		begin := sent.Len() - r.Buffered()
		req, err := http.ReadRequest(r)
		if err != nil {
			if begin < sent.Len() {
				b.fault("%v: %q", err, sent.Bytes()[begin:])
			}
			return
		}
		header := strings.ToLower(string(sent.Bytes()[begin : sent.Len()-r.Buffered()]))
		if strings.Count(header, "\r\ncontent-length:")+strings.Count(header, "\r\ntransfer-encoding:") > 1 {
			b.fault("the length of the request is given twice: %q", header)
		}
		b.mu.Lock()
		b.requests = append(b.requests, req.Method+" "+req.RequestURI)
		b.mu.Unlock()

		a := answer(req.Method, req.URL.Path)
		if a == "" {
			who := req.Method + " " + req.RequestURI
			a = fmt.Sprintf("HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\nX-For: %s\r\nContent-Length: 6\r\n\r\ntheirs", who)
			if strings.HasPrefix(req.URL.Path, "/pass") {
				a = fmt.Sprintf("HTTP/1.1 200 OK\r\nX-For: %s\r\nContent-Length: %d\r\n\r\n%s", who, len(who), who)
			}
			if req.Method == http.MethodHead {
				a = strings.TrimSuffix(a, "theirs")
			}
		}
		if !strings.HasPrefix(req.URL.Path, "/unread") {
			_, _ = io.Copy(io.Discard, req.Body)
		}
		if _, err := io.WriteString(conn, a); err != nil {
			return
		}
		if strings.HasSuffix(req.RequestURI, "/close") {
			return
		}
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return // the proxy gave the request up
		}
	}
}

func (b *rawBackend) fault(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = append(b.faults, fmt.Sprintf(format, args...))
}

// asked returns the requests since the last call, n at least: of one that breaks off, the client may know before the backend.
func (b *rawBackend) asked(t testing.TB, n int) (requests []string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		b.mu.Lock()
		enough := len(b.requests) >= n
		b.mu.Unlock()
		if enough {
			break
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, fault := range b.faults {
		t.Errorf("the backend has read what is no request: %s", fault)
	}
	requests, b.requests, b.faults = b.requests, nil, nil
	return requests
}

// TestRequestsAndAnswersStayInStep sends, over one connection each, requests whose length a server and a backend could take for
// different ones, with others behind them. Each request has its own answer, in order, and the backend is asked what the
// client asked, or the connection ends.
func TestRequestsAndAnswersStayInStep(t *testing.T) {
	b := startRawBackend(t, func(string, string) string { return "" })
	// without Caddy's own timeout for bodies, which stands between net/http and the body of a request
	s := startCaddy(t, "http://a.test:0 {\nnot_found\nreverse_proxy "+b.addr+"\n}", "servers {\ntimeouts {\nread_body_idle -1s\n}\n}")

	const (
		host     = "Host: a.test\r\n"
		smuggled = "GET /smuggled HTTP/1.1\r\nHost: a.test\r\n\r\n"
		last     = "GET /last HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n"
	)
	large := strings.Repeat(smuggled, 1<<20/len(smuggled))
	length := func(body string) string { return fmt.Sprintf("Content-Length: %d\r\n", len(body)) }
	post := func(fields, body string) string {
		return "POST /a HTTP/1.1\r\n" + host + fields + "\r\n" + body
	}
	chunk := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(smuggled), smuggled)

	a, behind := "POST /a", "GET /last"
	for name, tt := range map[string]struct {
		request string
		asks    []string // what it asks for; nothing, if it is refused
		mayEnd  bool     // the connection may end before all of that is answered
	}{
		// Transfer-Encoding overrides Content-Length, and a server may refuse to take both (RFC 9112, section 6.3)
		"CL.TE":                      {post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), []string{a, behind}, true},
		"CL.TE, a request behind it": {post("Content-Length: 60\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"+smuggled), []string{a, "GET /smuggled", behind}, true},
		"TE.CL":                      {post("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", chunk), []string{a, behind}, true},
		"TE.CL in the other order":   {post("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", chunk), []string{a, behind}, true},

		"TE.TE, two fields":             {post("Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n", chunk), nil, false},
		"TE.TE, two codings":            {post("Transfer-Encoding: x, chunked\r\n", chunk), nil, false},
		"TE.TE, chunked twice":          {post("Transfer-Encoding: chunked, chunked\r\n", chunk), nil, false},
		"TE.TE, identity":               {post("Transfer-Encoding: identity\r\nContent-Length: 4\r\n", chunk), nil, false},
		"TE.TE, xchunked":               {post("Transfer-Encoding: xchunked\r\n", chunk), nil, false},
		"TE.TE, in quotes":              {post("Transfer-Encoding: \"chunked\"\r\n", chunk), nil, false},
		"TE.TE, vertical tab":           {post("Transfer-Encoding:\vchunked\r\n", chunk), nil, false},
		"TE.TE, space before the colon": {post("Transfer-Encoding : chunked\r\n", chunk), nil, false},
		"TE.TE, behind a bare CR":       {post("X: y\rTransfer-Encoding: chunked\r\nContent-Length: 0\r\n", ""), nil, false},
		"TE.TE, folded":                 {post("Transfer-Encoding:\r\n chunked\r\n", chunk), []string{a, behind}, true},
		"TE.TE, behind a bare LF":       {post("X: y\nTransfer-Encoding: chunked\r\n", chunk), []string{a, behind}, true},
		"TE.TE, odd case":               {post("tRANSFER-eNCODING: cHUNKED\r\n", chunk), []string{a, behind}, false},

		"two lengths":              {post(fmt.Sprintf("Content-Length: 4\r\nContent-Length: %d\r\n", len(smuggled)), smuggled), nil, false},
		"the same length twice":    {post("Content-Length: 4\r\nContent-Length: 4\r\n", "body"), []string{a, behind}, true},
		"a list of lengths":        {post("Content-Length: 4, 4\r\n", "body"), nil, false},
		"a signed length":          {post("Content-Length: +4\r\n", "body"), nil, false},
		"a negative length":        {post("Content-Length: -1\r\n", "body"), nil, false},
		"a hexadecimal length":     {post("Content-Length: 0x4\r\n", "body"), nil, false},
		"a length in other digits": {post("Content-Length: ٤\r\n", "body"), nil, false},
		"no length":                {post("", ""), []string{a, behind}, false},

		"a broken chunk":         {post("Transfer-Encoding: chunked\r\n", "zz\r\n"+smuggled), []string{a}, true},
		"chunks with extensions": {post("Transfer-Encoding: chunked\r\n", "4;a=\"b\"\r\nbody\r\n0;x\r\n\r\n"), []string{a, behind}, false},
		"chunks with trailers":   {post("Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n", "4\r\nbody\r\n0\r\nX-Sum: 1\r\nContent-Length: 4\r\n\r\n"), []string{a, behind}, false},
		"GET with a body":        {"GET /a HTTP/1.1\r\n" + host + length(smuggled) + "\r\n" + smuggled, []string{"GET /a", behind}, false},
		"HEAD ahead":             {"HEAD /a HTTP/1.1\r\n" + host + "\r\n", []string{"HEAD /a", behind}, false},
		"many":                   {strings.Repeat("GET /b HTTP/1.1\r\n"+host+"\r\n"+post("Content-Length: 4\r\n", "body"), 5), append(slices.Repeat([]string{"GET /b", a}, 5), behind), false},

		"an unread body":              {"POST /unread HTTP/1.1\r\n" + host + length(smuggled) + "\r\n" + smuggled, []string{"POST /unread", behind}, true},
		"a large unread body":         {"POST /unread HTTP/1.1\r\n" + host + length(large) + "\r\n" + large, []string{"POST /unread", behind}, true},
		"a body that nobody reads":    {"POST /unread/close HTTP/1.1\r\n" + host + length(large) + "\r\n" + large, []string{"POST /unread/close", behind}, true},
		"100-continue never answered": {"POST /unread HTTP/1.1\r\n" + host + "Expect: 100-continue\r\n" + length(smuggled) + "\r\n" + smuggled, []string{"POST /unread", behind}, true},
	} {
		t.Run(name, func(t *testing.T) {
			conn := s.connect(t)
			go func() { _, _ = io.WriteString(conn, tt.request+last) }() // which fails where the connection ends early

			var answered []string
			refused := false
			r := bufio.NewReader(conn)
			for {
				method := http.MethodGet
				if len(answered) < len(tt.asks) {
					method, _, _ = strings.Cut(tt.asks[len(answered)], " ")
				}
				res, err := http.ReadResponse(r, &http.Request{Method: method})
				if errors.Is(err, os.ErrDeadlineExceeded) {
					t.Fatalf("after %q: %v", answered, err)
				}
				if err != nil {
					break
				}
				body, err := io.ReadAll(res.Body)
				if err != nil {
					t.Fatal(err)
				}
				who := res.Header.Get("X-For")
				if res.StatusCode == http.StatusBadGateway && len(answered) < len(tt.asks) {
					who = tt.asks[len(answered)] // it reached the backend, and broke off
				}
				switch {
				case res.StatusCode == http.StatusContinue:
				case refused:
					t.Errorf("after a refusal: %s %q", res.Status, who)
				case who == "":
					refused = true
					if res.StatusCode != http.StatusBadRequest && res.StatusCode != http.StatusNotImplemented {
						t.Errorf("got %s", res.Status)
					}
				default:
					answered = append(answered, who)
					if method != http.MethodHead && res.StatusCode != http.StatusBadGateway {
						_, path, _ := strings.Cut(who, " ")
						response{res, string(body)}.wantPage(t, method, "http://a.test"+path, "")
					}
				}
			}

			if asked := b.asked(t, len(answered)); !slices.Equal(answered, asked) {
				t.Errorf("the answers are to %q, and the backend was asked %q", answered, asked)
			}
			switch {
			case tt.asks == nil && !refused:
				t.Errorf("this is not refused: %q", answered)
			case len(answered) > len(tt.asks) || !slices.Equal(answered, tt.asks[:len(answered)]),
				!tt.mayEnd && len(answered) < len(tt.asks):
				t.Errorf("got answers to %q, want %q", answered, tt.asks)
			}
		})
	}
}

// TestResponsesStayInStep has a backend send more or less than it says, or what looks like a second response. What the
// next client gets is the answer to its own request.
func TestResponsesStayInStep(t *testing.T) {
	const smuggled = "HTTP/1.1 200 OK\r\nX-For: smuggled\r\nContent-Length: 8\r\n\r\nsmuggled"
	missing := func(fields, body string) string {
		return "HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\n" + fields + "\r\n" + body
	}
	type exchange struct {
		response string
		status   int
	}
	const page, badGateway = http.StatusNotFound, http.StatusBadGateway
	exchanges := map[string]exchange{
		"/more-than-its-length":       {missing("Content-Length: 6\r\n", "theirs"+smuggled), page},
		"/no-content-but-a-response":  {missing("Content-Length: 0\r\n", smuggled), page},
		"/two-responses":              {missing("Content-Length: 6\r\n", "theirs") + missing("Content-Length: 6\r\n", "theirs") + smuggled, page},
		"/line-ends":                  {missing("Content-Length: 6\r\n", "theirs\r\n\r\n"+smuggled), page},
		"/less-than-its-length":       {missing("Content-Length: 6000\r\n", "theirs"+smuggled), page},
		"/less-than-its-length/close": {missing("Content-Length: 6000\r\n", "theirs"+smuggled), page},
		"/both-lengths":               {missing("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", "6\r\ntheirs\r\n0\r\n\r\n"+smuggled), page},
		"/broken-chunks":              {missing("Transfer-Encoding: chunked\r\n", "6\r\ntheirs\r\nzz\r\n"+smuggled), page},
		"/chunk-without-end":          {missing("Transfer-Encoding: chunked\r\n", "ffffffff\r\n"+smuggled), page},
		"/trailers":                   {missing("Trailer: X-For\r\nTransfer-Encoding: chunked\r\n", "0\r\nX-For: smuggled\r\nSet-Cookie: smuggled\r\n\r\n"+smuggled), page},
		"/no-length/close":            {missing("", "theirs"+smuggled), page},
		"/two-lengths":                {missing("Content-Length: 6\r\nContent-Length: 60\r\n", "theirs"+smuggled), badGateway},
		"/length-that-is-none":        {missing("Content-Length: 6x\r\n", "theirs"+smuggled), badGateway},
		"/two-codings":                {missing("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"+smuggled), badGateway},
		"/line-feed-in-a-field":       {missing("X-Trace: 1\nX-More: 2\r\nContent-Length: 0\r\n", smuggled), page},
		"/return-in-a-field":          {missing("X-Trace: 1\rSet-Cookie: smuggled\r\nContent-Length: 0\r\n", smuggled), badGateway},
		"/hints":                      {"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + missing("Content-Length: 0\r\n", smuggled), page},
		"/body-for-HEAD":              {missing("Content-Length: 72\r\n", smuggled), page},
	}
	b := startRawBackend(t, func(_, path string) string { return exchanges[path].response })
	s := startCaddy(t, "http://a.test:0 {\nnot_found\nreverse_proxy "+b.addr+"\n}")

	conn := s.connect(t)
	r := bufio.NewReader(conn)
	ask := func(method, path string) response {
		t.Helper()
		fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: a.test\r\n\r\n", method, path)
		for {
			if res := readResponse(t, r, method, path); res.StatusCode != http.StatusEarlyHints {
				return res
			}
		}
	}
	for path, e := range exchanges {
		method := http.MethodGet
		if path == "/body-for-HEAD" {
			method = http.MethodHead
		}
		res := ask(method, path)
		switch {
		case res.StatusCode != e.status:
			t.Errorf("%s: got %s, want %d", path, res.Status, e.status)
		case e.status == page && method == http.MethodGet:
			res.wantPage(t, method, "http://a.test"+path, "")
		}
		res.wantHeader(t, "X-For", "")
		res.wantHeader(t, "Set-Cookie", "")

		// a connection with something left on it is given up
		select {
		case <-b.ends:
		case <-time.After(10 * time.Second):
			t.Errorf("%s: the connection to the backend is kept", path)
		}
		for _, path := range []string{"/pass" + path + "?", "/missing" + path + "?"} {
			who := "GET " + path
			res, other := ask("GET", path), s.get(t, "http://a.test"+path)
			res.wantHeader(t, "X-For", who)
			other.wantHeader(t, "X-For", who)
			if strings.HasPrefix(path, "/pass") {
				res.want(t, http.StatusOK, who)
				other.want(t, http.StatusOK, who)
			} else {
				res.wantPage(t, "GET", "http://a.test"+path, "")
				other.wantPage(t, "GET", "http://a.test"+path, "")
			}
		}
		if t.Failed() {
			t.Fatalf("at %s", path)
		}
	}
	b.asked(t, 0)
}

// unfinished are requests that stop somewhere.
var unfinished = map[string]string{
	"within the line":          "GET /",
	"within a long header":     "GET /x HTTP/1.1\r\nHost: a.test\r\nX-Long: " + strings.Repeat("x", 60_000),
	"within the body":          "POST /x HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1000\r\n\r\nbody",
	"within the body, proxied": "POST /length HTTP/1.1\r\nHost: b.test\r\nContent-Length: 1000\r\n\r\nbody",
}

// sendWithoutReading sends requests for long addresses, until that takes longer than the client has patience, or fails.
func sendWithoutReading(conn net.Conn, host string, patience time.Duration) error {
	request := "GET /length?" + strings.Repeat("x", 60_000) + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n"
	for {
		if err := conn.SetWriteDeadline(time.Now().Add(patience)); err != nil {
			return err
		}
		if _, err := io.WriteString(conn, request); err != nil {
			return err
		}
	}
}

// TestSlowClientsHoldNobodyUp has clients that stop in the middle of a request, that read nothing of many pages, or read
// byte by byte. Others are served meanwhile.
func TestSlowClientsHoldNobodyUp(t *testing.T) {
	s := startCaddy(t, "http://a.test:0 {\nnot_found\n}\nhttp://b.test:0 {\nnot_found\nreverse_proxy "+backend(t, unknown)+"\n}",
		"servers {\nmax_header_size 256KB\n}")
	checkGoroutines(t)

	var slow []net.Conn
	connect := func() net.Conn {
		slow = append(slow, s.connect(t))
		return slow[len(slow)-1]
	}
	for _, request := range unfinished {
		if _, err := io.WriteString(connect(), request); err != nil {
			t.Fatal(err)
		}
	}
	var stuck sync.WaitGroup
	for _, host := range []string{"a.test", "b.test"} {
		conn := connect()
		stuck.Go(func() {
			if err := sendWithoutReading(conn, host, 300*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s: the server takes no more, for %v", host, err)
			}
		})
	}
	stuck.Wait()

	byByte := connect()
	io.WriteString(byByte, "GET /x HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")
	s.Timeout = 10 * time.Second
	for range 100 {
		if _, err := io.ReadFull(byByte, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		s.get(t, "http://a.test/other").wantPage(t, "GET", "http://a.test/other", "")
		s.get(t, "http://b.test/length").wantPage(t, "GET", "http://b.test/length", "")
	}
	if rest, err := io.ReadAll(byByte); err != nil || !strings.HasSuffix(string(rest), textPage("GET", "http://a.test/x", "")) {
		t.Errorf("byte by byte, got %q, %v", rest, err)
	}
	for _, conn := range slow {
		conn.Close()
	}
}

// TestTimeoutsEndSlowClients shows that Caddy's timeouts hold for a page as for anything else.
func TestTimeoutsEndSlowClients(t *testing.T) {
	s := startCaddy(t, "http://a.test:0 {\nnot_found\n}\nhttp://b.test:0 {\nnot_found\nreverse_proxy "+backend(t, unknown)+"\n}",
		"servers {\nmax_header_size 256KB\ntimeouts {\nread_header 200ms\nread_body_idle 200ms\nwrite_idle 200ms\nidle 200ms\n}\n}")
	checkGoroutines(t)
	for name, request := range unfinished {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := s.connect(t)
			if _, err := io.WriteString(conn, request); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("it goes on")
			}
		})
	}
	for _, host := range []string{"a.test", "b.test"} {
		t.Run("reads nothing of "+host, func(t *testing.T) {
			t.Parallel()
			if err := sendWithoutReading(s.connect(t), host, 30*time.Second); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("it goes on")
			}
		})
	}
}

// bytesInUse returns the bytes of the heap and of stacks that are in use, without garbage.
func bytesInUse() int64 {
	m := memory()
	return int64(m.HeapAlloc + m.StackInuse)
}

// TestIdleConnectionsHoldNothingOfThePage opens 2,000 connections, each of which had a page and stays, and compares with
// 2,000 that had a response of Caddy's. It takes 4,000 file descriptors, and a few.
func TestIdleConnectionsHoldNothingOfThePage(t *testing.T) {
	const n = 2000
	s := startConfig(t, adapt(t, "{\n"+globalOptions+"}\nhttp://with.test:0 {\nnot_found\n}\nhttp://without.test:0 {\nrespond \""+strings.Repeat("x", 200)+"\" 404\n}"))

	perConnection := func(host string) int64 {
		goroutines, before := runtime.NumGoroutine(), bytesInUse()
		conns := make([]net.Conn, n)
		var r bufio.Reader
		for i := range conns {
			conns[i] = s.connect(t)
			fmt.Fprintf(conns[i], "GET /%d HTTP/1.1\r\nHost: %s\r\n\r\n", i, host)
			r.Reset(conns[i])
			if res := readResponse(t, &r, "GET", host); res.StatusCode != http.StatusNotFound {
				t.Fatalf("got %s", res.Status)
			}
		}
		r.Reset(nil)
		used := bytesInUse() - before

		begin := time.Now()
		for range 100 {
			s.get(t, "http://with.test/other").wantPage(t, "GET", "http://with.test/other", "")
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("100 others waited for %v", took)
		}

		for _, conn := range conns {
			conn.Close()
		}
		s.CloseIdleConnections()
		left := runtime.NumGoroutine()
		for deadline := time.Now().Add(10 * time.Second); left > goroutines+10 && time.Now().Before(deadline); left = runtime.NumGoroutine() {
			time.Sleep(time.Millisecond)
		}
		if left > goroutines+10 {
			t.Errorf("%s: there are %d goroutines after, and %d before", host, left, goroutines)
		}
		return used / n
	}
	perConnection("without.test") // net/http's own tables grow
	without, with := perConnection("without.test"), perConnection("with.test")
	t.Logf("an idle connection takes %d bytes, and %d without the handler", with, without)
	if with > without+256 { // less than a responseWriter takes
		t.Errorf("an idle connection takes %d bytes, and %d without the handler", with, without)
	}
}

// TestAddressesLeaveNothingBehind answers for 20,000 distinct addresses, hosts and methods, some of them long.
func TestAddressesLeaveNothingBehind(t *testing.T) {
	s := startConfig(t, adapt(t, "{\n"+globalOptions+"metrics\nservers {\nmax_header_size 256KB\n}\n}\nhttp://:0 {\nnot_found\n}\nhttp://metrics.test:0 {\nmetrics\n}"))
	series := func() (n int) {
		for line := range strings.Lines(s.get(t, "http://metrics.test/").body) {
			if !strings.HasPrefix(line, "#") {
				n++
			}
		}
		return n
	}

	conn := s.connect(t)
	r := bufio.NewReader(conn)
	long := strings.Repeat("x", 60_000)
	flood := func(requests int, name string) {
		const batch = 100
		for i := 0; i < requests; i += batch {
			var b strings.Builder
			for j := range batch {
				target := fmt.Sprintf("/%s/%d?%d", name, i+j, i+j)
				if j == 0 {
					target += long
				}
				fmt.Fprintf(&b, "M%d %s HTTP/1.1\r\nHost: %s%d.test\r\nAccept: %s\r\n\r\n", i+j, target, name, i+j, formats[j%len(formats)].mediaType)
			}
			go io.WriteString(conn, b.String())
			for j := range batch {
				res := readResponse(t, r, "GET", name)
				if want := fmt.Sprintf("http://%s%d.test/%s/%d?%d", name, i+j, name, i+j, i+j); res.StatusCode != 404 || !strings.Contains(res.body, want) {
					t.Fatalf("got %s %.200q, want %s", res.Status, res.body, want)
				}
			}
		}
	}
	flood(1000, "warm")
	series() // has series of its own
	before, seriesBefore := bytesInUse(), series()
	flood(20_000, "distinct")
	if rise := bytesInUse() - before; rise > 1<<20 {
		t.Errorf("%d KiB are left behind", rise>>10)
	} else {
		t.Logf("%d bytes are left behind", rise)
	}
	if got := series(); got != seriesBefore || got == 0 {
		t.Errorf("there are %d time series, and %d before", got, seriesBefore)
	}
}
