package notfound

import (
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestGlobalPlaceholdersAreCheckedOnceTheConfigLoads checks values once their placeholders are expanded. A value with
// a placeholder of the request is cleaned for each request instead.
func TestGlobalPlaceholdersAreCheckedOnceTheConfigLoads(t *testing.T) {
	t.Setenv("NOT_FOUND_TEST_VALUE", "ftp://a.test/\x07")
	t.Setenv("NOT_FOUND_TEST_BRACES", "{env.NOT_FOUND_TEST_VALUE}")
	file := testcaddy.TempFile(t, "value", "two\nlines")
	t.Chdir(filepath.Dir(file)) // {file.value} is also a shorthand
	for value, want := range map[string]string{
		"{env.NOT_FOUND_TEST_VALUE}":                    `"ftp://a.test/\a"`,
		"{env.NOT_FOUND_TEST_VALUE}{http.request.host}": "",
		"{env.NOT_FOUND_TEST_VALUE}{time.now.year}":     `"ftp://a.test/\a2`,
		"{file." + file + "}":                           `"two\nlines"`,
		"{file.value}{http.request.host}":               "",
		"\x07{system.os}{system.slash}":                 `"\a`,
		"\x07\\{http.request.host\\}":                   `"\a{http.request.host}"`, // it has no placeholder
		"{env.NOT_FOUND_TEST_UNSET}":                    `""`,
		strings.Repeat("{", 200) + "\x07":               "",
	} {
		for option, h := range map[string]*Handler{
			"message":      {Message: value},
			"context_path": {ContextPath: value},
			"base_url":     {BaseURL: value},
			"uri":          {URI: value},
			"footer":       {Footer: value},
		} {
			if option == "context_path" && want == `""` {
				continue // the root context
			}
			prefix := option + ": " + want
			if want == "" {
				prefix = fmt.Sprint(nil) // no error
			}
			err := fmt.Sprint(provisionErr(t, h))
			if !strings.HasPrefix(err, prefix) {
				t.Errorf("%s %q: got the error %s, want %s", option, value, err, prefix)
			}
		}
	}

	// An expanded value is not expanded again.
	if err := provisionErr(t, &Handler{Footer: "{env.NOT_FOUND_TEST_BRACES}"}); err != nil {
		t.Error(err)
	}
}

// TestTemplateIsTriedWithPlaceholders loads a template that fails where a placeholder is empty, or has no server to
// ask.
func TestTemplateIsTriedWithPlaceholders(t *testing.T) {
	file := testcaddy.TempFile(t, "404.txt", `{{slice (.Placeholder "http.request.uuid") 0 8}}`+
		`{{slice (.Placeholder "{http.request.host}") 0 1}}{{slice (.Placeholder "http.request.remote.host") 0 1}}`+
		`|{{.Placeholder "http.shutting_down"}}`)
	templates := map[string][]string{"text": {file}}
	h := provision(t, &Handler{Template: templates})
	res := answer(t, inside(h, testcaddy.EndOfChain), get())
	if !strings.HasSuffix(res.Content, "a1|false") {
		t.Errorf("got %q", res.Content)
	}
}

// TestTemplateMayShowAnyPlaceholderOfARequest tries those that Caddy takes from the connection, the server and the
// context, which a sample request has to have. The body of a request is none of them.
func TestTemplateMayShowAnyPlaceholderOfARequest(t *testing.T) {
	for _, name := range []string{
		"http.request.cookie.a", "http.request.duration",
		"http.request.duration_ms", "http.request.header.a", "http.request.host.labels.0", "http.request.hostport",
		"http.request.local", "http.request.local.host", "http.request.local.port", "http.request.method",
		"http.request.orig_method", "http.request.orig_uri", "http.request.orig_uri.path.dir",
		"http.request.orig_uri.path.file_escaped", "http.request.orig_uri.path.0", "http.request.orig_uri.query",
		"http.request.port", "http.request.proto_name", "http.request.remote", "http.request.remote.host/16",
		"http.request.scheme", "http.request.tls.client.san.dns_names.0", "http.request.tls.client.subject",
		"http.request.tls.version", "http.request.uri.path.0", "http.request.uri.query.a", "http.request.uuid",
		"http.response.header.a", "http.shutting_down", "http.time_until_shutdown", "http.vars.root",
	} {
		file := testcaddy.TempFile(t, "404.txt", `A page{{.Placeholder "`+name+`"}}`)
		if _, _, err := checkTemplate([]string{"text", file}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTemplateShowsNoBody has a template that names the body of a request, and one that makes the name.
func TestTemplateShowsNoBody(t *testing.T) {
	named := testcaddy.TempFile(t, "404.txt", `A page{{.Placeholder "http.request.body"}}`)
	_, _, err := checkTemplate([]string{"text", named})
	if err == nil || !strings.Contains(err.Error(), "may still be on its way to an upstream") {
		t.Errorf("got the error %v", err)
	}
	made := testcaddy.TempFile(t, "404.txt", `A page{{.Placeholder (printf "http.request.%s" "body")}}`)
	h := provision(t, &Handler{Template: map[string][]string{"text": {made}}})
	r := httptest.NewRequest("POST", "/x", strings.NewReader("theirs"))
	if res := answer(t, inside(h, testcaddy.EndOfChain), r); res.Content != "A page" {
		t.Errorf("got\n%s", res.Content)
	}
}

// TestPathWithGlobalPlaceholdersIsThatOfAKeptFile expands it when the config loads.
func TestPathWithGlobalPlaceholdersIsThatOfAKeptFile(t *testing.T) {
	file := testcaddy.TempFile(t, "404.txt", "{{.Status}}")
	t.Setenv("NOT_FOUND_TEST_DIR", filepath.Dir(file))
	h := provision(t, &Handler{Template: map[string][]string{"text": {"{env.NOT_FOUND_TEST_DIR}/404.txt"}}})
	res := answer(t, inside(h, testcaddy.EndOfChain), get())
	if res.Content != "404" {
		t.Errorf("got\n%s", res.Content)
	}
}

// TestRowWithoutAFileIsRefused has JSON, because a Caddyfile cannot say that.
func TestRowWithoutAFileIsRefused(t *testing.T) {
	err := provisionErr(t, &Handler{Template: map[string][]string{"html": {}}})
	if err == nil || !strings.Contains(err.Error(), "template: html needs a file") {
		t.Errorf("got the error %v", err)
	}
}
