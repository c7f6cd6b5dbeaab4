//go:build backends

package integration

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

const monitoring = "../examples/monitoring/"

// TestPrometheusSeesTheTraffic has Prometheus scrape a Caddy. Traffic makes each alert of examples/monitoring true,
// and each panel and the expression of docs/report.md count it. They count pages rather than pages a second, and the
// day before is now.
//
// The values are exact: Prometheus extrapolates an increase neither to before a counter was 0, nor past the time of
// the query.
func TestPrometheusSeesTheTraffic(t *testing.T) {
	admin, addr := testcaddy.Admin(t)
	s := testcaddy.Start(t, `
http://a.test:0 {
	not_found
	error /error 404
	respond /response "theirs" 404
}`, admin)
	p := startPrometheus(t, addr)
	p.awaitPages(t, 0)
	if pending := p.pendingAlerts(t); len(pending) > 0 {
		t.Errorf("before any traffic, the alerts %q are pending", pending)
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
	} {
		for range traffic.times {
			s.Get(t, "http://a.test"+traffic.path, "Referer: "+traffic.referer)
		}
	}
	now := p.awaitPages(t, 382)
	eventually(t, "all alerts are true", func() bool {
		return slices.Equal(p.pendingAlerts(t), []string{"BackendNotFound", "OwnBrokenLinks", "UnansweredJump"})
	})

	_, document, _ := strings.Cut(readFile(t, "../docs/report.md"), "```promql\n")
	document, _, _ = strings.Cut(document, "```")
	exprs := panels(t)
	exprs["docs/report.md"] = document
	want := map[string]string{
		"docs/report.md":                 "15",
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
		if got := p.query(t, variables.Replace(expr), now); got != want[name] {
			t.Errorf("%s: %s\ngot %s, want %s", name, expr, got, want[name])
		}
	}
	if len(exprs) != len(want) {
		t.Errorf("got the panels %v, want %v", exprs, want)
	}
}

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

// startPrometheus has a Prometheus scrape an admin API often, with the files of examples/monitoring.
func startPrometheus(t *testing.T, addr string) prometheus {
	t.Helper()
	config := edited(t, monitoring+"prometheus.yml", "localhost:2019", addr, "15s", "200ms")
	alerts := edited(t, monitoring+"rules.yml", "offset 1d", "offset 1s")
	file := testcaddy.TempFile(t, "prometheus.yml", config)
	dir := filepath.Dir(file)
	if err := os.WriteFile(filepath.Join(dir, "rules.yml"), []byte(alerts), 0o600); err != nil {
		t.Fatal(err)
	}
	listen := "127.0.0.1:" + testcaddy.FreePort(t)
	startProgram(t, "prometheus", "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+listen, "--log.level=warn")
	eventually(t, "prometheus is ready", func() bool {
		res, err := http.Get("http://" + listen + "/-/ready")
		if err == nil {
			res.Body.Close()
		}
		return err == nil && res.StatusCode == http.StatusOK
	})
	return prometheus("http://" + listen + "/api/v1/")
}

// get reads an answer of the API.
func (p prometheus) get(t *testing.T, path string, parameters url.Values, data any) {
	t.Helper()
	res, err := http.Get(string(p) + path + "?" + parameters.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer := struct {
		Status string
		Data   any
	}{Data: data}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil || answer.Status != "success" {
		t.Fatalf("%s %v: %v, %+v", path, parameters, err, answer)
	}
}

// pendingAlerts returns the names of the alerts that are true. A true alert waits before it fires.
func (p prometheus) pendingAlerts(t *testing.T) (names []string) {
	t.Helper()
	var loaded struct {
		Groups []struct {
			Rules []struct{ Name, State string }
		}
	}
	p.get(t, "rules", nil, &loaded)
	for _, group := range loaded.Groups {
		for _, rule := range group.Rules {
			if rule.State == "pending" {
				names = append(names, rule.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// awaitPages waits until Prometheus has a number of pages, and returns the time of the sample, in seconds since 1970.
func (p prometheus) awaitPages(t *testing.T, pages int) (when string) {
	t.Helper()
	const expr = "max(timestamp(caddy_not_found_pages_total)) and sum(caddy_not_found_pages_total) == %d"
	eventually(t, fmt.Sprintf("Prometheus has %d pages", pages), func() bool {
		vector := p.vector(t, fmt.Sprintf(expr, pages), "")
		if len(vector) > 0 {
			when = vector[0].Value[1].(string)
		}
		return when != ""
	})
	return when
}

// sample is a value and its labels.
type sample struct {
	Metric map[string]string
	Value  [2]any // a time and the value
}

// vector evaluates an expression at a time. The empty time is now.
func (p prometheus) vector(t *testing.T, expr, when string) []sample {
	t.Helper()
	parameters := url.Values{"query": {expr}}
	if when != "" {
		parameters.Set("time", when)
	}
	var data struct{ Result []sample }
	p.get(t, "query", parameters, &data)
	return data.Result
}

// query returns the values of an expression as text, each after its label.
func (p prometheus) query(t *testing.T, expr, when string) string {
	t.Helper()
	var values []string
	for _, sample := range p.vector(t, expr, when) {
		value, err := strconv.ParseFloat(sample.Value[1].(string), 64)
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("%.6g", value)
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
