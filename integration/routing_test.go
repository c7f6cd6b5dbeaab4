package integration

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestOnlyMostSpecificSiblingWorks has several directives in one block, written in any order.
func TestOnlyMostSpecificSiblingWorks(t *testing.T) {
	s := testcaddy.Start(t, `
http://a.test:0, http://b.test:0 {
	not_found
	not_found /docs/* {
		context_path /docs
	}
	not_found /docs/apis/* {
		context_path /apis
	}
	@posts method POST
	not_found @posts {
		context_path /posts
	}
	handle /docs/html {
		respond "<p>theirs" 404
	}
	respond /pass 200
}
http://route.test:0 {
	route {
		not_found /docs/* {
			context_path /docs
		}
		not_found {
			context_path /first
		}
		not_found /docs/apis/* {
			context_path /apis
		}
	}
}`)
	for _, tt := range []struct{ method, uri, contextPath string }{
		{"GET", "http://a.test/x", ""},
		{"GET", "http://b.test/docs", ""},
		{"GET", "http://a.test/docs/x", "/docs"},
		{"GET", "http://b.test/docs/html", "/docs"},
		{"GET", "http://a.test/docs/apis/x", "/apis"},
		{"POST", "http://a.test/x", "/posts"},
		{"GET", "http://route.test/x", "/first"},
		{"GET", "http://route.test/docs/x", "/docs"},
		{"GET", "http://route.test/docs/apis/x", "/docs"}, // a route block keeps its order
	} {
		t.Run(tt.method+" "+tt.uri, func(t *testing.T) {
			t.Parallel()
			s.Do(t, tt.method, tt.uri).WantPage(t, tt.method, tt.uri, tt.contextPath)
		})
	}
	s.Get(t, "http://a.test/pass").Want(t, 200, "")
}

// TestInnerPageStands has one directive inside another, around each kind of missing address.
func TestInnerPageStands(t *testing.T) {
	s := testcaddy.Start(t, `
http://a.test:0 {
	not_found {
		context_path /outer
		replace all
	}
	encode
	templates
	handle /unanswered {
		not_found {
			context_path /inner
		}
	}
	handle /error {
		not_found {
			context_path /inner
		}
		error 404
	}
	handle /response {
		route {
			not_found {
				context_path /inner
			}
			not_found /other {
				context_path /other
			}
			route {
				not_found /response {
					context_path /innermost
				}
			}
		}
		respond "theirs" 404
	}
	handle /passed {
		not_found {
			replace none
		}
		respond "theirs" 404
	}
}`)
	for path, contextPath := range map[string]string{
		"/unanswered": "/inner", "/error": "/inner", "/response": "/innermost", "/passed": "/outer", "/": "/outer",
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			uri := "http://a.test" + path
			s.Get(t, uri).WantPage(t, "GET", uri, contextPath)
			s.Get(t, uri, "Accept: application/json").WantHeader(t, "Content-Type", "application/json")
		})
	}
}

// TestNamedRouteHasItsPage invokes named routes. Caddy counts the groups of routes from zero again in each of them, so
// with Caddy's own names a directive would share a group with the root, rewrite or handle directives of the site.
func TestNamedRouteHasItsPage(t *testing.T) {
	s := testcaddy.Start(t, `
&(bare) {
	not_found {
		context_path /named
	}
}
&(siblings) {
	not_found /docs/* {
		context_path /docs
	}
	not_found {
		context_path /named
	}
	rewrite /old /new
	handle /a {
		respond a
	}
	handle /b {
		respond b
	}
}
http://handles.test:0 {
	root /a /tmp
	root /b /tmp
	rewrite /x /y
	handle /a {
		respond a
	}
	handle {
		invoke bare
	}
}
http://siblings.test:0 {
	rewrite /x /y
	handle /a {
		respond a
	}
	handle {
		invoke siblings
	}
}
http://both.test:0 {
	not_found
	not_found /other {
		context_path /other
	}
	invoke siblings
}`)
	for uri, contextPath := range map[string]string{
		"http://handles.test/x": "/named", "http://handles.test/b": "/named",
		"http://siblings.test/x": "/named", "http://siblings.test/docs/x": "/docs",
		"http://both.test/x": "/named", "http://both.test/docs/x": "/docs", "http://both.test/other": "/named",
	} {
		t.Run(uri, func(t *testing.T) {
			t.Parallel()
			s.Get(t, uri).WantPage(t, "GET", uri, contextPath)
		})
	}
	s.Get(t, "http://siblings.test/b").Want(t, 200, "b")
}

// TestInErrorRoutes has the directive in handle_errors, where it replaces what comes of a 404 and nothing else.
func TestInErrorRoutes(t *testing.T) {
	s := testcaddy.Start(t, `
http://end.test:0 {
	log
	log_append cause {http.not_found.cause}
	error /404 404
	error /410 410
	error /500 500
	handle_errors {
		log_append cause {http.not_found.cause}
		not_found {
			replace none
		}
	}
}
http://pages.test:0 {
	error /404 "no such thing" 404
	error /500 500
	handle_errors {
		not_found
		root /nowhere
		file_server
	}
}
http://respond.test:0 {
	error /404 404
	error /500 500
	handle_errors {
		not_found
		respond "{err.status_code} {err.status_text}"
	}
}
http://json.test:0 {
	error /404 404
	handle_errors {
		not_found
		header Content-Type application/json
		respond "{}"
	}
}
`)
	s.Get(t, "http://end.test/404")
	if entry := s.Logs.WaitForHost(t, "handled request", "end.test", 1)[0]; entry["cause"] != "error" {
		t.Errorf("the access log has the cause %v, want error", entry["cause"])
	}
	for uri, want := range map[string]struct {
		status  int
		content string // empty: the page, if the status is 404
	}{
		"http://end.test/404":     {404, ""},
		"http://end.test/410":     {410, ""},
		"http://end.test/500":     {500, ""},
		"http://pages.test/404":   {404, ""},
		"http://pages.test/500":   {500, ""}, // not the 404 of the missing error page
		"http://respond.test/404": {404, ""},
		"http://respond.test/500": {500, "500 Internal Server Error"},
		"http://json.test/404":    {404, "{}"},
	} {
		t.Run(uri, func(t *testing.T) {
			t.Parallel()
			if res := s.Get(t, uri); want.status == http.StatusNotFound && want.content == "" {
				res.WantPage(t, "GET", uri, "")
			} else {
				res.Want(t, want.status, want.content)
			}
		})
	}
}

