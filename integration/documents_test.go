package integration

import (
	"encoding/json"
	"fmt"
	goast "go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-notfound/notfound"
	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestExamplesLoad loads every config in examples/ as `caddy validate` does.
func TestExamplesLoad(t *testing.T) {
	t.Chdir("..") // where the paths in the examples begin
	entries, err := os.ReadDir("examples")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.IsDir() && entry.Name() != "kubernetes" { // which has a module and a test of its own
			t.Run(entry.Name(), func(t *testing.T) {
				validate(t, adaptFile(t, filepath.Join("examples", entry.Name(), "Caddyfile"))) // there is one in each
			})
		}
	}
	t.Run("caddy.json", func(t *testing.T) {
		config, err := os.ReadFile("examples/json/caddy.json")
		if err != nil {
			t.Fatal(err)
		}
		validate(t, config)

		var got, want any
		if err := json.Unmarshal(config, &got); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(adaptFile(t, "examples/json/Caddyfile"), &want); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Error("caddy.json is not what its Caddyfile is adapted to; write it again with caddy adapt --pretty")
		}

		for _, field := range reflect.VisibleFields(reflect.TypeFor[notfound.Handler]()) {
			if key, _, ok := strings.Cut(field.Tag.Get("json"), ","); ok && !strings.Contains(string(config), `"`+key+`":`) {
				t.Errorf("caddy.json lacks the option %s", key)
			}
		}
	})
}

// TestDocumentedCaddyfilesLoad loads each Caddyfile in the documents.
func TestDocumentedCaddyfilesLoad(t *testing.T) {
	t.Chdir("..")
	for _, file := range documents(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		blocks := strings.Split(string(text), "```caddyfile\n")[1:]
		if file == "README.md" && len(blocks) == 0 {
			t.Error("the README has no Caddyfile")
		}
		for i, block := range blocks {
			block, _, _ = strings.Cut(block, "```")
			t.Run(fmt.Sprint(file, " ", i+1), func(t *testing.T) { validate(t, testcaddy.Adapt(t, block)) })
		}
	}
}

// TestLinksLeadSomewhere follows each relative link of the documents, to a file or to a heading, and each path that begins
// with ../ in a comment of an example. Everything in docs/ and in examples/ can be reached.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Chdir("..")
	targets := make(map[string][]string) // the headings of each document, as GitHub names them
	for _, file := range documents(t) {
		doc, source := parseMarkdown(t, file)
		targets[file] = nil
		_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
			if heading, ok := n.(*ast.Heading); ok && entering {
				targets[file] = append(targets[file], anchor(string(heading.Lines().Value(source))))
			}
			return ast.WalkContinue, nil
		})
	}

	reached := make(map[string]bool)
	follow := func(from, link string) {
		path, fragment, _ := strings.Cut(link, "#")
		to := from
		if path != "" {
			to = filepath.ToSlash(filepath.Join(filepath.Dir(from), path))
		}
		if from != to {
			reached[to] = true
		}
		if _, err := os.Stat(to); err != nil {
			t.Errorf("%s has a link to %s, which leads nowhere", from, link)
		} else if fragment != "" && !slices.Contains(targets[to], fragment) {
			t.Errorf("%s has a link to %s, but %s has only the headings %q", from, link, to, targets[to])
		}
	}
	for file := range targets {
		doc, _ := parseMarkdown(t, file)
		_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
			var link string
			switch n := n.(type) {
			case *ast.Link:
				link = string(n.Destination)
			case *ast.Image:
				link = string(n.Destination)
			}
			if entering && link != "" && !strings.Contains(link, "://") {
				follow(file, link)
			}
			return ast.WalkContinue, nil
		})
	}
	if len(reached) == 0 {
		t.Error("no document has a link")
	}

	path := regexp.MustCompile(`(?m)#.*?(\.\./[\w./-]*\w)`)
	for _, pattern := range []string{"docs/*", "examples/*/*"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasPrefix(file, "docs/") {
				if !reached[file] {
					t.Errorf("no document has a link to %s", file)
				}
				continue
			}
			if info, err := os.Stat(file); err != nil || info.IsDir() || filepath.Ext(file) == ".go" {
				continue
			}
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, match := range path.FindAllStringSubmatch(string(content), -1) {
				follow(file, match[1])
			}
		}
	}
	examples, err := os.ReadFile("examples/README.md")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir("examples")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.IsDir() && !strings.Contains(string(examples), "| ["+entry.Name()+"](") {
			t.Errorf("examples/README.md lacks %s", entry.Name())
		}
	}
}

