package integration

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestOneOfEachBlockTakesEffect has several directives in one block, of which the most specific one takes effect, and the first
// of equal ones; and directives in blocks within blocks, in snippets, in named routes and in error routes. Caddy merges the
// routes of a named one, and would keep only the first handler of it.
func TestOneOfEachBlockTakesEffect(t *testing.T) {
	s := testcaddy.Start(t, `
(page) {
	not_found {args[0]} {
		context_path {args[1]}
	}
}
(twice) {
	import page * /first
	import page * /second
}
(inner) {
	handle /in/* {
		import page * {args[0]}
	}
}
&(one) {
	import page * /one
	invoke two
}
&(two) {
	import inner /two/in
	import page * /two
}
&(bare) {
	import page * /named
	respond /here here
}
&(failing) {
	import page * /named
	error /fails 500
	respond "theirs" 404
}
&(siblings) {
	import page /docs/* /docs
	import page * /named
	rewrite /old /new
	handle /b {
		respond b
	}
}
&(twice) {
	import twice
	respond /z z
}
http://siblings.test:0, http://again.test:0 {
	not_found
	import page /docs/* /docs
	import page /docs/apis/* /apis
	@posts method POST
	import page @posts /posts
	handle /docs/html {
		respond "<p>theirs" 404
	}
}
http://route.test:0 {
	route {
		import page /docs/* /docs
		import page * /first
		import page /docs/apis/* /apis
	}
}
http://equal.test:0 {
	import page /x /first
	import page * /third
	not_found /x/y
	import page /x /second
	not_found *
	respond /z z
}
http://named-matcher.test:0 {
	@m method GET
	@n path /z
	import page @m /first
	not_found @n
	import page @m /second
}
http://twice.test:0 {
	not_found
	handle /handle {
		import twice
	}
	route /route {
		import twice
	}
	route /between {
		import page /between /first
		not_found
		respond /z z
		import page /between /second
	}
	invoke /named twice
}
http://blocks.test:0 {
	import page * /site
	handle /in/* {
		handle /in/deep/* {
			import page * /deep
		}
		import page * /in
	}
}
http://snippets.test:0 {
	import inner /snippet
	import page * /{http.request.host}
}
http://named.test:0 {
	import page * /site
	invoke /in/* one
	invoke /two one
}
http://bare.test:0 {
	rewrite /x /y
	handle {
		invoke bare
	}
}
http://failing.test:0 {
	invoke failing
	handle_errors {
		rewrite /elsewhere
		invoke failing
	}
}
http://both.test:0 {
	not_found
	import page /other /other
	invoke siblings
}
http://errors.test:0 {
	import page /other /site
	error /in/* 404
	error /410 410
	error 404
	handle_errors 404 {
		import page * /errors
		import page * /second
		import inner /errors/in
	}
	handle_errors 410 {
		import page * /never
	}
}`)
	for address, contextPath := range map[string]string{
		"siblings.test/x": "", "again.test/docs": "", "again.test/docs/x": "/docs", "again.test/docs/html": "/docs", "siblings.test/docs/apis/x": "/apis",
		"route.test/x": "/first", "route.test/docs/x": "/docs", "route.test/docs/apis/x": "/docs", // a route block keeps its order
		"equal.test/x": "/first", "equal.test/y": "/third", "named-matcher.test/x": "/first",
		"twice.test/handle": "/first", "twice.test/route": "/first", "twice.test/between": "/first", "twice.test/named": "/first",
		"blocks.test/x": "/site", "blocks.test/in/x": "/in", "blocks.test/in/deep/x": "/deep",
		"snippets.test/x": "/snippets.test", "snippets.test/in/x": "/snippet",
		"named.test/x": "/site", "named.test/two": "/two", "named.test/in/x": "/two/in",
		"bare.test/x": "/named", "failing.test/fails": "/named", // which runs twice for one request
		"both.test/x": "/named", "both.test/docs/x": "/docs", "both.test/other": "/named",
		"errors.test/x": "/errors", "errors.test/in/x": "/errors/in", "errors.test/other": "/site",
	} {
		t.Run(address, func(t *testing.T) {
			t.Parallel()
			s.Get(t, "http://"+address).WantPage(t, "GET", "http://"+address, contextPath)
		})
	}
	s.Do(t, "POST", "http://siblings.test/x").WantPage(t, "POST", "http://siblings.test/x", "/posts")
	s.Get(t, "http://both.test/b").Want(t, 200, "b")
	s.Get(t, "http://bare.test/here").Want(t, 200, "here")
	s.Get(t, "http://errors.test/410").Want(t, 410, "")
}

