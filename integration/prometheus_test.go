//go:build backends

package integration

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

const monitoring = "../examples/monitoring/"

// TestPrometheusSeesTheTraffic has Prometheus scrape a Caddy. Traffic makes each alert of examples/monitoring true,
// and each panel and the expressions of docs/report.md count it. They count pages rather than pages a second, and the
// day before is now.
//
// The values are exact: Prometheus extrapolates an increase neither to before a counter was 0, nor past the time of
// the query. The Caddy is a process of its own, whose counters begin at 0.
func TestPrometheusSeesTheTraffic(t *testing.T) {
	caddyfile := testcaddy.Caddyfile(`
http://a.test:0 {
	not_found
	error /error 404
	respond /response "theirs" 404
	respond /ok "theirs" 200
}
http://127.0.0.1:0 {
	metrics
}`, "metrics {\nper_host\n}")
	log := startLogging(t, command(t, "run", "--config", testcaddy.TempFile(t, "Caddyfile", caddyfile)))
	addr := awaitLog(t, log, `"actual_address":"([^"]+)"`)
	caddy := testcaddy.HTTP11(t, addr)
	p := startPrometheus(t, addr)
	p.awaitPages(t, 0)
	if alerts := p.query(t, trueAlerts, ""); alerts != "" {
		t.Errorf("before any traffic, there are the alerts %s", alerts)
	}

	const own, other, none = "http://a.test/page", "https://search.example/", ""
	for _, traffic := range []struct {
		path    string
		referer string
		times   int
	}{
		{"/unanswered", none, 62},
		{"/unanswered", own, 5},
		{"/unanswered", other, 2},
		{"/error", own, 8},
		{"/error", other, 3},
		{"/response", none, 300},
		{"/response", own, 2},
		{"/ok", none, 1},
	} {
		for range traffic.times {
			caddy.Get(t, "http://a.test"+traffic.path, "Referer: "+traffic.referer)
		}
	}
	now := p.awaitPages(t, 382)
	eventually(t, "alert of each kind", func() bool {
		return p.query(t, trueAlerts, "") == "BackendNotFound 1, OwnBrokenLinks 1, UnansweredJump 1"
	})

	exprs := panels(t)
	for i, match := range documentedPromQL.FindAllStringSubmatch(readFile(t, "../docs/report.md"), -1) {
		exprs[fmt.Sprint("docs/report.md ", i)] = match[1]
	}
	// A series that begins with the first 404 has no increase yet.
	oneSite := strings.NewReplacer("shop.example.com", "a.test", "increase(", "(", "[1h]", "")
	exprs["docs/report.md 0"] = oneSite.Replace(exprs["docs/report.md 0"])
	want := map[string]string{
		"docs/report.md 0":               "382",
		"docs/report.md 1":               "15",
		"Own broken links A":             "15",
		"Links from other sites A":       "5",
		"All pages A":                    "382",
		"Own broken links by cause A":    "error 8, response 2, unanswered 5",
		"By link A":                      "none 362, other 5, own 15",
		"By cause A":                     "error 11, response 302, unanswered 69",
		"Unanswered, and a day before A": "69",
		"Unanswered, and a day before B": "69",
		"By instance A":                  addr + " 382",
	}
	variables := strings.NewReplacer(
		"$job", "caddy|none",
		"$__rate_interval", "10m",
		"$__range", "1h",
		"rate(", "increase(",
		"offset 1d", "",
	)
	for name, expr := range exprs {
		got := p.query(t, "round("+variables.Replace(expr)+", 0.001)", now)
		if got != want[name] {
			t.Errorf("%s: %s\ngot %s, want %s", name, expr, got, want[name])
		}
	}
	if len(exprs) != len(want) {
		t.Errorf("got the panels %v, want %v", exprs, want)
	}
}

var documentedPromQL = regexp.MustCompile("(?s)```promql\n(.*?)```")

