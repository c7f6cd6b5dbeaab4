package integration

import (
	"io"
	"net/http"
	"reflect"
	"testing"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestKeptResponsesPassInEveryMode has a matcher in each of its forms. What nothing answers gets the page even where the
// site's own header matches, and so do 404 errors.
func TestKeptResponsesPassInEveryMode(t *testing.T) {
	backend := testcaddy.Backend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/designed" {
			w.Header().Set("X-Error-Page", "1")
		}
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, "theirs")
	})
	sites := map[string]string{
		"inline":           "not_found {\nkeep header X-Error-Page *\n}",
		"inline, all":      "not_found {\nkeep header X-Error-Page *\nreplace all\n}",
		"block":            "not_found {\nkeep {\nheader X-Error-Page 1\nheader Content-Type text/*\nstatus 4xx\n}\n}",
		"several":          "not_found {\nkeep header X-Other *\nkeep header X-Error-Page 1\nkeep {\nheader Content-Type text/*\nheader X-Other *\n}\n}",
		"in handle_errors": "not_found {\nkeep header X-Error-Page *\n}\nhandle_errors {\nnot_found {\nkeep header X-Error-Page *\n}\n}",
	}
	for name, site := range sites {
		sites[name] = site + `
			@own path /error /unanswered
			header @own X-Error-Page 1
			error /error 404
			@others not path /unanswered
			reverse_proxy @others ` + backend
	}
	s, hosts := testcaddy.StartSites(t, "http://bare.test:0 {\nreverse_proxy "+backend+"\n}\n", sites)
	for name, host := range hosts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, method := range []string{"GET", "HEAD"} {
				got, want := s.Do(t, method, "http://"+host+"/designed"), s.Do(t, method, "http://bare.test/designed")
				want.WantHeader(t, "X-Error-Page", "1")
				got.Want(t, http.StatusNotFound, want.Content)
				if !reflect.DeepEqual(got.Undated(), want.Undated()) {
					t.Errorf("%s: got the header %v, want %v as without not_found", method, got.Header, want.Header)
				}
			}
			for _, path := range []string{"/plain", "/error", "/unanswered"} {
				s.Get(t, "http://"+host+path).WantPage(t, "GET", "http://"+host+path, "")
			}
		})
	}
}