// TestInnerOneDecides has a site with not_found, and in it an application with one of its own, with other handlers between
// them. What the inner one lets pass passes the outer one, and so does what intercept makes of it.
func TestInnerOneDecides(t *testing.T) {
	const inner = "/inner"
	app := testcaddy.Backend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("X-Error-Page", "1")
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, "theirs")
	})
	const (
		all  = "not_found {\nreplace all\ncontext_path /outer\n}\n"
		keep = "not_found {\nkeep header X-Error-Page *\ncontext_path /inner\n}\n"
		none = "not_found {\nreplace none\n}\n"
		own  = "header -Content-Length\nrespond own 404"
	)
	intercept := func(routes string) string {
		return "intercept {\n@missing status 404\nhandle_response @missing {\n" + routes + "\n}\n}\n"
	}
	type want struct{ page, content, cause string } // page: its context path; without, the content passes
	theirs, ownPasses := want{content: "theirs"}, want{content: "own"}
	cases := map[string]struct {
		outer, inner string
		want         want
	}{
		"a page for a response":         {all, "not_found {\ncontext_path /inner\n}\n", want{page: inner, cause: "response"}},
		"keep":                          {all, keep, theirs},
		"keep, in buffers":              {all + "templates\nencode {\nminimum_length 1\n}\n", keep, theirs},
		"a dry run":                     {all, "not_found {\ndry_run\nkeep header X-Error-Page *\n}\n", want{page: "/outer", cause: "response"}},
		"none":                          {all, none, theirs},
		"none, in a buffer":             {all + "templates\n", none, theirs},
		"intercept takes nothing":       {all + "intercept {\n@x status 418\nhandle_response @x {\nrespond no\n}\n}\n", keep, theirs},
		"intercept's own":               {all + intercept(own), keep, ownPasses},
		"intercept's own, of a page":    {all + intercept(own), "not_found\n", want{content: "own", cause: "response"}},
		"intercept's own, in a dry run": {all + intercept("not_found {\ndry_run\n}\n"+own), keep, ownPasses},
		"intercept's own, which passes": {none + intercept(own), keep, ownPasses},
		"a page in a response route":    {all + intercept(keep), none, want{page: inner, cause: "unanswered"}},
		"passes in a response route":    {all + intercept(none+own), keep, ownPasses},
		"a page for an error":           {all, keep + "error 404\n", want{page: inner, cause: "error"}},
	}
	sites := make(map[string]string)
	for name, tt := range cases {
		sites[name] = tt.outer + "handle {\n" + tt.inner + "reverse_proxy " + app + "\n}\n"
	}
	s, hosts := testcaddy.StartSites(t, "", sites)
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			uri := "http://" + hosts[name] + "/x"
			if res := s.Get(t, uri); tt.want.page != "" {
				res.WantPage(t, "GET", uri, tt.want.page)
			} else {
				res.Want(t, 404, tt.want.content)
			}
			if entry := s.Logs.WaitForHost(t, "handled request", hosts[name], 1)[0]; entry["cause"] != tt.want.cause {
				t.Errorf("the access log has the cause %v, want %q", entry["cause"], tt.want.cause)
			}
		})
	}
}

