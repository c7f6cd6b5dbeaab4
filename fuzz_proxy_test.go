package notfound

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// bytesBackend answers every request with the same bytes, and closes the connection.
type bytesBackend struct {
	addr   string
	answer atomic.Pointer[[]byte]
}

func startBytesBackend(f *testing.F) *bytesBackend {
	f.Helper()
	b := new(bytesBackend)
	b.addr = testcaddy.AcceptTCP(f, func(conn net.Conn) {
		// to the end of the request, because a connection that is closed with something unread is reset, and what was
		// written to it may be lost
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			_, _ = conn.Write(*b.answer.Load())
		}
	})
	return b
}

// finalResponse parses bytes as a response, which may come after informational ones. It returns nil if they are not one.
func finalResponse(method string, answer []byte) *http.Response {
	r := bufio.NewReader(strings.NewReader(string(answer)))
	for {
		res, err := http.ReadResponse(r, &http.Request{Method: method})
		if err != nil {
			return nil
		}
		if res.StatusCode < 100 || res.StatusCode > 199 || res.StatusCode == http.StatusSwitchingProtocols {
			return res
		}
	}
}

// outcome is all that a client sees of an exchange, and of the next one on the same connection.
type outcome struct {
	informational string
	status        string
	header        http.Header
	body          string
	trailer       http.Header
	err           string // why there is no response, or no end of it
	next          string
}

// outcomeOf sends a request over a connection of its own, and then another one, which the site answers itself.
func outcomeOf(t *testing.T, s *testcaddy.Server, method, host string) (o outcome) {
	t.Helper()
	conn, err := net.Dial("tcp", s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// so that the many connections do not stay in TIME_WAIT
	if err := conn.(*net.TCPConn).SetLinger(0); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	reason := func(err error) string {
		switch {
		case err == nil:
			return ""
		case errors.Is(err, net.ErrClosed), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return "broken off"
		default:
			if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
				t.Fatalf("%s %s: %v", method, host, err)
			}
			return err.Error()
		}
	}

	fmt.Fprintf(conn, "%s /x HTTP/1.1\r\nHost: %s\r\n\r\n", method, host)
	var res *http.Response
	for res == nil {
		res, err = http.ReadResponse(r, &http.Request{Method: method})
		if err != nil {
			o.err = reason(err)
			return o
		}
		if res.StatusCode < 200 && res.StatusCode != http.StatusSwitchingProtocols {
			o.informational += fmt.Sprintln(res.Status, res.Header)
			res = nil
		}
	}
	res.Header.Del("Date")
	if announced := res.Header["Trailer"]; announced != nil {
		// reverse_proxy takes their names from a map
		names := strings.Split(strings.Join(announced, ", "), ", ")
		slices.Sort(names)
		res.Header["Trailer"] = names
	}
	o.status, o.header = res.Status, res.Header
	if res.StatusCode == http.StatusSwitchingProtocols {
		rest, err := io.ReadAll(r)
		o.body, o.err = string(rest), reason(err)
		return o
	}
	body, err := io.ReadAll(res.Body)
	o.body, o.err, o.trailer = string(body), reason(err), res.Trailer
	if o.err != "" || res.Close {
		return o
	}

	fmt.Fprintf(conn, "GET /next HTTP/1.1\r\nHost: %s\r\n\r\n", host)
	if res, err = http.ReadResponse(r, nil); err != nil {
		o.next = reason(err)
		return o
	}
	body, err = io.ReadAll(res.Body)
	o.next = fmt.Sprintln(res.StatusCode, string(body), reason(err))
	return o
}

// FuzzBackendResponse has a backend send the first n of any bytes, and close the connection. The client sees the page if
// they begin a 404 page, and otherwise what it sees without not_found.
//
// Connections to the backend are not reused, because it would depend on timing whether the next request found one closed,
// or with something left on it.
func FuzzBackendResponse(f *testing.F) {
	for _, answer := range []string{
		"HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\nContent-Length: 6\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nETag: \"1\"\r\nServer: theirs\r\nVary: Origin\r\n\r\ntheirs",
		"HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n6\r\ntheirs\r\n0\r\nX-Sum: 1\r\nX-Other: 2\r\n\r\n",
		"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.0 404 x\r\nX-A: 1\r\n\r\ntheirs",
		"HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
		"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\ntheirs",
		"HTTP/1.1 101 Switching Protocols\r\n\r\ntheirs",
	} {
		f.Add([]byte(answer), uint16(len(answer)), false)
		f.Add([]byte(answer), uint16(len(answer)-3), false)
		f.Add([]byte(answer), uint16(len(answer)), true)
	}

	b := startBytesBackend(f)
	const siteFormat = `
http://%s:0 {
	%s
	respond /next "the next one"
	reverse_proxy %s {
		transport http {
			keepalive off
		}
	}
}`
	s := testcaddy.StartQuiet(f, fmt.Sprintf(siteFormat, "with.test", "not_found", b.addr)+fmt.Sprintf(siteFormat, "without.test", "", b.addr))

	f.Fuzz(func(t *testing.T, answer []byte, n uint16, head bool) {
		answer = answer[:min(int(n), len(answer))]
		b.answer.Store(&answer)
		method := http.MethodGet
		if head {
			method = http.MethodHead
		}

		with := outcomeOf(t, s, method, "with.test")
		var without outcome
		var difference string
		for range 5 { // Caddy's own answer may differ from time to time
			without = outcomeOf(t, s, method, "without.test")
			if res := finalResponse(method, answer); wantsPage(method, res) {
				difference = with.differenceFromPage(method, without)
			} else {
				difference = with.withoutChance(res).differenceFrom(without.withoutChance(res))
			}
			if difference == "" {
				return
			}
		}
		t.Errorf("%s\nThe client got\n%+v\nand without not_found\n%+v", difference, with, without)
	})
}

