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
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	suites, err := filepath.Glob("integration/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	exists := make(map[string]bool)
	for _, file := range append(files, suites...) {
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
