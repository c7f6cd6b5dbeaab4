package notfound

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestFrequentAddressesAreFoundInAFlood counts addresses that are more frequent than one time in maxAddresses, each to a
// different degree, among many that come once.
func TestFrequentAddressesAreFoundInAFlood(t *testing.T) {
	const n, frequent = 300_000, 100
	random := rand.New(rand.NewPCG(1, 2))
	var r report
	counts := make(map[string]uint64) // by path
	for i := range n {
		path := fmt.Sprintf("/flood/%d", i)
		if random.IntN(2) == 0 {
			path = fmt.Sprintf("/frequent/%d", min(random.IntN(frequent), random.IntN(frequent), random.IntN(frequent)))
		}
		counts[path]++
		r.addPage([]byte("http://a.test"+path+"?"+fmt.Sprint(i)), "", causeUnanswered)
	}

	s, _ := r.snapshot()
	if s.Count != n || len(s.Addresses) != maxAddresses {
		t.Errorf("got %d pages and %d addresses, want %d and %d", s.Count, len(s.Addresses), n, maxAddresses)
	}
	var sum uint64
	found := make(map[string]bool)
	for i, a := range s.Addresses {
		sum += a.Count
		found[a.Path] = true
		if want := counts[a.Path]; want < a.Count-a.Overcount || want > a.Count {
			t.Errorf("%s: got %d, of which %d may be too much; it was missed %d times", a.Path, a.Count, a.Overcount, want)
		}
		if got, want := a.Causes.Unanswered, a.Count-a.Overcount; got != want {
			t.Errorf("%s: got %d unanswered requests, want %d, which its counter had since it is its own", a.Path, got, want)
		}
		if i > 0 && a.Count > s.Addresses[i-1].Count {
			t.Errorf("%s is more frequent than the one before it", a.Path)
		}
	}
	if sum != n { // which is why no count can be too high by more than n/maxAddresses
		t.Errorf("the counts add up to %d, want %d", sum, n)
	}
	needed := 0
	for path, count := range counts {
		if count > n/maxAddresses {
			if needed++; !found[path] {
				t.Errorf("%s was missed %d times and is not there", path, count)
			}
		}
	}
	if needed < frequent/2 {
		t.Errorf("only %d addresses were frequent", needed)
	}
}

// TestTakenOverCounterBeginsAnew has an address take the place of another one that had everything.
func TestTakenOverCounterBeginsAnew(t *testing.T) {
	var r report
	r.addKept([]byte("http://a.test/old"), "http://b.test/a-long-link", true)
	for i := range maxAddresses - 1 {
		for range 2 {
			r.addPage(fmt.Appendf(nil, "http://a.test/%d", i), "", causeUnanswered)
		}
	}
	before := time.Now()
	r.addPage([]byte("http://a.test/new"), "", causeError)

	s, _ := r.snapshot()
	got := make(map[string]addressSnapshot)
	for _, a := range s.Addresses {
		got[a.Path] = a
	}
	if _, ok := got["/old"]; ok {
		t.Error("the least frequent address is still there")
	}
	first, last := got["/new"].First, got["/new"].Last
	if first.Before(before) || last != first {
		t.Errorf("it was missed first at %s and last at %s, want once after %s", first, last, before)
	}
	want := addressSnapshot{
		Host: "a.test", Path: "/new", Count: 2, Overcount: 1, Causes: causesSnapshot{Error: 1},
		First: first, Last: last,
	}
	if got["/new"] != want {
		t.Errorf("got %+v, want %+v", got["/new"], want)
	}
}

func TestOfEquallyFrequentAddressesTheNewestIsFirst(t *testing.T) {
	var r report
	for _, path := range []string{"/c", "/a", "/d", "/b", "/a", "/c"} {
		for now := time.Now().UnixNano(); time.Now().UnixNano() == now; { // where the clock is coarse
		}
		r.addPage([]byte("http://a.test"+path), "", causeUnanswered)
	}
	s, _ := r.snapshot()
	var paths []string
	for _, a := range s.Addresses {
		paths = append(paths, a.Path)
	}
	if got := strings.Join(paths, " "); got != "/c /a /b /d" {
		t.Errorf("got %s, want /c /a /b /d", got)
	}
}

