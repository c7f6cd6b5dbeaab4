package judge

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/report"
	"github.com/caddy-notfound/notfound/internal/request"
	"github.com/caddy-notfound/notfound/internal/response"
)

// exchange is a request, and the header of a 404 response to it. It says what differs from a GET with a response that
// has no type.
type exchange struct {
	method       string
	accept       string
	secFetchMode string

	contentType     string
	contentLength   string
	contentEncoding string
	isMarked        bool // with the field that the tests keep

	handled     error // the request is in the error route of this error
	isUnhandled bool  // it has reached the end of the chain
}

// keepMarked has two matchers, the second of which matches a marked response.
var keepMarked = []caddyhttp.ResponseMatcher{
	{Headers: http.Header{"X-Other": {"*"}}},
	{Headers: http.Header{"X-Marked": {"*"}}},
}

var errMissing = caddyhttp.Error(http.StatusNotFound, errors.New("missing"))

func (e exchange) String() string {
	return strings.Join([]string{e.method, e.accept, e.secFetchMode, e.contentType, e.contentLength}, " ")
}

// request returns the request as Caddy passes it to a handler.
func (e exchange) request() *request.Request {
	r := httptest.NewRequest("GET", "http://a.test/x", nil)
	if e.method != "" {
		r.Method = e.method
	}
	r.Header.Set("Accept", e.accept)
	r.Header.Set("Sec-Fetch-Mode", e.secFetchMode)
	ctx := context.WithValue(r.Context(), caddy.ReplacerCtxKey, caddy.NewReplacer())
	ctx = context.WithValue(ctx, caddyhttp.VarsCtxKey, map[string]any{"unhandled": e.isUnhandled})
	if e.handled != nil {
		ctx = context.WithValue(ctx, caddyhttp.ErrorCtxKey, e.handled)
	}
	req := new(request.Request)
	req.Read(r.WithContext(ctx))
	return req
}

// header returns the header of the response.
func (e exchange) header() http.Header {
	header := make(http.Header)
	for field, value := range map[string]string{
		"Content-Type":     e.contentType,
		"Content-Length":   e.contentLength,
		"Content-Encoding": e.contentEncoding,
	} {
		if value != "" {
			header.Set(field, value)
		}
	}
	if e.isMarked {
		header.Set("X-Marked", "1")
	}
	return header
}

// enter returns a judge of a request.
func enter(t *testing.T, o Options, r *request.Request) *Judge {
	t.Helper()
	j := new(Judge)
	if !j.Enter(&o, r, make(http.Header)) {
		t.Fatal("the judge has not entered")
	}
	return j
}

// judgeIn judges the exchange's 404 response by its header, in the mode that is named, or in a dry run.
func (e exchange) judgeIn(t *testing.T, mode string) *Judge {
	t.Helper()
	o := Options{Mode: mode, Keep: keepMarked}
	if mode == "dry run" {
		o = Options{DryRun: true, Keep: keepMarked}
	}
	j := enter(t, o, e.request())
	verdict := j.Status(http.StatusNotFound, e.header())
	if passes := verdict == response.Pass; passes != (j.reason != noReason) {
		t.Errorf("%s: the verdict is %d for the reason %q", e, verdict, j.reason)
	}
	return j
}

