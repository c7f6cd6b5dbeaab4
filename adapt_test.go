package notfound

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestAdapt adapts each Caddyfile in testdata/adapt, and compares the JSON or the error with what stands below it. Caddy
// tests its own directives in this format. The JSON is what `caddy adapt --pretty` prints.
func TestAdapt(t *testing.T) {
	files, err := filepath.Glob("testdata/adapt/*.caddyfiletest")
	if err != nil || len(files) == 0 {
		t.Fatalf("found %d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".caddyfiletest"), func(t *testing.T) {
			t.Parallel()
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			caddyfile, expected, ok := strings.Cut(string(content), "\n----------\n")
			if !ok {
				t.Fatal("the line ---------- is missing")
			}
			expected = strings.TrimSpace(expected)

			config, err := testcaddy.AdaptErr(caddyfile)
			if !strings.HasPrefix(expected, "{") {
				if err == nil || err.Error() != expected {
					t.Errorf("got the error\n%v\nwant\n%s", err, expected)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got, want any
			if err := json.Unmarshal(config, &got); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(expected), &want); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				pretty, _ := json.MarshalIndent(got, "", "\t")
				t.Errorf("got\n%s\nwant\n%s", pretty, expected)
			}
		})
	}
}