// wantsPage reports whether the page must replace a backend's response.
func wantsPage(method string, res *http.Response) bool {
	if res == nil || res.StatusCode != http.StatusNotFound {
		return false
	}
	// what is meant for the connection does not get past Caddy (RFC 9110, section 7.6.1)
	for _, field := range strings.Split(strings.Join(res.Header["Connection"], ","), ",") {
		res.Header.Del(strings.TrimSpace(field))
	}
	mediaType, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	mediaType = strings.ToLower(strings.TrimSpace(mediaType))
	pages := []string{"", "text/html", "application/xhtml+xml", "text/plain"}
	return !strings.HasPrefix(mediaType, "application/grpc") && res.Header.Get("Content-Length") == "0" && method != http.MethodHead || slices.Contains(pages, mediaType)
}

// withoutChance returns an outcome without the header fields that net/http adds to a response if it has none of them. It
// adds them at the first byte of the body, unless Caddy flushes before, which it does when a timer fires.
func (o outcome) withoutChance(res *http.Response) outcome {
	if res == nil {
		return o
	}
	o.header = maps.Clone(o.header)
	for _, field := range []string{"Content-Type", "Content-Length"} {
		// what is compressed loses its length when Caddy reads it
		if res.Header.Get(field) == "" || res.Header.Get("Content-Encoding") != "" {
			delete(o.header, field)
		}
	}
	return o
}

// differenceFrom says how an outcome differs from another, if it does.
func (o outcome) differenceFrom(other outcome) string {
	if got, want := fmt.Sprintf("%+v", o), fmt.Sprintf("%+v", other); got != want {
		return "This is not the backend's response."
	}
	return ""
}

// oldBodyPattern matches the header fields that are removed with a replaced body.
var oldBodyPattern = regexp.MustCompile(`^(?i:Content-.*|.*-Cache-Control|X-Accel-.*|Grpc-.*|X-Sendfile.*|(Repr-|Unencoded-)?Digest|ETag|Last-Modified|` +
	`Accept-Ranges|Memento-Datetime|Alternates|TCN|Variant-Vary|URI|Derived-From|Default-Style|PICS-Label|MIME-Version|OData-Version|` +
	`OSLC-Core-Version|Schedule-Tag|Preference-Applied|CMSD-Static|AMP-Cache-Transform|Signature|Signature-Input|Cache-Control|Expires|` +
	`Pragma|Age|Warning|Surrogate-Control|Edge-Control|Use-As-Dictionary|No-Vary-Search|Trailer|Transfer-Encoding|IM|Delta-Base|Refresh|` +
	`(X-)?SourceMap|X-LIGHTTPD-send-file|X-Reproxy-URL|X-Archive-Files)$`)

// differenceFromPage says how an outcome differs from the page, if it does.
func (o outcome) differenceFromPage(method string, without outcome) string {
	body := testcaddy.TextPage("GET", "http://with.test/x", "")
	want := outcome{
		informational: without.informational,
		status:        "404 Not Found",
		header:        maps.Clone(without.header),
		body:          body,
		next:          "200 the next one \n",
	}
	if method == http.MethodHead {
		want.body = ""
	}
	maps.DeleteFunc(want.header, func(field string, _ []string) bool { return oldBodyPattern.MatchString(field) })
	varies := slices.ContainsFunc(strings.Split(strings.Join(want.header["Vary"], ","), ","), func(member string) bool {
		member = strings.ToLower(strings.TrimSpace(member))
		return member == "*" || member == "accept"
	})
	if !varies {
		want.header["Vary"] = append(slices.Clone(want.header["Vary"]), "Accept")
	}
	if without.header["Server"] != nil {
		want.header.Set("Server", "Caddy") // the site's again
	}
	want.header.Set("Content-Type", "text/plain; charset=utf-8")
	want.header.Set("Content-Length", fmt.Sprint(len(body)))
	want.header.Set("X-Content-Type-Options", "nosniff")
	want.header.Set("Cache-Control", "no-store")
	if got, want := fmt.Sprintf("%+v", o), fmt.Sprintf("%+v", want); got != want {
		return "This is not the page, which would be\n" + want
	}
	return ""
}
