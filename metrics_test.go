package notfound

import (
	"maps"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// TestHandlersShareTheCounter registers the counter twice, as two handlers of one config do.
func TestHandlersShareTheCounter(t *testing.T) {
	registry := prometheus.NewRegistry()
	for range 2 {
		counter, err := newPageCounter(registry)
		if err != nil {
			t.Fatal(err)
		}
		counter[causeError].Inc()
	}
	families, err := registry.Gather()
	if err != nil || len(families) != 1 {
		t.Fatalf("got %v, %v, want one metric", families, err)
	}
	got := make(map[string]float64)
	for _, series := range families[0].GetMetric() {
		got[series.GetLabel()[0].GetValue()] = series.GetCounter().GetValue()
	}
	if want := map[string]float64{"unanswered": 0, "error": 2, "response": 0}; !maps.Equal(got, want) {
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
