// Package userfile has the user's files of pages: which paths they may have, how they are opened for a request, and how
// they are kept, read again, and shared by the handlers of a config and of the next one. The package does not know what
// a page is: a [Format] makes one of the text of a file.
package userfile

import (
	"errors"

	"go.uber.org/zap"
)

// Format says what makes a page of a kept file.
type Format[Page any] struct {
	Name      string
	IfMissing string // a hint for whoever has no such file yet

	// Parse makes a page of the text of a file, whose name is without its folder, or says why the text is none.
	Parse func(name string, text []byte) (*Page, error)
}

// Row is the files of a format. The first that can be sent is the page.
type Row[Page any] []*File[Page]

// Take returns the files of paths, which it does not read. It fails if a placeholder of the environment or the system
// is not set. The caller closes the row. mistakesOfSites bounds the log entries about sites' own files.
func Take[Page any](paths []string, format Format[Page], mistakesOfSites *OnceAMinute) (Row[Page], error) {
	var row Row[Page]
	for _, path := range paths {
		f, err := takeFile(path, format, mistakesOfSites)
		if err != nil {
			row.Close()
			return nil, err
		}
		row = append(row, f)
	}
	return row, nil
}

// Close releases the files. Pages that are being made keep them.
func (r Row[Page]) Close() {
	for _, f := range r {
		f.release()
	}
}

// Load reads the kept files when a config loads, and logs their mistakes. The error names the mistakes if the row has
// no file to send, unless the config before had the same files: a reload is not refused for what runs already. All
// handlers of a config pass the same configID, and no others do.
func (r Row[Page]) Load(configID any, logger *zap.Logger) error {
	var mistakes error
	canBeSent := false
	wereInUse := true
	for _, f := range r {
		mistakes = errors.Join(mistakes, f.load(configID, logger))
		canBeSent = canBeSent || f.canBeSent()
		wereInUse = wereInUse && f.wasInUse
	}
	if canBeSent || wereInUse {
		return nil
	}
	return mistakes
}
