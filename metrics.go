package notfound

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/caddy-notfound/notfound/internal/report"
)

// pageCounter counts pages by cause and by link. Its labels have fixed values, so no client can add a time series. All
// series exist from the start, so a rate sees the first page.
type pageCounter [report.NumCauses][report.NumLinks]prometheus.Counter

// newPageCounter registers caddy_not_found_pages_total, unless another handler of the same config has.
func newPageCounter(registry *prometheus.Registry) (counter pageCounter, err error) {
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "caddy",
		Subsystem: "not_found",
		Name:      "pages_total",
		Help:      "Number of 404 pages written, by cause and by the kind of link that led to the address.",
	}, []string{"cause", "link"})

	err = registry.Register(vec)
	if registered, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		vec = registered.ExistingCollector.(*prometheus.CounterVec)
	} else if err != nil {
		return counter, err
	}
	for cause := range report.NumCauses {
		for link := range report.NumLinks {
			counter[cause][link] = vec.WithLabelValues(cause.String(), link.String())
		}
	}
	return counter, nil
}
