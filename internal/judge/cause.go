package judge

// Cause is why the page answers a request.
type Cause uint8

const (
	NoCause    Cause = iota // it does not
	Unanswered              // no handler answered
	Error                   // a handler returned an error with status 404
	Response                // the page takes the place of a 404 response
)

var causeNames = [...]string{"", "unanswered", "error", "response"}

// String returns the cause as operators see it.
func (c Cause) String() string { return causeNames[c] }
