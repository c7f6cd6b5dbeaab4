package integration

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestOperatorsSeeTheCause looks for the causes of pages in the metrics and in the access log, and for log entries
// above debug. The values of some options are invalid.
func TestOperatorsSeeTheCause(t *testing.T) {
	s := testcaddy.Start(t, `
http://a.test:0 {
	log
	log_append cause {http.not_found.cause}
	log_append reason {http.not_found.reason}
	not_found
	error /error 404
	respond /response "theirs" 404
	respond /passed "mine"
}
http://errors.test:0 {
	log
	error 404
	handle_errors {
		log_append cause {http.not_found.cause}
		log_append reason {http.not_found.reason}
		not_found
		respond "theirs" 404
	}
}
http://outside.test:0 {
	log
	log_append cause {http.not_found.cause}
	log_append reason {http.not_found.reason}
	error 404
	handle_errors {
		not_found
	}
}
http://evil.test:0 {
	not_found /dry {
		dry_run
	}
	not_found {
		context_path {http.request.header.X-Evil}
		base_url {http.request.header.X-Evil}
		uri {http.request.header.X-Evil}
		footer {http.request.header.X-Evil}
	}
	respond /dry "theirs" 404
}
http://dry.test:0 {
	log
	log_append cause {http.not_found.cause}
	log_append reason {http.not_found.reason}
	not_found {
		dry_run
	}
	error /error 404
	respond /response "theirs" 404
	respond /passed "mine"
}
http://base.test:0 {
	not_found {
		base_url https://www.base.test
	}
	request_header -Referer
}
http://nested.test:0 {
	not_found
	handle {
		not_found {
			dry_run
		}
		respond "theirs" 404
	}
}
http://metrics.test:0 {
	metrics
}`)
	causes := map[string]any{
		"http://a.test/unanswered":   "unanswered",
		"http://a.test/error":        "error",
		"http://a.test/response":     "response",
		"http://a.test/passed":       "",
		"http://errors.test/caught":  "response",
		"http://outside.test/caught": nil, // its own chain has returned by then
	}
	reasonsOfDryRun := map[string]any{
		"http://dry.test/unanswered": "dry_run",
		"http://dry.test/error":      "dry_run",
		"http://dry.test/response":   "dry_run",
		"http://dry.test/passed":     "",
	}
	before := pagesCounted(t, s, "http://metrics.test/")
	for url := range causes {
		s.Get(t, url)
	}
	for url := range reasonsOfDryRun {
		s.Get(t, url)
	}
	s.Get(t, "http://evil.test/dry", "X-Evil: \xff<script>")
	s.Get(t, "http://evil.test/x", "X-Evil: \xff<script>")
	s.Get(t, "http://a.test/unanswered", "Referer: http://a.test/page")
	s.Get(t, "http://a.test/error", "Referer: http://other.test/")
	s.Get(t, "http://nested.test/x")
	s.Get(t, "http://base.test/x", "Referer: https://www.base.test/page")

	counted := pagesCounted(t, s, "http://metrics.test/")
	for series := range counted {
		counted[series] -= before[series]
	}
	want := map[string]int{
		`{cause="error",link="none"}`:       2,
		`{cause="error",link="other"}`:      1,
		`{cause="error",link="own"}`:        0,
		`{cause="response",link="none"}`:    3,
		`{cause="response",link="other"}`:   0,
		`{cause="response",link="own"}`:     0,
		`{cause="unanswered",link="none"}`:  2,
		`{cause="unanswered",link="other"}`: 0,
		`{cause="unanswered",link="own"}`:   2,
	}
	if !maps.Equal(counted, want) {
		t.Errorf("got\n%v\nwant\n%v", counted, want)
	}

	entries := s.Logs.WaitFor(t, "handled request", 15)
	for _, entry := range append(entries, s.Logs.WaitFor(t, "NOP", 1)...) { // of the dry run, as without not_found
		request := entry["request"].(map[string]any)
		url := fmt.Sprintf("http://%s%s", entry.Host(), request["uri"])
		if cause, isNamed := causes[url]; isNamed && entry["cause"] != cause {
			t.Errorf("%s: got the cause %v, want %v", url, entry["cause"], cause)
		} else if _, isText := entry["reason"].(string); isNamed && isText != (cause != nil) {
			t.Errorf("%s: got the reason %v, want null only if no not_found ran", url, entry["reason"])
		}
		if reason, isNamed := reasonsOfDryRun[url]; isNamed && (entry["reason"] != reason || entry["cause"] != "") {
			t.Errorf("%s: got the reason %v and the cause %v, want the reason %q", url, entry["reason"], entry["cause"], reason)
		}
	}
	pages := s.Logs.WaitFor(t, "wrote the 404 page", 10)
	if len(pages) != 10 {
		t.Errorf("got %d entries, want one for each page", len(pages))
	}
	loud := s.Logs.Select(t, func(e testcaddy.Entry) bool {
		isOurs := e["logger"] == "http.handlers.not_found"
		isNOP := e["msg"] == "NOP" && e.Host() != "dry.test"
		return isNOP || isOurs && e["level"] != "debug"
	})
	if len(loud) > 0 {
		t.Errorf("got %v", loud)
	}
}

