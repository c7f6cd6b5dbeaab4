// Package tools has a test of all Go code in the repository. The programs that build and measure are in its folders.
package tools

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestNoLineIsWiderThan120Columns leaves out what cannot be broken: raw strings that have several lines, and, of other
// lines, each text of at least 60 characters, such as an error that a test compares or a URL. A tab is one column.
func TestNoLineIsWiderThan120Columns(t *testing.T) {
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
		texts := widthOfTexts(source)
		for i, line := range strings.Split(string(source), "\n") {
			width := utf8.RuneCountInString(line) - texts[i+1]
			if width > 120 {
				t.Errorf("%s:%d is %d columns wide", path, i+1, width)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// widthOfTexts returns how many columns of each line belong to texts that cannot be broken.
func widthOfTexts(source []byte) map[int]int {
	file := token.NewFileSet().AddFile("", -1, len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, 0)
	widths := make(map[int]int)
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return widths
		}
		lines := strings.Split(literal, "\n")
		canBeBroken := len(lines) == 1 && len(literal) < 60
		if tok != token.STRING || canBeBroken {
			continue
		}
		for i, line := range lines {
			widths[file.Line(pos)+i] += utf8.RuneCountInString(line)
		}
	}
}
