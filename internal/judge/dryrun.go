package judge

import (
	"net/http"

	"github.com/caddy-notfound/notfound/internal/response"
)

// DryRun is a judge that only observes: everything passes, and it decides nothing for the handlers around it.
type DryRun struct {
	*Judge
	isIgnored bool        // the response is so far a status that is no answer
	header    http.Header // that a 404 response began with
}

// Status implements [response.Rules].
func (d *DryRun) Status(status int, header http.Header) response.Verdict {
	verdict := d.judgeStatus(status, header)
	if response.IsFinal(status) {
		d.isIgnored = verdict == response.Ignore
	}
	if status == http.StatusNotFound {
		d.header = header.Clone() // the handler may change it before the body
	}
	return response.Pass
}

// Body implements [response.Rules].
func (d *DryRun) Body(first []byte, _ http.Header) (passes bool) {
	d.isIgnored = false
	d.judgeBody(first, d.header)
	return true
}

// Sending implements [response.Rules].
func (*DryRun) Sending(http.Header) {}

// Decide returns why the page would answer the request. The dry run is then the reason why it does not.
func (d *DryRun) Decide(err error, hasAnswered bool) Cause {
	cause := d.Judge.Decide(err, hasAnswered && !d.isIgnored)
	if cause != NoCause {
		d.reason = reasonDryRun
	}
	d.shared.recordReason(d.reason)
	return cause
}