// TestReasons has 404 responses of every kind in each mode. A reason that is empty means that the page takes the
// place of the response.
func TestReasons(t *testing.T) {
	for _, tt := range []struct {
		exchanges []exchange
		reasons   map[string]string
	}{
		{
			exchanges: []exchange{
				{},
				{contentType: "text/html"},
				{contentType: "TEXT/HTML; charset=utf-8"},
				{contentType: "application/xhtml+xml"},
				{contentType: " text/plain ;x=y"},
				{contentType: ";"},
				{contentType: "application/json", contentLength: "0"},
				{method: "HEAD", contentType: "text/html", contentLength: "0"},
				{secFetchMode: "no-cors"},
				{accept: "*/*", contentType: "text/html"},
			},
			reasons: map[string]string{"browsers": "no browser", "none": "replace none", "dry run": "dry_run"},
		},
		{
			exchanges: []exchange{
				{secFetchMode: "navigate"},
				{accept: "application/xml, Text/HTML;q=0.1", contentType: "text/html"},
				{method: "HEAD", accept: "text/html", contentType: "text/plain"},
			},
			reasons: map[string]string{"none": "replace none", "dry run": "dry_run"},
		},
		{
			exchanges: []exchange{
				{contentType: "application/json"},
				{contentType: "application/problem+json; charset=utf-8"},
				{contentType: "APPLICATION/VND.API+JSON"},
				{contentType: "application/xml"},
				{contentType: "image/png"},
				{contentType: "text/css"},
				{contentType: "text/event-stream"},
				{contentType: "text/htmlx"},
				{contentType: "application/grpc", contentLength: "0"},
				{method: "HEAD", contentType: "application/json", contentLength: "0"},
				{contentType: "image/png", secFetchMode: "cors"},
			},
			reasons: map[string]string{
				"":         "media type",
				"pages":    "media type",
				"browsers": "media type",
				"none":     "media type",
				"dry run":  "media type",
			},
		},
		{
			exchanges: []exchange{
				{contentType: "text/html", secFetchMode: "cors"},
				{contentType: "text/html", secFetchMode: "cors", accept: "text/html"},
				{secFetchMode: "same-origin"},
			},
			reasons: map[string]string{
				"":         "script",
				"pages":    "script",
				"browsers": "script",
				"none":     "script",
				"dry run":  "script",
			},
		},
		{
			exchanges: []exchange{
				{contentType: "text/html", isMarked: true},
				{method: "HEAD", contentType: "image/png", isMarked: true},
				{secFetchMode: "cors", isMarked: true},
			},
			reasons: map[string]string{
				"":         "keep",
				"pages":    "keep",
				"browsers": "keep",
				"all":      "keep",
				"none":     "keep",
				"dry run":  "keep",
			},
		},
	} {
		for _, e := range tt.exchanges {
			for _, mode := range []string{"", "pages", "browsers", "all", "none", "dry run"} {
				if got := e.judgeIn(t, mode).Reason().String(); got != tt.reasons[mode] {
					t.Errorf("%s, %q: got the reason %q, want %q", e, mode, got, tt.reasons[mode])
				}
			}
		}
	}
}

// TestJSONPassesWhateverItsLabel has a body follow a 404 response that is replaced by its header, or would be but for
// the mode. A client that opens a page gets the page: what begins as JSON may be markup that somebody has had
// reflected.
func TestJSONPassesWhateverItsLabel(t *testing.T) {
	const browser = "text/html,application/xhtml+xml,*/*;q=0.8"
	for name, tt := range map[string]struct {
		exchange exchange
		body     string
		isJSON   bool
	}{
		"any client":                {exchange{accept: "*/*"}, `{"error":1}`, true},
		"no Accept, and blanks":     {exchange{}, "\r\n\t {}", true},
		"one brace":                 {exchange{}, "{", true},
		"no body":                   {exchange{}, "", false},
		"blanks alone":              {exchange{}, " ", false},
		"an array":                  {exchange{}, "[1]", false},
		"an object later":           {exchange{}, "404 {}", false},
		"a browser":                 {exchange{accept: browser}, "{", false},
		"a client that refuses it":  {exchange{accept: "*/*, Text/HTML;q=0"}, "{", false},
		"a navigation without type": {exchange{accept: "*/*", secFetchMode: "navigate"}, "{", false},
		"HEAD":                      {exchange{method: "HEAD"}, "{", false},
		"a compressed body":         {exchange{contentEncoding: "gzip"}, "{", false},
	} {
		for _, label := range []string{"", "text/plain", "text/html"} {
			tt.exchange.contentType = label
			for mode, otherwise := range map[string]string{"": "", "none": "replace none", "dry run": "dry_run"} {
				j := tt.exchange.judgeIn(t, mode)
				passes := j.Body([]byte(tt.body), tt.exchange.header())
				want := otherwise
				if tt.isJSON {
					want = "JSON"
				}
				if got := j.Reason().String(); got != want || passes != (want != "") || j.IsForProgram() != tt.isJSON {
					t.Errorf("%s, %q, %s: got the reason %q, want %q", name, label, mode, got, want)
				}
			}
			if j := tt.exchange.judgeIn(t, "all"); j.Body([]byte(tt.body), tt.exchange.header()) {
				t.Errorf("%s, %q: it passes, though all are replaced", name, label)
			}
		}
	}
}

