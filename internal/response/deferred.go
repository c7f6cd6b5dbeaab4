package response

import (
	"net/http"
	"reflect"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// Deferred holds the operations of Caddy's header handlers that wait until a header is sent: those with `>` or `defer`,
// and all those of a block that removes a field. Caddy does not apply them to an error, and people rely on that. A page
// is a response, so they would change its own fields, and a cache could keep it for a year. So copies of the handlers'
// writers apply the operations first, and the page is sent through the writer below.
//
// Caddy does not export its writers, headers.responseWriterWrapper, so this needs reflection. If another version of
// Caddy has other writers, none is found, and the page is sent through them.
type Deferred struct {
	handlers []deferredHandler // the innermost first
	outer    []*Writer         // of not_found handlers between them
	below    http.ResponseWriter
}

// DeferredAround returns the operations of the header handlers that directly enclose a writer, perhaps through outer
// not_found handlers, whose response has not begun. It returns nil if there are none.
func DeferredAround(w http.ResponseWriter) *Deferred {
	if outer := ofOuterHandler(w); outer != nil {
		if outer.state != pending {
			return nil
		}
		d := DeferredAround(outer.ResponseWriter)
		if d != nil {
			d.outer = append(d.outer, outer)
		}
		return d
	}
	if !isOfHeaderHandler(w) {
		return nil
	}
	handler, below := copyHandler(w)
	if below == nil {
		return nil
	}
	d := DeferredAround(below)
	if d == nil {
		d = &Deferred{below: below}
	}
	d.handlers = append([]deferredHandler{handler}, d.handlers...)
	return d
}

// Do performs the operations of the handlers whose match does not name a status.
func (d *Deferred) Do(header http.Header, status int) { d.do(header, status, false) }

// DoForStatus performs the operations of the handlers whose match names the status.
func (d *Deferred) DoForStatus(header http.Header, status int) { d.do(header, status, true) }

func (d *Deferred) do(header http.Header, status int, namesStatus bool) {
	for _, h := range d.handlers {
		if h.namesStatus == namesStatus {
			h.wrapper.ResponseWriter = unsent{header}
			h.writer.WriteHeader(status)
		}
	}
}

// Begin begins the response of the outer not_found handlers, and returns the writer to send it through. These handlers
// let it pass, because the innermost one decides.
func (d *Deferred) Begin(status int) http.ResponseWriter {
	for _, outer := range d.outer {
		outer.decide(status)
	}
	return d.below
}

// deferredHandler is a copy of a header handler's writer, above one of ours.
type deferredHandler struct {
	writer      http.ResponseWriter
	wrapper     *caddyhttp.ResponseWriterWrapper
	namesStatus bool
}

// isOfHeaderHandler reports whether Caddy's header handler has wrapped a writer. Writers are never compared, because
// some, such as that of intercept, cannot be.
func isOfHeaderHandler(w http.ResponseWriter) bool {
	const headers = "github.com/caddyserver/caddy/v2/modules/caddyhttp/headers"
	t := reflect.TypeOf(w)
	return t != nil && t.Kind() == reflect.Pointer && t.Elem().PkgPath() == headers
}

// copyHandler copies the writer of a header handler. below is nil if the fields of the writer are not those of the
// Caddy that this was written for.
func copyHandler(w http.ResponseWriter) (h deferredHandler, below http.ResponseWriter) {
	original := reflect.Indirect(reflect.ValueOf(w))
	if original.Kind() != reflect.Struct {
		return h, nil
	}
	embedded := original.FieldByName("ResponseWriterWrapper")
	match := original.FieldByName("require")
	if !isOf[*caddyhttp.ResponseWriterWrapper](embedded) || !isOf[*caddyhttp.ResponseMatcher](match) {
		return h, nil
	}
	wrapper, _ := embedded.Interface().(*caddyhttp.ResponseWriterWrapper)
	if wrapper == nil {
		return h, nil
	}

	h.wrapper = new(caddyhttp.ResponseWriterWrapper)
	require := (*caddyhttp.ResponseMatcher)(match.UnsafePointer()) // Interface refuses a field that is not exported
	h.namesStatus = require != nil && len(require.StatusCode) > 0
	ofCopy := reflect.New(original.Type())
	ofCopy.Elem().Set(original)
	ofCopy.Elem().FieldByName("ResponseWriterWrapper").Set(reflect.ValueOf(h.wrapper))
	h.writer = ofCopy.Interface().(http.ResponseWriter)
	return h, wrapper.ResponseWriter
}

func isOf[T any](v reflect.Value) bool {
	return v.IsValid() && v.Type() == reflect.TypeFor[T]()
}

// ofOuterHandler returns the writer of a not_found handler, or nil for any other writer.
func ofOuterHandler(w http.ResponseWriter) *Writer {
	switch w := w.(type) {
	case *Writer:
		return w
	case flushingWriter:
		return w.Writer
	}
	return nil
}

// unsent is a writer that sends nothing.
type unsent struct{ header http.Header }

func (u unsent) Header() http.Header       { return u.header }
func (unsent) WriteHeader(int)             {}
func (unsent) Write(p []byte) (int, error) { return len(p), nil }
