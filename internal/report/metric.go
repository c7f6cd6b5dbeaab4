package report

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Metric counts pages by cause and by link. Its labels have fixed values, so no client can add a time series. All
// series exist from the start, so a rate sees the first page.
type Metric struct {
	pages map[labels]prometheus.Counter
}

// labels are those of a time series.
type labels struct {
	cause Outcome
	link  Link
}

// NewMetric registers caddy_not_found_pages_total, unless another handler of the same config has.
func NewMetric(registry *prometheus.Registry) (m Metric, err error) {
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
		return m, err
	}
	m.pages = make(map[labels]prometheus.Counter)
	for cause := range NumCauses {
		for link := range NumLinks {
			m.pages[labels{cause, link}] = vec.WithLabelValues(cause.String(), link.String())
		}
	}
	return m, nil
}

// Inc counts a page.
func (m *Metric) Inc(miss *Miss) {
	m.pages[labels{miss.Outcome, miss.Link}].Inc()
}
