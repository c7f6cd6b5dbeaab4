package notfound

import (
	"fmt"
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
	for value, want := range map[string]string{
		"{env.NOT_FOUND_TEST_VALUE}":                    `"ftp://a.test/\a"`,
		"{env.NOT_FOUND_TEST_VALUE}{http.request.host}": "",
		"{env.NOT_FOUND_TEST_VALUE}{time.now.year}":     `"ftp://a.test/\a2`,
		"{file." + file + "}":                           `"two\nlines"`,
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
