package integration

import (
	"fmt"
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
	check := func(t *testing.T, s *testcaddy.Server, host string) {
		t.Helper()
		url := "http://" + host
		for _, method := range []string{"GET", "HEAD"} {
			got, want := s.Do(t, method, url+"/designed"), s.Do(t, method, "http://bare.test/designed")
			want.WantHeader(t, "X-Error-Page", "1")
			got.Want(t, http.StatusNotFound, want.Content)
			if !reflect.DeepEqual(got.Undated(), want.Undated()) {
				t.Errorf("%s: got the header %v, want %v as without not_found", method, got.Header, want.Header)
			}
		}
		for _, path := range []string{"/plain", "/error", "/unanswered"} {
			s.Get(t, url+path).WantPage(t, "GET", url+path, "")
		}
	}

	t.Setenv("NOT_FOUND_TEST_KEEP", "1")
	sites, hosts := "http://bare.test:0 {\nreverse_proxy "+backend+"\n}\n", make(map[string]string)
	for name, site := range map[string]string{
		"inline":           "not_found {\nkeep header X-Error-Page *\n}",
		"inline, all":      "not_found {\nkeep header X-Error-Page *\nreplace all\n}",
		"block":            "not_found {\nkeep {\nheader X-Error-Page 1\nheader Content-Type text/*\nstatus 4xx\n}\n}",
		"several":          "not_found {\nkeep header X-Other *\nkeep header X-Error-Page 1\nkeep header X-Another *\n}",
		"two fields":       "not_found {\nkeep {\nheader X-Error-Page 1\nheader Content-Type text/*\n}\nkeep {\nheader Content-Type text/*\nheader X-Other *\n}\n}",
		"a variable":       "not_found {\nkeep header X-Error-Page {$NOT_FOUND_TEST_KEEP}\n}",
		"in handle_errors": "not_found {\nkeep header X-Error-Page *\n}\nhandle_errors {\nnot_found {\nkeep header X-Error-Page *\n}\n}",
	} {
		hosts[name] = fmt.Sprintf("site%d.test", len(hosts))
		sites += "http://" + hosts[name] + ":0 {\n" + site + `
	@own path /error /unanswered
	header @own X-Error-Page 1
	error /error 404
	@others not path /unanswered
	reverse_proxy @others ` + backend + "\n}\n"
	}
	s := testcaddy.Start(t, sites)
	for name, host := range hosts {
		t.Run(name, func(t *testing.T) { check(t, s, host) })
	}

	for _, mode := range []string{"pages", "all"} {
		t.Run("JSON, "+mode, func(t *testing.T) {
			s := testcaddy.StartConfig(t, []byte(`{"admin":{"disabled":true,"config":{"persist":false}},"apps":{"http":{"servers":{"s":{"listen":["127.0.0.1:0"],"automatic_https":{"disable":true},"routes":[
				{"match":[{"host":["bare.test"]}],"handle":[{"handler":"reverse_proxy","upstreams":[{"dial":"`+backend+`"}]}],"terminal":true},
				{"match":[{"path":["/error","/unanswered"]}],"handle":[{"handler":"headers","response":{"set":{"X-Error-Page":["1"]}}}]},
				{"handle":[{"handler":"not_found","replace":"`+mode+`","keep":[{"headers":{"X-Other":["*"]}},{"status_code":[404],"headers":{"X-Error-Page":["0","1*"]}}]}]},
				{"match":[{"path":["/error"]}],"handle":[{"handler":"error","status_code":404}]},
				{"match":[{"not":[{"path":["/unanswered"]}]}],"handle":[{"handler":"reverse_proxy","upstreams":[{"dial":"`+backend+`"}]}]}
			]}}}}}`))
			check(t, s, "a.test")
		})
	}
}
