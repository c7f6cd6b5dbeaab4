package notfound

import (
	"sync"

	"github.com/caddy-notfound/notfound/internal/report"
)

// Placeholders of a request.
const (
	causePlaceholder = "http.not_found.cause"    // of the page that was written; empty: none was
	decisionKey      = "http.not_found.decision" // for the not_found handlers alone
)

// decision is what the not_found handlers of one request share. It has a mutex because some handlers, such as
// dotvezz/caddy-mirror, run two chains of one request at once, with the same replacer.
type decision struct {
	mu        sync.Mutex
	innermost *responseWriter // of the handlers that are running; each has the one around it
	isLive    bool            // a handler without dry_run has begun
	decided   bool            // a 404 becomes a page, or passes
	outcome   report.Outcome  // which of them: the cause of the page, or that it passes
	counted   bool            // a handler has claimed the count, even one that does not report
}

// String has a page that names the placeholder show nothing.
func (*decision) String() string { return "" }

// placeholder is a [caddy.ReplacerFunc].
func (d *decision) placeholder(key string) (any, bool) {
	switch key {
	case decisionKey:
		return d, true
	case causePlaceholder:
		d.mu.Lock()
		defer d.mu.Unlock()
		if !d.decided || d.outcome == report.Passed {
			return "", d.isLive
		}
		return d.outcome.String(), true
	}
	return nil, false
}

// enter adds a handler to those that are running, and starts the decision anew, except for a dry run. It returns false
// if one of the same group is already running.
func (d *decision) enter(rw *responseWriter) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for running := d.innermost; running != nil && rw.handler.Group != ""; running = running.outer {
		if running.handler.Group == rw.handler.Group {
			return false
		}
	}
	rw.outer, d.innermost = d.innermost, rw
	if !rw.handler.DryRun {
		d.isLive, d.decided = true, false
	}
	return true
}

// leave removes a handler from those that are running. It need not be the innermost: another chain may run.
func (d *decision) leave(rw *responseWriter) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for p := &d.innermost; *p != nil; p = &(*p).outer {
		if *p == rw {
			*p = rw.outer
			return
		}
	}
}

// decide says that a 404 becomes the page, for a cause, or passes.
func (d *decision) decide(outcome report.Outcome) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.decided, d.outcome = true, outcome
}

// isDecided reports whether an inner handler has decided.
func (d *decision) isDecided() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.decided
}

// claimCount has the caller count the request in the report. It returns false if another handler has claimed it.
func (d *decision) claimCount() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	was := d.counted
	d.counted = true
	return !was
}
