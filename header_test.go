package notfound

import (
	"net/http/httptest"
	"testing"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

func TestOneFormatDoesNotVary(t *testing.T) {
	w := httptest.NewRecorder()
	err := serve(provision(t, &Handler{Formats: []string{"json"}}), w, "GET", "/x", testcaddy.EndOfChain)
	if _, varies := w.Header()["Vary"]; err != nil || varies || w.Code != 404 {
		t.Errorf("got %d with %v, %v", w.Code, w.Header(), err)
	}
}