// pagesCounted returns the counts of pages by their labels, which go on as long as the process runs.
func pagesCounted(t *testing.T, s *testcaddy.Server, metrics string) map[string]int {
	t.Helper()
	counts := make(map[string]int)
	series := regexp.MustCompile(`(?m)^caddy_not_found_pages_total(.*) (.*)$`)
	for _, match := range series.FindAllStringSubmatch(s.Get(t, metrics).Content, -1) {
		count, err := strconv.Atoi(match[2])
		if err != nil {
			t.Fatal(err)
		}
		counts[match[1]] = count
	}
	return counts
}

// TestCountOfPagesOutlastsAReload has a page before a reload, and one after it.
func TestCountOfPagesOutlastsAReload(t *testing.T) {
	const sites = "http://a.test:0 {\nnot_found {\nfooter %s\n}\nmetrics /metrics\n}"
	s := testcaddy.Start(t, fmt.Sprintf(sites, "one"))
	const series = `{cause="unanswered",link="none"}`
	before := pagesCounted(t, s, "http://a.test/metrics")[series]
	s.Get(t, "http://a.test/x")
	s.Reload(t, testcaddy.Adapt(t, testcaddy.Caddyfile(fmt.Sprintf(sites, "two"))))
	s.Get(t, "http://a.test/x")
	if got := pagesCounted(t, s, "http://a.test/metrics")[series]; got != before+2 {
		t.Errorf("%d pages are counted, want 2", got-before)
	}
}

// TestMetricsOutlastARefusedReload has a site with metrics, as examples/monitoring has. The admin API loses the series,
// which is why the example needs the site.
func TestMetricsOutlastARefusedReload(t *testing.T) {
	admin, addr := testcaddy.Admin(t)
	s := testcaddy.Start(t, "http://a.test:0 {\nnot_found\nmetrics /metrics\n}", admin)
	refused := testcaddy.Caddyfile("http://a.test:0 {\nnot_found {\nbase_url {env.NOT_FOUND_TEST_UNSET}\n}\n}", admin)
	if err := caddy.Load(testcaddy.Adapt(t, refused), true); err == nil {
		t.Fatal("the config is not refused")
	}
	const series = "\ncaddy_not_found_pages_total{"
	if got := strings.Count(s.Get(t, "http://a.test/metrics").Content, series); got != 9 {
		t.Errorf("the site has %d series, want 9", got)
	}
	api := testcaddy.HTTP11(t, addr)
	if got := strings.Count(api.Get(t, "http://"+addr+"/metrics").Content, series); got != 0 {
		t.Errorf("the admin API has %d series: the example can do without its site", got)
	}
}

// TestTracesHaveTheCause has Caddy's `tracing` send the span of a page to a collector.
func TestTracesHaveTheCause(t *testing.T) {
	var (
		mu    sync.Mutex
		spans strings.Builder
	)
	collector := testcaddy.Backend(t, func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = io.Copy(&spans, r.Body)
	})
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+collector)
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "10") // ms
	s := startSite(t, `
	tracing {
		span_attributes {
			cause {http.not_found.cause}
		}
	}
	not_found`)
	s.Get(t, "http://a.test/unanswered")
	eventually(t, "span with the cause", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return strings.Contains(spans.String(), "\n\x05cause\x12\x0c\n\x0aunanswered") // as protobuf has it
	})
}