// documents returns the paths of all documents.
func documents(t *testing.T) (files []string) {
	t.Helper()
	for _, pattern := range []string{"*.md", "docs/*.md", "examples/*.md", "examples/*/*.md"} {
		matches, err := filepath.Glob(pattern)
		if err != nil || len(matches) == 0 {
			t.Fatalf("%s has the files %v, %v", pattern, matches, err)
		}
		for _, match := range matches {
			files = append(files, filepath.ToSlash(match))
		}
	}
	return files
}

func parseMarkdown(t *testing.T, file string) (doc ast.Node, source []byte) {
	t.Helper()
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(source)), source
}

// anchor returns the name that GitHub gives to a heading.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

// TestSecurityNamesTestsThatExist looks up each test that SECURITY.md names, here and beside the code.
func TestSecurityNamesTestsThatExist(t *testing.T) {
	t.Chdir("..")
	var files []string
	for _, pattern := range []string{"*_test.go", "internal/*/*_test.go", "integration/*_test.go"} {
		matches, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, matches...)
	}
	exists := make(map[string]bool)
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range f.Decls {
			if fn, ok := decl.(*goast.FuncDecl); ok && fn.Recv == nil {
				exists[fn.Name.Name] = true
			}
		}
	}

	text, err := os.ReadFile("SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`\b(Test|Fuzz)[A-Z]\w*`).FindAllString(string(text), -1)
	if len(names) == 0 {
		t.Error("SECURITY.md names no test")
	}
	for _, name := range names {
		if !exists[name] {
			t.Errorf("there is no %s", name)
		}
	}
}

// TestCodeMapIsTrue compares the picture of the imports in CONTRIBUTING.md with the imports. They go down in it, and
// nothing below the handler knows Caddy's HTTP handlers.
func TestCodeMapIsTrue(t *testing.T) {
	t.Chdir("..")
	text, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, picture, _ := strings.Cut(string(text), "```text\n")
	picture, _, _ = strings.Cut(picture, "```")
	var rooms []string
	for line := range strings.Lines(picture) {
		rooms = append(rooms, strings.Fields(line)[0])
	}

	const module = "github.com/caddy-notfound/notfound"
	var want string
	for i, room := range rooms {
		files, err := filepath.Glob(filepath.Join(".", strings.TrimPrefix(room, "notfound"), "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has the files %v, %v", room, files, err)
		}
		var imports []string
		for _, file := range files {
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for _, spec := range f.Imports {
				path := strings.Trim(spec.Path.Value, `"`)
				below, ours := strings.CutPrefix(path, module+"/")
				switch isTest := strings.HasSuffix(file, "_test.go"); {
				case isTest:
				case room != "notfound" && strings.Contains(path, "/caddyhttp"):
					t.Errorf("%s imports %s", room, path)
				case ours && !slices.Contains(rooms[i+1:], below):
					t.Errorf("%s imports %s, which is not below it", room, below)
				case ours && !slices.Contains(imports, below):
					imports = append(imports, below)
				}
			}
		}
		slices.Sort(imports)
		want += room
		if len(imports) > 0 {
			want += strings.Repeat(" ", len("internal/report")-len(room)) + " → " + strings.Join(imports, ", ")
		}
		want += "\n"
	}
	if picture != want {
		t.Errorf("the picture is\n%s\nwant\n%s", picture, want)
	}
	entries, err := os.ReadDir("internal")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if room := "internal/" + entry.Name(); room != "internal/testcaddy" && !slices.Contains(rooms, room) {
			t.Errorf("the picture lacks %s", room)
		}
	}
}

func adaptFile(t *testing.T, file string) []byte {
	t.Helper()
	caddyfile, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return testcaddy.Adapt(t, string(caddyfile))
}

func validate(t *testing.T, config []byte) {
	t.Helper()
	var cfg caddy.Config
	if err := json.Unmarshal(config, &cfg); err != nil {
		t.Fatal(err)
	}
	if err := caddy.Validate(&cfg); err != nil {
		t.Error(err)
	}
}
