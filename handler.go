package notfound

import (
	"errors"
	"net/http"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/judge"
	"github.com/caddy-notfound/notfound/internal/page"
	"github.com/caddy-notfound/notfound/internal/represent"
	"github.com/caddy-notfound/notfound/internal/request"
	"github.com/caddy-notfound/notfound/internal/response"
)

// ServeHTTP calls the next handler, and writes the page if nothing else answered:
//
//	what came back                              what happens
//	the end of the chain, nothing written       the page
//	an error with status 404, nothing written   the page
//	a 404 response that is a page               the page in its place
//	anything else                               passes through
//
// Caddy alone sends an empty 200 at the end of the chain (caddyserver/caddy#4026, #4633, #5182), and its handle_errors
// never sees the 404 of an upstream (#1447, #1897, #4382).
//
// A handler that returns without writing has also answered, because net/http then sends an empty 200. Caddy sets the
// variable `unhandled` at the end of the chain only, which tells the two cases apart. In the error routes of a 404, the
// page also answers at the end of the route, and for any other error. In the error routes of another error, the status
// of that error stands. Package judge implements the rules.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	x := new(exchange)
	if !x.begin(h, w, r) {
		return next.ServeHTTP(w, r)
	}
	if h.DryRun {
		return x.dryRun(next, r)
	}
	err := x.callNext(next, r)
	cause := x.judge.Decide(err, x.writer.HasAnswered())
	if cause == judge.NoCause {
		x.passed()
		if err == nil {
			x.writer.End()
		}
		return err
	}
	x.answer(cause, err)
	return nil
}

// exchange is a request at one handler, and its response.
type exchange struct {
	handler *Handler
	request request.Request
	judge   judge.Judge
	writer  response.Writer
	site    represent.SiteHeader // on entry
	referer string               // on entry, for the metric and the report
}

// begin begins an exchange. It returns false if a handler of the same group is already running.
func (x *exchange) begin(h *Handler, w http.ResponseWriter, r *http.Request) bool {
	x.handler = h
	x.request.Read(r)
	x.referer = r.Header.Get("Referer")
	if h.URI != "" { // a rewrite may change the query that it comes from
		x.request.URI = h.maker.ExpandURI(x.request.Replacer)
	}
	x.writer.ResponseWriter = w
	x.writer.Rules = &x.judge
	return x.judge.Enter(&h.judgeOptions, &x.request, w.Header())
}

// callNext calls the next handler. reverse_proxy panics if it cannot copy the body of a response to its end. If that
// response is held, callNext recovers and returns nil, so that the client gets the page.
func (x *exchange) callNext(next caddyhttp.Handler, r *http.Request) error {
	x.judge.Restart()
	x.site.Read(x.writer.Header())
	x.expandRequestID()
	defer func() {
		x.judge.Leave()
		if x.writer.IsHeld() {
			if p := recover(); p != nil && p != http.ErrAbortHandler {
				panic(p)
			}
		}
	}()
	return next.ServeHTTP(x.writer.ForHandler(), r)
}

// expandRequestID expands {http.request.uuid} before the next handlers run, if the page may show it. Caddy writes its
// value to the variables of the request, which a dial to an upstream may still be reading after the response.
func (x *exchange) expandRequestID() {
	h := x.handler
	if h.showsRequestID || h.representations.ShowsRequestID() {
		x.request.Replacer.GetString(represent.RequestID)
	}
}

// dryRun calls the next handler and lets everything pass. It logs and counts what the page would have answered.
func (x *exchange) dryRun(next caddyhttp.Handler, r *http.Request) error {
	onlooker := judge.DryRun{Judge: &x.judge}
	x.writer.Rules = &onlooker
	x.writer.PassesEmptyWrites = true
	x.expandRequestID()
	defer x.judge.Leave()
	err := next.ServeHTTP(x.writer.ForHandler(), r)
	cause := onlooker.Decide(err, x.writer.HasAnswered())
	if cause == judge.NoCause {
		x.passed()
		return err
	}
	if e := x.handler.logger.Check(zapcore.DebugLevel, "the page would answer"); e != nil {
		x.logNoPage(e, zap.Stringer("cause", cause))
	}
	x.countDryRun(cause)
	return err
}

