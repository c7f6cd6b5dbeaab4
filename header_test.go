package notfound

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"testing"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestVary adds Accept to what the site has, if it is not there, and if there is more than one format.
func TestVary(t *testing.T) {
	one, several := provision(t, &Handler{Formats: []string{"json"}}), provision(t, &Handler{})
	for _, tt := range []struct {
		handler *Handler
		has     []string
		isAdded bool
	}{
		{one, nil, false}, {one, []string{"Origin"}, false}, {several, nil, true}, {several, []string{"Accept-Encoding"}, true}, {several, []string{"X-Accept"}, true},
		{several, []string{"Origin", "Cookie, accept"}, false}, {several, []string{"*"}, false},
	} {
		w := httptest.NewRecorder()
		w.Header()["Vary"] = slices.Clone(tt.has)
		want := tt.has
		if tt.isAdded {
			want = append(slices.Clone(tt.has), "Accept")
		}
		if err := serve(tt.handler, w, "GET", "/x", testcaddy.EndOfChain); err != nil || !slices.Equal(w.Header()["Vary"], want) {
			t.Errorf("got %q, %v, want %q", w.Header()["Vary"], err, want)
		}
	}
}

// TestHeaderValuesAreNotShared changes a page's values in place, as Caddy's header does, and asks for another page.
func TestHeaderValuesAreNotShared(t *testing.T) {
	h := provision(t, &Handler{})
	var want http.Header
	for range 2 {
		w := httptest.NewRecorder()
		if err := serve(h, w, "GET", "/x", testcaddy.EndOfChain); err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = w.Header().Clone()
		}
		if !reflect.DeepEqual(w.Header(), want) {
			t.Errorf("got %v, want %v as before", w.Header(), want)
		}
		for _, values := range w.Header() {
			values[0] = "changed"
		}
	}
}
