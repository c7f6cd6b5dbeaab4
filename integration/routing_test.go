package integration

import (
	"cmp"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestOneOfEachBlockTakesEffect has several directives in a block, in blocks within it, in snippets, in error routes
// and in named routes, where Caddy would merge them and keep the first.
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
&(twice) {
	import page /docs/* /docs
	import page * /named
	error /fails 500
	respond /elsewhere theirs 404
}
http://siblings.test:0 {
	not_found
	import page /docs/* /docs
	import inner /in
}
http://named.test:0 {
	not_found
	invoke one
}
http://twice.test:0 {
	not_found
	invoke twice
	handle_errors {
		rewrite /elsewhere
		invoke twice
	}
}
http://errors.test:0 {
	import page /other /site
	error 404
	handle_errors 404 {
		import page * /errors
		import page * /second
		import inner /errors/in
	}
}`)
	for address, contextPath := range map[string]string{
		"siblings.test/x":      "",
		"siblings.test/docs/x": "/docs",
		"siblings.test/in/x":   "/in",
		"named.test/x":         "/two",
		"named.test/in/x":      "/two/in",
		"twice.test/docs/x":    "/docs",
		"twice.test/fails":     "/named", // where the route runs twice for one request
		"errors.test/x":        "/errors",
		"errors.test/in/x":     "/errors/in",
		"errors.test/other":    "/site",
	} {
		t.Run(address, func(t *testing.T) {
			t.Parallel()
			res := s.Get(t, "http://"+address)
			res.WantPage(t, "GET", "http://"+address, contextPath)
		})
	}
}

// TestInErrorRoutes has not_found in handle_errors, where it answers a 404 and no other error.
func TestInErrorRoutes(t *testing.T) {
	const none = "not_found {\nreplace none\n}\n"
	const intercepted = "intercept {\nhandle_response {\nnot_found\n}\n}\n"
	file := testcaddy.TempFile(t, "page", "a page")
	page := "root " + testcaddy.Quote(filepath.Dir(file)) + "\nrewrite /page\nfile_server {\nstatus 404\n}"
	for name, tt := range map[string]struct {
		routes string // of handle_errors
		of404  string // what they answer for a 404; none: the page
		of500  string // what they answer for a 500; none: its bare status
		status int    // of the answer for a 500, if it is another one
	}{
		"the end":        {routes: none},
		"a missing file": {routes: "not_found\nroot /nowhere\nfile_server"},
		"a dead backend": {routes: "not_found\nreverse_proxy 127.0.0.1:1"},
		"a page":         {routes: "not_found\nrespond {err.status_text}", of500: "Internal Server Error"},
		"a file, replace none": {
			routes: none + page,
			of404:  "a page",
			of500:  "a page",
			status: http.StatusNotFound,
		},
		"the end of intercept's": {
			routes: intercepted + "respond {err.status_text}",
			of500:  "Internal Server Error",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := startSite(t, "error /404 404\nerror 500\nhandle_errors {\n"+tt.routes+"\n}")
			missing := s.Get(t, "http://a.test/404")
			if tt.of404 == "" {
				missing.WantPage(t, "GET", "http://a.test/404", "")
			} else {
				missing.Want(t, http.StatusNotFound, tt.of404)
			}
			failed := s.Get(t, "http://a.test/500")
			failed.Want(t, cmp.Or(tt.status, http.StatusInternalServerError), tt.of500)
		})
	}
}

// TestPlaceholdersOfAnError shows them where an error has them, and nothing where there is none.
func TestPlaceholdersOfAnError(t *testing.T) {
	page := "not_found {\nmessage {err.message}\nfooter {err.status_code}{err.status_text}.\n}\n"
	s := testcaddy.Start(t, "http://a.test:0 {\n"+page+`
	error /error "It was deleted." 404
	error /plain 404
	respond /response theirs 404
	root /file /nowhere
	file_server /file
}
http://b.test:0 {
	error "It was deleted." 404
	handle_errors {
		`+page+`
	}
}`)
	const noError = "No endpoint GET /missing.html."
	for url, want := range map[string]struct{ message, footer string }{
		"http://a.test/error":    {message: "It was deleted.", footer: "404Not Found."},
		"http://a.test/plain":    {message: noError, footer: "404Not Found."},
		"http://a.test/response": {message: noError, footer: "."},
		"http://a.test/file":     {message: "Not Found", footer: "404Not Found."},
		"http://a.test/nothing":  {message: noError, footer: "."},
		"http://b.test/error":    {message: "It was deleted.", footer: "404Not Found."},
	} {
		got := testcaddy.FieldsOf(t, s.Get(t, url))
		if got.Message != want.message || got.Footer != want.footer {
			t.Errorf("%s: got the message %q and the footer %q, want %v", url, got.Message, got.Footer, want)
		}
	}
}

// TestPageIsCompressedInsideEncode uses the line of docs/order.md.
func TestPageIsCompressedInsideEncode(t *testing.T) {
	s := startSite(t, "encode {\nminimum_length 1\n}\nnot_found", "order encode before not_found")
	page := s.Get(t, "http://a.test/x", "Accept-Encoding: gzip")
	page.WantHeader(t, "Content-Encoding", "gzip")
}
