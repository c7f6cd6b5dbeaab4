package userfile

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"go.uber.org/zap"
)

// TestNoValueLeavesItsFolder covers what means the same on each system.
func TestNoValueLeavesItsFolder(t *testing.T) {
	const path = `C:\sites\a.test`
	for value, want := range map[string]error{
		"":     fs.ErrNotExist,
		".":    fs.ErrNotExist,
		" .":   fs.ErrNotExist,
		"a/b":  fs.ErrNotExist,
		`a\b`:  fs.ErrNotExist,
		"a..b": nil,
	} {
		for _, sent := range []string{host, "http.reverse_proxy.header.X-Site"} {
			both := "{" + sent + "}{" + variable + "}"
			got, err := expand(both, placeholders(values{sent: value, variable: path}))
			if !errors.Is(err, want) || err == nil && got != value+path {
				t.Errorf("{%s}, %q: got %q, %v, want the error %v", sent, value, got, err, want)
			}
		}
	}
	for _, value := range []string{"..", "/a.test/../..", `\a\..`, `\a\.. .\b`, "/.. ./x"} {
		got, err := expand("{"+variable+"}", placeholders(values{variable: value}))
		if err == nil || !strings.Contains(err.Error(), "has the element ..") {
			t.Errorf("%q: got %q, %v", value, got, err)
		}
	}
}

// TestPathIsRefused has placeholders that no path can have.
func TestPathIsRefused(t *testing.T) {
	t.Setenv("NOT_FOUND_TEST_EMPTY", "")
	for path, want := range map[string]string{
		"":                              "a path is empty",
		"{http.request.host}/404.html":  "begins with what a client or an upstream sends",
		"{http.regexp.lang.1}/404.html": "begins with what a client or an upstream sends",
		"{http.error.message}/404.html": "begins with what a client or an upstream sends",

		"{http.reverse_proxy.header.X-Site}/404.html": "begins with what a client or an upstream sends",
		"{http.error}":                    "begins with what a client or an upstream sends",
		"{http.of_a_new_module}/404.html": "begins with what a client or an upstream sends",
		"{http.matchers.file.absolute}":   "may become a file of the next handlers",

		"{http.vars.root}/{http.request.uri.path}/404.html": "has the placeholder {http.request.uri.path}, " +
			"whose value has a slash in every request, and so is never one element of a path; " +
			"write {http.request.uri.path.0}, or what a path_regexp finds",
		"/srv/{http.request.uri}":            "has the placeholder {http.request.uri}, ",
		"/srv/{http.request.orig_uri}.html":  "has the placeholder {http.request.orig_uri}, ",
		"/srv/{http.request.uri.path.dir}/x": "has the placeholder {http.request.uri.path.dir}, ",
		"/srv/x{http.request.orig_uri.path}": "has the placeholder {http.request.orig_uri.path}, ",
		"/srv/{http.request.proto}/404.html": "has the placeholder {http.request.proto}, ",

		"{http.vars.root}/../404.html":   "has the element .., which leaves a folder",
		"{http.vars.root}/{file./etc/x}": "has a placeholder of the file or the time",
		"/srv/{time.now.year}/404.html":  "has a placeholder of the file or the time",
		"{http.vars.root}/{http.matchers.file.relative}": "may become a file of the next handlers, such as a script; " +
			"write the files in a row",
		"{env.NOT_FOUND_TEST_EMPTY}/404.html": "the placeholder {env.NOT_FOUND_TEST_EMPTY}, which is not set or empty",
		"{env.NOT_FOUND_TEST_UNSET}/404.html": "the placeholder {env.NOT_FOUND_TEST_UNSET}, which is not set or empty",
	} {
		err := CheckPath(path)
		if err == nil {
			_, err = New(path, text, new(OnceAMinute), zap.NewNop())
		}
		wantError(t, path, err, want)
	}
	if err := CheckPath("../404.html"); err != nil { // no request names it
		t.Error(err)
	}
}

// TestPathsWithSidecars has placeholders of the environment, which stand for a name that the operator chose.
func TestPathsWithSidecars(t *testing.T) {
	t.Setenv("WWW", "/srv/www")
	t.Setenv("PAGE", "404.html")
	for path, isOfSite := range map[string]bool{
		"/srv/404.html":                     false,
		"{env.WWW}/{system.os}":             false,
		"{http.vars.root}/404.html":         true,
		"{http.vars.root}/{env.PAGE}":       true,
		"/srv/{http.request.host}/404.html": true,
	} {
		if got, err := HasSidecars(path); got != isOfSite || err != nil {
			t.Errorf("%s: got %v, %v", path, got, err)
		}
	}
	for _, path := range []string{"/srv/{http.request.host}", "{http.vars.root}/{http.vars.page}"} {
		_, err := HasSidecars(path)
		wantError(t, path, err, "may be another's page")
	}
}
