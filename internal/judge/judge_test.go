package judge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/request"
	"github.com/caddy-notfound/notfound/internal/response"
)

// situation is a request, and the header of a 404 response to it. It says what differs from a GET with a response that
// has no type.
type situation struct {
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

// String names the fields that are set.
func (s situation) String() string {
	var fields []string
	for field, value := range reflect.ValueOf(s).Fields() {
		if !value.IsZero() {
			fields = append(fields, fmt.Sprintf("%s: %v", field.Name, value))
		}
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

// keepMarked has two matchers, the second of which matches a marked response.
var keepMarked = []caddyhttp.ResponseMatcher{
	{Headers: http.Header{"X-Other": {"*"}}},
	{Headers: http.Header{"X-Marked": {"*"}}},
}

var (
	errMissing = caddyhttp.Error(http.StatusNotFound, errors.New("missing"))
	errBroken  = caddyhttp.Error(http.StatusBadGateway, errors.New("broken"))
)

// request returns the request as Caddy passes it to a handler.
func (s situation) request() *request.Request {
	r := httptest.NewRequest("GET", "http://a.test/x", nil)
	if s.method != "" {
		r.Method = s.method
	}
	r.Header.Set("Accept", s.accept)
	r.Header.Set("Sec-Fetch-Mode", s.secFetchMode)
	replacer := caddy.NewReplacer()
	vars := map[string]any{"unhandled": s.isUnhandled}
	ctx := context.WithValue(r.Context(), caddy.ReplacerCtxKey, replacer)
	ctx = context.WithValue(ctx, caddyhttp.VarsCtxKey, vars)
	if s.handled != nil {
		ctx = context.WithValue(ctx, caddyhttp.ErrorCtxKey, s.handled)
	}
	req := new(request.Request)
	req.Read(r.WithContext(ctx))
	return req
}

// header returns the header of the response.
func (s situation) header() http.Header {
	header := make(http.Header)
	for field, value := range map[string]string{
		"Content-Type":     s.contentType,
		"Content-Length":   s.contentLength,
		"Content-Encoding": s.contentEncoding,
	} {
		if value != "" {
			header.Set(field, value)
		}
	}
	if s.isMarked {
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

// want404 checks the verdict on the situation's 404 response.
func want404(t *testing.T, j *Judge, s situation, want response.Verdict) {
	t.Helper()
	if got := j.Status(http.StatusNotFound, s.header()); got != want {
		t.Errorf("%+v: got the verdict %d, want %d", s, got, want)
	}
}

// wantReason checks why a 404 response passes. If the reason is empty, the page takes its place.
func wantReason(t *testing.T, j *Judge, what any, mode, want string) {
	t.Helper()
	got := j.Reason().String()
	isHeld := j.cause != NoCause
	if isPage := want == ""; got != want || isHeld != isPage && mode != dryRun {
		t.Errorf("%v, mode %q: got the reason %q, held: %v, want %q", what, mode, got, isHeld, want)
	}
}

// dryRun is a mode in the tests.
const dryRun = "dry run"

// judgeIn judges the situation's 404 response by its header, and perhaps by its body, in the mode that is named, or in
// a dry run.
func (s situation) judgeIn(t *testing.T, mode string, body ...string) *Judge {
	t.Helper()
	o := Options{Mode: mode, Keep: keepMarked}
	if mode == dryRun {
		o.Mode = Pages
	}
	j := enter(t, o, s.request())
	var rules response.Rules = j
	dry := &DryRun{Judge: j}
	if mode == dryRun {
		rules = dry
	}
	rules.Status(http.StatusNotFound, s.header())
	for _, first := range body {
		rules.Body([]byte(first), s.header())
	}
	if mode == dryRun {
		dry.Decide(nil, true)
	}
	return j
}

// reasonsByMode are why 404 responses of every kind pass in each mode. If the reason is empty, the page takes the place
// of the response.
var reasonsByMode = []struct {
	situations []situation
	reasons    map[string]string
}{
	{
		situations: []situation{
			{},
			{contentType: "text/html"},
			{contentType: "TEXT/HTML; charset=utf-8"},
			{contentType: " text/html charset=UTF-8"},
			{contentType: "application/xhtml+xml"},
			{contentType: " text/plain ;x=y"},
			{contentType: ";"},
			{contentType: "application/json", contentLength: "0"},
			{method: "HEAD", contentType: "text/html", contentLength: "0"},
			{secFetchMode: "no-cors"},
			{accept: "*/*", contentType: "text/html"},
		},
		reasons: map[string]string{
			Browsers: "no browser",
			None:     "replace none",
			dryRun:   "dry_run",
		},
	},
	{
		situations: []situation{
			{secFetchMode: "navigate"},
			{accept: "application/xml, Text/HTML;q=0.1", contentType: "text/html"},
			{method: "HEAD", accept: "text/html", contentType: "text/plain"},
		},
		reasons: map[string]string{
			None:   "replace none",
			dryRun: "dry_run",
		},
	},
	{
		situations: []situation{
			{contentType: "application/json"},
			{contentType: "application/problem+json; charset=utf-8"},
			{contentType: "image/png"},
			{contentType: "text/css"},
			{contentType: "text/htmlx"},
			{contentType: "text/html,application/json"},
			{contentType: "application/grpc+proto", contentLength: "0"},
			{method: "HEAD", contentType: "application/json", contentLength: "0"},
			{contentType: "image/png", secFetchMode: "cors"},
		},
		reasons: map[string]string{
			Pages:    "media type",
			Browsers: "media type",
			None:     "media type",
			dryRun:   "media type",
		},
	},
	{
		situations: []situation{
			{contentType: "text/html", secFetchMode: "cors"},
			{contentType: "text/html", secFetchMode: "cors", accept: "text/html"},
			{secFetchMode: "same-origin"},
		},
		reasons: map[string]string{
			Pages:    "script",
			Browsers: "script",
			None:     "script",
			dryRun:   "script",
		},
	},
	{
		situations: []situation{
			{contentType: "text/html", isMarked: true},
			{method: "HEAD", contentType: "image/png", isMarked: true},
			{secFetchMode: "cors", isMarked: true},
		},
		reasons: map[string]string{
			Pages:    "keep",
			Browsers: "keep",
			All:      "keep",
			None:     "keep",
			dryRun:   "keep",
		},
	},
}

func TestReasons(t *testing.T) {
	for _, tt := range reasonsByMode {
		for _, s := range tt.situations {
			for _, mode := range append(modes, dryRun) {
				j := s.judgeIn(t, mode)
				wantReason(t, j, s, mode, tt.reasons[mode])
			}
		}
	}
}

// TestJSONPassesWhateverItsLabel has a body follow a 404 response that is replaced by its header, or would be but for
// the mode.
func TestJSONPassesWhateverItsLabel(t *testing.T) {
	s := situation{accept: "*/*", contentType: "text/html"}
	for body, isJSON := range map[string]bool{
		`{"error":1}`: true,
		"\r\n\t {}":   true,
		"{":           true,
		"":            false,
		" ":           false,
		"[1]":         false,
		"404 {}":      false,
	} {
		for mode, want := range map[string]string{
			Pages:  "",
			None:   "replace none",
			dryRun: "dry_run",
		} {
			if isJSON {
				want = "JSON"
			}
			j := s.judgeIn(t, mode, body)
			wantReason(t, j, body, mode, want)
			if j.IsForProgram() != isJSON {
				t.Errorf("%q, %s: for a program: %v", body, mode, j.IsForProgram())
			}
		}
	}
}

// TestWhatBeginsAsJSONIsReplaced has a client open a page, which gets the page: what begins as JSON may be markup that
// somebody has had reflected. Where the body cannot be read, it does not decide.
func TestWhatBeginsAsJSONIsReplaced(t *testing.T) {
	for _, s := range []situation{
		{accept: "text/html,application/xhtml+xml,*/*;q=0.8"},
		{accept: "*/*, Text/HTML;q=0.1"},
		{accept: "*/*", secFetchMode: "navigate"},
		{method: "HEAD"},
		{contentEncoding: "gzip"},
	} {
		j := s.judgeIn(t, Pages)
		if j.Body([]byte("{"), s.header()) {
			t.Errorf("%+v passes", s)
		}
	}
	var s situation
	j := s.judgeIn(t, All)
	if j.Body([]byte("{"), s.header()) {
		t.Error("it passes, though all are replaced")
	}
}

// TestVarySaysWhoGetsThePage has four clients get the same response. If one of them gets the page, the response varies
// for those to whom it passes, or a cache would give it to the one. Each reason has to occur.
func TestVarySaysWhoGetsThePage(t *testing.T) {
	occurs := map[Reason]bool{reasonDryRun: true} // changes nothing
	for _, tt := range reasonsByMode {
		for _, res := range tt.situations {
			for _, mode := range modes {
				for _, body := range []string{"", "{}"} {
					for _, why := range passesWithVary(t, res, mode, body) {
						occurs[why] = true
					}
				}
			}
		}
	}
	for r := reasonKeep; int(r) < len(reasons); r++ {
		if !occurs[r] {
			t.Errorf("no situation has the reason %s", r)
		}
	}
}

// passesWithVary has the clients get a response, and returns the reasons why it passes.
func passesWithVary(t *testing.T, res situation, mode, body string) (whys []Reason) {
	var passing []*Judge
	clients := []situation{
		{accept: "text/html,*/*;q=0.8", secFetchMode: "navigate"},
		{accept: "*/*", secFetchMode: "cors"},
		{accept: "*/*"},
		{accept: "text/html"},
	}
	for _, client := range clients {
		s := res
		s.accept, s.secFetchMode = client.accept, client.secFetchMode
		j := s.judgeIn(t, mode)
		if j.Body([]byte(body), s.header()) {
			passing = append(passing, j)
		}
	}
	want := ""
	if len(passing) < len(clients) {
		want = "Accept, Sec-Fetch-Mode, Upgrade-Insecure-Requests"
	}
	for _, j := range passing {
		whys = append(whys, j.Reason())
		header := make(http.Header)
		if j.Sending(header); header.Get("Vary") != want {
			t.Errorf("%s, %v, %q, %s: got %v, want Vary %q", mode, res, body, j.Reason(), header, want)
		}
	}
	return whys
}

// TestStatusThatIsNoAnswer has the end of the chain reached, or a handler answer.
func TestStatusThatIsNoAnswer(t *testing.T) {
	atEnd := situation{isUnhandled: true}
	withLength0 := situation{isUnhandled: true, contentLength: "0"}
	withLength7 := situation{isUnhandled: true, contentLength: "7"}
	for _, tt := range []struct {
		status    int
		situation situation
		want      response.Verdict
	}{
		{status: 0, situation: atEnd, want: response.Hold},
		{status: 0, want: response.Pass},
		{status: 200, situation: atEnd, want: response.Ignore},
		{status: 200, situation: withLength0, want: response.Ignore},
		{status: 200, situation: withLength7, want: response.Pass},
		{status: 200, want: response.Pass},
		{status: 500, situation: atEnd, want: response.Pass},
	} {
		j := enter(t, Options{}, tt.situation.request())
		got := j.Status(tt.status, tt.situation.header())
		if got != tt.want {
			t.Errorf("status %d, %+v: got the verdict %d, want %d", tt.status, tt.situation, got, tt.want)
		}
	}
}

// TestDryRunTakesNoStatusForAnAnswer has the status of a handler that passed on nothing, which the writer sends in a
// dry run. A body, or another status, is an answer.
func TestDryRunTakesNoStatusForAnAnswer(t *testing.T) {
	for name, tt := range map[string]struct {
		status  int
		hasBody bool
		want    Cause
	}{
		"status 0":              {status: 0, want: Unanswered},
		"an empty 200":          {status: 200, want: Unanswered},
		"a 200":                 {status: 200, hasBody: true, want: NoCause},
		"a 500":                 {status: 500, want: NoCause},
		"a 404, not at the end": {status: 404, want: Response},
	} {
		d := DryRun{Judge: enter(t, Options{}, situation{isUnhandled: true}.request())}
		d.Status(http.StatusEarlyHints, nil)
		if verdict := d.Status(tt.status, make(http.Header)); verdict != response.Pass {
			t.Errorf("%s: got the verdict %d", name, verdict)
		}
		if tt.hasBody {
			d.Body([]byte("theirs"), nil)
		}
		if got := d.Decide(nil, true); got != tt.want {
			t.Errorf("%s: got the cause %q, want %q", name, got, tt.want)
		}
	}
}

// TestBareStatusOfAnErrorRoute has Caddy's end of an error route, or a handler of the route, write a 404.
func TestBareStatusOfAnErrorRoute(t *testing.T) {
	withType := situation{handled: errMissing, contentType: "text/html"}
	marked := situation{handled: errMissing, isMarked: true}
	for name, tt := range map[string]struct {
		situation situation
		left      situation // the header that the failed handler has left
		isPage    bool
	}{
		"the end of the route":              {situation: situation{handled: errMissing}, isPage: true},
		"with what the failed handler left": {situation: withType, left: withType, isPage: true},
		"with a type":                       {situation: withType},
		"with a length":                     {situation: situation{handled: errMissing, contentLength: "7"}},
		"that is kept":                      {situation: marked},
		"that was kept on entry":            {situation: marked, left: marked, isPage: true},
		"of another error":                  {situation: situation{handled: errBroken}},
	} {
		j := new(Judge)
		left := tt.left.header()
		o := Options{Mode: None, Keep: keepMarked}
		j.Enter(&o, tt.situation.request(), left)
		for _, values := range left {
			values[0] = "changed in place"
		}
		j.Status(http.StatusNotFound, tt.situation.header())
		cause := j.Decide(nil, true)
		if isPage := cause == Error; isPage != tt.isPage {
			t.Errorf("%s: got the cause %q, want the page: %v", name, cause, tt.isPage)
		}

		// What follows makes it a response.
		if !j.Body(nil, tt.situation.header()) {
			t.Errorf("%s: followed by more, it is still held", name)
		}
		reason := j.Reason()
		if j.Body(nil, marked.header()); j.Reason() != reason {
			t.Errorf("%s: its header is judged again, with another reason", name)
		}
	}
}

// TestWhatFollowsABareStatusIsAResponse has an upstream in an error route send a page without a type, chunked.
func TestWhatFollowsABareStatusIsAResponse(t *testing.T) {
	j := enter(t, Options{}, situation{handled: errMissing}.request())
	j.Status(http.StatusNotFound, make(http.Header))
	j.Body([]byte("theirs"), make(http.Header))
	if cause := j.Decide(nil, true); cause != Response {
		t.Errorf("got the cause %q", cause)
	}
}

// TestInnerHandlerDecides has two handlers in each other, in an error route and in none. The inner one keeps the
// response, which the outer one would replace. A dry run that follows decides nothing.
func TestInnerHandlerDecides(t *testing.T) {
	for _, handled := range []error{nil, errMissing} {
		s := situation{isMarked: true, handled: handled}
		r := s.request()
		outer := enter(t, Options{Mode: All}, r)
		inner := enter(t, Options{Keep: keepMarked}, r)
		want404(t, inner, s, response.Pass)
		inner.Leave()
		dry := DryRun{Judge: enter(t, Options{Mode: All}, r)}
		dry.Status(http.StatusNotFound, situation{}.header())
		dry.Decide(nil, true)
		dry.Leave()
		want404(t, outer, s, response.Pass)
		if outer.Reason().IsOwn() {
			t.Errorf("%+v: the outer one has the reason %q, which is the inner one's", s, outer.Reason())
		}
		if cause := outer.Decide(nil, true); cause != NoCause || !outer.Reason().Passes() {
			t.Errorf("%+v: the page is for the cause %q", s, cause)
		}

		// The next handler that begins decides anew, as where an error route follows.
		again := enter(t, Options{Mode: All}, r)
		again.Restart()
		if got, _ := r.Replacer.GetString(reasonPlaceholder); got != "" {
			t.Errorf("got the reason %q of the handler before", got)
		}
		want404(t, again, s, response.Hold)
	}
}

type handler struct {
	options Options
	isDry   bool
}

// nest has handlers in each other. The innermost one gets a 404 response with the header.
func nest(t *testing.T, r *request.Request, header http.Header, handlers []handler) {
	t.Helper()
	if len(handlers) == 0 {
		return
	}
	j := enter(t, handlers[0].options, r)
	if handlers[0].isDry {
		d := DryRun{Judge: j}
		nest(t, r, header, handlers[1:])
		d.Status(http.StatusNotFound, header)
		d.Decide(nil, true)
	} else {
		j.Restart()
		nest(t, r, header, handlers[1:])
		j.Status(http.StatusNotFound, header)
		if cause := j.Decide(nil, true); cause != NoCause {
			j.RecordPage(cause, nil)
		}
	}
	j.Leave()
}

// TestReasonPlaceholder has handlers in each other, the innermost one last.
func TestReasonPlaceholder(t *testing.T) {
	keeping := Options{Keep: keepMarked}
	none := handler{options: Options{Keep: keepMarked, Mode: None}}
	all := handler{options: Options{Mode: All}}
	live := handler{options: keeping}
	dry := handler{options: keeping, isDry: true}
	for name, tt := range map[string]struct {
		handlers  []handler
		situation situation
		want      string
	}{
		"one that keeps, in all others": {
			handlers:  []handler{dry, all, live},
			situation: situation{isMarked: true},
			want:      "keep",
		},
		"a dry run":             {handlers: []handler{dry}, want: "dry_run"},
		"the page in a dry run": {handlers: []handler{dry, live}, want: ""},
		"a dry run in the page": {handlers: []handler{live, dry}, want: ""},
		"a dry run in none":     {handlers: []handler{none, dry}, want: "replace none"},
		"a dry run that keeps":  {handlers: []handler{dry}, situation: situation{isMarked: true}, want: "keep"},
	} {
		r := tt.situation.request()
		nest(t, r, tt.situation.header(), tt.handlers)
		if got, _ := r.Replacer.GetString(reasonPlaceholder); got != tt.want {
			t.Errorf("%s: got the reason %q, want %q", name, got, tt.want)
		}
	}
}

// TestPlaceholdersAreEmpty has no 404 come. A page may name the placeholder that only the handlers use.
func TestPlaceholdersAreEmpty(t *testing.T) {
	r := situation{}.request()
	enter(t, Options{}, r)
	for _, name := range []string{causePlaceholder, reasonPlaceholder, sharedKey} {
		if got, known := r.Replacer.GetString(name); got != "" || !known {
			t.Errorf("%s: got %q, known: %v", name, got, known)
		}
	}
	if _, known := r.Replacer.GetString("http.not_found.other"); known {
		t.Error("a placeholder that does not exist is known")
	}
}

// TestPlaceholdersOfAnErrorAreThoseOfItsPage has them before the page, on it, and at the next handler that begins.
func TestPlaceholdersOfAnErrorAreThoseOfItsPage(t *testing.T) {
	const message = "http.error.message"
	err := caddyhttp.Error(http.StatusNotFound, errors.New("deleted"))
	r := situation{}.request()
	page := enter(t, Options{}, r)
	want := func(when, value string, isKnown bool) {
		t.Helper()
		if got, known := r.Replacer.GetString(message); got != value || known != isKnown {
			t.Errorf("%s: got %q, known: %v", when, got, known)
		}
	}
	want("before the page", "", false) // as without this handler
	page.RecordPage(Error, err)
	want("on the page of an error", "deleted", true)
	if got, _ := r.Replacer.GetString("http.error"); !strings.Contains(got, "deleted") {
		t.Errorf("the error itself is %q", got)
	}
	page.RecordPage(Response, err)
	want("on the page in place of a response that broke off", "", true)
	page.Restart()
	want("at the next handler", "", false)
	r.Replacer.Set(message, "handled")
	page.RecordPage(Error, err)
	want("in an error route", "handled", true)
}

// TestReasonsAreDocumented looks for each reason in the table of the page that explains them, and in the documentation
// of the module.
func TestReasonsAreDocumented(t *testing.T) {
	var names []string
	page := readFile(t, "../../docs/no-page.md")
	for _, r := range reasons[reasonKeep:] {
		names = append(names, "`"+r.name+"`")
		if !strings.Contains(page, "\n| `"+r.name+"` |") {
			t.Errorf("docs/no-page.md has no row for %s", r.name)
		}
	}
	last := len(names) - 1
	want := "says why: " + strings.Join(names[:last], ", ") + " or " + names[last] + "."
	godoc := strings.ReplaceAll(readFile(t, "../../module.go"), "\n// ", " ")
	if !strings.Contains(godoc, want) {
		t.Errorf("the documentation of module.go lacks %s", want)
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestWhyThePageAnswers has the next handler return without a response that counts. The mode is for responses alone.
func TestWhyThePageAnswers(t *testing.T) {
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
		"another error, at the end":      {err: errBroken, isUnhandled: true, want: ""},
		"the end of an error route":      {handled: errMissing, isUnhandled: true, want: "error"},
		"an error in it":                 {handled: errMissing, err: errBroken, want: "error"},
		"a silent handler in it":         {handled: errMissing, want: ""},
		"the end of another error route": {handled: errBroken, isUnhandled: true, want: ""},
		"a 404 error in it":              {handled: errBroken, err: errMissing, want: ""},
	} {
		r := situation{handled: tt.handled, isUnhandled: tt.isUnhandled}.request()
		j := enter(t, Options{Mode: None, Keep: keepMarked}, r)
		if got := j.Decide(tt.err, tt.hasAnswered).String(); got != tt.want {
			t.Errorf("%s: got the cause %q, want %q", name, got, tt.want)
		}
		if tt.want != "" {
			tt.want = "dry_run"
		}
		d := DryRun{Judge: enter(t, Options{Mode: None}, r)}
		d.Decide(tt.err, tt.hasAnswered)
		if got, _ := r.Replacer.GetString(reasonPlaceholder); got != tt.want {
			t.Errorf("%s: in a dry run, got the reason %q, want %q", name, got, tt.want)
		}
	}
}
