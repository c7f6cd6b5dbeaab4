package notfound

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/judge"
	"github.com/caddy-notfound/notfound/internal/page"
	"github.com/caddy-notfound/notfound/internal/report"
	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// wantList compares a list that people read with the one in the code. Errors build their lists from the code.
func wantList(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got\n%q\nwant, as in the code,\n%q", what, got, want)
	}
}

func TestListsOfOptionsAreThoseInTheCode(t *testing.T) {
	var syntax []string // without //
	for line := range strings.Lines(between(t, "caddyfile.go", "not_found [<matcher>] {\n", "//\t}\n")) {
		syntax = append(syntax, strings.Join(strings.Fields(line)[1:], " "))
	}
	options := table(t, "README.md", "## Options")
	wantList(t, "the syntax of UnmarshalCaddyfile", find(`(?m)^(\w+)`, strings.Join(syntax, "\n")), optionNames)
	wantList(t, "the options of the README", column(options, 0), syntax)
	ofFormats := options[slices.Index(optionNames, "formats")]
	wantList(t, "the default of formats in the README", strings.Fields(strings.Trim(ofFormats[1], "`")), page.Formats())
	ofReplace := options[slices.Index(optionNames, "replace")]
	wantList(t, "the default of replace in the README", ofReplace[1:2], []string{"`" + judge.Pages + "`"})
	wantList(t, "the modes in the syntax", find(`(?m)^replace (.*)`, strings.Join(syntax, "\n")),
		[]string{strings.Join(modes, "|")})

	object := between(t, "docs/options.md", "```json\n", "```")
	h := new(Handler)
	if err := json.Unmarshal([]byte(object), h); err != nil {
		t.Errorf("the JSON of docs/options.md: %v", err)
	}
	provision(t, h)
	keys := slices.Concat([]string{"handler"}, optionNames, []string{"group"})
	keys = slices.DeleteFunc(keys, func(key string) bool { return key == "context_path" }) // the other of message
	wantList(t, "the JSON of docs/options.md", find(`(?m)^\t"(\w+)":`, object), keys)

	godoc := between(t, "module.go", "// Which 404 responses of the next handlers", "Replace string")
	wantList(t, "the documentation of Replace", find("`(\\w+)`: ", godoc), modes)
	wantList(t, "the default there", find("Default: `(\\w+)`", godoc), []string{judge.Pages})
}

func TestListsOfFormatsAreThoseInTheCode(t *testing.T) {
	godoc := between(t, "module.go", "// The representations on offer: ", "Formats []string")
	wantList(t, "the documentation of Formats", find("`(\\w+)`", godoc), page.Formats())
	wantList(t, "docs/representations.md", column(table(t, "docs/representations.md", "## Formats"), 0), page.Formats())
	cmd, _ := commands(t)
	wantList(t, "the help of --formats", listIn(cmd.Flag("formats").Usage), page.Formats())
	var tested []string
	for _, f := range testcaddy.Formats {
		tested = append(tested, f.Name)
	}
	wantList(t, "the formats of internal/testcaddy", tested, page.Formats())

	const prose = "plain text, HTML, Markdown, JSON, problem details or XML"
	for _, file := range []string{"README.md", "module.go", "internal/command/command.go"} {
		text := strings.Fields(strings.ReplaceAll(between(t, file, "", ""), "\n//", ""))
		if !strings.Contains(strings.Join(text, " "), prose) {
			t.Errorf("%s lacks %q", file, prose)
		}
	}
}

func TestListsOfFlagsAreThoseInTheCode(t *testing.T) {
	cmd, _ := commands(t)
	flags := find(`(?m)^ +(?:-\w, )?--([a-z-]+)`, cmd.Flags().FlagUsages())
	usage := find(`\[--([a-z-]+)`, caddycmd.Commands()["not-found"].Usage)
	wantList(t, "the usage of the command", slices.Sorted(slices.Values(usage)), flags)
	options := slices.DeleteFunc(flags, func(flag string) bool {
		return flag == "report" || !slices.Contains(optionNames, strings.ReplaceAll(flag, "-", "_"))
	})
	const source = "internal/command/command.go"
	help := between(t, source, "whichever the client's Accept header prefers. ", " are the options of the")
	wantList(t, "the help of the command", slices.Sorted(slices.Values(find(`--([a-z-]+)`, help))), options)
}

func TestListsOfTheReportAreThoseInTheCode(t *testing.T) {
	var outcomes, links []string
	for o := range report.NumOutcomes {
		outcomes = append(outcomes, o.String())
	}
	for l := range report.NumLinks {
		links = append(links, l.String())
	}
	_, cmd := commands(t)
	wantList(t, "the help of --why", listIn(cmd.Flag("why").Usage), outcomes)
	wantList(t, "the help of --link", listIn(cmd.Flag("link").Usage), links)
	counted := table(t, "docs/report.md", "## What is counted")
	wantList(t, "the outcomes of docs/report.md", column(counted, 0), outcomes)
	kinds := table(t, "docs/report.md", "## Three kinds of links")
	wantList(t, "the kinds of links of docs/report.md", column(kinds, 0), links)
}

