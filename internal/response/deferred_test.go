package response

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/headers"
)

// writers of header handlers as another Caddy may have them
type (
	writerWithoutMatch struct {
		*caddyhttp.ResponseWriterWrapper
	}
	writerWithAnotherMatch struct {
		*caddyhttp.ResponseWriterWrapper
		require caddyhttp.ResponseMatcher
	}
	writerWithAnotherWrapper struct {
		http.ResponseWriter
		require *caddyhttp.ResponseMatcher
	}
	writerOfTheSameFields struct {
		*caddyhttp.ResponseWriterWrapper
		require *caddyhttp.ResponseMatcher
	}
	writerThatIsNoStruct func()
)

func (writerThatIsNoStruct) Header() http.Header         { return nil }
func (writerThatIsNoStruct) WriteHeader(int)             {}
func (writerThatIsNoStruct) Write(p []byte) (int, error) { return len(p), nil }

// TestWritersOfAnotherCaddyAreNotCopied has no panic either.
func TestWritersOfAnotherCaddyAreNotCopied(t *testing.T) {
	below := newConnection()
	wrapper := &caddyhttp.ResponseWriterWrapper{ResponseWriter: below}
	noStruct := writerThatIsNoStruct(func() {})
	for _, w := range []http.ResponseWriter{
		writerWithoutMatch{wrapper},
		&writerWithAnotherMatch{ResponseWriterWrapper: wrapper, require: caddyhttp.ResponseMatcher{}},
		&writerWithAnotherWrapper{ResponseWriter: wrapper, require: nil},
		&writerOfTheSameFields{ResponseWriterWrapper: nil, require: nil},
		(*writerOfTheSameFields)(nil),
		&noStruct,
	} {
		if _, got := copyHandler(w); got != nil {
			t.Errorf("%T is copied, to write to %T", w, got)
		}
	}
	if _, got := copyHandler(&writerOfTheSameFields{ResponseWriterWrapper: wrapper}); got != below {
		t.Errorf("got %T below the writer, want that of the connection", got)
	}
}

// TestPageBelowIsTheAnswerOfOuterHandlers has a not_found between a page and a header handler, whose response must not
// have begun.
func TestPageBelowIsTheAnswerOfOuterHandlers(t *testing.T) {
	below := newConnection()
	header := headers.Handler{
		Response: &headers.RespHeaderOps{
			HeaderOps: &headers.HeaderOps{Set: http.Header{"Cache-Control": {"max-age=10"}}},
			Deferred:  true,
		},
	}
	ctx := context.WithValue(t.Context(), caddy.ReplacerCtxKey, caddy.NewReplacer())
	r := httptest.NewRequestWithContext(ctx, "GET", "/", nil)
	inside := func(w http.ResponseWriter, r *http.Request) error {
		outer := newWriter(w)
		outer.Rules = verdicts{}
		deferred := DeferredAround(outer.ForHandler())
		deferred.Do(w.Header(), http.StatusNotFound)
		if got := w.Header().Get("Cache-Control"); got != "max-age=10" {
			t.Errorf("got the Cache-Control %q", got)
		}
		if deferred.Begin(http.StatusNotFound) != below {
			t.Error("the page is not sent by the connection")
		}
		if !outer.HasAnswered() {
			t.Error("the outer handler has not answered")
		}
		if DeferredAround(outer) != nil {
			t.Error("a page can be sent below a response that has begun")
		}
		return nil
	}
	if err := header.ServeHTTP(below, r, caddyhttp.HandlerFunc(inside)); err != nil {
		t.Fatal(err)
	}
	if below.Code != http.StatusOK || len(below.calls) > 0 {
		t.Errorf("something was sent: %d %q", below.Code, below.calls)
	}
}
