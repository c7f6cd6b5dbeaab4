package notfound

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
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

// TestListsAreThoseInTheCode compares the lists of options, formats and modes that people read with those in the code. The
// errors that have such a list make it from the code.
func TestListsAreThoseInTheCode(t *testing.T) {
	content, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	readme := string(content)
	docs := make(map[string]string) // by the name of the field, type or method
	for _, file := range []string{"module.go", "caddyfile.go"} {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				docs[n.Name.Name] = n.Doc.Text()
			case *ast.GenDecl:
				if spec, ok := n.Specs[0].(*ast.TypeSpec); ok {
					docs[spec.Name.Name] = n.Doc.Text()
				}
			case *ast.Field:
				if len(n.Names) == 1 {
					docs[n.Names[0].Name] = n.Doc.Text()
				}
			}
			return true
		})
	}
	equal := func(what string, got, want []string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s has\n%q\nwant, as in the code,\n%q", what, got, want)
		}
	}
	names := func(pattern, text string) (found []string) {
		for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			found = append(found, match[1])
		}
		return found
	}

	// the options
	_, block, _ := strings.Cut(docs["UnmarshalCaddyfile"], "not_found [<matcher>] {\n")
	block, _, _ = strings.Cut(block, "\n\t}")
	var syntax []string
	for line := range strings.Lines(block) {
		syntax = append(syntax, strings.Join(strings.Fields(line), " "))
	}
	equal("the syntax of UnmarshalCaddyfile", names(`(?m)^(\w+)`, strings.Join(syntax, "\n")), optionNames())
	var inREADME []string
	for _, row := range table(t, readme, "## Options") {
		inREADME = append(inREADME, strings.ReplaceAll(strings.Trim(row[0], "`"), `\|`, "|"))
		switch {
		case strings.HasPrefix(row[0], "`formats "):
			equal("the default of formats in the README", strings.Fields(strings.Trim(row[1], "`")), page.Formats())
		case strings.HasPrefix(row[0], "`replace "):
			equal("the default of replace in the README", []string{row[1]}, []string{"`" + replacePages + "`"})
		}
	}
	equal("the README", inREADME, syntax)

	options, err := os.ReadFile("docs/options.md")
	if err != nil {
		t.Fatal(err)
	}
	_, object, _ := strings.Cut(string(options), "```json\n")
	object, _, _ = strings.Cut(object, "```")
	keys := names(`(?m)^\t"(\w+)":`, object)
	inObject := slices.DeleteFunc(optionNames(), func(name string) bool { return name == "context_path" }) // see message
	equal("the JSON of docs/options.md", keys, slices.Concat([]string{"handler"}, inObject, []string{"group"}))
	h := new(Handler)
	if err := json.Unmarshal([]byte(object), h); err != nil {
		t.Errorf("the JSON of docs/options.md: %v", err)
	}
	provision(t, h)

	// the modes
	if want := "replace " + strings.Join(modes, "|"); !slices.Contains(syntax, want) {
		t.Errorf("the syntax of UnmarshalCaddyfile lacks %s", want)
	}
	equal("the documentation of Replace", names("`(\\w+)`: ", docs["Replace"]), modes)
	if want := "Default: `" + replacePages + "`."; !strings.Contains(docs["Replace"], want) {
		t.Errorf("the documentation of Replace lacks %s", want)
	}

	// the formats
	equal("the documentation of Formats", names("`(\\w+)`", docs["Formats"]), page.Formats())
	var inTable, inTests []string
	representations, err := os.ReadFile("docs/representations.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range table(t, string(representations), "## Formats") {
		inTable = append(inTable, strings.Trim(row[0], "`"))
		for mediaType := range strings.SplitSeq(row[1], ", ") {
			rec := httptest.NewRecorder()
			if err := compile(t, "not_found", nil).serve(rec, prepare(rec, incoming(t, "/x", "Accept: "+mediaType))); err != nil {
				t.Fatal(err)
			}
			if got := rec.Header().Get("Content-Type"); got != row[2] {
				t.Errorf("for %s, docs/representations.md has %s, but the page is %s", mediaType, row[2], got)
			}
		}
	}
	equal("the table of docs/representations.md", inTable, page.Formats())
	for _, f := range testcaddy.Formats {
		inTests = append(inTests, f.Name)
	}
	equal("testcaddy.Formats", inTests, page.Formats())

	// the command
	command := caddycmd.Commands()["not-found"]
	cmd := new(cobra.Command)
	command.CobraFunc(cmd)
	flags := names(`(?m)^ +(?:-\w, )?--([a-z-]+)`, cmd.Flags().FlagUsages())
	equal("the usage of the command", slices.Sorted(slices.Values(names(`\[--([a-z-]+)`, command.Usage))), flags)
	for _, flag := range flags {
		if slices.Contains(optionNames(), strings.ReplaceAll(flag, "-", "_")) && !strings.Contains(command.Long, "--"+flag) {
			t.Errorf("the help of the command lacks --%s", flag)
		}
	}
	if usage, want := cmd.Flag("formats").Usage, strings.Join(page.Formats(), ", "); !strings.HasSuffix(usage, ": "+want) {
		t.Errorf("the help of --formats is %q, want the list %s", usage, want)
	}

	// the outcomes and the kinds of links
	var outcomes, links []string
	for o := range report.NumOutcomes {
		outcomes = append(outcomes, o.String())
	}
	for l := range report.NumLinks {
		links = append(links, l.String())
	}
	reportPage, err := os.ReadFile("docs/report.md")
	if err != nil {
		t.Fatal(err)
	}
	firstCells := func(section string) (cells []string) {
		for _, row := range table(t, string(reportPage), section) {
			cells = append(cells, strings.Trim(row[0], "`"))
		}
		return cells
	}
	example, err := json.Marshal(report.Report{})
	if err != nil {
		t.Fatal(err)
	}
	equal("docs/report.md", firstCells("## What is counted"), outcomes)
	equal("docs/report.md", firstCells("## Three kinds of links"), links)
	equal("the JSON of a report", names(`"(\w+)":\{"count"`, strings.Replace(string(example), `"links":{`, "", 1)), links)
	equal("the JSON of outcomes", names(`"(\w+)":0[,}]`, regexp.MustCompile(`"outcomes":\{([^}]*)\}`).FindString(string(example))), outcomes)
	why, link := reportCommand().Flag("why").Usage, reportCommand().Flag("link").Usage
	equal("--why", regexp.MustCompile(`, | or `).Split(why[strings.Index(why, ": ")+2:], -1), outcomes)
	equal("--link", regexp.MustCompile(`, | or `).Split(link[strings.Index(link, ": ")+2:], -1), links)

	// the formats in prose
	words := map[string]string{"text": "plain text", "html": "HTML", "markdown": "Markdown", "json": "JSON", "problem": "problem details", "xml": "XML"}
	var prose []string
	for _, name := range page.Formats() {
		prose = append(prose, words[name])
	}
	last := len(prose) - 1
	want := strings.Join(prose[:last], ", ") + " or " + prose[last]
	for what, text := range map[string]string{"the README": readme, "the documentation of Handler": docs["Handler"], "the help of the command": command.Long} {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
			t.Errorf("%s lacks %q", what, want)
		}
	}
}

// table returns the cells of the first table of a section in Markdown, without its header.
func table(t *testing.T, text, section string) (rows [][]string) {
	t.Helper()
	_, text, _ = strings.Cut(text, "\n"+section+"\n")
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
