package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReplacementIsRelativeToTheManifest reads the repository's manifest.
func TestReplacementIsRelativeToTheManifest(t *testing.T) {
	b, err := readManifest("../../xcaddy.json")
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Replacements) != 1 || string(b.Replacements[0].New) != root {
		t.Errorf("the build does not use the checkout, but %v", b.Replacements)
	}
}

func TestMistakesInManifestAreRefused(t *testing.T) {
	for name, tt := range map[string]struct{ manifest, err string }{
		"unknown key":            {`{"caddy_version":"v2.11.9","plugin":[]}`, `unknown field "plugin"; the keys are those of xcaddy's Builder`},
		"more after it":          {`{"caddy_version":"v2.11.9","plugins":[]}, "replacements":[]}`, `there is something after the manifest's closing brace`},
		"no version of Caddy":    {`{"plugins":[]}`, `caddy_version is missing; pin it as in v1.2.3`},
		"plugin without version": {`{"caddy_version":"v2.11.9","plugins":[{"module_path":"a.test/b"}]}`, `plugin "a.test/b" has no version; pin it as in v1.2.3`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "xcaddy.json")
			if err := os.WriteFile(file, []byte(tt.manifest), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := readManifest(file); err == nil || !strings.Contains(err.Error(), tt.err) || !strings.Contains(err.Error(), file) {
				t.Errorf("got the error\n%v\nwant one with the file and\n%s", err, tt.err)
			}
		})
	}
}