// TestNoCountIsLost has several goroutines count, while others read the report.
func TestNoCountIsLost(t *testing.T) {
	const goroutines, rounds, addresses = 8, 10_000, 50
	var r report
	var counting, reading sync.WaitGroup
	done := make(chan struct{})
	reading.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			var sum uint64
			s, _ := r.snapshot()
			for _, a := range s.Addresses {
				sum += a.Count
				if a.LastLink != "" && a.LastLink != "http://a.test"+a.Path+"/"+strings.Repeat("x", 100) {
					t.Errorf("%s has the link %s of another address", a.Path, a.LastLink)
				}
			}
			if sum != s.Count {
				t.Errorf("the counts add up to %d, and not to %d", sum, s.Count)
			}
		}
	})
	for i := range goroutines {
		counting.Go(func() {
			for j := range rounds {
				uri := fmt.Sprintf("http://a.test/%d", (i+j)%addresses)
				r.addPage([]byte(uri), uri+"/"+strings.Repeat("x", 100), causeResponse)
			}
		})
	}
	counting.Wait()
	close(done)
	reading.Wait()

	s, _ := r.snapshot()
	if s.Count != goroutines*rounds || len(s.Addresses) != addresses {
		t.Errorf("got %d pages and %d addresses, want %d and %d", s.Count, len(s.Addresses), goroutines*rounds, addresses)
	}
	for _, a := range s.Addresses {
		if a.Count != goroutines*rounds/addresses || a.Causes.Response != a.Count || a.Linked != a.Count || a.Overcount != 0 {
			t.Errorf("got %+v, want everything %d times", a, goroutines*rounds/addresses)
		}
	}
}

// TestTakingLosesNothing has several goroutines count, while another one takes the report again and again.
func TestTakingLosesNothing(t *testing.T) {
	const goroutines, rounds, addresses = 4, 20_000, 50
	var r report
	var taking sync.WaitGroup
	var count, sum, taken uint64
	done := make(chan struct{})
	take := func() {
		s, _ := r.take()
		count += s.Count
		for _, a := range s.Addresses {
			sum += a.Causes.Error
		}
	}
	taking.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				take()
				taken++
			}
		}
	})
	var counting sync.WaitGroup
	for i := range goroutines {
		counting.Go(func() {
			for j := range rounds {
				r.addPage(fmt.Appendf(nil, "http://a.test/%d", (i+j)%addresses), "", causeError)
			}
		})
	}
	counting.Wait()
	close(done)
	taking.Wait()
	take()
	if count != goroutines*rounds || sum != count {
		t.Errorf("got %d pages, and %d by address, want %d", count, sum, goroutines*rounds)
	}
	if taken < 10 {
		t.Errorf("the report was taken %d times while it counted, which shows nothing", taken)
	}
}

// TestSinceIsWhenCountingBegan registers handlers as configs do that are loaded, fail to load, and go.
func TestSinceIsWhenCountingBegan(t *testing.T) {
	var r report
	since := func(wantOK bool) time.Time {
		t.Helper()
		s, ok := r.snapshot()
		if ok != wantOK {
			t.Fatalf("it is %v that there is a report, want %v", ok, wantOK)
		}
		return s.Since
	}
	later := func() time.Time {
		t.Helper()
		for now := time.Now().UnixNano(); time.Now().UnixNano() == now; { // where the clock is coarse
		}
		return time.Now()
	}
	r.register() // a config that fails to load
	r.unregister()
	since(false)

	begin := later()
	r.register()
	first := since(true)
	if first.Before(begin) {
		t.Errorf("the report dates from %s, when a config failed to load, want after %s", first, begin)
	}
	r.register() // another config, which fails to load
	r.unregister()
	r.addPage([]byte("http://a.test/x"), "", causeError)
	r.unregister() // a config without a handler that reports
	if got := since(true); !got.Equal(first) {
		t.Errorf("the report dates from %s, want %s", got, first)
	}
	if s, ok := r.take(); !ok || s.Count != 1 || !s.Since.Equal(first) {
		t.Errorf("took %+v, %v", s, ok)
	}
	since(false)

	begin = later()
	r.addPage([]byte("http://a.test/late"), "", causeError) // by a handler of the last config
	if got := since(true); got.Before(begin) {
		t.Errorf("the report dates from %s, want from its first page after %s", got, begin)
	}
	r.register()
	begin = later()
	if r.take(); since(true).Before(begin) {
		t.Errorf("once taken, the report dates from %s, want after %s", since(true), begin)
	}
}

