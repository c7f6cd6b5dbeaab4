package integration

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestMemoryStaysFlat watches the memory while it replaces a page of 1 GiB.
func TestMemoryStaysFlat(t *testing.T) {
	app := testcaddy.Backend(t, testcaddy.MissingPage)
	s := testcaddy.StartQuiet(t, "http://a.test:0 {\nnot_found\nreverse_proxy "+app+"\n}")
	getPage(t, s.Client, "http://a.test/length") // a warm-up

	inUse := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	runtime.GC()
	before := inUse()
	peak := before
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
	getPage(t, s.Client, "http://a.test/large")
	close(done)
	watching.Wait()
	if rise := peak - before; rise > 8<<20 {
		t.Errorf("the memory in use rose by %d KiB", rise>>10)
	}
}

// TestIdleConnectionsHoldNothingOfThePage compares the memory of connections that are idle after a page with that of as
// many after a response of Caddy's own.
func TestIdleConnectionsHoldNothingOfThePage(t *testing.T) {
	s := testcaddy.StartQuiet(t, `
http://with.test:0 {
	not_found
}
http://without.test:0 {
	respond "`+strings.Repeat("x", 200)+`" 404
}`)
	perConnection := func(host string, n int64) int64 {
		before := testcaddy.MemoryInUse()
		var r bufio.Reader
		for range n {
			conn := s.Connect(t)
			fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", host)
			r.Reset(conn)
			testcaddy.ReadResponse(t, &r, "GET", host)
		}
		r.Reset(nil)
		return (testcaddy.MemoryInUse() - before) / n
	}
	perConnection("without.test", 30) // a warm-up, which grows net/http's tables
	var with, without int64
	for range 10 { // because a table that grows, and what earlier tests have left, change the figures
		without = perConnection("without.test", 100)
		with = perConnection("with.test", 100)
		if with <= without+256 { // less than a response writer takes
			return
		}
	}
	t.Errorf("an idle connection takes %d bytes, and %d without not_found", with, without)
}

// TestStalledStreamsTakeNoCopyOfAFile has two HTTP/2 connections ask 500 times for a page of 1 MiB, and read none.
func TestStalledStreamsTakeNoCopyOfAFile(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir+"/404.html", strings.Repeat("x", 1<<20))
	fixed := testcaddy.Quote(dir + "/404.html")
	s := testcaddy.StartQuiet(t, `
http://kept.test:0 {
	not_found {
		template `+fixed+`
	}
}
http://site.test:0 {
	root `+testcaddy.Quote(dir)+`
	not_found {
		template {vars.root}/404.html
	}
}`, "servers {\nprotocols h1 h2c\n}")
	for _, host := range []string{"kept.test", "site.test"} {
		before := testcaddy.MemoryInUse()
		for range 2 {
			stallStreams(t, s.Connect(t), host, 250)
		}
		testcaddy.CheckMemory(t, before, 30<<20)
	}
}

// stallStreams asks for pages in as many streams of a connection, and reads their headers only. The client's window
// has place for 64 KiB of all bodies.
func stallStreams(t *testing.T, conn net.Conn, host string, streams uint32) {
	t.Helper()
	framer := http2.NewFramer(conn, conn)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	_, err := io.WriteString(conn, http2.ClientPreface)
	err = errors.Join(err, framer.WriteSettings())
	for i := range streams {
		block.Reset()
		for _, field := range []hpack.HeaderField{
			{Name: ":method", Value: "GET"},
			{Name: ":scheme", Value: "http"},
			{Name: ":authority", Value: host},
			{Name: ":path", Value: "/x"},
			{Name: "accept", Value: "text/html"},
		} {
			err = errors.Join(err, encoder.WriteField(field))
		}
		err = errors.Join(err, framer.WriteHeaders(http2.HeadersFrameParam{
			StreamID:      2*i + 1,
			BlockFragment: block.Bytes(),
			EndStream:     true,
			EndHeaders:    true,
		}))
	}
	if err != nil {
		t.Fatal(err)
	}
	for begun := uint32(0); begun < streams; {
		frame, err := framer.ReadFrame()
		if err != nil {
			t.Fatalf("after %d responses: %v", begun, err)
		}
		if response, ok := frame.(*http2.MetaHeadersFrame); ok {
			begun++
			length := hpack.HeaderField{Name: "content-length", Value: "1048576"}
			if !slices.Contains(response.Fields, length) {
				t.Fatalf("got the header %v, want %v in it", response.Fields, length)
			}
		}
	}
}

// TestAddressesLeaveNothingBehind asks for 10,000 addresses, some of them long, on distinct hosts and by distinct
// methods.
func TestAddressesLeaveNothingBehind(t *testing.T) {
	s := testcaddy.StartQuiet(t, `
http://:0 {
	not_found
}
http://metrics.test:0 {
	metrics
}`, "metrics", "servers {\nmax_header_size 256KB\n}")
	series := func() int {
		return strings.Count("\n"+s.Get(t, "http://metrics.test/").Content, "\ncaddy_")
	}
	conn := s.Connect(t)
	r := bufio.NewReader(conn)
	long := strings.Repeat("x", 60_000)
	flood := func(name string, requests int) {
		for i := range requests {
			host := fmt.Sprintf("%s%d.test", name, i)
			target := fmt.Sprintf("/%d?%[1]d", i)
			if i%100 == 0 {
				target += long
			}
			accept := testcaddy.Formats[i%len(testcaddy.Formats)].MediaType
			fmt.Fprintf(conn, "M%d %s HTTP/1.1\r\nHost: %s\r\nAccept: %s\r\n\r\n", i, target, host, accept)
			res := testcaddy.ReadResponse(t, r, "GET", name)
			if !strings.Contains(res.Content, "http://"+host+target) {
				t.Fatalf("got %s %.200q, want %s%.100s", res.Status, res.Content, host, target)
			}
		}
	}
	flood("warm", 1000)
	series() // its own request adds series
	before := testcaddy.MemoryInUse()
	seriesBefore := series()
	flood("distinct", 10_000)
	testcaddy.CheckMemory(t, before, 1<<20)
	if got := series(); got != seriesBefore || got == 0 {
		t.Errorf("got %d time series, want %d as before", got, seriesBefore)
	}
}