// TestInErrorRoutesOfSubroute has the directive in error routes whose end writes nothing. Only JSON can configure them.
func TestInErrorRoutesOfSubroute(t *testing.T) {
	s := testcaddy.StartConfig(t, []byte(`{
		"admin": {"disabled": true, "config": {"persist": false}},
		"apps": {"http": {"servers": {"s": {"listen": ["127.0.0.1:0"], "routes": [{"handle": [{
			"handler": "headers", "response": {"deferred": true, "set": {"X-Cause": ["{http.not_found.cause}"]}}
		}, {
			"handler": "subroute",
			"routes": [
				{"match": [{"path": ["/404"]}], "handle": [{"handler": "error", "status_code": 404}]},
				{"match": [{"path": ["/500"]}], "handle": [{"handler": "error", "status_code": 500}]}
			],
			"errors": {"routes": [{"handle": [{"handler": "not_found"}]}]}
		}]}]}}}}
	}`))
	res := s.Get(t, "http://a.test/404")
	res.WantPage(t, "GET", "http://a.test/404", "")
	res.WantHeader(t, "X-Cause", "error")
	s.Get(t, "http://a.test/500").Want(t, 200, "") // as without not_found
}

// TestInResponseHandlers has the directive in the response routes of reverse_proxy and intercept.
func TestInResponseHandlers(t *testing.T) {
	app := testcaddy.Backend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Content-Encoding", "br")
		w.Header().Set("Etag", `"theirs"`)
		w.Header().Set("X-Trace", "1")
		w.WriteHeader(http.StatusGone)
		io.WriteString(w, strings.Repeat("theirs", 1000))
	})
	s := testcaddy.Start(t, strings.ReplaceAll(`
http://proxy.test:0 {
	reverse_proxy APP {
		@gone status 410
		handle_response @gone {
			not_found
		}
	}
}
http://headers.test:0 {
	reverse_proxy APP {
		@gone status 410
		handle_response @gone {
			copy_response_headers
			not_found
		}
	}
}
http://intercept.test:0 {
	intercept {
		@gone status 410
		handle_response @gone {
			not_found
		}
	}
	reverse_proxy APP
}`, "APP", app))

	for _, host := range []string{"proxy", "headers", "intercept"} {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			uri := "http://" + host + ".test/x"
			res := s.Get(t, uri)
			res.WantPage(t, "GET", uri, "")
			res.WantHeader(t, "Content-Encoding", "")
			res.WantHeader(t, "Etag", "")
			res.WantHeader(t, "Content-Type", "text/plain; charset=utf-8")
			if host != "proxy" {
				res.WantHeader(t, "X-Trace", "1")
			}
		})
	}
}

// TestResponseRoutesOfInterceptHaveAnEnd has response routes in which nothing answers. Caddy does not mark their end as
// it marks that of a site's routes.
func TestResponseRoutesOfInterceptHaveAnEnd(t *testing.T) {
	s := testcaddy.Start(t, `
http://a.test:0 {
	intercept {
		@gone status 410
		handle_response @gone {
			not_found
			header X-Gone yes
			handle /other {
				respond no
			}
		}
	}
	respond "gone" 410
}
http://b.test:0 {
	error 404
	handle_errors {
		intercept {
			@gone status 410
			handle_response @gone {
				not_found
			}
		}
		respond "gone" 410
	}
}`)
	res := s.Get(t, "http://a.test/x")
	res.WantPage(t, "GET", "http://a.test/x", "")
	res.WantHeader(t, "X-Gone", "yes")
	s.Get(t, "http://b.test/x").WantPage(t, "GET", "http://b.test/x", "")
}

// TestDefaultOrder writes the directives in the reverse of the order in which they work.
func TestDefaultOrder(t *testing.T) {
	s := testcaddy.Start(t, `
http://a.test:0 {
	respond /secret "{{ .RemoteIP }}"
	templates
	encode
	redir /old /new
	header X-Site yes
	not_found
}
http://ordered.test:0 {
	route {
		encode {
			minimum_length 1
		}
		not_found
	}
}`)
	uri := "http://a.test/{{.RemoteIP}}?{{.Host}}"
	res := s.Get(t, uri, "Accept-Encoding: gzip")
	res.WantPage(t, "GET", "http://a.test/%7B%7B.RemoteIP%7D%7D?%7B%7B.Host%7D%7D", "")
	res.WantHeader(t, "X-Site", "yes")
	res.WantHeader(t, "Content-Encoding", "")

	s.Get(t, "http://a.test/secret").Want(t, 200, "127.0.0.1")
	s.Get(t, "http://a.test/old").WantHeader(t, "Location", "/new")

	// to have the page compressed, put not_found after encode
	s.Get(t, "http://ordered.test/x", "Accept-Encoding: gzip").WantHeader(t, "Content-Encoding", "gzip")
}
