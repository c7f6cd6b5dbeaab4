package integration

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestOnlyMostSpecificSiblingTakesEffect has several directives in one block, written in any order.
func TestOnlyMostSpecificSiblingTakesEffect(t *testing.T) {
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
}`)
	for path, contextPath := range map[string]string{
		"/unanswered": "/inner", "/error": "/inner", "/response": "/innermost", "/": "/outer",
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			uri := "http://a.test" + path
			s.Get(t, uri).WantPage(t, "GET", uri, contextPath)
			s.Get(t, uri, "Accept: application/json").WantHeader(t, "Content-Type", "application/json")
		})
	}
}

// TestInnerOneDecides has a site with not_found, and in it an application with one of its own, with other handlers between
// them. What the inner one lets pass passes the outer one, but not what intercept makes of it.
func TestInnerOneDecides(t *testing.T) {
	const outer, page = "/outer", "/inner"
	app := testcaddy.Backend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path == "/designed" {
			w.Header().Set("X-Error-Page", "1")
		}
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, "theirs")
	})
	const (
		keep      = "not_found {\nkeep header X-Error-Page *\ncontext_path /inner\n}\n"
		none      = "not_found {\nreplace none\n}\n"
		intercept = "intercept {\n@missing status 404\nhandle_response @missing {\nROUTES\n}\n}\n"
	)
	intercepts := func(routes string) string { return strings.ReplaceAll(intercept, "ROUTES", routes) }
	type want struct{ page, content, cause string } // page: its context path; without, the content passes
	wants, hosts, caddyfile := make(map[string]map[string]want), make(map[string]string), ""
	add := func(name, outer, between, inner string, paths map[string]want) {
		wants[name], hosts[name] = paths, fmt.Sprintf("site%d.test", len(hosts))
		caddyfile += "http://" + hosts[name] + ":0 {\nlog\nlog_append cause {http.not_found.cause}\n" + outer + between +
			"handle {\n" + inner + "reverse_proxy " + app + "\n}\n}\n"
	}
	const outerDirective = "not_found {\nreplace all\ncontext_path /outer\n}\n"
	theirs := want{content: "theirs"}
	for name, between := range map[string]string{
		"alone": "", "encode": "encode {\nminimum_length 1\n}\n", "templates": "templates\n", "both": "templates\nencode {\nminimum_length 1\n}\n",
	} {
		add("keep, "+name, outerDirective, between, keep, map[string]want{"/designed": theirs, "/plain": {page: page, cause: "response"}})
		add("none, "+name, outerDirective, between, none, map[string]want{"/designed": theirs, "/plain": theirs})
	}
	const own = "header -Content-Length\nrespond own 404"
	add("own response of intercept", outerDirective, intercepts(own), keep,
		map[string]want{"/designed": {page: outer, cause: "response"}, "/plain": {page: outer, cause: "response"}})
	add("own response of intercept, which passes", none, intercepts(own), keep,
		map[string]want{"/designed": {content: "own"}, "/plain": {content: "own"}})
	add("page in a response route", outerDirective, intercepts(keep), none,
		map[string]want{"/designed": {page: page, cause: "unanswered"}, "/plain": {page: page, cause: "unanswered"}})
	add("passes in a response route", outerDirective, intercepts(none+own), keep,
		map[string]want{"/designed": {content: "own"}, "/plain": {content: "own"}})
	add("intercept takes nothing", outerDirective, "intercept {\n@x status 418\nhandle_response @x {\nrespond no\n}\n}\n", keep,
		map[string]want{"/designed": theirs, "/plain": {page: page, cause: "response"}})

	s := testcaddy.Start(t, caddyfile)
	for name, paths := range wants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for path, want := range paths {
				uri := "http://" + hosts[name] + path
				if res := s.Get(t, uri); want.page != "" {
					res.WantPage(t, "GET", uri, want.page)
				} else {
					res.Want(t, 404, want.content)
				}
			}
			for _, entry := range s.Logs.WaitForHost(t, "handled request", hosts[name], len(paths)) {
				path := entry["request"].(map[string]any)["uri"].(string)
				if got := entry["cause"]; got != paths[path].cause {
					t.Errorf("%s: the access log has the cause %v, want %q", path, got, paths[path].cause)
				}
			}
		})
	}
}

// TestNamedRouteHasItsPage invokes named routes, one of them twice for one request. Caddy merges the routes of the bare one,
// and would keep only the first handler of it.
func TestNamedRouteHasItsPage(t *testing.T) {
	s := testcaddy.Start(t, `
&(bare) {
	not_found {
		context_path /named
	}
	respond /here here
}
&(twice) {
	not_found {
		context_path /named
	}
	error /fails 500
	respond "theirs" 404
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
http://twice.test:0 {
	invoke twice
	handle_errors {
		rewrite /elsewhere
		invoke twice
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
		"http://siblings.test/x": "/named", "http://siblings.test/docs/x": "/docs", "http://twice.test/fails": "/named",
		"http://both.test/x": "/named", "http://both.test/docs/x": "/docs", "http://both.test/other": "/named",
	} {
		t.Run(uri, func(t *testing.T) {
			t.Parallel()
			s.Get(t, uri).WantPage(t, "GET", uri, contextPath)
		})
	}
	s.Get(t, "http://siblings.test/b").Want(t, 200, "b")
	s.Get(t, "http://handles.test/here").Want(t, 200, "here")
}

