package notfound

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

// TestExamplesLoad loads every Caddyfile in examples/ as `caddy validate` does.
func TestExamplesLoad(t *testing.T) {
	var files []string
	err := filepath.WalkDir("examples", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "Caddyfile" {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("found the examples %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			caddyfile, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var cfg caddy.Config
			if err := json.Unmarshal(adapt(t, string(caddyfile)), &cfg); err != nil {
				t.Fatal(err)
			}
			if err := caddy.Validate(&cfg); err != nil {
				t.Error(err)
			}
		})
	}
}