// commands returns `caddy not-found` and its subcommand report.
func commands(t *testing.T) (notFound, report *cobra.Command) {
	t.Helper()
	notFound = new(cobra.Command)
	caddycmd.Commands()["not-found"].CobraFunc(notFound)
	report, _, err := notFound.Find([]string{"report"})
	if err != nil {
		t.Fatal(err)
	}
	return notFound, report
}

var comma = regexp.MustCompile(`, | or `)

// listIn returns the words of the list that ends the help of a flag.
func listIn(usage string) []string {
	_, list, _ := strings.Cut(usage, ": ")
	return comma.Split(list, -1)
}

// TestMediaTypesOfTheDocumentation asks for the page by each media type of docs/representations.md.
func TestMediaTypesOfTheDocumentation(t *testing.T) {
	s := compile(t, "not_found", nil)
	for _, row := range table(t, "docs/representations.md", "## Formats") {
		for mediaType := range strings.SplitSeq(row[1], ", ") {
			s.answer(t, incoming(t, "/x", "Accept: "+mediaType)).WantHeader(t, "Content-Type", row[2])
		}
	}
}

// between returns what a file has between two strings. An empty end is that of the file.
func between(t *testing.T, file, start, end string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(content), start)
	if end != "" && found {
		text, _, found = strings.Cut(text, end)
	}
	if !found {
		t.Fatalf("%s has nothing between %q and %q", file, start, end)
	}
	return text
}

// find returns the first group of each match.
func find(pattern, text string) (found []string) {
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		found = append(found, match[1])
	}
	return found
}

// table returns the cells of the first table of a section in Markdown, without its header.
func table(t *testing.T, file, section string) (rows [][]string) {
	t.Helper()
	text := between(t, file, "\n"+section+"\n", "")
	_, text, found := strings.Cut(text, "\n|---")
	_, text, _ = strings.Cut(text, "\n")
	if !found {
		t.Fatalf("%s has no table", section)
	}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "| ") {
			break
		}
		rows = append(rows, strings.Split(strings.Trim(line, "| \n"), " | "))
	}
	return rows
}

// column returns a column of a table, as a reader sees it.
func column(rows [][]string, i int) (cells []string) {
	for _, row := range rows {
		cells = append(cells, strings.ReplaceAll(strings.Trim(row[i], "`"), `\|`, "|"))
	}
	return cells
}

// TestRecorded404s replays the 404s of real applications: to the clients that they were recorded with, to a browser,
// and to a program. With `replace all`, no response passes. The number of them is that of docs/applications.md.
func TestRecorded404s(t *testing.T) {
	browser := http.Header{"Accept": {"text/html,application/xhtml+xml,*/*;q=0.8"}}
	program := http.Header{"Accept": {"*/*"}}
	pages := provision(t, &Handler{})
	all := provision(t, &Handler{Replace: judge.All})
	for _, rec := range testcaddy.Recordings() {
		for client, header := range map[string]http.Header{"recorded": rec.Request, "browser": browser, "program": program} {
			what := fmt.Sprintf("%s, %s %s %s, to %s", rec.Application, rec.Client, rec.Method, rec.Target, client)
			wantReplayed(t, what, pages, rec, header, slices.Contains(rec.PassesTo, client))
			wantReplayed(t, what+", replace all", all, rec, header, false)
		}
	}
	between(t, "docs/applications.md", fmt.Sprintf(" %d of their 404s", len(testcaddy.Recordings())), "")
}

// wantReplayed replays a 404 to a client through a handler. It passes as it is, but for Vary, or the page takes its
// place.
func wantReplayed(t *testing.T, what string, h *Handler, rec testcaddy.Recording, client http.Header, passes bool) {
	t.Helper()
	theirs := httptest.NewRecorder()
	rec.Replay(theirs)
	r := httptest.NewRequest(rec.Method, rec.Target, nil)
	r.Header = client.Clone()
	w := httptest.NewRecorder()
	err := h.ServeHTTP(w, prepare(w, r), caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
		rec.Replay(w)
		return nil
	}))
	w.Header().Del("Vary")
	theirs.Header().Del("Vary")
	passed := w.Body.String() == theirs.Body.String() && reflect.DeepEqual(w.Header(), theirs.Header())
	isReplaced := w.Header().Get("Content-Location") == "" // which every recording has
	if err != nil || passed != passes || isReplaced == passes {
		t.Errorf("%s: got %v, %v\n%.200s\nwant it to pass: %v", what, err, w.Header(), w.Body, passes)
	}
}
