//go:build backends

package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestPrometheusSeesTheTraffic has Prometheus scrape a Caddy, and evaluates the alerts and the dashboard of
// examples/monitoring, and the expression of docs/report.md.
//
// The values are exact: Prometheus extrapolates a rate neither to before a counter was 0, nor past the time of the query.
func TestPrometheusSeesTheTraffic(t *testing.T) {
	const examples = "../examples/monitoring/"
	admin, addr := testcaddy.Admin(t)
	s := testcaddy.Start(t, `
http://a.test:0 {
	not_found
	error /error 404
	respond /response "theirs" 404
}`, admin)

	dir := t.TempDir()
	config := edited(t, examples+"prometheus.yml", "localhost:2019", addr, "15s", "200ms")
	alerts := edited(t, examples+"rules.yml", "offset 1d", "offset 1s")
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600), os.WriteFile(filepath.Join(dir, "rules.yml"), []byte(alerts), 0o600)); err != nil {
		t.Fatal(err)
	}
	port := testcaddy.FreePort(t)
	startProgram(t, "prometheus", "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address=127.0.0.1:"+port, "--log.level=warn")
	eventually(t, "prometheus is ready", func() bool {
		res, err := http.Get("http://127.0.0.1:" + port + "/-/ready")
		if err == nil {
			res.Body.Close()
		}
		return err == nil && res.StatusCode == http.StatusOK
	})
	p := prometheus("http://127.0.0.1:" + port + "/api/v1/")

	send := func(path, referer string, times int) {
		for range times {
			s.Get(t, "http://a.test"+path, "Referer: "+referer)
		}
	}
	const own, other, none = "http://a.test/page", "https://search.example/", ""
	counted := func(pages int) (when float64) {
		t.Helper()
		eventually(t, fmt.Sprintf("Prometheus has %d pages", pages), func() bool {
			return maps.Equal(p.query(t, "sum(caddy_not_found_pages_total)", 0), values{"": float64(pages)})
		})
		for _, when = range p.query(t, fmt.Sprintf("max(timestamp(caddy_not_found_pages_total)) and sum(caddy_not_found_pages_total) == %d", pages), 0) {
			return when
		}
		t.Fatal("Prometheus has no sample")
		return 0
	}

	counted(0)
	send("/unanswered", none, 3)
	send("/unanswered", own, 1)
	send("/response", none, 1)
	before := counted(5)

	type rule struct{ Name, Query, Health, State string }
	rules := func() (rules []rule) {
		var loaded struct{ Groups []struct{ Rules []rule } }
		p.get(t, "rules", nil, &loaded)
		for _, group := range loaded.Groups {
			rules = append(rules, group.Rules...)
		}
		return rules
	}
	send("/unanswered", none, 62)
	send("/unanswered", own, 5)
	send("/unanswered", other, 2)
	send("/error", own, 8)
	send("/error", other, 3)
	send("/response", none, 299)
	send("/response", own, 2)
	now := counted(386)
	// unanswered 65 none, 6 own, 2 other; error 8 own, 3 other; response 300 none, 2 own
	eventually(t, "all rules are evaluated, and true", func() bool {
		return !slices.ContainsFunc(rules(), func(r rule) bool { return r.Health != "ok" || r.State != "pending" })
	})

	offset := fmt.Sprintf("offset %dms", int(math.Round(1000*(now-before))))
	variables := strings.NewReplacer("$job", "caddy|none", "$__rate_interval", "10m", "$__range", "1h", "offset 1d", offset, "offset 1s", offset)
	const perSecond = 1. / (10 * 60) // over ten minutes
	want := map[string]values{
		"OwnBrokenLinks":  {"job=caddy": 16},
		"UnansweredJump":  {"job=caddy": 73 * perSecond},
		"BackendNotFound": {"job=caddy": 302 * perSecond},

		"Own broken links A":             {"": 16},
		"Links from other sites A":       {"": 5},
		"All pages A":                    {"": 386},
		"Own broken links by cause A":    {"cause=unanswered": 6 * perSecond, "cause=error": 8 * perSecond, "cause=response": 2 * perSecond},
		"By link A":                      {"link=own": 16 * perSecond, "link=other": 5 * perSecond, "link=none": 365 * perSecond},
		"By cause A":                     {"cause=unanswered": 73 * perSecond, "cause=error": 11 * perSecond, "cause=response": 302 * perSecond},
		"Unanswered, and a day before A": {"": 73 * perSecond},
		"Unanswered, and a day before B": {"": 4 * perSecond},
		"By instance A":                  {"instance=" + addr: 386 * perSecond},
	}
	exprs := make(map[string]string)
	for _, r := range rules() {
		exprs[r.Name] = r.Query
		p.want(t, r.Name+", before", variables.Replace(r.Query), before, values{})
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ RefID, Expr string }
		}
		Templating struct {
			List []struct{ Name, Query string }
		}
	}
	if err := json.Unmarshal([]byte(readFile(t, examples+"dashboard.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			exprs[panel.Title+" "+target.RefID] = target.Expr
		}
	}
	if got, want := slices.Sorted(maps.Keys(exprs)), slices.Sorted(maps.Keys(want)); !slices.Equal(got, want) {
		t.Errorf("got the alerts and panels %q, want %q", got, want)
	}
	_, document, _ := strings.Cut(readFile(t, "../docs/report.md"), "```promql\n")
	document, _, _ = strings.Cut(document, "```")
	p.want(t, "docs/report.md", document, now, values{"": 16})
	for name, expr := range exprs {
		p.want(t, name, variables.Replace(expr), now, want[name])
	}
	for _, variable := range dashboard.Templating.List {
		if query := regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`).FindStringSubmatch(variable.Query); query != nil {
			var jobs []string
			p.get(t, "label/"+query[2]+"/values", url.Values{"match[]": {query[1]}}, &jobs)
			if !slices.Equal(jobs, []string{"caddy"}) {
				t.Errorf("got the jobs %v", jobs)
			}
		} else if variable.Name == "job" {
			t.Errorf("the variable job is %s", variable.Query)
		}
	}
}

// prometheus is the URL of the API of a Prometheus.
type prometheus string

// values are the values of a vector, by their labels.
type values map[string]float64

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

// query evaluates an expression at a time, in seconds since 1970; 0 is now.
func (p prometheus) query(t *testing.T, expr string, when float64) values {
	t.Helper()
	parameters := url.Values{"query": {expr}}
	if when != 0 {
		parameters.Set("time", strconv.FormatFloat(when, 'f', 3, 64))
	}
	var vector struct {
		Result []struct {
			Metric map[string]string
			Value  [2]any
		}
	}
	p.get(t, "query", parameters, &vector)
	got := make(values)
	for _, sample := range vector.Result {
		var labels []string
		for name, value := range sample.Metric {
			labels = append(labels, name+"="+value)
		}
		v, err := strconv.ParseFloat(sample.Value[1].(string), 64)
		if err != nil {
			t.Fatal(err)
		}
		got[strings.Join(labels, " ")] = v
	}
	return got
}

// want checks the value of an expression, up to rounding.
func (p prometheus) want(t *testing.T, name, expr string, when float64, want values) {
	t.Helper()
	got := p.query(t, expr, when)
	if !maps.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(b) }) {
		t.Errorf("%s: %s\ngot %v, want %v", name, expr, got, want)
	}
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
