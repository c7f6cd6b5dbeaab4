package notfound

import (
	"net/http"

	"github.com/caddy-notfound/notfound/internal/page"
	"github.com/caddy-notfound/notfound/internal/report"
	"github.com/caddy-notfound/notfound/internal/uri"
)

// countPage counts a page in the metric, and in the report unless that has the request already.
func (x *exchange) countPage(asked *page.Asked, address string, cause report.Outcome) {
	m := x.miss(asked, address, cause)
	x.handler.counter[cause][m.Link].Inc()
	if x.decision.claimCount() && x.handler.Report {
		missed.Add(m)
	}
}

// countWithoutPage counts a request in the report to which the handler has written no page, unless an inner one has
// counted it or written one.
func (x *exchange) countWithoutPage(outcome report.Outcome) {
	if x.decision.claimCount() {
		asked := x.request.asked()
		missed.Add(x.miss(&asked, x.handler.pages.URI(&asked, x.request.replacer), outcome))
	}
}

// miss describes a request for an address that is missing: which one it is on the page, what led there, and what became of
// it. A client reaches the site by the authority as well.
func (x *exchange) miss(asked *page.Asked, address string, outcome report.Outcome) report.Miss {
	_, host, target, ok := uri.Split(address)
	if !ok { // as in urn:x
		target = address
	}
	m := report.Miss{Host: host, Path: target, Referer: x.request.client.referer, Outcome: outcome}
	switch m.Link = report.LinkOf(m.Referer, host, target, asked.Authority); {
	case m.Link == report.None:
		m.Referer = ""
	case x.isForProgram || !x.request.client.isFollowed || !isOfLink(asked.Method):
		m.Link = report.None // nobody followed it
	}
	return m
}

// isOfLink reports whether a link or a form may send a request with the method. WebDAV clients send a Referer with theirs.
func isOfLink(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodPost
}