// answer sends the page in the representation that the client accepts. err is what the next handler returned.
func (x *exchange) answer(cause judge.Cause, err error) {
	h := x.handler
	if err != nil && !request.IsNotFound(err) && !errors.Is(err, response.ErrReplaced) {
		// Caddy would have logged this error. The page hides it, so it is logged here.
		h.logger.Error("sending the 404 page in place of an error", zap.Error(err))
	}
	x.judge.RecordPage(cause, err)
	x.request.SetHandled()

	rep, uri := x.represent(cause)
	defer rep.Free()
	x.countPage(cause, uri)
	x.send(&rep, cause)

	if e := h.logger.Check(zapcore.DebugLevel, "wrote the 404 page"); e != nil {
		x.logPage(e, cause, uri, rep.Format(), err)
	}
}

// represent makes the page, and represents it as the client accepts. It also returns the page's address. It is not part
// of answer, so that its variables are off the stack when the page is sent: over HTTP/2, each stream has a new stack.
func (x *exchange) represent(cause judge.Cause) (represent.Representation, string) {
	asked := x.request.Asked()
	p := x.handler.maker.Make(&asked, x.request.Replacer)
	return x.handler.representations.Represent(&represent.Input{
		Page:           p,
		Placeholders:   x.request.Replacer,
		Accept:         x.request.Accept,
		AcceptEncoding: x.request.AcceptEncoding,
		VariesByClient: x.judge.VariesByClient(cause),
	}), p.URI
}

// send sends the page, once the rest of the request's body has been read.
func (x *exchange) send(rep *represent.Representation, cause judge.Cause) {
	w := x.setHeader(rep, cause)
	x.request.EndBody(w)
	w.WriteHeader(http.StatusNotFound)
	if x.request.Asked().Method == http.MethodHead {
		return
	}
	_, err := rep.WriteTo(w) // an error other than ErrCut means that the client is gone
	if errors.Is(err, represent.ErrCut) {
		panic(http.ErrAbortHandler) // otherwise, an HTTP/3 client would take the page for complete
	}
}

// setHeader sets the header of the page, and returns the writer to send the page through. It also applies the deferred
// operations of the header directives around this handler, and then sets the page's own fields once more.
func (x *exchange) setHeader(rep *represent.Representation, cause judge.Cause) http.ResponseWriter {
	w := x.writer.ResponseWriter
	header := w.Header()
	if x.writer.IsHeld() {
		x.writer.RestoreHeader()
	}
	var site *represent.SiteHeader // the fields before the response that the page replaces; nil: it replaces none
	// An error in a route of intercept comes with the header of the response that the route handles.
	if cause == judge.Response || cause == judge.Error && x.request.IsIntercepted() {
		site = &x.site
	}
	rep.SetHeader(header, site)
	deferred := response.DeferredAround(w)
	if deferred == nil {
		return w
	}
	rep.HidePolicy(header)
	deferred.Do(header, http.StatusNotFound)
	rep.SetHeader(header, nil)
	deferred.DoForStatus(header, http.StatusNotFound)
	rep.AddToVary(header) // because an operation may have added a line
	return deferred.Begin(http.StatusNotFound)
}

// logPage writes the log entry of a page.
func (x *exchange) logPage(e *zapcore.CheckedEntry, cause judge.Cause, uri, format string, err error) {
	if err == nil {
		err = x.request.HandledError
	}
	replaced := zap.Skip()
	if cause == judge.Response {
		replacedType := judge.ContentType(x.writer.HeldHeader())
		replaced = zap.String("replaced_content_type", replacedType)
	}
	e.Write(
		zap.Stringer("cause", cause),
		zap.String("method", x.request.Asked().Method),
		zap.String("uri", uri),
		zap.String("format", format),
		replaced,
		zap.Error(err),
	)
}

// passed logs and counts a 404 response that has passed. If a handler inside this one has decided, that one logs it.
func (x *exchange) passed() {
	reason := x.judge.Reason()
	if reason.IsOwn() {
		if e := x.handler.logger.Check(zapcore.DebugLevel, "a 404 response passes"); e != nil {
			contentType := judge.ContentType(x.writer.Header())
			x.logNoPage(e, zap.Stringer("reason", reason), zap.String("content_type", contentType))
		}
	}
	x.countPassed()
}

// logNoPage writes a log entry about a request for which this handler wrote no page.
func (x *exchange) logNoPage(e *zapcore.CheckedEntry, fields ...zap.Field) {
	asked, address := x.askedAndAddress()
	fields = append(fields, zap.String("method", asked.Method), zap.String("uri", address))
	e.Write(fields...)
}

// askedAndAddress returns what the client asked for, and its address as the page would show it.
func (x *exchange) askedAndAddress() (asked page.Asked, address string) {
	asked = x.request.Asked()
	return asked, x.handler.maker.URI(&asked, x.request.Replacer)
}
