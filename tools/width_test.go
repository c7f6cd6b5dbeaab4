// Package tools has a test of all Go code in the repository. The programs that build and measure are in its folders.
package tools

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestNoLineIsWiderThan120Columns lets two kinds of lines be wider, because they cannot be broken: those of a raw
// string that has several lines, and those with a long URL. A tab is one column.
func TestNoLineIsWiderThan120Columns(t *testing.T) {
	longURL := regexp.MustCompile(`\w+://\S{60,}`)
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && entry.Name() == "node_modules" {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		isRaw := linesOfRawStrings(source)
		for i, line := range strings.Split(string(source), "\n") {
			width := utf8.RuneCountInString(line)
			if width > 120 && !isRaw[i+1] && !longURL.MatchString(line) {
				t.Errorf("%s:%d is %d columns wide", path, i+1, width)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// linesOfRawStrings returns the numbers of the lines of all raw strings that have several lines.
func linesOfRawStrings(source []byte) map[int]bool {
	file := token.NewFileSet().AddFile("", -1, len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, 0)
	isRaw := make(map[int]bool)
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return isRaw
		}
		if tok != token.STRING {
			continue
		}
		first := file.Line(pos)
		last := first + strings.Count(literal, "\n")
		for line := first; line <= last && last > first; line++ {
			isRaw[line] = true
		}
	}
}
