package judge

import (
	"context"
	"net/http"
	"strings"
	"sync"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/request"
)

// Placeholders of a request.
const (
	causePlaceholder  = "http.not_found.cause"    // of the page that was written; empty: none was
	reasonPlaceholder = "http.not_found.reason"   // why a 404 response passed; empty: none did
	sharedKey         = "http.not_found.decision" // for the not_found handlers alone
	errorPlaceholder  = "http.error"              // and those below it: the error that a page answers
)

// shared is what the not_found handlers of one request share. Caddy's replacer carries it, because the replacer is the
// one value of a request that every handler may add to: the request's context reaches the next handlers alone, and not
// an error route, and the variables are read without a lock by a dial to an upstream that outlives the response.
//
// A mutex guards it, because some handlers, such as dotvezz/caddy-mirror, run two chains of one request at once, with
// the same replacer. Adding it to the replacer takes no lock, so two chains are only safe inside a not_found handler.
type shared struct {
	mu        sync.Mutex
	innermost *Judge // the innermost running handler; its outer is the one around it
	isDecided bool   // a 404 becomes a page, or passes
	cause     Cause  // of the page
	err       error  // the error that the page answers
	reason    Reason // why it passes
	isCounted bool   // a handler has claimed to count the request: it has the option report, or has written a page
}

// sharedBy returns what the handlers of a request share. The first handler provides its own.
func sharedBy(r *request.Request, own *shared) *shared {
	value, _ := r.Replacer.Get(sharedKey)
	if s, ok := value.(*shared); ok {
		return s
	}
	r.Replacer.Map(own.placeholder)
	return own
}

// String returns nothing, so that a page which names the placeholder shows nothing.
func (*shared) String() string { return "" }

// placeholder is a [caddy.ReplacerFunc].
func (s *shared) placeholder(key string) (any, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch key {
	case sharedKey:
		return s, true
	case causePlaceholder:
		return s.cause.String(), true
	case reasonPlaceholder:
		return s.reason.String(), true
	}
	isOfError := key == errorPlaceholder || strings.HasPrefix(key, errorPlaceholder+".")
	if isOfError && s.cause != NoCause {
		return valueAtError(key, s.err), true
	}
	return nil, false
}

// valueAtError returns the value that Caddy gives a placeholder in an error route. Without an error, it is nil.
func valueAtError(key string, err error) any {
	repl := caddy.NewEmptyReplacer()
	ctx := context.WithValue(context.Background(), caddy.ReplacerCtxKey, repl)
	new(caddyhttp.HTTPErrorConfig).WithError(new(http.Request).WithContext(ctx), err)
	value, _ := repl.Get(key)
	return value
}

// push adds a handler to those that are running. It returns false if one of the same group is already running.
func (s *shared) push(j *Judge) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if group := j.options.Group; group != "" {
		for running := s.innermost; running != nil; running = running.outer {
			if running.options.Group == group {
				return false
			}
		}
	}
	j.outer = s.innermost
	s.innermost = j
	return true
}

// restart discards an earlier decision: an error route runs after the chain of the site, in which a handler may have
// decided, and one not_found may follow another in a chain.
func (s *shared) restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isDecided = false
	s.cause = NoCause
	s.reason = noReason
}

// remove removes a handler from those that are running. It need not be the innermost, because another chain may run.
func (s *shared) remove(j *Judge) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := &s.innermost; *p != nil; p = &(*p).outer {
		if *p == j {
			*p = j.outer
			return
		}
	}
}

// record records that a 404 becomes the page, for a cause and perhaps an error, or that it passes for a reason.
func (s *shared) record(cause Cause, err error, why Reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isDecided = true
	s.cause = cause
	s.err = err
	s.reason = why
}

// recordReason records why there is no page, unless a handler has decided.
func (s *shared) recordReason(why Reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isDecided && why != noReason {
		s.reason = why
	}
}

// hasDecided reports whether a handler has decided since the last one began to.
func (s *shared) hasDecided() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isDecided
}

// claimCount reports whether the caller is the first to count the request.
func (s *shared) claimCount() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.isCounted
	s.isCounted = true
	return !was
}
