package judge

// Reason is why a 404 response passes, or why a dry run sends no page.
type Reason uint8

const (
	noReason          Reason = iota // it does not pass
	reasonInner                     // a not_found handler inside this one has decided, and knows the reason
	reasonKeep                      // the option keep
	reasonType                      // its media type is for programs
	reasonScript                    // a script asks
	reasonJSON                      // its body is JSON, whatever its media type
	reasonNoBrowser                 // replace browsers, and the client opens no page
	reasonReplaceNone               // replace none, and nothing else
	reasonDryRun                    // dry_run, and nothing else
)

// reasons says what operators see of each reason, and whether other clients would get the page. If so, a cache must not
// give them this response.
var reasons = [...]struct {
	name   string
	varies bool
}{
	reasonKeep:        {"keep", false},
	reasonType:        {"media type", false},
	reasonScript:      {"script", true},
	reasonJSON:        {"JSON", true},
	reasonNoBrowser:   {"no browser", true},
	reasonReplaceNone: {"replace none", false},
	reasonDryRun:      {"dry_run", false},
}

// String returns the reason as operators see it. It is empty where the response does not pass, or where a handler
// inside this one has decided.
func (r Reason) String() string { return reasons[r].name }

// IsOwn reports whether a response passes for a reason of this handler, which logs it.
func (r Reason) IsOwn() bool { return r > reasonInner }

// IsReplaceNone reports whether a response passes only because of replace none.
func (r Reason) IsReplaceNone() bool { return r == reasonReplaceNone }

// Passes reports whether a response passes.
func (r Reason) Passes() bool { return r != noReason }
