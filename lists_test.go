package notfound

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-notfound/notfound/internal/judge"
	"github.com/caddy-notfound/notfound/internal/report"
	"github.com/caddy-notfound/notfound/internal/represent"
	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

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

	readme := between(t, "README.md", "\n## Options\n", "\n## ")
	readme = strings.ReplaceAll(readme, `\|`, "|")
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

	object := between(t, "docs/options.md", "```json\n", "```")
	keys := []string{"handler"}
	for _, option := range optionNames {
		if option != "context_path" { // which cannot be together with message
			keys = append(keys, option)
		}
	}
	wantItems(t, "docs/options.md", object, `(?m)^\t"(\w+)":`, append(keys, "group")...)
	h := new(Handler)
	err := json.Unmarshal([]byte(object), h)
	if err != nil {
		t.Error(err)
	}
	provision(t, h)

	godoc := between(t, "module.go", "// Which 404 responses of the next handlers", "Replace string")
	wantItems(t, "module.go", godoc, quoted+": ", modes...)
	wantItems(t, "module.go", godoc, "Default: "+quoted, judge.Pages)
}

func TestListsOfFormats(t *testing.T) {
	godoc := between(t, "module.go", "// The representations on offer: ", "Formats []string")
	wantItems(t, "module.go", godoc, quoted, represent.FormatNames()...)
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
	object = strings.NewReplacer("…, \"", "\"", ": …", ": {}", ",\n\t\t…", "", `"link": "own"`, `"link": 0`).Replace(object)
	var r report.Report
	if err := caddy.StrictUnmarshalJSON([]byte(object), &r); err != nil {
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

// TestRecorded404s replays the 404s of real applications: to the clients that they were recorded with, to a browser,
// and to a program. Each passes as it is, but for Vary, or the page takes its place. The document has their number.
func TestRecorded404s(t *testing.T) {
	t.Parallel()
	number := strconv.Itoa(len(testcaddy.Recordings()))
	wantItems(t, "docs/applications.md", readFile(t, "docs/applications.md"), `\[(\d+) of their 404s\]`, number)

	h := provision(t, &Handler{})
	for _, rec := range testcaddy.Recordings() {
		replay := func(w http.ResponseWriter, _ *http.Request) error {
			rec.Replay(w)
			return nil
		}
		for client, header := range map[string]http.Header{
			"recorded": rec.Request,
			"browser":  {"Accept": {"text/html,application/xhtml+xml,*/*;q=0.8"}},
			"program":  {"Accept": {"*/*"}},
		} {
			r := httptest.NewRequest(rec.Method, rec.Target, nil)
			r.Header = header
			theirs := answer(t, replay, r)
			got := answer(t, inside(h, replay), r)
			theirs.Header.Del("Vary")
			got.Header.Del("Vary")

			hasTheirHeader := reflect.DeepEqual(got.Header, theirs.Header)
			isTheirs := hasTheirHeader && got.Content == theirs.Content
			isPage := got.Header.Get("Content-Location") == "" // which every recording has
			passes := slices.Contains(rec.PassesTo, client)
			if isTheirs != passes || isPage == passes {
				t.Errorf("%s, %s, %s %s:", rec.Application, rec.Client, rec.Method, rec.Target)
				t.Errorf("to %s, got %v\n%.200s\nwant it to pass: %v", client, got.Header, got.Content, passes)
			}
		}
	}
}
