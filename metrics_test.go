package notfound

import (
	"maps"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/caddy-notfound/notfound/internal/report"
)

// TestHandlersShareTheCounter registers the counter twice, as two handlers of one config do.
func TestHandlersShareTheCounter(t *testing.T) {
	registry := prometheus.NewRegistry()
	for range 2 {
		counter, err := newPageCounter(registry)
		if err != nil {
			t.Fatal(err)
		}
		counter[report.Error][report.Own].Inc()
	}
	families, err := registry.Gather()
	if err != nil || len(families) != 1 {
		t.Fatalf("got %v, %v, want one metric", families, err)
	}
	got := make(map[string]float64)
	for _, series := range families[0].GetMetric() {
		name := ""
		for _, label := range series.GetLabel() {
			name += label.GetName() + "=" + label.GetValue() + " "
		}
		got[name] = series.GetCounter().GetValue()
	}
	want := map[string]float64{
		"cause=unanswered link=own ": 0, "cause=unanswered link=other ": 0, "cause=unanswered link=none ": 0,
		"cause=error link=own ": 2, "cause=error link=other ": 0, "cause=error link=none ": 0,
		"cause=response link=own ": 0, "cause=response link=other ": 0, "cause=response link=none ": 0,
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestNameOfAnotherMetricIsRefused has another module take the name of the counter.
func TestNameOfAnotherMetricIsRefused(t *testing.T) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "caddy_not_found_pages_total", Help: "Pages of another module."}))
	if _, err := newPageCounter(registry); err == nil {
		t.Error("got no error")
	}
}
