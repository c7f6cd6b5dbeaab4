package notfound

import (
	"sync"

	"github.com/caddy-notfound/notfound/internal/report"
)

// What the replacer of a request knows.
const (
	causePlaceholder = "http.not_found.cause"    // of the page that was written; empty: none was
	decisionKey      = "http.not_found.decision" // for the not_found handlers
)

// decision is what the not_found handlers of one request share. It has a mutex because some handlers, such as
// dotvezz/caddy-mirror, run two chains of one request at once, with the same replacer.
type decision struct {
	mu          sync.Mutex
	innermost   *responseWriter // of the handlers that run; each knows the one around it
	decided     bool            // a 404 becomes a page, or passes
	outcome     report.Outcome  // which of them: the cause of the page, or that it passes
	intercepted bool            // and that was in a response route of intercept, or after it
	reported    bool            // the report has the request, or is not to have it
}

// placeholder is a [caddy.ReplacerFunc].
func (d *decision) placeholder(key string) (any, bool) {
	switch key {
	case decisionKey:
		return d, true
	case causePlaceholder:
		d.mu.Lock()
		defer d.mu.Unlock()
		if !d.decided || d.outcome == report.Passed {
			return "", true
		}
		return d.outcome.String(), true
	}
	return nil, false
}

// enter starts the decision anew for a handler that is about to call the next one. It returns false if a handler of the
// same group runs already.
func (d *decision) enter(rw *responseWriter) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for running := d.innermost; running != nil && rw.handler.Group != ""; running = running.outer {
		if running.handler.Group == rw.handler.Group && running.request.isOfChain(&rw.request) {
			return false
		}
	}
	rw.outer, d.innermost = d.innermost, rw
	d.decided = false
	return true
}

// leave takes a handler off those that run. It need not be the innermost: another chain may run.
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

// decide says that a 404 becomes the page, for a cause, or passes. Whether intercept has a part in it matters to an outer
// handler only, and takes 2% of a page: Caddy's replacer has the stack of the connection grow.
func (d *decision) decide(rw *responseWriter, outcome report.Outcome) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.decided, d.outcome = true, outcome
	d.intercepted = rw.outer != nil && rw.request.isIntercepted()
}

// isDecided reports whether an inner handler has decided about the 404 that arrives. What was decided before intercept
// made a response of its own is void.
func (d *decision) isDecided(rw *responseWriter) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.decided && (d.intercepted || !rw.request.isIntercepted())
}

// report says that the report has the request from now on. It returns false if it had it before.
func (d *decision) report() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	had := d.reported
	d.reported = true
	return !had
}
