package notfound

import (
	"strings"

	"github.com/caddy-notfound/notfound/internal/report"
	"github.com/caddy-notfound/notfound/internal/uri"
)

// count counts a page in the metric, and in the report unless that has the request already.
func (rw *responseWriter) count(address, authority string, cause report.Outcome) {
	m := rw.miss(address, authority, cause)
	rw.handler.counter[cause][m.Link].Inc()
	if rw.decision.report() && rw.handler.Report {
		missed.Add(m)
	}
}

// countPassed counts a 404 response that passed in the report, unless an inner not_found has counted it, or wrote it.
func (rw *responseWriter) countPassed() {
	if !rw.decision.report() {
		return
	}
	asked := rw.request.asked()
	address := rw.handler.pages.URI(&asked, rw.request.replacer())
	outcome := report.Passed
	if rw.isReplaceable {
		outcome = report.Replaceable
	}
	missed.Add(rw.miss(address, asked.Authority, outcome))
}

// miss describes a request for an address that is missing: which one it is on the page, what led there, and what became of
// it. A client reaches the site by the authority as well.
func (rw *responseWriter) miss(address, authority string, outcome report.Outcome) report.Miss {
	_, host, target, ok := uri.Split(address)
	if !ok { // as in urn:x
		target = address
	}
	m := report.Miss{Host: host, Path: target, Referer: rw.request.referer, Outcome: outcome}
	switch m.Link = report.LinkOf(m.Referer, host, target, authority); {
	case m.Link == report.None:
		m.Referer = ""
	case rw.isForProgram || rw.request.isFetch():
		m.Link = report.None // nobody followed it
	}
	return m
}

// isFetch reports whether a script asked for something other than a page that it shows (Fetch Metadata Request Headers,
// section 2.1), whatever the page of that script is.
func (r *clientRequest) isFetch() bool {
	return r.isEmptyDest && !strings.Contains(strings.ToLower(r.accept), "text/html")
}
