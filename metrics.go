package notfound

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// pageCounter counts the pages written, by cause. Its label has only the fixed set of causes for values, so no
// client can add a time series.
type pageCounter [numCauses]prometheus.Counter

// newPageCounter registers caddy_not_found_pages_total, or finds it if another handler of the same config has
// registered it.
func newPageCounter(registry *prometheus.Registry) (pageCounter, error) {
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "caddy",
		Subsystem: "not_found",
		Name:      "pages_total",
		Help:      "Number of 404 pages written, by cause.",
	}, []string{"cause"})

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
	for c, name := range causeNames {
		counter[c] = vec.WithLabelValues(name)
	}
	return counter, nil
}