// TestVarySaysWhoGetsThePage has responses pass because of who asks or of their body. For another client, the page
// would take their place.
func TestVarySaysWhoGetsThePage(t *testing.T) {
	script := exchange{secFetchMode: "cors"}
	for name, tt := range map[string]struct {
		exchange exchange
		mode     string
		body     string
		varies   bool
	}{
		"a script":                   {script, "pages", "", true},
		"JSON under another label":   {exchange{}, "pages", "{}", true},
		"a client, replace browsers": {exchange{}, "browsers", "", true},
		"a script, replace browsers": {script, "browsers", "", true},
		"a media type":               {exchange{contentType: "image/png"}, "pages", "", false},
		"what is kept":               {exchange{isMarked: true}, "pages", "", false},
		"a script, replace none":     {script, "none", "", false},
		"JSON, replace none":         {exchange{}, "none", "{}", false},
	} {
		j := enter(t, Options{Mode: tt.mode, Keep: keepMarked}, tt.exchange.request())
		header := tt.exchange.header()
		j.Status(http.StatusNotFound, header)
		j.Body([]byte(tt.body), header)
		j.Sending(header)
		var want []string
		if tt.varies {
			want = []string{"Accept, Sec-Fetch-Mode"}
		}
		if got := header["Vary"]; !slices.Equal(got, want) {
			t.Errorf("%s: got Vary %q, want %q", name, got, want)
		}
	}
}

// TestStatusThatIsNoAnswer has the end of the chain reached, or not.
func TestStatusThatIsNoAnswer(t *testing.T) {
	for name, tt := range map[string]struct {
		status      int
		isUnhandled bool
		length      string
		want        response.Verdict
	}{
		"status 0":                    {0, true, "", response.Hold},
		"status 0 of a handler":       {0, false, "", response.Pass},
		"200 for an empty buffer":     {200, true, "", response.Ignore},
		"200 of the length 0":         {200, true, "0", response.Ignore},
		"200 of a length":             {200, true, "7", response.Pass},
		"200 of a handler":            {200, false, "", response.Pass},
		"500 at the end of the chain": {500, true, "", response.Pass},
		"100":                         {100, true, "", response.Pass},
	} {
		j := enter(t, Options{}, exchange{isUnhandled: tt.isUnhandled}.request())
		if got := j.Status(tt.status, exchange{contentLength: tt.length}.header()); got != tt.want {
			t.Errorf("%s: got the verdict %d, want %d", name, got, tt.want)
		}
	}
}

// TestBareStatusOfAnErrorRoute has Caddy's end of an error route, or a handler of the route, write a 404.
func TestBareStatusOfAnErrorRoute(t *testing.T) {
	ofMissing := exchange{handled: errMissing}
	withType, withLength, marked := ofMissing, ofMissing, ofMissing
	withType.contentType = "text/html"
	withLength.contentLength = "7"
	marked.isMarked = true
	for name, tt := range map[string]struct {
		exchange exchange
		left     http.Header // by the handler that failed
		isPage   bool
	}{
		"the end of the route":              {ofMissing, nil, true},
		"with what the failed handler left": {withType, withType.header(), true},
		"with a type":                       {withType, nil, false},
		"with a length":                     {withLength, nil, false},
		"that is kept":                      {marked, nil, false},
		"that was kept on entry":            {marked, marked.header(), true},
		"of another error":                  {exchange{handled: errors.New("broken")}, nil, false},
	} {
		j := new(Judge)
		left := tt.left
		if left == nil {
			left = make(http.Header)
		}
		j.Enter(&Options{Mode: None, Keep: keepMarked}, tt.exchange.request(), left)
		for _, values := range left {
			values[0] = "changed in place"
		}
		j.Status(http.StatusNotFound, tt.exchange.header())
		outcome, isMissing := j.Decide(nil, !j.isHeld)
		if isPage := isMissing && outcome == report.Error; isPage != tt.isPage {
			t.Errorf("%s: got %s, %v, want the page: %v", name, outcome, isMissing, tt.isPage)
		}

		if j.IsStatusZero() {
			t.Errorf("%s: it counts as the status 0", name)
		}

		// what follows makes it a response
		if j.Body(nil, tt.exchange.header()); j.isHeld {
			t.Errorf("%s: followed by more, it is still held", name)
		}
	}
}

