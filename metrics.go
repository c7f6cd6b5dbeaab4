package notfound

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/caddy-notfound/notfound/internal/report"
)

// pageCounter counts pages by cause and by link. Its labels have fixed values, so no client can add a time series. All
// series exist from the start, so a rate sees the first page.
type pageCounter [report.NumOutcomes][report.NumLinks]prometheus.Counter

// newPageCounter registers caddy_not_found_pages_total, or finds it if another handler of the same config has
// registered it.
func newPageCounter(registry *prometheus.Registry) (pageCounter, error) {
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "caddy",
		Subsystem: "not_found",
		Name:      "pages_total",
		Help:      "Number of 404 pages written, by cause and by the kind of link that led to the address.",
	}, []string{"cause", "link"})

	if err := registry.Register(vec); err != nil {
		registered, ok := errors.AsType[prometheus.AlreadyRegisteredError](err)
		if !ok {
			return pageCounter{}, err
		}
		if vec, ok = registered.ExistingCollector.(*prometheus.CounterVec); !ok {
			return pageCounter{}, err
		}
	}

	var counter pageCounter
	for _, cause := range []report.Outcome{report.Unanswered, report.Error, report.Response} {
		for link := range report.NumLinks {
			counter[cause][link] = vec.WithLabelValues(cause.String(), link.String())
		}
	}
	return counter, nil
}