// TestInErrorRoutes has the directive in handle_errors, where it replaces what comes of a 404 and nothing else.
func TestInErrorRoutes(t *testing.T) {
	app := testcaddy.Backend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("keep") {
			w.Header().Set("X-Keep", "1")
		}
		w.Header()["Content-Type"] = nil
		w.Header().Set("Content-Length", "6")
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, "theirs")
	})
	const none = "not_found {\nreplace none\n}\n"
	root := filepath.Dir(testcaddy.TempFile(t, "page", "a page"))
	cases := map[string]struct {
		routes  string // of handle_errors
		target  string // its path is the status of the error
		status  int    // none: the page
		content string
		cause   string
	}{
		"the end":                  {none, "/404", 0, "", "error"},
		"the end, 500":             {none, "/500", 500, "", ""},
		"a missing page":           {"not_found\nroot /nowhere\nfile_server", "/404", 0, "", "error"},
		"a missing page, 500":      {"not_found\nroot /nowhere\nfile_server", "/500", 500, "", ""}, // not the 404 of the missing page
		"a page":                   {"not_found\nrespond \"{err.status_text}\"", "/404", 0, "", "response"},
		"a page, 500":              {"not_found\nrespond \"{err.status_text}\"", "/500", 500, "Internal Server Error", ""},
		"a page, none":             {none + "root " + root + "\nrewrite /page\nfile_server {\nstatus 404\n}", "/404", 404, "a page", ""},
		"JSON":                     {"not_found\nheader Content-Type application/json\nrespond \"{}\"", "/404", 404, "{}", ""},
		"the bare status":          {none + "respond 404", "/404", 0, "", "error"},
		"a dead backend":           {"not_found\nreverse_proxy 127.0.0.1:1", "/404", 0, "", "error"},
		"a dead backend, 500":      {"not_found\nreverse_proxy 127.0.0.1:1", "/500", 500, "", ""},
		"another error":            {"not_found\nerror 502", "/404", 0, "", "error"},
		"a backend, kept":          {"not_found {\nkeep header X-Keep *\n}\nreverse_proxy " + app, "/404?keep", 404, "theirs", ""},
		"a backend, replaces none": {none + "reverse_proxy " + app, "/404", 404, "theirs", ""},
	}
	sites := make(map[string]string)
	for name, tt := range cases {
		sites[name] = "error /404 404\nerror /500 500\nhandle_errors {\nlog_append cause {http.not_found.cause}\n" + tt.routes + "\n}"
	}
	s, hosts := testcaddy.StartSites(t, "", sites)
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			uri := "http://" + hosts[name] + tt.target
			if res := s.Get(t, uri); tt.status == 0 {
				res.WantPage(t, "GET", uri, "")
			} else {
				res.Want(t, tt.status, tt.content)
			}
			if entry := s.Logs.WaitForHost(t, "handled request", hosts[name], 1)[0]; entry["cause"] != tt.cause {
				t.Errorf("the access log has the cause %v, want %q", entry["cause"], tt.cause)
			}
		})
	}
	t.Run("the dead backend is logged", func(t *testing.T) {
		s.Get(t, "http://"+hosts["a dead backend"]+"/404")
		entry := s.Logs.WaitFor(t, "handling a 404 error; sending the page", 1)[0]
		if text, _ := entry["error"].(string); entry["level"] != "error" || !strings.Contains(text, "connection refused") {
			t.Errorf("got the log entry %v, want an error that says what became of the backend", entry)
		}
	})
}

// TestInErrorRoutesOfSubroute has the directive in error routes whose end writes nothing. Only JSON can configure them.
func TestInErrorRoutesOfSubroute(t *testing.T) {
	s := testcaddy.StartConfig(t, []byte(`{
		"admin": {"disabled": true, "config": {"persist": false}},
		"apps": {"http": {"servers": {"s": {"listen": ["127.0.0.1:0"], "routes": [{"handle": [{
			"handler": "headers", "response": {"deferred": true, "set": {"X-Cause": ["{http.not_found.cause}"]}}
		}, {
			"handler": "subroute",
			"routes": [{"handle": [{"handler": "error", "status_code": "{http.request.uri.query.status}"}]}],
			"errors": {"routes": [{"handle": [{"handler": "not_found"}]}]}
		}]}]}}}}
	}`))
	res := s.Get(t, "http://a.test/?status=404")
	res.WantPage(t, "GET", "http://a.test/?status=404", "")
	res.WantHeader(t, "X-Cause", "error")
	s.Get(t, "http://a.test/?status=500").Want(t, 200, "") // as without not_found
}

// TestInResponseHandlers has the directive in the response routes of reverse_proxy and intercept. Caddy does not mark the
// end of intercept's as it marks that of a site's routes.
func TestInResponseHandlers(t *testing.T) {
	app := testcaddy.Backend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Content-Encoding", "br")
		w.Header().Set("X-Trace", "1")
		w.WriteHeader(http.StatusGone)
		io.WriteString(w, strings.Repeat("theirs", 1000))
	})
	handles := func(handler, routes string) string {
		return handler + " {\n@gone status 410\nhandle_response @gone {\n" + routes + "\n}\n}\n"
	}
	sites := map[string]string{
		"proxy":                      handles("reverse_proxy "+app, "not_found"),
		"proxy with headers":         handles("reverse_proxy "+app, "copy_response_headers\nnot_found"),
		"intercept":                  handles("intercept", "not_found\nhandle /other {\nrespond no\n}") + "reverse_proxy " + app,
		"intercept, responds":        handles("intercept", "not_found") + "header Content-Encoding br\nheader X-Trace 1\nrespond gone 410",
		"intercept in handle_errors": "error 404\nhandle_errors {\n" + handles("intercept", "not_found") + "header X-Trace 1\nrespond gone 410\n}",
	}
	s, hosts := testcaddy.StartSites(t, "", sites)
	for name, host := range hosts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			uri := "http://" + host + "/x"
			res := s.Get(t, uri)
			res.WantPage(t, "GET", uri, "")
			res.WantHeader(t, "Content-Encoding", "")
			res.WantHeader(t, "Content-Type", "text/plain; charset=utf-8")
			if name != "proxy" {
				res.WantHeader(t, "X-Trace", "1")
			}
		})
	}
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