// TestInnerHandlerDecides has two handlers in each other, in an error route and in none. The inner one keeps the
// response, which the outer one would replace.
func TestInnerHandlerDecides(t *testing.T) {
	for name, handled := range map[string]error{"no error route": nil, "an error route": errMissing} {
		e := exchange{isMarked: true, handled: handled}
		r := e.request()
		outer := enter(t, Options{Mode: All}, r)
		inner := enter(t, Options{Keep: keepMarked}, r)
		if verdict := inner.Status(http.StatusNotFound, e.header()); verdict != response.Pass {
			t.Errorf("%s: the inner one's verdict is %d", name, verdict)
		}
		inner.Leave()
		if verdict := outer.Status(http.StatusNotFound, e.header()); verdict != response.Pass {
			t.Errorf("%s: the outer one's verdict is %d", name, verdict)
		}
		if outer.Reason().String() != "" {
			t.Errorf("%s: the outer one has the reason %q, which is the inner one's", name, outer.Reason())
		}
		if outcome, isMissing := outer.Decide(nil, true); outcome != report.Passed || !isMissing {
			t.Errorf("%s: it counts as %s, %v", name, outcome, isMissing)
		}

		// the next handler that begins decides anew
		again := enter(t, Options{Mode: All}, r)
		if verdict := again.Status(http.StatusNotFound, e.header()); verdict != response.Hold {
			t.Errorf("%s: the verdict of the next one is %d", name, verdict)
		}
	}
}

// TestDryRunDecidesNothing has a dry run between two handlers, and beside them.
func TestDryRunDecidesNothing(t *testing.T) {
	e := exchange{isMarked: true}
	r := e.request()
	outer := enter(t, Options{}, r)
	dry := enter(t, Options{DryRun: true, Keep: keepMarked}, r)
	dry.Status(http.StatusNotFound, e.header())
	if verdict := outer.Status(http.StatusNotFound, e.header()); verdict != response.Hold {
		t.Errorf("after a dry run has kept it, the verdict is %d", verdict)
	}

	inner := enter(t, Options{Keep: keepMarked}, r)
	inner.Status(http.StatusNotFound, e.header())
	enter(t, Options{DryRun: true}, r)
	if !outer.shared.hasDecided() {
		t.Error("a dry run has the decision begin anew")
	}
}

// TestDryRunCountsByTheMode has a client that opens no page.
func TestDryRunCountsByTheMode(t *testing.T) {
	for mode, want := range map[string]report.Outcome{Pages: report.Replaceable, Browsers: report.Passed} {
		j := enter(t, Options{Mode: mode, DryRun: true}, exchange{}.request())
		j.Status(http.StatusNotFound, make(http.Header))
		if outcome, _ := j.Decide(nil, true); outcome != want {
			t.Errorf("replace %s: it counts as %s, want %s", mode, outcome, want)
		}
	}
}

