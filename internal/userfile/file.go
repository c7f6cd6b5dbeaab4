package userfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddyserver/caddy/v2"
)

// Placeholders gives the placeholders of a request their values. Caddy's Replacer does.
type Placeholders interface {
	// ReplaceFunc returns the input with each placeholder replaced by what f makes of its value, or the error of f.
	ReplaceFunc(input string, f caddy.ReplacementFunc) (string, error)
}

// File is one of the user's files for a format. There are two kinds.
//
// The path of a site's own file has placeholders of a request. Whoever writes into the folder of a site may be a
// tenant, so the file is sent as it is, even if it has actions: a template can show the environment. It is opened for
// each page.
//
// Any other file is kept. Handlers share it, also those of the next config, so that its last good page outlasts a
// reload. So it has nothing of a handler, such as a logger.
type File[Page any] struct {
	path     string // of a site's own file, as in the option; otherwise absolute
	format   Format[Page]
	isOfSite bool

	// mistakes bounds the log entries of pages that fail: of a site's own file, for all such files of a handler.
	mistakes *OnceAMinute

	kept atomic.Pointer[keptFile[Page]] // as it was read last; nil: it was not

	reading sync.Mutex // held while a kept file is read
	readAt  time.Time

	configID any  // of the last config that loaded the file
	wasInUse bool // another config had the file when that one loaded it
}

// keptFile is a file as it was read at some time.
type keptFile[Page any] struct {
	text []byte
	err  error // why it cannot be used
	page *Page // the last one that could be used; nil: none
}

// fileKey is the key of the pool. A relative path is made absolute, because the working directory may change.
type fileKey struct{ path, format string }

// pool has the kept files of the configs that run, or are about to.
var pool = caddy.NewUsagePool()

// pause is the least time between two readings of a kept file.
const pause = time.Second

// takeFile returns the file of a path. The caller releases it.
func takeFile[Page any](path string, format Format[Page], mistakesOfSites *OnceAMinute) (*File[Page], error) {
	expanded, isOfSite, err := expandGlobal(path)
	if err != nil {
		return nil, err
	}
	if isOfSite {
		return &File[Page]{path: path, isOfSite: true, mistakes: mistakesOfSites}, nil
	}
	expanded, err = filepath.Abs(expanded)
	if err != nil {
		return nil, err
	}
	shared, _ := pool.LoadOrStore(fileKey{expanded, format.Name}, &File[Page]{
		path:     expanded,
		format:   format,
		mistakes: new(OnceAMinute),
	})
	return shared.(*File[Page]), nil
}

// release drops a handler's reference. The handler may still be making its last pages.
func (f *File[Page]) release() {
	if !f.isOfSite {
		_, _ = pool.Delete(fileKey{f.path, f.format.Name}) // a file frees nothing, so there is no error
	}
}

// load reads a kept file when a config loads. The first handler of the config that has the file logs a mistake, or that
// a changed file is in use. Every handler gets the mistake.
func (f *File[Page]) load(configID any, logger *zap.Logger) error {
	if f.isOfSite {
		return nil
	}
	f.reading.Lock()
	defer f.reading.Unlock()
	if f.configID != configID {
		f.wasInUse = f.configID != nil
		f.configID = configID
		hasChanged := f.read()
		if f.kept.Load().err != nil || hasChanged && f.wasInUse {
			f.log(logger)
		}
	}
	return f.mistake()
}

// mistake says why a kept file cannot be used.
func (f *File[Page]) mistake() error {
	if err := f.kept.Load().err; err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	return nil
}

// canBeSent reports whether the file may be a page, for some request. The last good page of a kept file counts.
func (f *File[Page]) canBeSent() bool { return f.isOfSite || f.kept.Load().page != nil }

// refresh reads a kept file again, if that is due, and logs a change. Only one request reads at a time. The others use
// the page that there is.
func (f *File[Page]) refresh(logger *zap.Logger) {
	if !f.reading.TryLock() {
		return
	}
	defer f.reading.Unlock()
	if time.Since(f.readAt) >= pause && f.read() {
		f.log(logger)
	}
}

