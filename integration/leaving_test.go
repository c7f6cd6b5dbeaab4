package integration

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestClientsThatLeaveAtOnceCostNothing has clients close their connection after Content-Length bytes, as curl, health
// checks and crawlers do. The exchange with the backend still comes to its end. The page is larger than the buffers of
// net/http, or one that is sent too early would wait in them.
func TestClientsThatLeaveAtOnceCostNothing(t *testing.T) {
	app := testcaddy.Backend(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // or reverse_proxy would read and close it at the same time
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusNotFound)
		for range 3 { // as from a distant backend
			_, _ = io.WriteString(w, "theirs")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(20 * time.Millisecond)
		}
		if r.Context().Err() != nil {
			t.Errorf("over %s, the exchange with the backend is canceled", r.Header.Get("X-Client"))
		}
	})
	template := "<h1>{{.Heading}}</h1>" + strings.Repeat("x", 100_000)
	file := testcaddy.TempFile(t, "404.html", template)
	s, clients := testcaddy.StartAllProtocols(t, map[string]string{
		"a.test": "log\nnot_found {\ntemplate " + testcaddy.Quote(file) + "\n}\nreverse_proxy " + app,
	})
	clients = append(clients, testcaddy.Once(s.Addr, "HTTP/1.1"))
	for _, c := range clients {
		req, err := http.NewRequest("GET", c.Scheme+"://a.test/x", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "text/html")
		req.Header.Set("X-Client", c.Name)
		res, err := c.HTTP.Do(req)
		if err != nil {
			t.Fatalf("over %s: %v", c.Name, err)
		}
		n, err := io.CopyN(io.Discard, res.Body, res.ContentLength)
		if err != nil || n < 100_000 {
			t.Errorf("over %s, got %d bytes, %v", c.Name, n, err)
		}
		res.Body.Close()
		c.HTTP.CloseIdleConnections()
	}
	s.Logs.WaitForHost(t, "handled request", "a.test", len(clients))
	if got := warningsAbout(t, s, "a.test"); len(got) > 0 {
		t.Errorf("got the warnings %v", got)
	}
}

// TestClientThatLeavesBeforeThePage has clients leave while the old body is still coming. The handler learns that as
// without not_found, and the page is counted.
func TestClientThatLeavesBeforeThePage(t *testing.T) {
	testcaddy.CheckGoroutines(t)
	begun := make(chan struct{})
	ended := make(chan struct{})
	stalls := testcaddy.Directive(t, func(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
		w.WriteHeader(http.StatusNotFound)
		begun <- struct{}{}
		<-r.Context().Done()
		ended <- struct{}{}
		panic(http.ErrAbortHandler)
	})
	s, clients := testcaddy.StartAllProtocols(t, map[string]string{
		"a.test":       "log\nnot_found\n" + stalls,
		"metrics.test": "metrics",
	})
	before := pagesCounted(t, s, "http://metrics.test/")
	for _, c := range clients {
		ctx, leave := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, "GET", c.Scheme+"://a.test/x", nil)
		if err != nil {
			t.Fatal(err)
		}
		var client sync.WaitGroup
		client.Go(func() {
			if res, err := c.HTTP.Do(req); err == nil {
				res.Body.Close()
				t.Errorf("over %s, the page came before the handler has ended", c.Name)
			}
		})
		<-begun
		leave()
		<-ended
		client.Wait()
	}

	s.Logs.WaitForHost(t, "handled request", "a.test", len(clients))
	const ofResponses = `{cause="response",link="none"}`
	counted := pagesCounted(t, s, "http://metrics.test/")[ofResponses] - before[ofResponses]
	if counted != len(clients) {
		t.Errorf("%d of %d pages are counted", counted, len(clients))
	}
}

// TestHandlerThatAnswersEarlyReadsTheWholeUpload has a handler begin its answer before it reads an upload. A page that
// is sent meanwhile would cut the upload short, because net/http discards the rest.
func TestHandlerThatAnswersEarlyReadsTheWholeUpload(t *testing.T) {
	const uploaded = 200_000
	answersEarly := testcaddy.Directive(t, func(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
		w.WriteHeader(http.StatusNotFound)
		_ = http.NewResponseController(w).Flush()
		n, err := io.Copy(io.Discard, r.Body)
		if err != nil || n != uploaded {
			t.Errorf("%s: the handler has read %d bytes, %v", r.Proto, n, err)
		}
		return nil
	})
	_, clients := testcaddy.StartAllProtocols(t, map[string]string{
		"a.test": "not_found\n" + answersEarly,
	})
	for _, c := range clients {
		uri := c.Scheme + "://a.test/x"
		upload := strings.NewReader(strings.Repeat("x", uploaded))
		req, err := http.NewRequest("POST", uri, upload)
		if err != nil {
			t.Fatal(err)
		}
		c.Send(t, req).WantPage(t, "POST", uri, "")
	}
}
