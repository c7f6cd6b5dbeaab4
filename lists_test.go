package notfound

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	"github.com/caddy-notfound/notfound/internal/page"
	"github.com/caddy-notfound/notfound/internal/report"
	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestListsAreThoseInTheCode compares the lists of options, formats, modes, outcomes and kinds of links that people read with
// those in the code. Errors build their lists from the code.
func TestListsAreThoseInTheCode(t *testing.T) {
	// the syntax of the directive, and the JSON of docs/options.md
	var syntax []string
	for line := range strings.Lines(between(t, "caddyfile.go", "not_found [<matcher>] {\n", "//\t}\n")) {
		syntax = append(syntax, strings.Join(strings.Fields(line)[1:], " ")) // without //
	}
	object := between(t, "docs/options.md", "```json\n", "```")
	h := new(Handler)
	if err := json.Unmarshal([]byte(object), h); err != nil {
		t.Errorf("the JSON of docs/options.md: %v", err)
	}
	provision(t, h)
	inObject := slices.DeleteFunc(optionNames(), func(name string) bool { return name == "context_path" }) // see message

	options := table(t, "README.md", "## Options")
	ofFormats := options[slices.Index(optionNames(), "formats")]
	ofReplace := options[slices.Index(optionNames(), "replace")]
	docOfFormats := between(t, "module.go", "// The representations on offer: ", "Formats []string")
	docOfReplace := between(t, "module.go", "// Which 404 responses of the next handlers", "Replace string")

	// the command
	command, cmd := caddycmd.Commands()["not-found"], new(cobra.Command)
	command.CobraFunc(cmd)
	flags := find(`(?m)^ +(?:-\w, )?--([a-z-]+)`, cmd.Flags().FlagUsages())
	optionFlags := slices.DeleteFunc(slices.Clone(flags), func(flag string) bool {
		return flag == "report" || !slices.Contains(optionNames(), strings.ReplaceAll(flag, "-", "_"))
	})
	inHelp := find(`--([a-z-]+)`, between(t, "command.go", "whichever the client's Accept header prefers. ", " are the options of the"))

	// the report
	var outcomes, links []string
	for o := range report.NumOutcomes {
		outcomes = append(outcomes, o.String())
	}
	for l := range report.NumLinks {
		links = append(links, l.String())
	}
	var tested []string
	for _, f := range testcaddy.Formats {
		tested = append(tested, f.Name)
	}
	var reasons []string // of the log; an inner not_found writes its own line
	for r := reasonKeep; r <= reasonDryRun; r++ {
		reasons = append(reasons, r.String())
	}
	encoded, err := json.Marshal(report.Report{})
	if err != nil {
		t.Fatal(err)
	}
	example := string(encoded)

	for what, tt := range map[string]struct{ got, want []string }{
		"the syntax of UnmarshalCaddyfile":     {find(`(?m)^(\w+)`, strings.Join(syntax, "\n")), optionNames()},
		"the modes in it":                      {find(`(?m)^replace (.*)`, strings.Join(syntax, "\n")), []string{strings.Join(modes, "|")}},
		"the options of the README":            {column(options, 0), syntax},
		"the default of formats in the README": {strings.Fields(strings.Trim(ofFormats[1], "`")), page.Formats()},
		"the default of replace in the README": {[]string{ofReplace[1]}, []string{"`" + replacePages + "`"}},
		"the JSON of docs/options.md":          {find(`(?m)^\t"(\w+)":`, object), slices.Concat([]string{"handler"}, inObject, []string{"group"})},
		"the documentation of Formats":         {find("`(\\w+)`", docOfFormats), page.Formats()},
		"the documentation of Replace":         {find("`(\\w+)`: ", docOfReplace), modes},
		"the default there":                    {find("Default: `(\\w+)`", docOfReplace), []string{replacePages}},
		"docs/representations.md":              {column(table(t, "docs/representations.md", "## Formats"), 0), page.Formats()},
		"the usage of the command":             {slices.Sorted(slices.Values(find(`\[--([a-z-]+)`, command.Usage))), flags},
		"the help of the command":              {slices.Sorted(slices.Values(inHelp)), optionFlags},
		"the help of --formats":                {strings.Split(afterColon(cmd.Flag("formats").Usage), ", "), page.Formats()},
		"the outcomes of docs/report.md":       {column(table(t, "docs/report.md", "## What is counted"), 0), outcomes},
		"the kinds of links of docs/report.md": {column(table(t, "docs/report.md", "## Three kinds of links"), 0), links},
		"the kinds of links in JSON":           {find(`"(\w+)":\{"count"`, strings.Replace(example, `"links":{`, "", 1)), links},
		"the outcomes in JSON":                 {find(`"(\w+)":0[,}]`, find(`"outcomes":(\{[^}]*\})`, example)[0]), outcomes},
		"the help of --why":                    {regexp.MustCompile(`, | or `).Split(afterColon(reportCommand().Flag("why").Usage), -1), outcomes},
		"the help of --link":                   {regexp.MustCompile(`, | or `).Split(afterColon(reportCommand().Flag("link").Usage), -1), links},
		"the formats of internal/testcaddy":    {tested, page.Formats()},
		"the reasons of docs/no-page.md":       {column(table(t, "docs/no-page.md", "## Why is it not shown?"), 0), reasons},
	} {
		if !slices.Equal(tt.got, tt.want) {
			t.Errorf("%s: got\n%q\nwant, as in the code,\n%q", what, tt.got, tt.want)
		}
	}

	// the formats in prose
	words := map[string]string{"text": "plain text", "html": "HTML", "markdown": "Markdown", "json": "JSON", "problem": "problem details", "xml": "XML"}
	var prose []string
	for _, name := range page.Formats() {
		prose = append(prose, words[name])
	}
	last := len(prose) - 1
	want := strings.Join(prose[:last], ", ") + " or " + prose[last]
	for _, file := range []string{"README.md", "module.go", "command.go"} {
		text := strings.ReplaceAll(between(t, file, "", ""), "\n//", "")
		if !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
			t.Errorf("%s lacks %q", file, want)
		}
	}
}

// TestMediaTypesOfTheDocumentation asks for the page by each media type of docs/representations.md.
func TestMediaTypesOfTheDocumentation(t *testing.T) {
	s := compile(t, "not_found", nil)
	for _, row := range table(t, "docs/representations.md", "## Formats") {
		for mediaType := range strings.SplitSeq(row[1], ", ") {
			rec := httptest.NewRecorder()
			if err := s.serve(rec, prepare(rec, incoming(t, "/x", "Accept: "+mediaType))); err != nil {
				t.Fatal(err)
			}
			if got := rec.Header().Get("Content-Type"); got != row[2] {
				t.Errorf("%s: got %s, want %s", mediaType, got, row[2])
			}
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

func afterColon(s string) string {
	_, s, _ = strings.Cut(s, ": ")
	return s
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
