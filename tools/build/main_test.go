package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReplacementIsRelativeToTheManifest reads the manifest of the document that tells of this command.
func TestReplacementIsRelativeToTheManifest(t *testing.T) {
	document, err := os.ReadFile("../../docs/plugins.md")
	if err != nil {
		t.Fatal(err)
	}
	_, manifest, _ := strings.Cut(string(document), "```json\n")
	manifest, _, _ = strings.Cut(manifest, "```")
	root := t.TempDir()
	file := filepath.Join(root, "my-xcaddy.json")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := readManifest(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Replacements) != 1 || string(b.Replacements[0].New) != root {
		t.Errorf("the build does not use the checkout, but %v", b.Replacements)
	}
}

func TestMistakesInManifestAreRefused(t *testing.T) {
	for name, tt := range map[string]struct{ manifest, err string }{
		"unknown key": {
			manifest: `{"caddy_version":"v0.0.0","plugin":[]}`,
			err:      `unknown field "plugin"; the keys are those of xcaddy's Builder`,
		},
		"more after it": {
			manifest: `{"caddy_version":"v0.0.0","plugins":[]}, "replacements":[]}`,
			err:      `there is something after the manifest's closing brace`,
		},
		"no version of Caddy": {
			manifest: `{"plugins":[]}`,
			err:      `caddy_version is missing; pin it as in v1.2.3`,
		},
		"plugin without version": {
			manifest: `{"caddy_version":"v0.0.0","plugins":[{"module_path":"a.test/b"}]}`,
			err:      `plugin "a.test/b" has no version; pin it as in v1.2.3`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "xcaddy.json")
			err := os.WriteFile(file, []byte(tt.manifest), 0o600)
			if err != nil {
				t.Fatal(err)
			}
			_, err = readManifest(file)
			if err == nil {
				t.Fatal("it is accepted")
			}
			for _, want := range []string{tt.err, file} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got the error\n%v\nwithout\n%s", err, want)
				}
			}
		})
	}
}
