package report

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// pages counts pages by cause and by link, for the process, as [Missed] does: a reload does not reset it. Its labels
// have fixed values, so no client can add a time series. All series exist from the start, so a rate sees the first
// page.
var pages = prometheus.NewCounterVec(prometheus.CounterOpts{
	Namespace: "caddy",
	Subsystem: "not_found",
	Name:      "pages_total",
	Help:      "Number of 404 pages written, by cause and by the kind of link that led to the address.",
}, []string{"cause", "link"})

// pagesBy holds the counters by outcome and link. The causes of a page are the outcomes before OutcomePassed.
var pagesBy = func() (counters [OutcomePassed][NumLinks]prometheus.Counter) {
	for cause := range OutcomePassed {
		for link := range NumLinks {
			counters[cause][link] = pages.WithLabelValues(cause.String(), link.String())
		}
	}
	return counters
}()

// Register adds caddy_not_found_pages_total to the metrics of a config.
func Register(registry *prometheus.Registry) error {
	err := registry.Register(pages)
	if _, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		return nil // by another handler of the config
	}
	return err
}

// CountPage counts a page in caddy_not_found_pages_total.
func CountPage(miss *Miss) { pagesBy[miss.Outcome][miss.Link].Inc() }
