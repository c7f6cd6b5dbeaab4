package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// The files that show the figures, seen from the root of the repository.
const (
	resultsFile  = "tools/bench/performance.json"
	methodFile   = "tools/bench/README.md"
	documentFile = "docs/performance.md"
	chartFile    = "docs/performance.svg"
)

// The lines of a document that the figures stand between.
const (
	figuresBegin = "<!-- measured -->\n"
	figuresEnd   = "<!-- end of what is measured -->\n"
)

// write writes the results to the files that show them.
func (r results) write() error {
	encoded, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	encoded = append(encoded, '\n')
	err = os.WriteFile(resultsFile, encoded, 0o644)
	if err != nil {
		return err
	}
	chart := []byte(r.chart())
	err = os.WriteFile(chartFile, chart, 0o644)
	if err != nil {
		return err
	}
	for file, figures := range r.documents() {
		document, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		written, err := withFigures(string(document), figures)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		err = os.WriteFile(file, []byte(written), 0o644)
		if err != nil {
			return err
		}
	}
	return nil
}

// documents returns the figures that each document has.
func (r results) documents() map[string]string {
	return map[string]string{
		methodFile:   r.tables(),
		documentFile: r.summary(),
	}
}

// withFigures puts figures in the place of those that a document has.
func withFigures(document, figures string) (string, error) {
	before, rest, hasBegin := strings.Cut(document, figuresBegin)
	_, after, hasEnd := strings.Cut(rest, figuresEnd)
	if !hasBegin || !hasEnd {
		return "", fmt.Errorf("the lines %q and %q are missing", figuresBegin, figuresEnd)
	}
	return before + figuresBegin + "\n" + figures + "\n" + figuresEnd + after, nil
}