func (f *File[Page]) log(logger *zap.Logger) {
	logger = logger.With(zap.String("template", f.path))
	kept := f.kept.Load()
	switch {
	case kept.err == nil:
		logger.Info("the changed file of a page is in use")
	case kept.page == nil:
		logger.Error("the file of a page cannot be used; another page is sent until it can", zap.Error(kept.err))
	default:
		logger.Error("the changed file of a page cannot be used; the last good page stays", zap.Error(kept.err))
	}
}

// read reads a kept file, and parses it if it has changed. It reports whether the text or the error differs from the
// previous one. The time and the size do not tell: a chmod, after which the file cannot be read, changes neither.
func (f *File[Page]) read() (hasChanged bool) {
	f.readAt = time.Now()
	text, err := readFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w; %s", err, f.format.IfMissing)
	}
	next := &keptFile[Page]{text: text, err: err}
	if before := f.kept.Load(); before != nil {
		if bytes.Equal(before.text, text) && (err == nil || sameText(before.err, err)) {
			return false // a text that was refused before is refused again
		}
		next.page = before.page
	}
	if err == nil {
		var page *Page
		page, next.err = f.format.Parse(filepath.Base(f.path), text)
		if next.err == nil {
			next.page = page
		}
	}
	f.kept.Store(next)
	return true
}

func sameText(a, b error) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

// Kept returns the last good page of a kept file. It is nil if there is none, and for a site's own file.
func (f *File[Page]) Kept() *Page {
	if kept := f.kept.Load(); kept != nil {
		return kept.page
	}
	return nil
}

// Opened is what a request gets of a file.
type Opened[Page any] struct {
	Path string
	Kept *Page    // the last good page of a kept file; nil: it is a site's own file
	File *os.File // a site's own file
	Size int64    // of File, in bytes
}

