// Package userfile manages the files that users write for pages: which paths they may have, how a request opens them,
// and how they are kept, read again, and shared by the handlers of a config and of the next one. The package does not
// know what a page is: a [Format] parses the text of a file.
package userfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddyserver/caddy/v2"
)

// Format turns the text of a kept file into a page.
type Format struct {
	Name string

	// Parse makes a page from the text of a file. The name comes without its folder.
	Parse func(name string, text []byte) (page any, err error)
}

// File is one of the user's files for a format, as a handler uses it. There are two kinds.
//
// The path of a site's own file has placeholders of a request. Whoever writes into the folder of a site may be a
// tenant, so the file is sent as it is, even if it has actions: a template can show the environment. It is opened for
// each page.
//
// Any other file is kept.
type File struct {
	path string    // of a site's own file, as in the option
	kept *keptFile // nil: it is a site's own file

	// mistakes bounds the log entries of pages that fail. All sites' own files of a handler share it.
	mistakes *OnceAMinute
}

// New returns the file of a path, and reads it if it is kept. A mistake in the file is logged. New fails if a
// placeholder of the environment or the system is not set. mistakesOfSites bounds the log entries about sites' own
// files.
func New(path string, format Format, mistakesOfSites *OnceAMinute, logger *zap.Logger) (*File, error) {
	expanded, isOfSite, err := expandGlobal(path)
	if err != nil {
		return nil, err
	}
	if isOfSite {
		return &File{path: path, mistakes: mistakesOfSites}, nil
	}
	expanded, err = filepath.Abs(expanded) // because the working directory may change
	if err != nil {
		return nil, err
	}
	kept := keptFileOf(expanded, format)
	kept.reloadForConfig(logger)
	return &File{kept: kept, mistakes: &kept.mistakes}, nil
}

// Page returns the last good page of a kept file. It is nil if there is none, and for a site's own file.
func (f *File) Page() any {
	if f.kept == nil {
		return nil
	}
	return f.kept.last.Load().page
}

// Opened is a file that was opened for a request.
type Opened struct {
	Path string
	Page any // the last good page of a kept file; nil: it is a site's own file

	File *os.File    // a site's own file
	Info fs.FileInfo // of File
}

// Open opens the file for a request, after it has read a kept file again if that is due. If there is nothing to send,
// Open logs why, and is not ok.
func (f *File) Open(placeholders *caddy.Replacer, logger *zap.Logger) (opened Opened, ok bool) {
	if f.kept != nil {
		f.kept.reloadForRequest(logger)
		last := f.kept.last.Load()
		return Opened{Path: f.kept.path, Page: last.page}, last.page != nil // the mistake has been logged
	}
	path, err := expand(f.path, placeholders)
	opened.Path = path
	if err == nil {
		opened.File, opened.Info, err = openRegular(path)
	}
	switch {
	case err == nil:
		return opened, true
	case isMissing(err): // no mistake of the site
		if e := logger.Check(zapcore.DebugLevel, "a site has no such file"); e != nil {
			e.Write(zap.String("template", path), zap.Error(err))
		}
	default:
		f.LogMistake(path, err, logger)
	}
	return opened, false
}

// LogMistake logs why an opened file cannot be sent, at most once a minute as an error.
func (f *File) LogMistake(path string, err error, logger *zap.Logger) {
	level := zapcore.DebugLevel
	if f.mistakes.isDue() {
		level = zapcore.ErrorLevel
	}
	if e := logger.Check(level, "a page of your own cannot be sent; sending another one in its place"); e != nil {
		e.Write(zap.String("template", path), zap.Error(err))
	}
}

// Check returns the mistake in a kept file. It does not read a site's own file, and says so in a note.
func (f *File) Check() (isRead bool, note string, mistake error) {
	if f.kept == nil {
		return false, f.path + ": only a request names this file, which is sent as it is", nil
	}
	if err := f.kept.last.Load().err; err != nil {
		return true, "", fmt.Errorf("%s: %w", f.kept.path, err)
	}
	return true, "", nil
}

// isMissing reports whether an error says that a site has no such file, or that no file can have its name.
func isMissing(err error) bool {
	noFile := []error{fs.ErrNotExist, syscall.ENOTDIR, syscall.ENAMETOOLONG, syscall.EINVAL}
	if isWindows {
		const invalidName, nameTooLong = syscall.Errno(123), syscall.Errno(206)
		noFile = append(noFile, invalidName, nameTooLong)
	}
	return slices.ContainsFunc(noFile, func(target error) bool { return errors.Is(err, target) })
}

// OnceAMinute bounds log entries that requests and reloads cause.
type OnceAMinute struct{ last atomic.Int64 } // in nanoseconds

// begin begins a minute without entries.
func (o *OnceAMinute) begin() { o.last.Store(time.Now().UnixNano()) }

// isDue reports whether a minute is over. The next one begins then.
func (o *OnceAMinute) isDue() bool {
	now := time.Now().UnixNano()
	last := o.last.Load()
	return now-last >= int64(time.Minute) && o.last.CompareAndSwap(last, now)
}

// MaxSize is the largest size of a file, in bytes.
const MaxSize = 1 << 20

func readFile(name string) (text []byte, err error) {
	f, info, err := openRegular(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f, info.Size())
}

// readAll reads a file of a size, in bytes.
func readAll(f io.Reader, size int64) ([]byte, error) {
	text := make([]byte, size)
	_, err := io.ReadFull(f, text)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return nil, errors.New("it was cut while it was read") // what is left may be the whole text from now on
	}
	return text, err
}

// openRegular opens a regular file that is neither empty nor too long. It does not block on a named pipe, and does not
// make a terminal Caddy's controlling terminal, where somebody could press ^C. It refuses files that the kernel
// generates, such as the environment in /proc, because their size is 0.
func openRegular(name string) (f *os.File, info fs.FileInfo, err error) {
	f, err = os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err = f.Stat()
	if err == nil {
		err = checkRegular(info)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

func checkRegular(info fs.FileInfo) error {
	switch {
	case !info.Mode().IsRegular():
		return errors.New("it is not a regular file")
	case info.Size() == 0:
		return errors.New("it is empty") // it would be a blank page
	case info.Size() > MaxSize:
		return errors.New("it has more than 1 MiB")
	}
	return nil
}
