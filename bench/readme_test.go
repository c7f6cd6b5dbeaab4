package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestReadmeHasTheFigures checks that the README's tables and its chart are those of the figures in docs.
func TestReadmeHasTheFigures(t *testing.T) {
	read := func(file string) string {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	var r results
	if err := json.Unmarshal([]byte(read("../docs/performance.json")), &r); err != nil {
		t.Fatal(err)
	}
	svg, err := chart(&r)
	if err != nil {
		t.Fatal(err)
	}
	if svg != read("../docs/performance.svg") {
		t.Error("docs/performance.svg is not the chart of docs/performance.json; draw it again with go run ./bench chart")
	}
	// the titles are those of subsections there
	if want := strings.ReplaceAll(r.markdown(), "\n### ", "\n#### "); !strings.Contains(read("../README.md"), want) {
		t.Errorf("the README does not have the tables of docs/performance.json:\n%s", want)
	}
}