// TestEachBlockHasItsPage has directives in blocks within blocks, before and after them in the file.
func TestEachBlockHasItsPage(t *testing.T) {
	s := testcaddy.Start(t, `
(page) {
	not_found {
		context_path {args[0]}
	}
}
(inner) {
	handle /in/* {
		import page {args[0]}
	}
}
&(alone) {
	import page /alone
	handle /alone/z {
		respond z
	}
}
&(one) {
	import page /one
	invoke two
}
&(two) {
	handle /in/* {
		import page /two/in
	}
	import page /two
}
http://before.test:0 {
	import page /site
	handle /in/* {
		import page /in
		handle /in/deep/* {
			import page /deep
		}
	}
}
http://after.test:0 {
	handle /in/* {
		handle /in/deep/* {
			import page /deep
		}
		import page /in
	}
	import page /site
}
http://snippets.test:0, http://again.test:0 {
	import inner /snippet
	import page /{http.request.host}
}
http://named.test:0 {
	import page /site
	handle /out {
		respond 410
	}
	invoke /alone/* alone
	invoke /in/* one
	invoke /two one
}
http://errors.test:0 {
	not_found /other {
		context_path /site
	}
	error /in/* 404
	error /410 410
	error 404
	handle_errors 404 {
		import page /errors
		import inner /errors/in
	}
	handle_errors 410 {
		import page /never
	}
}`)
	for uri, contextPath := range map[string]string{
		"http://before.test/x": "/site", "http://before.test/in/x": "/in", "http://before.test/in/deep/x": "/deep",
		"http://after.test/x": "/site", "http://after.test/in/x": "/in", "http://after.test/in/deep/x": "/deep",
		"http://snippets.test/x": "/snippets.test", "http://snippets.test/in/x": "/snippet",
		"http://again.test/x": "/again.test", "http://again.test/in/x": "/snippet",
		"http://named.test/x": "/site", "http://named.test/alone/x": "/alone", "http://named.test/two": "/two", "http://named.test/in/x": "/two/in",
		"http://errors.test/x": "/errors", "http://errors.test/in/x": "/errors/in", "http://errors.test/other": "/site",
	} {
		t.Run(uri, func(t *testing.T) {
			t.Parallel()
			s.Get(t, uri).WantPage(t, "GET", uri, contextPath)
		})
	}
	s.Get(t, "http://named.test/out").Want(t, 410, "")
	s.Get(t, "http://errors.test/410").Want(t, 410, "")
}

// TestSameMatcherTwice has two directives with one matcher in a block of each kind: the first takes effect.
func TestSameMatcherTwice(t *testing.T) {
	first, second := "not_found {m} {\ncontext_path /first\n}\n", "not_found {m} {\ncontext_path /second\n}\n"
	both := func(matcher, between string) string {
		return strings.ReplaceAll(first+between+second, "{m}", matcher)
	}
	sites := make(map[string]string)
	for _, tt := range []struct{ name, site string }{
		{"no matcher", both("", "")},
		{"no matcher, and all", both("", "") + "not_found *"},
		{"neighbours once they are sorted", both("/x", "not_found /x/y\nnot_found\nrespond /z z\n")},
		{"a named matcher", "@m method GET\n" + both("@m", "")},
		{"the same by two names", "@m path /x\n@n path /x\n" + strings.ReplaceAll(both("@m", ""), "@m {\ncontext_path /second", "@n {\ncontext_path /second")},
		{"a named matcher, with another between", "@m method GET\n@n path /z\n" + both("@m", "not_found @n\n")},
		{"in a handle block", "handle {\n" + both("", "") + "}"},
		{"in a route block", "route {\n" + both("", "") + "}"},
		{"in a route block, with another directive between", "route {\n" + both("", "respond /z z\n") + "}"},
		{"in a route block, with another matcher between", "route {\n" + both("/x", "not_found\n") + "}"},
		{"in handle_errors", "error 404\nhandle_errors {\n" + both("", "") + "}"},
		{"imported", "import twice"},
		{"in a named route", "invoke twice"},
	} {
		sites[tt.name] = tt.site
	}
	caddyfile, hosts := "(twice) {\n"+both("", "")+"}\n&(twice) {\n"+both("", "")+"respond /z z\n}\n", make(map[string]string)
	for name, site := range sites {
		hosts[name] = fmt.Sprintf("site%d.test", len(hosts))
		caddyfile += "http://" + hosts[name] + ":0 {\n" + site + "\n}\n"
	}
	s := testcaddy.Start(t, caddyfile)
	for name, host := range hosts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			uri := "http://" + host + "/x"
			s.Get(t, uri).WantPage(t, "GET", uri, "/first")
		})
	}
}

