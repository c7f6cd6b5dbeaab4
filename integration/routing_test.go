package integration

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestOneOfEachBlockTakesEffect has several directives in a block, in blocks within it, in snippets, in error routes and in
// named routes, where Caddy would merge them and keep the first.
func TestOneOfEachBlockTakesEffect(t *testing.T) {
	s := testcaddy.Start(t, `
(page) {
	not_found {args[0]} {
		context_path {args[1]}
	}
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
&(siblings) {
	import page /docs/* /docs
	import page * /named
	error /fails 500
	respond /elsewhere theirs 404
}
http://siblings.test:0, http://again.test:0 {
	not_found
	import page /docs/* /docs
	import page /docs/apis/* /apis
	import inner /in
}
http://named.test:0 {
	import page * /site
	invoke /in/* one
	invoke /two one
}
http://failing.test:0 {
	not_found
	invoke siblings
	handle_errors {
		rewrite /elsewhere
		invoke siblings
	}
}
http://errors.test:0 {
	import page /other /site
	error /in/* 404
	error 404
	handle_errors 404 {
		import page * /errors
		import page * /second
		import inner /errors/in
	}
}`)
	for address, contextPath := range map[string]string{
		"siblings.test/x": "", "again.test/docs": "", "again.test/docs/x": "/docs", "siblings.test/docs/apis/x": "/apis", "siblings.test/in/x": "/in",
		"named.test/x": "/site", "named.test/two": "/two", "named.test/in/x": "/two/in",
		"failing.test/x": "/named", "failing.test/docs/x": "/docs",
		"failing.test/fails": "/named", // where the route runs twice for one request
		"errors.test/x":      "/errors", "errors.test/in/x": "/errors/in", "errors.test/other": "/site",
	} {
		t.Run(address, func(t *testing.T) {
			t.Parallel()
			s.Get(t, "http://"+address).WantPage(t, "GET", "http://"+address, contextPath)
		})
	}
}

// TestInnerOneDecides nests a not_found in a site's own, with other handlers between them. What the inner one lets pass also
// passes the outer one, even if intercept has replaced it.
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

// TestInErrorRoutes has not_found in handle_errors, where it answers a 404 and no other error.
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
		"intercept's end":          {"intercept {\nhandle_response {\nnot_found\nrespond /other no\n}\n}\nrespond gone 410", "/404", 0, "", "error"},
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
		entry := s.Logs.WaitFor(t, "sending the 404 page in place of an error", 1)[0]
		if text, _ := entry["error"].(string); entry["level"] != "error" || !strings.Contains(text, "connection refused") {
			t.Errorf("got the log entry %v, want an error that says what became of the backend", entry)
		}
	})
}

// TestPageIsCompressedInsideEncode uses the line of docs/limits.md.
func TestPageIsCompressedInsideEncode(t *testing.T) {
	s := testcaddy.Start(t, "http://a.test:0 {\nencode {\nminimum_length 1\n}\nnot_found\n}", "order not_found after encode")
	s.Get(t, "http://a.test/x", "Accept-Encoding: gzip").WantHeader(t, "Content-Encoding", "gzip")
}
