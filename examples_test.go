package notfound

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
)

// TestExamplesLoad loads every config in examples/ as `caddy validate` does.
func TestExamplesLoad(t *testing.T) {
	folders, err := filepath.Glob("examples/*")
	if err != nil || len(folders) == 0 {
		t.Fatalf("found the examples %v, %v", folders, err)
	}
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			load(t, adaptFile(t, filepath.Join(folder, "Caddyfile"))) // each has one
		})
	}
	t.Run("caddy.json", func(t *testing.T) {
		config, err := os.ReadFile("examples/json/caddy.json")
		if err != nil {
			t.Fatal(err)
		}
		load(t, config)

		var got, want any
		if err := json.Unmarshal(config, &got); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(adaptFile(t, "examples/json/Caddyfile"), &want); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Error("caddy.json is not what its Caddyfile becomes; make it again with caddy adapt --pretty")
		}
	})
}

func adaptFile(t *testing.T, file string) []byte {
	t.Helper()
	caddyfile, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return adapt(t, string(caddyfile))
}

func load(t *testing.T, config []byte) {
	t.Helper()
	var cfg caddy.Config
	if err := json.Unmarshal(config, &cfg); err != nil {
		t.Fatal(err)
	}
	if err := caddy.Validate(&cfg); err != nil {
		t.Error(err)
	}
}

// TestReadmeCaddyfilesLoad loads the Caddyfiles in the README, but for the one that is the syntax.
func TestReadmeCaddyfilesLoad(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	loaded := 0
	for _, block := range strings.Split(string(readme), "```caddyfile\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		if strings.HasPrefix(block, "not_found [<matcher>]") {
			continue
		}
		load(t, adapt(t, block))
		loaded++
	}
	if loaded == 0 {
		t.Error("the README has no Caddyfile")
	}
}

// TestSecurityNamesTestsThatExist looks up each test that SECURITY.md names.
func TestSecurityNamesTestsThatExist(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
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
