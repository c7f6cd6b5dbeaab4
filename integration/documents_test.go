package integration

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

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

// TestReadmeCaddyfilesLoad loads each Caddyfile in the README.
func TestReadmeCaddyfilesLoad(t *testing.T) {
	t.Chdir("..")
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	loaded := 0
	for _, block := range strings.Split(string(readme), "```caddyfile\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		validate(t, testcaddy.Adapt(t, block))
		loaded++
	}
	if loaded == 0 {
		t.Error("the README has no Caddyfile")
	}
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
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil {
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