// TestInErrorRoutes has the directive in handle_errors, where it replaces what comes of a 404 and nothing else.
func TestInErrorRoutes(t *testing.T) {
	app := testcaddy.Backend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/keep" {
			w.Header().Set("X-Keep", "1")
		}
		w.Header()["Content-Type"] = nil
		w.Header().Set("Content-Length", "6")
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, "theirs")
	})
	s := testcaddy.Start(t, strings.NewReplacer("APP", app, "ROOT", filepath.Dir(testcaddy.TempFile(t, "page", "a page"))).Replace(`
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
http://empty.test:0 {
	error /404 404
	handle_errors {
		not_found {
			replace none
		}
		respond 404
	}
}
http://dead.test:0 {
	log
	error /404 404
	error /500 500
	handle_errors {
		log_append cause {http.not_found.cause}
		not_found
		reverse_proxy 127.0.0.1:1
	}
}
http://fails.test:0 {
	error /404 404
	error /500 500
	handle_errors {
		not_found
		error 502
	}
}
http://proxied.test:0 {
	error 404
	handle_errors {
		not_found {
			keep header X-Keep *
			context_path /replaced
		}
		reverse_proxy APP
	}
}
http://proxied-none.test:0 {
	error 404
	handle_errors {
		not_found {
			replace none
		}
		reverse_proxy APP
	}
}
http://file.test:0 {
	error 404
	handle_errors {
		not_found {
			replace none
		}
		root ROOT
		rewrite /page
		file_server {
			status 404
		}
	}
}
`))
	s.Get(t, "http://end.test/404")
	s.Get(t, "http://dead.test/404")
	for _, host := range []string{"end.test", "dead.test"} {
		if entry := s.Logs.WaitForHost(t, "handled request", host, 1)[0]; entry["cause"] != "error" {
			t.Errorf("%s: the access log has the cause %v, want error", host, entry["cause"])
		}
	}
	for _, entry := range s.Logs.WaitFor(t, "handling a 404 error; sending the page", 1) {
		if text, _ := entry["error"].(string); entry["level"] != "error" || !strings.Contains(text, "connection refused") {
			t.Errorf("got the log entry %v, want an error that says what became of the dead backend", entry)
		}
	}
	for uri, want := range map[string]struct {
		status  int
		content string // of a 404, empty or a context path: the page
	}{
		"http://end.test/404":     {404, ""},
		"http://end.test/410":     {410, ""},
		"http://end.test/500":     {500, ""},
		"http://pages.test/404":   {404, ""},
		"http://pages.test/500":   {500, ""}, // not the 404 of the missing error page
		"http://respond.test/404": {404, ""},
		"http://respond.test/500": {500, "500 Internal Server Error"},
		"http://json.test/404":    {404, "{}"},

		"http://empty.test/404":      {404, ""}, // which is the bare status
		"http://dead.test/404":       {404, ""},
		"http://dead.test/500":       {500, ""},
		"http://fails.test/404":      {404, ""},
		"http://fails.test/500":      {500, ""},
		"http://proxied.test/keep":   {404, "theirs"},
		"http://proxied.test/x":      {404, "/replaced"},
		"http://proxied-none.test/x": {404, "theirs"},
		"http://file.test/x":         {404, "a page"},
	} {
		t.Run(uri, func(t *testing.T) {
			t.Parallel()
			if res := s.Get(t, uri); want.status == http.StatusNotFound && (want.content == "" || want.content[0] == '/') {
				res.WantPage(t, "GET", uri, want.content)
			} else {
				res.Want(t, want.status, want.content)
			}
		})
	}
}

// TestReplacedInErrorRoutes replaces a backend's page in handle_errors: the cause is a response.
func TestReplacedInErrorRoutes(t *testing.T) {
	s := testcaddy.Start(t, "http://a.test:0 {\nlog\nerror 404\nhandle_errors {\nlog_append cause {http.not_found.cause}\nnot_found\nreverse_proxy "+
		testcaddy.Backend(t, testcaddy.MissingPage)+"\n}\n}")
	s.Get(t, "http://a.test/length").WantPage(t, "GET", "http://a.test/length", "")
	if got := s.Logs.WaitFor(t, "handled request", 1)[0]["cause"]; got != "response" {
		t.Errorf("the access log has the cause %v, want response", got)
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
}
http://responds.test:0 {
	intercept {
		@gone status 410
		handle_response @gone {
			not_found
		}
	}
	header Content-Encoding br
	header Content-Security-Policy "default-src a.test"
	header Content-Security-Policy-Report-Only "default-src b.test"
	header Etag mine
	header X-Trace 1
	respond "gone" 410
}`, "APP", app))

	for _, host := range []string{"proxy", "headers", "intercept", "responds"} {
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
			if host == "responds" {
				res.WantHeader(t, "Content-Security-Policy", "default-src a.test")
				res.WantHeader(t, "Content-Security-Policy-Report-Only", "default-src b.test")
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

// TestDefaultOrder writes the directives in the reverse of the order in which they are applied.
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