// TestReasonPlaceholder has handlers in each other, the innermost one last.
func TestReasonPlaceholder(t *testing.T) {
	kept := Options{Keep: keepMarked}
	for name, tt := range map[string]struct {
		handlers []Options
		header   http.Header
		want     string
	}{
		"a response that passes":          {[]Options{kept}, exchange{isMarked: true}.header(), "keep"},
		"the page":                        {[]Options{{}}, exchange{}.header(), ""},
		"one inside another":              {[]Options{{Mode: All}, kept}, exchange{isMarked: true}.header(), "keep"},
		"a dry run":                       {[]Options{{DryRun: true}}, exchange{}.header(), "dry_run"},
		"a dry run around the page":       {[]Options{{DryRun: true}, {}}, exchange{}.header(), ""},
		"a dry run in the page":           {[]Options{{}, {DryRun: true}}, exchange{}.header(), ""},
		"a dry run around one that keeps": {[]Options{{DryRun: true}, kept}, exchange{isMarked: true}.header(), "keep"},
		"a dry run in replace none":       {[]Options{{Mode: None}, {DryRun: true}}, exchange{}.header(), "replace none"},
	} {
		r := exchange{}.request()
		var judges []*Judge
		for _, o := range tt.handlers {
			judges = append(judges, enter(t, o, r))
		}
		for _, j := range slices.Backward(judges) {
			j.Status(http.StatusNotFound, tt.header)
			if outcome, isMissing := j.Decide(nil, !j.isHeld); isMissing && outcome.IsCause() {
				j.DecidePage(outcome)
			}
			j.Leave()
		}
		if got, known := r.Replacer.GetString("http.not_found.reason"); got != tt.want || !known {
			t.Errorf("%s: got the reason %q, want %q", name, got, tt.want)
		}
	}
	r := exchange{}.request()
	enter(t, Options{}, r)
	if got, known := r.Replacer.GetString("http.not_found.reason"); got != "" || !known {
		t.Errorf("where no 404 came, got the reason %q, %v", got, known)
	}
}

// TestReasonsAreDocumented looks for each reason in the table of the page that explains them.
func TestReasonsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/no-page.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range reasonNames[reasonKeep:] {
		if !strings.Contains(string(page), "\n| `"+name+"` |") {
			t.Errorf("docs/no-page.md has no row for %s", name)
		}
	}
}

// TestCausePlaceholder has a page, no page, and a dry run, which leaves the placeholder as it is without not_found.
func TestCausePlaceholder(t *testing.T) {
	for name, tt := range map[string]struct {
		options Options
		isPage  bool
		want    string
		known   bool
	}{
		"a page":    {Options{}, true, "error", true},
		"no page":   {Options{}, false, "", true},
		"a dry run": {Options{DryRun: true}, false, "", false},
	} {
		r := exchange{}.request()
		j := enter(t, tt.options, r)
		if tt.isPage {
			j.DecidePage(report.Error)
		}
		if got, known := r.Replacer.GetString("http.not_found.cause"); got != tt.want || known != tt.known {
			t.Errorf("%s: got %q, known: %v", name, got, known)
		}
	}
}

// TestWhyThePageAnswers has the next handler return without a response that counts.
func TestWhyThePageAnswers(t *testing.T) {
	broken := caddyhttp.Error(http.StatusBadGateway, errors.New("broken"))
	for name, tt := range map[string]struct {
		handled     error
		err         error
		isUnhandled bool
		hasAnswered bool
		want        string
	}{
		"a handler that is silent":       {want: ""},
		"the end of the chain":           {isUnhandled: true, want: "unanswered"},
		"a response before it":           {isUnhandled: true, hasAnswered: true, want: ""},
		"a 404 error":                    {err: errMissing, want: "error"},
		"a 404 error after a response":   {err: errMissing, hasAnswered: true, want: ""},
		"another error":                  {err: broken, want: ""},
		"another error, at the end":      {err: broken, isUnhandled: true, want: ""},
		"the end of an error route":      {handled: errMissing, isUnhandled: true, want: "error"},
		"an error in it":                 {handled: errMissing, err: broken, want: "error"},
		"a silent handler in it":         {handled: errMissing, want: ""},
		"the end of another error route": {handled: broken, isUnhandled: true, want: ""},
		"a 404 error in it":              {handled: broken, err: errMissing, want: ""},
	} {
		r := exchange{handled: tt.handled, isUnhandled: tt.isUnhandled}.request()
		outcome, isPage := enter(t, Options{}, r).Decide(tt.err, tt.hasAnswered)
		got := ""
		if isPage {
			got = outcome.String()
		}
		if got != tt.want {
			t.Errorf("%s: got the cause %q, want %q", name, got, tt.want)
		}
	}
}

// TestRequestCountsOnce has two handlers claim the count.
func TestRequestCountsOnce(t *testing.T) {
	r := exchange{}.request()
	outer, inner := enter(t, Options{}, r), enter(t, Options{}, r)
	if !inner.ClaimCount() || outer.ClaimCount() {
		t.Error("the request does not count once, for the inner handler")
	}
}
