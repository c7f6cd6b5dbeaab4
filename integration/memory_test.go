package integration

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestMemoryStaysFlat watches the memory while it replaces pages of 1 GiB.
func TestMemoryStaysFlat(t *testing.T) {
	s := testcaddy.StartQuiet(t, "http://a.test:0 {\nnot_found\nreverse_proxy "+testcaddy.Backend(t, testcaddy.MissingPage)+"\n}")
	s.Get(t, "http://a.test/medium").WantPage(t, "GET", "http://a.test/medium", "") // a warm-up

	inUse := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	runtime.GC()
	before, peak := inUse(), uint64(0)
	done := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			peak = max(peak, inUse())
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
			}
		}
	})
	for range 2 {
		s.Get(t, "http://a.test/large").WantPage(t, "GET", "http://a.test/large", "")
	}
	close(done)
	watching.Wait()
	if rise := int64(peak) - int64(before); rise > 8<<20 {
		t.Errorf("the memory in use rose by %d KiB", rise>>10)
	}
}

// TestIdleConnectionsHoldNothingOfThePage compares the memory of 500 connections that are idle after a page with that of as many
// after a response of Caddy's own.
func TestIdleConnectionsHoldNothingOfThePage(t *testing.T) {
	const n = 500
	s := testcaddy.StartQuiet(t, "http://with.test:0 {\nnot_found\n}\nhttp://without.test:0 {\nrespond \""+strings.Repeat("x", 200)+"\" 404\n}")
	perConnection := func(host string) int64 {
		before := testcaddy.MemoryInUse()
		var r bufio.Reader
		for range n {
			conn := s.Connect(t)
			fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", host)
			r.Reset(conn)
			if res := testcaddy.ReadResponse(t, &r, "GET", host); res.StatusCode != http.StatusNotFound {
				t.Fatalf("got %s", res.Status)
			}
		}
		r.Reset(nil)
		return (testcaddy.MemoryInUse() - before) / n
	}
	perConnection("without.test") // a warm-up, which grows net/http's tables
	var without, with int64
	for range 3 { // the rest of the process allocates, too
		without, with = perConnection("without.test"), perConnection("with.test")
		if with <= without+256 { // less than a response writer takes
			return
		}
	}
	t.Errorf("an idle connection takes %d bytes, and %d without not_found", with, without)
}

// TestAddressesLeaveNothingBehind asks for 20,000 addresses, some of them long, on distinct hosts and by distinct methods.
func TestAddressesLeaveNothingBehind(t *testing.T) {
	s := testcaddy.StartQuiet(t, "http://:0 {\nnot_found\n}\nhttp://metrics.test:0 {\nmetrics\n}", "metrics", "servers {\nmax_header_size 256KB\n}")
	series := func() int { return strings.Count("\n"+s.Get(t, "http://metrics.test/").Content, "\ncaddy_") }
	conn := s.Connect(t)
	r := bufio.NewReader(conn)
	flood := func(requests int, name string) {
		const batch = 100
		for i := 0; i < requests; i += batch {
			var b strings.Builder
			for j := i; j < i+batch; j++ {
				long := ""
				if j == i {
					long = strings.Repeat("x", 60_000)
				}
				fmt.Fprintf(&b, "M%d /%s/%[1]d?%[1]d%s HTTP/1.1\r\nHost: %[2]s%[1]d.test\r\nAccept: %[4]s\r\n\r\n",
					j, name, long, testcaddy.Formats[j%len(testcaddy.Formats)].MediaType)
			}
			go io.WriteString(conn, b.String())
			for j := i; j < i+batch; j++ {
				res := testcaddy.ReadResponse(t, r, "GET", name)
				if want := fmt.Sprintf("http://%s%d.test/%[1]s/%[2]d?%[2]d", name, j); res.StatusCode != 404 || !strings.Contains(res.Content, want) {
					t.Fatalf("got %s %.200q, want %s", res.Status, res.Content, want)
				}
			}
		}
	}
	flood(1000, "warm")
	series() // its own request adds series
	before, seriesBefore := testcaddy.MemoryInUse(), series()
	flood(20_000, "distinct")
	testcaddy.CheckMemory(t, before, 1<<20)
	if got := series(); got != seriesBefore || got == 0 {
		t.Errorf("got %d time series, want %d as before", got, seriesBefore)
	}
}
