package notfound

import (
	"github.com/caddy-notfound/notfound/internal/judge"
	"github.com/caddy-notfound/notfound/internal/page"
	"github.com/caddy-notfound/notfound/internal/report"
)

// countPage counts a page in the metric and, with the option report, in the report. The address is the one on the page.
func (x *exchange) countPage(cause judge.Cause, address string) {
	asked := x.request.Asked()
	miss := x.miss(&asked, address, outcomes[cause])
	report.CountPage(&miss)
	isFirst := x.judge.ClaimCount() // also without the option, so that no outer handler counts this request
	if counter := x.handler.counter; isFirst && counter != nil {
		counter.Add(miss)
	}
}

// countPassed counts a 404 response that has passed.
func (x *exchange) countPassed() {
	reason := x.judge.Reason()
	switch {
	case !reason.Passes():
	case reason.IsReplaceNone():
		x.countNoPage(report.OutcomeReplaceable)
	default:
		x.countNoPage(report.OutcomePassed)
	}
}

// countDryRun counts a request that the page would have answered.
func (x *exchange) countDryRun(cause judge.Cause) {
	if cause == judge.Response {
		x.countNoPage(report.OutcomeReplaceable)
		return
	}
	x.countNoPage(outcomes[cause])
}

// countNoPage counts a request for which this handler wrote no page, unless an inner one has counted it or written one.
func (x *exchange) countNoPage(outcome report.Outcome) {
	counter := x.handler.counter
	if counter == nil || !x.judge.ClaimCount() {
		return
	}
	asked, address := x.askedAndAddress()
	counter.Add(x.miss(&asked, address, outcome))
}

// miss describes a request for a missing address. A request of a program counts as no link, whatever its Referer.
func (x *exchange) miss(asked *page.Asked, address string, outcome report.Outcome) report.Miss {
	miss := report.NewMiss(address, asked.Authority, asked.Method, x.referer)
	miss.Outcome = outcome
	miss.OpensPage = x.request.OpensPage()
	isFetched := x.request.IsScript && !miss.OpensPage // a script that loads pages, as htmx does, asks for HTML
	if isFetched || x.judge.IsForProgram() {
		miss.Link = report.NoLink
	}
	return miss
}

// outcomes maps the cause of a page to the outcome that it counts as.
var outcomes = [...]report.Outcome{
	judge.Unanswered: report.OutcomeUnanswered,
	judge.Error:      report.OutcomeError,
	judge.Response:   report.OutcomeResponse,
}
