package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestManifestAgreesWithGoMod reads the manifest of the repository.
func TestManifestAgreesWithGoMod(t *testing.T) {
	goMod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	b, err := readManifest("../xcaddy.json", goMod)
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Replacements) != 1 || string(b.Replacements[0].New) != root {
		t.Errorf("the build does not use the checkout, but %v", b.Replacements)
	}
}

func TestMistakesInManifestAreRefused(t *testing.T) {
	const goMod = "module x\n\nrequire github.com/caddyserver/caddy/v2 v2.11.9\n"
	for name, tt := range map[string]struct{ manifest, err string }{
		"unknown key":              {`{"caddy_version":"v2.11.9","plugin":[]}`, `unknown field "plugin"; the keys are those of xcaddy's Builder`},
		"not JSON":                 {`caddy_version: v2`, `invalid character`},
		"more after it":            {`{"caddy_version":"v2.11.9","plugins":[{"module_path":"a.test/b","version":"v1.0.0"}]} {}`, `there is something after the manifest's closing brace`},
		"no version of Caddy":      {`{"plugins":[]}`, `caddy_version is missing; it is v2.11.9 in go.mod`},
		"another version of Caddy": {`{"caddy_version":"v2.10.0"}`, `caddy_version is v2.10.0, but v2.11.9 in go.mod; make them the same`},
		"no plugins":               {`{"caddy_version":"v2.11.9"}`, `there are no plugins`},
		"plugin without path":      {`{"caddy_version":"v2.11.9","plugins":[{"version":"v1.0.0"}]}`, `plugin 1 has no module_path`},
		"plugin without version":   {`{"caddy_version":"v2.11.9","plugins":[{"module_path":"a.test/b"}]}`, `plugin a.test/b has no version; pin it as in v1.2.3`},
		"plugin with bad version":  {`{"caddy_version":"v2.11.9","plugins":[{"module_path":"a.test/b","version":"latest"}]}`, `plugin a.test/b has the version "latest"; write it as in v1.2.3`},
		"replacement without new":  {`{"caddy_version":"v2.11.9","replacements":[{"old":"a.test/b"}]}`, `replacement 1 needs both old and new`},
		"replacement by no module": {`{"caddy_version":"v2.11.9","replacements":[{"old":"a.test/b","new":"./nowhere"}]}`, `replacement of a.test/b: stat `},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "xcaddy.json")
			if err := os.WriteFile(file, []byte(tt.manifest), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := readManifest(file, []byte(goMod)); err == nil || !strings.Contains(err.Error(), tt.err) || !strings.Contains(err.Error(), file) {
				t.Errorf("got the error\n%v\nwant one with the file and\n%s", err, tt.err)
			}
		})
	}
}

func TestAbsoluteReplacementStaysAsItIs(t *testing.T) {
	module := t.TempDir()
	manifest := filepath.Join(t.TempDir(), "xcaddy.json")
	for file, content := range map[string]string{
		filepath.Join(module, "go.mod"): "module a.test/b\n",
		manifest:                        `{"caddy_version":"v2.11.9","plugins":[{"module_path":"a.test/b"}],"replacements":[{"old":"a.test/b","new":"` + filepath.ToSlash(module) + `"}]}`,
	} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b, err := readManifest(manifest, []byte("module x\n\nrequire github.com/caddyserver/caddy/v2 v2.11.9\n"))
	if err != nil || string(b.Replacements[0].New) != module {
		t.Errorf("got %v, %v, want %s", b.Replacements, err, module)
	}
}

func TestMissingManifest(t *testing.T) {
	if _, err := readManifest(filepath.Join(t.TempDir(), "none.json"), nil); err == nil || !strings.Contains(err.Error(), "reading the manifest: open ") {
		t.Errorf("got the error %v", err)
	}
}
