package notfound

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-notfound/notfound/internal/judge"
	"github.com/caddy-notfound/notfound/internal/page"
	"github.com/caddy-notfound/notfound/internal/report"
	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// Errors build their lists from the code. The lists below are written by hand, so they are compared with the code.

const (
	firstColumn = "(?m)^\\| `(\\w+)" // of a table in Markdown, from its first row to the end of the text
	quoted      = "`(\\w+)`"
)

// wantItems finds the items of a list in a text: what the group of the pattern matches.
func wantItems(t *testing.T, text, pattern string, want ...string) {
	t.Helper()
	var got []string
	item := regexp.MustCompile(pattern)
	for _, match := range item.FindAllStringSubmatch(text, -1) {
		got = append(got, match[1])
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant, as in the code,\n%q\nfrom\n%.2000s", got, want, text)
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
	wantItems(t, syntax, `//\t    (\w+)`, optionNames...)
	wantItems(t, syntax, `replace +(.+)`, strings.Join(modes, "|"))

	readme := between(t, "README.md", "\n## Options\n", "\n## ")
	readme = strings.ReplaceAll(readme, `\|`, "|")
	var options []string
	for line := range strings.Lines(syntax) {
		words := strings.Fields(line)[1:]
		options = append(options, strings.Join(words, " "))
	}
	wantItems(t, readme, "(?m)^\\| `(.+?)` \\|", options...)
	wantItems(t, readme, "`formats .+?` \\| `(.+?)`", strings.Join(page.Formats(), " "))
	wantItems(t, readme, "`replace .+?` \\| `(.+?)`", judge.Pages)
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
	wantItems(t, causes, "(?m)\\| `(\\w+)` \\|$", "unanswered", "error", "response")

	object := between(t, "docs/options.md", "```json\n", "```")
	keys := []string{"handler"}
	for _, option := range optionNames {
		if option != "context_path" { // which cannot be together with message
			keys = append(keys, option)
		}
	}
	wantItems(t, object, `(?m)^\t"(\w+)":`, append(keys, "group")...)
	h := new(Handler)
	err := json.Unmarshal([]byte(object), h)
	if err != nil {
		t.Error(err)
	}
	provision(t, h)

	godoc := between(t, "module.go", "// Which 404 responses of the next handlers", "Replace string")
	wantItems(t, godoc, quoted+": ", modes...)
	wantItems(t, godoc, "Default: "+quoted, judge.Pages)
}

func TestListsOfFormats(t *testing.T) {
	godoc := between(t, "module.go", "// The representations on offer: ", "Formats []string")
	wantItems(t, godoc, quoted, page.Formats()...)
	table := between(t, "docs/representations.md", "\n## Formats\n", "\n## ")
	wantItems(t, table, firstColumn, page.Formats()...)

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

// inProse has each format as a sentence names it.
var inProse = map[string]string{
	"text":     "plain text",
	"html":     "HTML",
	"markdown": "Markdown",
	"json":     "JSON",
	"problem":  "problem details",
	"xml":      "XML",
}

// TestSentencesNameAllFormats looks for the same words in each description of the module.
func TestSentencesNameAllFormats(t *testing.T) {
	var names []string
	for _, format := range page.Formats() {
		if inProse[format] == "" {
			t.Errorf("inProse lacks the format %s", format)
		}
		names = append(names, inProse[format])
	}
	last := len(names) - 1
	want := strings.Join(names[:last], ", ") + " or " + names[last]
	for _, file := range []string{"README.md", "module.go"} {
		text := strings.ReplaceAll(readFile(t, file), "\n//", "\n")
		text = strings.Join(strings.Fields(text), " ")
		if !strings.Contains(text, want) {
			t.Errorf("%s does not name all formats: %s", file, want)
		}
	}
}

func TestListsOfTheReport(t *testing.T) {
	var outcomes, links []string
	for o := range report.NumOutcomes {
		outcomes = append(outcomes, o.String())
	}
	for l := range report.NumLinks {
		links = append(links, l.String())
	}
	const document = "docs/report.md"
	r, _ := report.Missed.Snapshot()
	wantItems(t, readFile(t, document), `room for ([\d,]+) addresses`, humanize.Comma(int64(r.Capacity)))
	wantSample(t, document)
	counted := between(t, document, "\n## What is counted\n", "\n## ")
	wantItems(t, counted, firstColumn, outcomes...)
	kinds := between(t, document, "\n## Three kinds of links\n", "\n## ")
	wantItems(t, kinds, firstColumn, links...)

	const source = "internal/command/report.go"
	const word = `(\w{3,})` // which leaves out the “or” before the last
	why := between(t, source, "Only addresses with this outcome: ", `"`)
	wantItems(t, why, word, outcomes...)
	link := between(t, source, "Only addresses that this kind of link led to: ", `"`)
	wantItems(t, link, word, links...)
}

// wantSample reads the report in JSON that a document shows, with all keys, and looks for its addresses as they are
// printed in the sample above it.
func wantSample(t *testing.T, document string) {
	t.Helper()
	object := between(t, document, "```json\n", "```")
	object = strings.NewReplacer("…, \"", "\"", ": …", ": {}", ",\n\t\t…", "").Replace(object)
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

// TestListsOfReadSources compares the asterisks in the table of applications with the sources that were read. An
// application that was recorded has none.
func TestListsOfReadSources(t *testing.T) {
	content := readFile(t, "integration/testdata/404s-sources.json")
	var sources []struct{ Application string }
	if err := json.Unmarshal([]byte(content), &sources); err != nil {
		t.Fatal(err)
	}
	var applications []string
	for _, source := range sources {
		isRecorded := slices.ContainsFunc(testcaddy.Recordings(), func(rec testcaddy.Recording) bool {
			return strings.HasPrefix(rec.Application, source.Application)
		})
		if !isRecorded {
			applications = append(applications, strings.Split(source.Application, ", ")...)
		}
	}
	table := between(t, "docs/applications.md", "", "\n## ")
	wantItems(t, table, `([\w.]+)\\\*`, applications...)
}

// TestRowsAreAboutWhatIsReplaced looks for the recorded 404s of each row in the table of applications. If all of them
// pass by default, the row asks for nothing, or for what replaces them.
func TestRowsAreAboutWhatIsReplaced(t *testing.T) {
	table := between(t, "docs/applications.md", "|---|---|---|\n", "\n\n")
	for row := range strings.SplitSeq(table, "\n") {
		cells := strings.Split(row, " | ")
		recorded, passing := 0, 0
		for _, rec := range testcaddy.Recordings() {
			name, _, _ := strings.Cut(rec.Application, " ")
			if !strings.Contains(cells[0], name) {
				continue
			}
			recorded++
			if slices.Contains(rec.PassesTo, "recorded") {
				passing++
			}
		}
		isNothing := strings.HasPrefix(cells[2], "nothing") || strings.Contains(cells[2], "replace all")
		if recorded > 0 && passing == recorded && !isNothing {
			t.Errorf("all %d recorded 404s pass without what this row asks for: %s", recorded, row)
		}
	}
}

// TestRecorded404s replays the 404s of real applications: to the clients that they were recorded with, to a browser,
// and to a program. Each passes as it is, but for Vary, or the page takes its place.
func TestRecorded404s(t *testing.T) {
	t.Parallel()
	h := provision(t, &Handler{})
	recordings := testcaddy.Recordings()
	document := between(t, "docs/applications.md", "", "\n## ")
	wantItems(t, document, `(\d+) of their 404s`, fmt.Sprint(len(recordings)))
	for _, rec := range recordings {
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
