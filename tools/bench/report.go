//go:build linux

package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"text/template"
	"time"

	"github.com/caddyserver/caddy/v2"
)

// results has the figures of each group that was measured, by the group's name.
type results map[string]*result

type result struct {
	Measured string                       // when, on what, and how often
	Figures  map[string]map[string]figure // by the site's name and the column
}

// environment returns when and on what the figures are measured, and how often.
func environment() string {
	const script = `echo $(sed -n 's/^model name.*: //p' /proc/cpuinfo | uniq -c), $(uname -sr)`
	machine, _ := exec.Command("sh", "-c", script).Output()
	version, _ := caddy.Version()
	today := time.Now().Format(time.DateOnly)
	how := fmt.Sprintf("in %d rounds of %v, with a start every %d", *rounds, *duration, roundsPerStart)
	return fmt.Sprintf("Measured on %s %s: %s, %s, Caddy %s.", today, how, bytes.TrimSpace(machine), runtime.Version(), version)
}

// The files that show the figures, seen from the root of the repository.
const (
	resultsFile  = "tools/bench/performance.json"
	documentFile = "docs/performance.md"
	chartFile    = "docs/performance.svg"
)

// marker is the line of the document that the tables follow.
const marker = "<!-- tools/bench writes the rest. -->\n"

//go:embed *.tmpl
var templateFiles embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"groups":   func() []group { return groups },
	"add":      func(a, b int) int { return a + b },
	"divide":   func(a, b float64) float64 { return a / b },
	"contains": strings.Contains,
	"replace":  strings.ReplaceAll,
}).ParseFS(templateFiles, "*.tmpl"))

func readResults() (r results, err error) {
	encoded, err := os.ReadFile(resultsFile)
	if err != nil {
		return nil, err
	}
	err = json.Unmarshal(encoded, &r)
	return r, err
}

// files returns what each file has to be.
func (r results) files() (map[string]string, error) {
	encoded, err := json.MarshalIndent(r, "", "\t")
	document, readErr := os.ReadFile(documentFile)
	prose, _, _ := strings.Cut(string(document), marker)
	var tables, chart strings.Builder
	tablesErr := templates.ExecuteTemplate(&tables, "tables.md.tmpl", r)
	chartErr := templates.ExecuteTemplate(&chart, "chart.svg.tmpl", r)
	return map[string]string{
		resultsFile:  string(encoded) + "\n",
		documentFile: prose + marker + tables.String(),
		chartFile:    chart.String(),
	}, errors.Join(err, readErr, tablesErr, chartErr)
}

func (r results) write() error {
	files, err := r.files()
	for file, content := range files {
		if err == nil {
			err = os.WriteFile(file, []byte(content), 0o644)
		}
	}
	return err
}
