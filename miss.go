package notfound

import (
	"net/http"

	"github.com/caddy-notfound/notfound/internal/page"
	"github.com/caddy-notfound/notfound/internal/report"
	"github.com/caddy-notfound/notfound/internal/uri"
)

// countPage counts a page in the metric, and in the report unless that has the request already.
func (rw *responseWriter) countPage(asked *page.Asked, address string, cause report.Outcome) {
	m := rw.miss(asked, address, cause)
	rw.handler.counter[cause][m.Link].Inc()
	if rw.decision.claimCount() && rw.handler.Report {
		missed.Add(m)
	}
}

// countWithoutPage counts a request for which this handler wrote no page, unless an inner one has counted it or written
// one.
func (rw *responseWriter) countWithoutPage(outcome report.Outcome) {
	if rw.handler.Report && rw.decision.claimCount() {
		asked := rw.request.asked()
		missed.Add(rw.miss(&asked, rw.handler.pages.URI(&asked, rw.request.replacer), outcome))
	}
}

// miss describes a request for an address that is missing: which one it is on the page, what led there, and what became of
// it. A client reaches the site by the authority as well.
func (rw *responseWriter) miss(asked *page.Asked, address string, outcome report.Outcome) report.Miss {
	_, host, target, ok := uri.Split(address)
	if !ok { // as in urn:x
		target = address
	}
	m := report.Miss{Host: host, Path: target, Referer: rw.request.client.referer, Outcome: outcome}
	switch m.Link = report.LinkOf(m.Referer, host, target, asked.Authority); {
	case m.Link == report.None:
		m.Referer = ""
	case rw.isForProgram || !rw.request.client.isFollowed || !isOfLink(asked.Method) || target == "/favicon.ico":
		m.Link = report.None // nobody followed it; browsers request the icon on their own
	}
	return m
}

// isOfLink reports whether a link or a form may send a request with the method. WebDAV clients send a Referer with theirs.
func isOfLink(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodPost
}
