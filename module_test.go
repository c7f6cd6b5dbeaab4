package notfound

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-notfound/notfound/internal/judge"
	"github.com/caddy-notfound/notfound/internal/report"
	"github.com/caddy-notfound/notfound/internal/represent"
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
		`{{slice (.Placeholder "http.request.orig_uri") 0 1}}{{slice .Footer 0 7}}`+
		`|{{.Placeholder "http.shutting_down"}}`)
	templates := map[string][]string{"text": {file}}
	h := provision(t, &Handler{Template: templates})
	res := answer(t, inside(h, testcaddy.EndOfChain), get())
	if !strings.HasSuffix(res.Content, "a1hPowered|false") {
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

// Errors build their lists from the code. The lists below are written by hand, so they are compared with the code.

const (
	firstColumn = "(?m)^\\| `(\\w+)" // of a table in Markdown, from its first row to the end of the text
	quoted      = "`(\\w+)`"
)

// wantItems finds the items of a list in a text of a file: what the group of the pattern matches.
func wantItems(t *testing.T, file, text, pattern string, want ...string) {
	t.Helper()
	var got []string
	item := regexp.MustCompile(pattern)
	for _, match := range item.FindAllStringSubmatch(text, -1) {
		got = append(got, match[1])
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s has\n%q\nwant, as in the code,\n%q\nin\n%.2000s", file, got, want, text)
	}
}

// between returns what a file has between two strings.
func between(t *testing.T, file, start, end string) string {
	t.Helper()
	_, text, hasStart := strings.Cut(readFile(t, file), start)
	text, _, hasEnd := strings.Cut(text, end)
	if !hasStart || !hasEnd {
		t.Fatalf("%s has nothing between %q and %q", file, start, end)
	}
	return text
}

func TestListsOfOptions(t *testing.T) {
	syntax := between(t, "caddyfile.go", "not_found [<matcher>] {\n", "//\t}\n")
	wantItems(t, "caddyfile.go", syntax, `//\t    (\w+)`, optionNames...)
	wantItems(t, "caddyfile.go", syntax, `replace +(.+)`, strings.Join(modes, "|"))

	adapted := readFile(t, "testdata/adapt/all_options.caddyfiletest")
	for _, option := range optionNames {
		if !strings.Contains(adapted, "\n\t\t"+option) {
			t.Errorf("all_options.caddyfiletest lacks %s", option)
		}
	}

	readme := between(t, "README.md", "\n## Options\n", "\n## ")
	readme = strings.ReplaceAll(readme, `\|`, "|")
	wantGodoc(t, readme)
	var options []string
	for line := range strings.Lines(syntax) {
		words := strings.Fields(line)[1:]
		options = append(options, strings.Join(words, " "))
	}
	wantItems(t, "README.md", readme, "(?m)^\\| `(\\w+)", optionNames...)
	wantItems(t, "README.md", readme, "(?m)^\\| `(.+?)` \\|", options...)
	wantItems(t, "README.md", readme, "`formats .+?` \\| `(.+?)`", strings.Join(represent.FormatNames(), " "))
	wantItems(t, "README.md", readme, "`replace .+?` \\| `(.+?)`", judge.Pages)
	page := answer(t, inside(provision(t, &Handler{}), testcaddy.EndOfChain), get()).Content
	version := strings.TrimPrefix(testcaddy.Footer(), "Powered by Caddy ")
	defaults := strings.NewReplacer("<METHOD>", "GET", "<context_path>", "", "<version>", version)
	for _, option := range []string{"message", "footer"} {
		column := between(t, "README.md", "\n| `"+option+" <text>` | `", "` |")
		if want := defaults.Replace(column); !strings.Contains(page, want+"\n") {
			t.Errorf("the default of %s is not %q, as in\n%s", option, want, page)
		}
	}
	causes := between(t, "README.md", "\n## When it answers\n", "\n## ")
	wantItems(t, "README.md", causes, "(?m)\\| `(\\w+)` \\|$", "unanswered", "error", "response")
}

// wantGodoc checks that the documentation of each field says what the README's table says of the option.
func wantGodoc(t *testing.T, readme string) {
	t.Helper()
	source := readFile(t, "module.go")
	link := regexp.MustCompile(`\[(.+?)\]\(.+?\)`)
	row := regexp.MustCompile("(?m)^\\| `(\\w+).*?` \\| (.+) \\| (.+) \\|$")
	for _, cells := range row.FindAllStringSubmatch(readme, -1) {
		option, byDefault, meaning := cells[1], cells[2], link.ReplaceAllString(cells[3], "$1")
		want := meaning + " Default: " + strings.TrimSuffix(byDefault+".", ".`.")
		field := regexp.MustCompile("((?:\t//.*\n)+)\t\\w+ +\\S+ +`json:\"" + option + ",")
		found := field.FindStringSubmatch(source)
		if found == nil {
			t.Fatalf("module.go has no documentation of %s", option)
		}
		got := strings.Join(strings.Fields(strings.ReplaceAll(found[1], "\t//", "")), " ")
		if strings.TrimSuffix(got, ".`") != want {
			t.Errorf("%s: the README says\n%s\nand module.go says\n%s", option, want, got)
		}
	}
}

func TestListsOfFormats(t *testing.T) {
	table := between(t, "docs/representations.md", "\n## Formats\n", "\n## ")
	wantItems(t, "docs/representations.md", table, firstColumn, represent.FormatNames()...)

	// The clients of the tests know the same formats, and the handler sends what the documents say.
	h := provision(t, &Handler{})
	row := regexp.MustCompile("(?m)^\\| `(.+?)` \\| (.+?) \\| (.+?) \\|")
	for i, cells := range row.FindAllStringSubmatch(table, -1) {
		if got := testcaddy.Formats[i].Name; got != cells[1] {
			t.Errorf("internal/testcaddy has the format %s, want %s", got, cells[1])
		}
		for mediaType := range strings.SplitSeq(cells[2], ", ") {
			r := get()
			r.Header.Set("Accept", mediaType)
			res := answer(t, inside(h, testcaddy.EndOfChain), r)
			res.WantHeader(t, "Content-Type", cells[3])
		}
	}
}

// TestReportIsAsDocumented prints the sample of the report, and looks for each outcome in the table.
func TestReportIsAsDocumented(t *testing.T) {
	const document = "docs/report.md"
	wantSample(t, document)
	counted := between(t, document, "\n## What is counted\n", "\n## ")
	wantItems(t, document, counted, firstColumn, report.OutcomeNames()...)
}

// wantSample reads the report in JSON that a document shows, with all keys, and looks for its addresses as they are
// printed in the sample above it.
func wantSample(t *testing.T, document string) {
	t.Helper()
	object := between(t, document, "```json\n", "```")
	object = strings.NewReplacer("…, \"", "\"", ": …", ": {}", ",\n\t\t…", "").Replace(object)
	numbered := strings.NewReplacer(`"link": "own"`, `"link": 0`, `"own":`, `"0":`, `"other":`, `"1":`, `"none":`, `"2":`)
	outcomes := regexp.MustCompile(`"outcomes": (\{.*?\})`)
	arrays := outcomes.ReplaceAllStringFunc(numbered.Replace(object), func(object string) string {
		var counts map[string]uint64
		if err := json.Unmarshal([]byte(outcomes.FindStringSubmatch(object)[1]), &counts); err != nil {
			t.Fatal(err)
		}
		var array []uint64
		for _, name := range report.OutcomeNames() {
			array = append(array, counts[name])
		}
		encoded, _ := json.Marshal(array)
		return `"outcomes": ` + string(encoded)
	})
	var r report.Report
	if err := caddy.StrictUnmarshalJSON([]byte(arrays), &r); err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	keys := regexp.MustCompile(`"\w+":`)
	got := slices.Compact(slices.Sorted(slices.Values(keys.FindAllString(object, -1))))
	want := slices.Compact(slices.Sorted(slices.Values(keys.FindAllString(string(encoded), -1))))
	if !slices.Equal(got, want) {
		t.Errorf("%s has the keys %q, want %q", document, got, want)
	}
	defer func(before *time.Location) { time.Local = before }(time.Local)
	time.Local = time.UTC
	var printed strings.Builder
	if err := r.WriteText(&printed, report.Filter{}); err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(printed.String(), "OWN LINKS")
	sample := between(t, document, "OWN LINKS", "\n...")
	if strings.TrimSpace(section) != strings.TrimSpace(sample) {
		t.Errorf("%s shows\n%s\nand the report in JSON is printed as\n%s", document, sample, section)
	}
}
