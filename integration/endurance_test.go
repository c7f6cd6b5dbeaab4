package integration

import (
	"flag"
	"math"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notfound/notfound/internal/report"
	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

var endurance = flag.Duration("endurance", 2*time.Second, "how long TestEndurance keeps Caddy under load")

// TestEndurance keeps Caddy under load while its config is reloaded again and again, while its template is written anew,
// while the report is read and taken, and while backends go away and come back. Every answer is right, byte for byte,
// every 404 is in one report, and nothing is left behind. A site without not_found has the same load, and pays as much in
// warnings and in connections to its backends. For longer than a moment:
//
//	go test -race -run TestEndurance -timeout 10m ./integration -endurance 5m
func TestEndurance(t *testing.T) {
	testcaddy.CheckGoroutines(t)
	l := startLoad(t)
	l.run(t, *endurance/5) // a warm-up, which fills pools and tables
	before := testcaddy.MemoryInUse()
	l.run(t, *endurance*4/5)

	eventually(t, "all connections are closed", func() bool { return !hasConnections() })
	testcaddy.CheckMemory(t, before, 8<<20)
	l.checkCounts(t)
	l.checkWarnings(t)
	l.checkConnections(t)
	if l.reloads.Load() == 0 || l.changes.Load() == 0 || l.version.Load() < 2 || l.taken < 2 {
		t.Errorf("got %d reloads, %d changes of the backends, %d versions of the template and %d reports, want some of each",
			l.reloads.Load(), l.changes.Load(), l.version.Load(), l.taken)
	}
	t.Logf("%d requests, %d of them sent again; %d reloads; %d versions of the template, %d of them read without a reload; "+
		"%d reports; %d outages of the backends, which %d requests met", l.requests.Load(), l.resent.Load(), l.reloads.Load(),
		l.version.Load(), l.reread, l.taken, l.changes.Load()/2, l.excused.Load())
}

// hasConnections reports whether an HTTP connection of this process is open. Clients, Caddy and backends all run in it, and
// have goroutines for each.
func hasConnections() bool {
	var stacks strings.Builder
	_ = pprof.Lookup("goroutine").WriteTo(&stacks, 1)
	for _, serving := range []string{"net/http.(*conn).serve+", "net/http.(*persistConn).", "ClientConn).readLoop+"} {
		if strings.Contains(stacks.String(), serving) {
			return true
		}
	}
	return false
}

// checkCounts compares the reports, taken together, with what the clients know: what was answered with a 404 is counted,
// and where a client left, or sent a request again, another one may be.
func (l *load) checkCounts(t *testing.T) {
	last, err := l.readReport("GET")
	if err != nil {
		t.Fatal(err)
	}
	all, err := report.Merge(l.reports, last)
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]int64)
	for _, a := range all.Addresses {
		got[a.Host+a.Path] = int64(a.Count)
		if _, known := l.misses[a.Host+a.Path]; a.Overcount > 0 || !known {
			t.Errorf("the report has %+v", a)
		}
	}
	for address, want := range l.misses {
		if n := got[address]; n < want.answered || n > want.answered+want.unknown {
			t.Errorf("%s: the reports count %d, want %d, and up to %d more", address, n, want.answered, want.unknown)
		}
	}
}

// checkWarnings compares the warnings about the site with those about the bare one: there is no kind that the bare one lacks,
// and not one more where nothing is left to chance.
func (l *load) checkWarnings(t *testing.T) {
	l.takeWarnings(t)
	kinds, bareKinds := make(map[string]int64), make(map[string]int64)
	for w, n := range l.warnings {
		switch w.site {
		case bareSite:
			bareKinds[w.what] += n
			continue
		case withSite:
			kinds[w.what] += n
		default:
			t.Logf("%d times the warning %q, about no request", n, w.what)
			continue
		}
		twin := w
		twin.site = bareSite
		if most := l.warnings[twin]; n > most && !w.byChance() {
			t.Errorf("got %d times the warning %+v, want at most %d as without not_found", n, w, most)
		}
	}
	for what, n := range kinds {
		if n > tolerated(bareKinds[what]) || bareKinds[what] == 0 {
			t.Errorf("got %d times the warning %q, %d times without not_found", n, what, bareKinds[what])
		}
	}
	t.Logf("warnings: %v; without not_found: %v", kinds, bareKinds)
}

// checkConnections compares the numbers of connections to the backends of the two sites. Most are lost to clients that leave,
// so it takes minutes to see a few percent more; a page that costs a connection costs a warning, too.
func (l *load) checkConnections(t *testing.T) {
	for backend := range l.connections[withSite] {
		n, atBare := l.connections[withSite][backend].Load(), l.connections[bareSite][backend].Load()
		if n > tolerated(atBare) {
			t.Errorf("got %d connections to the %s backend, %d without not_found", n, backend, atBare)
		}
		t.Logf("%d connections to the %s backend; without not_found %d", n, backend, atBare)
	}
}

// tolerated is the most that a number may be where another one, which depends on the same chances, is n: some three and a
// half standard deviations of the difference, and a few.
func tolerated(n int64) int64 { return n + 5*int64(math.Sqrt(float64(n))) + 20 }

// byChance reports whether a warning depends on when a client leaves, when a backend goes away, or how long one takes.
func (w warning) byChance() bool {
	return manner(w.manner).leaves() || strings.HasPrefix(w.path, "/mortal/") || w.path == "/steady/stalls" || w.path == "/steady/trickle"
}