func TestKeyIsHostAndPath(t *testing.T) {
	long := strings.Repeat("x", 2*maxKey)
	for name, tt := range map[string]struct{ uri, want string }{
		"plain":                 {"http://a.test/x", "a.test /x"},
		"query":                 {"http://a.test/x?y=/z", "a.test /x"},
		"query, no path":        {"http://a.test?y", "a.test "},
		"fragment":              {"http://a.test/x%23access_token=secret", "a.test /x"},
		"fragment with a query": {"http://a.test/x%23y?access_token=secret", "a.test /x"},
		"fragment, no path":     {"urn:x%23access_token=secret", " urn:x"},
		"not a fragment":        {"http://a.test/x%2523", "a.test /x%2523"},
		"no path":               {"http://a.test", "a.test "},
		"port":                  {"https://a.test:8443/", "a.test:8443 /"},
		"IPv6":                  {"http://[2001:DB8::1]:81/x", "[2001:db8::1]:81 /x"},
		"letter case":           {"HTTP://A.Test/X%2f", "a.test /X%2f"},
		"colons and slashes":    {"http://a.test/http://b.test/x", "a.test /http://b.test/x"},
		"no authority":          {"urn:x?y", " urn:x"},
		"scheme of a script":    {"javascript:alert(1)", " javascript:alert(1)"},
		"nothing":               {"", " "},
		"long path":             {"http://a.test/" + long, "a.test /" + long[:maxKey-len("a.test /")]},
		"within %XX":            {"http://a.test/" + long[:maxKey-len("a.test /%4")] + "%41", "a.test /" + long[:maxKey-len("a.test /%4")]},
		"after the %":           {"http://a.test/" + long[:maxKey-len("a.test /%")] + "%41", "a.test /" + long[:maxKey-len("a.test /%")]},
		"after %XX":             {"http://a.test/" + long[:maxKey-len("a.test /%41")] + "%41%42", "a.test /" + long[:maxKey-len("a.test /%41")] + "%41"},
		"long host":             {"http://" + long + "/x", long[:maxKey-1] + " "},
		"long host, no path":    {"http://" + long, long[:maxKey-1] + " "},
		"host with room for /":  {"http://" + long[:maxKey-2] + "/x", long[:maxKey-2] + " /"},
		"host with room for /x": {"http://" + long[:maxKey-3] + "/x", long[:maxKey-3] + " /x"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(appendKey(nil, []byte(tt.uri))); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestLinkIsAnAbsoluteURLWithoutWhatIsPrivate(t *testing.T) {
	long := strings.Repeat("x", 16<<10)
	const site = "https://b.test"
	for name, tt := range map[string]struct{ referer, want string }{
		"plain":                  {site + "/blog", site + "/blog"},
		"no path":                {site, site},
		"port":                   {site + ":8443/", site + ":8443/"},
		"IPv6":                   {"http://[2001:db8::1]/x", "http://[2001:db8::1]/x"},
		"query":                  {site + "/x?token=secret", site + "/x"},
		"query, no path":         {site + "?token=secret", site},
		"fragment":               {site + "/x#access_token=secret?y", site + "/x"},
		"fragment, encoded":      {site + "/x%23access_token=secret", site + "/x"},
		"not a fragment":         {site + "/x%2523", site + "/x%2523"},
		"user":                   {"https://me@b.test/x", site + "/x"},
		"user and password":      {"https://me:secret@b.test/x?y", site + "/x"},
		"user with an @":         {"https://me@c.test:secret@b.test/x", site + "/x"},
		"path with an @":         {site + "/@me", site + "/@me"},
		"app":                    {"android-app://com.example/", ""},
		"encoded":                {site + "/%3Cb%3E%zz", site + "/%3Cb%3E%25zz"},
		"markup":                 {site + `/<script>"'`, site + "/%3Cscript%3E%22'"},
		"control characters":     {site + "/\x1b[2J\r\n\t\x7f ", site + "/%1B%5B2J%0D%0A%09%7F%20"},
		"UTF-8":                  {site + "/\u00e4\u202e", site + "/%C3%A4%E2%80%AE"},
		"invalid UTF-8":          {site + "/\xff", site + "/%FF"},
		"long path":              {site + "/" + long, site + "/" + long[:maxLink-len(site)-1]},
		"long, within %XX":       {site + "/" + long[:maxLink-len(site)-2] + "<", site + "/" + long[:maxLink-len(site)-2]},
		"long, within %XX twice": {site + "/" + long[:maxLink-len(site)-3] + "%41", site + "/" + long[:maxLink-len(site)-3]},
		"long, all markup":       {site + "/" + strings.Repeat("<", 16<<10), site + "/" + strings.Repeat("%3C", (maxLink-len(site)-1)/3)},
		"longest host":           {"https://" + long[:maxLink-len("https://")] + "/x", "https://" + long[:maxLink-len("https://")]},

		"nothing":                     {"", ""},
		"relative":                    {"/blog", ""},
		"relative with a URL":         {"/blog?next=https://b.test/", ""},
		"without a scheme":            {"//b.test/blog", ""},
		"empty scheme":                {"://b.test/", ""},
		"not a scheme":                {"1'&`://b.test/", ""},
		"no authority":                {"https:///x", ""},
		"user alone":                  {"https://me:secret@/x", ""},
		"too long a host":             {"https://" + long[:maxLink-len("https://")+1] + "/x", ""},
		"too long a scheme":           {long + "://b.test/", ""},
		"about":                       {"about:blank", ""},
		"data":                        {"data:text/html,<script>", ""},
		"script with a host":          {"javascript://b.test/%0aalert(1)", ""},
		"script":                      {"javascript:alert('https://b.test/')", ""},
		"markup in the host":          {"https://<b>/", ""},
		"control character in it":     {"https://b\x1b.test/", ""},
		"space before":                {" https://b.test/", ""},
		"percent-encoding in a host":  {"https://b%2etest/", ""},
		"a password without its host": {"https://me:se/cret@b.test/", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(appendLink(nil, tt.referer)); got != tt.want {
				t.Errorf("got %.400q, want %q", got, tt.want)
			}
		})
	}
}