// panels returns the expressions of the dashboard, by the titles of its panels. Its variable has to be one of the
// metric.
func panels(t *testing.T) map[string]string {
	t.Helper()
	content := readFile(t, monitoring+"dashboard.json")
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ RefID, Expr string }
		}
	}
	if err := json.Unmarshal([]byte(content), &dashboard); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(content, `"label_values(caddy_not_found_pages_total, job)"`) {
		t.Error("the dashboard does not offer the jobs of the metric")
	}
	exprs := make(map[string]string)
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			exprs[panel.Title+" "+target.RefID] = target.Expr
		}
	}
	return exprs
}

// prometheus is the URL of the API of a Prometheus.
type prometheus string

// startPrometheus has a Prometheus scrape a site often, with the files of examples/monitoring.
func startPrometheus(t *testing.T, addr string) prometheus {
	t.Helper()
	config := edited(t, monitoring+"prometheus.yml", "localhost:9180", addr, "15s", "200ms")
	alerts := edited(t, monitoring+"rules.yml", "offset 1d", "offset 1s")
	file := testcaddy.TempFile(t, "prometheus.yml", config)
	dir := filepath.Dir(file)
	writeFile(t, dir+"/rules.yml", alerts)
	log := startLogging(t, exec.CommandContext(t.Context(), "prometheus", "--config.file="+file,
		"--storage.tsdb.path="+dir+"/data", "--web.listen-address=127.0.0.1:0"))
	listen := awaitLog(t, log, `msg="Listening on" address=(\S+)`)
	eventually(t, "answer of Prometheus", func() bool {
		res, err := http.Get("http://" + listen + "/-/ready")
		if err == nil {
			res.Body.Close()
		}
		return err == nil && res.StatusCode == http.StatusOK
	})
	return prometheus("http://" + listen + "/api/v1/")
}

// trueAlerts is the alerts that are true. A true alert waits before it fires.
const trueAlerts = `count by (alertname) (ALERTS{alertstate="pending"})`

// awaitPages waits until Prometheus has a number of pages, and returns the time of the sample, in seconds since 1970.
func (p prometheus) awaitPages(t *testing.T, pages int) (when string) {
	t.Helper()
	const expr = "max(timestamp(caddy_not_found_pages_total)) and sum(caddy_not_found_pages_total) == %d"
	eventually(t, fmt.Sprintf("sample with %d pages", pages), func() bool {
		when = p.query(t, fmt.Sprintf(expr, pages), "")
		return when != ""
	})
	return when
}

// query evaluates an expression at a time, and returns the values as text, each after its label. The empty time is
// now.
func (p prometheus) query(t *testing.T, expr, when string) string {
	t.Helper()
	parameters := url.Values{"query": {expr}}
	if when != "" {
		parameters.Set("time", when)
	}
	res, err := http.Get(string(p) + "query?" + parameters.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var answer struct {
		Status, Error string
		Data          struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any // a time and the value
			}
		}
	}
	err = json.NewDecoder(res.Body).Decode(&answer)
	if err != nil || answer.Status != "success" {
		t.Fatalf("%s: %v, %s", expr, err, answer.Error)
	}
	var values []string
	for _, sample := range answer.Data.Result {
		text := fmt.Sprint(sample.Value[1])
		for _, label := range sample.Metric {
			text = label + " " + text
		}
		values = append(values, text)
	}
	slices.Sort(values)
	return strings.Join(values, ", ")
}

// edited returns a file with others in place of some of its values.
func edited(t *testing.T, file string, oldnew ...string) string {
	t.Helper()
	content := readFile(t, file)
	for i := 0; i < len(oldnew); i += 2 {
		if !strings.Contains(content, oldnew[i]) {
			t.Fatalf("%s lacks %s", file, oldnew[i])
		}
	}
	return strings.NewReplacer(oldnew...).Replace(content)
}

// awaitLog waits until a log file has what a pattern matches, and returns the last submatch.
func awaitLog(t *testing.T, file, pattern string) string {
	t.Helper()
	var match []string
	eventually(t, pattern+" in the log", func() bool {
		match = regexp.MustCompile(pattern).FindStringSubmatch(readFile(t, file))
		return match != nil
	})
	return match[len(match)-1]
}