// Open opens the file for a request, after it has read a kept file again if that is due. If there is nothing to send,
// Open logs why, and is not ok.
func (f *File[Page]) Open(placeholders Placeholders, logger *zap.Logger) (opened Opened[Page], ok bool) {
	if !f.isOfSite {
		f.refresh(logger)
		kept := f.Kept()
		return Opened[Page]{Path: f.path, Kept: kept}, kept != nil // or its mistake is logged already
	}
	path, err := expand(f.path, placeholders)
	opened.Path = path
	if err == nil {
		opened.File, opened.Size, err = openRegular(path)
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

// LogMistake logs why what was opened cannot be sent, at most once a minute.
func (f *File[Page]) LogMistake(path string, err error, logger *zap.Logger) {
	if f.mistakes.isDue() {
		logger.Error("a page of your own cannot be sent; sending another one in its place",
			zap.String("template", path),
			zap.Error(err))
	}
}

// Check reads a kept file, and says why it cannot be used. A site's own file is not read.
func (f *File[Page]) Check() (path string, isOfSite bool, mistake error) {
	if f.isOfSite {
		return f.path, true, nil
	}
	f.read()
	return f.path, false, f.mistake()
}

// isMissing reports whether a site has no such file, or no file can have its name.
func isMissing(err error) bool {
	noFile := []error{fs.ErrNotExist, syscall.ENOTDIR, syscall.ENAMETOOLONG, syscall.EINVAL}
	if isWindows {
		const invalidName, nameTooLong = syscall.Errno(123), syscall.Errno(206)
		noFile = append(noFile, invalidName, nameTooLong)
	}
	return slices.ContainsFunc(noFile, func(target error) bool { return errors.Is(err, target) })
}

// OnceAMinute bounds log entries that requests cause.
type OnceAMinute struct{ last atomic.Int64 } // in nanoseconds

func (o *OnceAMinute) isDue() bool {
	now := time.Now().UnixNano()
	last := o.last.Load()
	return now-last >= int64(time.Minute) && o.last.CompareAndSwap(last, now)
}

// expandGlobal expands the placeholders of the environment and of the system in a path. It reports whether others are
// left, which only a request has.
func expandGlobal(path string) (expanded string, isOfSite bool, err error) {
	global := caddy.NewReplacer()
	expanded, err = caddy.NewEmptyReplacer().ReplaceFunc(path, func(name string, _ any) (any, error) {
		if !strings.HasPrefix(name, "env.") && !strings.HasPrefix(name, "system.") {
			isOfSite = true
			return "", nil
		}
		value, _ := global.GetString(name)
		if value == "" {
			return nil, fmt.Errorf("%q has the placeholder {%s}, which is not set or empty; set it before Caddy starts",
				path, name)
		}
		return value, nil
	})
	return expanded, isOfSite, err
}

// CheckPath refuses a path that no request may choose.
func CheckPath(path string) error {
	switch {
	case path == "":
		return errors.New("a path is empty; write one as in 404.html")
	case strings.Contains(path, `\{`):
		return fmt.Errorf("%q has a backslash before a placeholder, which makes its brace a plain character; write %s",
			path, strings.ReplaceAll(path, `\`, "/"))
	case placeholderOfMatcher.MatchString(path):
		return fmt.Errorf("%q may become a file of the next handlers, such as a script; "+
			"write the files in a row, as in {http.vars.root}/a/404.html {http.vars.root}/404.html: "+
			"the first that can be sent is the page", path)
	case beginsWithRequest(path):
		return fmt.Errorf("%q begins with what a client or an upstream sends; "+
			"begin with a folder, or with {http.vars.root}, as in {http.vars.root}/404.html", path)
	case rootWithoutSlash.MatchString(path):
		return fmt.Errorf("%q has no slash after the root; write %s", path, rootWithoutSlash.ReplaceAllString(path, "$1/$2"))
	case strings.Contains(path, "://"):
		return fmt.Errorf("%q is a URL, and a page is a file; docs/order.md has a page of another service", path)
	case severalPaths.MatchString(path):
		return fmt.Errorf("%q is one path, because of the quotes; write each path without them, or in its own", path)
	case placeholderOfPath.MatchString(path):
		return fmt.Errorf("%q has the placeholder %s, whose value has a slash in every request, "+
			"and so is never one element of a path; write {http.request.uri.path.0}, or what a path_regexp finds",
			path, placeholderOfPath.FindString(path))
	case placeholderOfFileOrTime.MatchString(path):
		return fmt.Errorf("%q has a placeholder of the file or the time, which no path can have; "+
			"write the path itself, or {env.NAME}", path)
	}
	return nil
}

// isOperators reports whether a placeholder's value is the operator's choice, who then may name folders in it. Of the
// placeholders of a request, that is none but a variable. The names of others, such as those of map, have no prefix.
func isOperators(placeholder string) bool {
	return !strings.HasPrefix(placeholder, "http.") || strings.HasPrefix(placeholder, "http.vars.")
}

// beginsWithRequest reports whether a path begins with a placeholder that is not the operator's.
func beginsWithRequest(path string) bool {
	placeholder, hasBrace := strings.CutPrefix(path, "{")
	return hasBrace && !isOperators(placeholder)
}

var (
	// placeholderOfMatcher matches one of the file matcher, which the next handlers set anew before a path is expanded.
	placeholderOfMatcher = regexp.MustCompile(`\{http\.matchers\.file\.`)

	// placeholderOfFileOrTime matches one that Caddy would read a file for, or that is never the same.
	placeholderOfFileOrTime = regexp.MustCompile(`\{(file|time)\.`)

	// placeholderOfPath matches one whose value has a slash in every request.
	placeholderOfPath = regexp.MustCompile(`\{http\.request\.(proto|(orig_)?uri(\.path(\.dir)?)?)\}`)

	// rootWithoutSlash matches the root and a name that would belong to the root's own name.
	rootWithoutSlash = regexp.MustCompile(`(\{http\.vars\.root\})([^/\\])`)

	// severalPaths matches several paths in one pair of quotes.
	severalPaths = regexp.MustCompile(`\.\w+\s+[/{]`)
)

const isWindows = runtime.GOOS == "windows"

// expand returns the path of a site's own file for a request. The error is [fs.ErrNotExist] if the request names no
// site, which is no mistake.
func expand(ofSite string, placeholders Placeholders) (path string, err error) {
	path, err = placeholders.ReplaceFunc(ofSite, func(name string, value any) (any, error) {
		text := caddy.ToString(value)
		switch {
		case value != nil && !isOperators(name) && !isElement(text):
			return nil, fmt.Errorf("{%s} is %.200q, which is not one element of a path: %w", name, text, fs.ErrNotExist)
		case text == "" && strings.HasSuffix(name, "root"):
			return nil, fmt.Errorf("the placeholder {%s} is unknown or empty; {http.vars.root} is what the directive root "+
				"of a site sets, and not a root inside file_server", name)
		case text == "":
			return nil, fmt.Errorf("the placeholder {%s} is unknown or empty", name)
		}
		return text, nil
	})
	switch {
	case err != nil:
		return ofSite, err
	case leaves(path): // by a variable or a literal, because no sent value has the element
		return path, errors.New("it has the element .., which leaves a folder; write the folder itself")
	case isWindows && filepath.VolumeName(path) != volumeForAnother(ofSite, placeholders):
		return path, fs.ErrNotExist
	}
	return path, nil
}

// volumeForAnother returns the volume of the path, on Windows, for a client that sends other values. If it is another
// volume, a client chooses it: if the root is /, {http.vars.root}/{http.request.host}/404.html begins with a server.
func volumeForAnother(ofSite string, placeholders Placeholders) string {
	path, _ := placeholders.ReplaceFunc(ofSite, func(name string, value any) (any, error) {
		text := caddy.ToString(value)
		if !isOperators(name) {
			text += "x"
		}
		return text, nil
	})
	return filepath.VolumeName(path)
}

// isElement reports whether a value is one element of a path. Windows' devices, such as NUL, are not local, nor is what
// has a colon.
func isElement(value string) bool {
	return filepath.IsLocal(value) && !strings.ContainsAny(value, `/\`) && strings.Trim(value, ". ") != ""
}

// leaves reports whether a path could lead out of its folder. Windows drops dots and blanks behind "..".
func leaves(path string) bool {
	isSlash := func(r rune) bool { return r == '/' || r == '\\' }
	for element := range strings.FieldsFuncSeq(path, isSlash) {
		if strings.HasPrefix(element, "..") && strings.Trim(element, ". ") == "" {
			return true
		}
	}
	return false
}

// MaxSize is the size of a file, in bytes.
const MaxSize = 1 << 20

func readFile(name string) ([]byte, error) {
	f, size, err := openRegular(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text := make([]byte, size)
	n, err := io.ReadFull(f, text)
	switch err { // it may be cut just now
	case io.EOF:
		err = ErrEmpty
	case io.ErrUnexpectedEOF:
		err = nil
	}
	return text[:n], err
}

// ErrEmpty is the error of a file that could only be a blank page.
var ErrEmpty = errors.New("it is empty")

// openRegular opens a regular file that is neither empty nor too long. It does not block on a named pipe, and no
// terminal becomes Caddy's own, in which somebody could press ^C. The size is 0 for what the kernel makes up, such as
// the environment in /proc.
func openRegular(name string) (f *os.File, size int64, err error) {
	f, err = os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = errors.New("it is not a regular file")
	case info.Size() == 0:
		err = ErrEmpty
	case info.Size() > MaxSize:
		err = errors.New("it has more than 1 MiB")
	default:
		return f, info.Size(), nil
	}
	f.Close()
	return nil, 0, err
}
