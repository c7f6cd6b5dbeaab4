package page

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

// file is one of the user's files for a format. There are two kinds.
//
// The path of a site's own file has placeholders of a request. Whoever writes into the folder of a site may be a tenant,
// so the file is sent as it is, even if it has actions: a template can show the environment. It is opened for each page.
//
// Any other file is kept. Makers share it, also those of the next config, so that its last good page outlasts a reload.
// So it has nothing of a handler, such as a logger.
type file struct {
	path     string // of a site's own file, as in the option; otherwise absolute
	format   *format
	isOfSite bool

	// mistakes bounds the log entries of pages that fail: of a site's own file, for all such files of a Maker.
	mistakes *onceAMinute

	trial Options                  // what a kept file is tried with
	kept  atomic.Pointer[keptFile] // as it was read last; nil: it was not

	reading sync.Mutex // held while a kept file is read
	readAt  time.Time

	config   any  // the last one that loaded the file
	wasInUse bool // another config had the file when that one loaded it
}

// keptFile is a file as it was read at some time.
type keptFile struct {
	text []byte
	err  error     // why it cannot be used
	page *keptPage // the last one that could be used; nil: none
}

// fileKey is the key of the pool. A relative path is made absolute, because the working directory may change.
type fileKey struct{ path, format string }

// pool has the kept files of the configs that run, or are about to.
var pool = caddy.NewUsagePool()

// pause is the least time between two readings of a kept file.
const pause = time.Second

// takeFile returns the file of a path. The caller releases it.
func takeFile(path string, f *format, o *Options, mistakesOfSites *onceAMinute) (*file, error) {
	expanded, isOfSite, err := expandGlobal(path)
	if err != nil {
		return nil, err
	}
	if isOfSite {
		return &file{path: path, format: f, isOfSite: true, mistakes: mistakesOfSites}, nil
	}
	expanded, err = filepath.Abs(expanded)
	if err != nil {
		return nil, err
	}
	shared, _ := pool.LoadOrStore(fileKey{expanded, f.name}, &file{
		path:     expanded,
		format:   f,
		mistakes: new(onceAMinute),
		trial:    Options{Server: o.Server, Sample: o.Sample, FullName: o.FullName},
	})
	return shared.(*file), nil
}

// release drops a Maker's reference. The Maker may still be making its last pages.
func (f *file) release() {
	if !f.isOfSite {
		_, _ = pool.Delete(fileKey{f.path, f.format.name}) // a file frees nothing, so there is no error
	}
}

// load reads a kept file when a config loads. The first handler of the config that has the file logs a mistake, or that
// a changed file is in use. Every handler gets the mistake.
func (f *file) load(config any, logger *zap.Logger) error {
	if f.isOfSite {
		return nil
	}
	f.reading.Lock()
	defer f.reading.Unlock()
	if f.config != config {
		f.wasInUse = f.config != nil
		f.config = config
		hasChanged := f.read()
		if f.kept.Load().err != nil || hasChanged && f.wasInUse {
			f.log(logger)
		}
	}
	return f.mistake()
}

// mistake says why a kept file cannot be used.
func (f *file) mistake() error {
	if err := f.kept.Load().err; err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	return nil
}

// canBeSent reports whether the file may be a page, for some request. The last good page of a kept file counts.
func (f *file) canBeSent() bool { return f.isOfSite || f.kept.Load().page != nil }

// refresh reads a kept file again, if that is due, and logs a change. Only one request reads at a time. The others use
// the page that there is.
func (f *file) refresh(logger *zap.Logger) {
	if !f.reading.TryLock() {
		return
	}
	defer f.reading.Unlock()
	if time.Since(f.readAt) >= pause && f.read() {
		f.log(logger)
	}
}

func (f *file) log(logger *zap.Logger) {
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
func (f *file) read() (hasChanged bool) {
	f.readAt = time.Now()
	text, err := readFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w; for the built-in page to begin with, run caddy not-found export-template %s",
			err, f.format.name)
	}
	next := &keptFile{text: text, err: err}
	if before := f.kept.Load(); before != nil {
		if bytes.Equal(before.text, text) && (err == nil || sameText(before.err, err)) {
			return false // a text that was refused before is refused again
		}
		next.page = before.page
	}
	if err == nil {
		var page *keptPage
		page, next.err = f.format.parse(filepath.Base(f.path), text, &f.trial)
		if next.err == nil {
			next.page = page
		}
	}
	f.kept.Store(next)
	return true
}

func sameText(a, b error) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

// showsRequestID reports whether a page may show the placeholder.
func (f *file) showsRequestID() bool {
	if f.isOfSite {
		return strings.Contains(f.path, requestID)
	}
	kept := f.kept.Load()
	return kept != nil && kept.page != nil && kept.page.showsRequestID
}

// content returns the page, or false if it cannot be sent.
func (f *file) content(pg Page, logger *zap.Logger) (c content, ok bool) {
	path, c, err := f.open(pg, logger)
	switch {
	case err == nil:
		return c, true
	case errors.Is(err, errNone):
	case f.isOfSite && isMissing(err): // no mistake of the site
		if e := logger.Check(zapcore.DebugLevel, "a site has no such file"); e != nil {
			e.Write(zap.String("template", path))
		}
	case f.mistakes.isDue():
		logger.Error("a page of your own cannot be sent; sending another one in its place",
			zap.String("template", path),
			zap.Error(err))
	}
	return content{}, false
}

// errNone is for a kept file without a good page. Its mistake is logged already.
var errNone = errors.New("the file has no page that can be used")

func (f *file) open(pg Page, logger *zap.Logger) (path string, c content, err error) {
	if f.isOfSite {
		path, err = f.expand(pg.placeholders)
		if err == nil {
			c, err = openFile(path)
		}
		return path, c, err
	}
	f.refresh(logger)
	kept := f.kept.Load()
	if kept == nil || kept.page == nil {
		return f.path, c, errNone
	}
	c, err = kept.page.content(f.format, pg)
	return f.path, c, err
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

// onceAMinute bounds log entries that requests cause.
type onceAMinute struct{ last atomic.Int64 } // in nanoseconds

func (o *onceAMinute) isDue() bool {
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

// checkPath refuses a path that no request may choose.
func checkPath(path string) error {
	switch {
	case path == "":
		return errors.New("a path is empty; write one as in 404.html")
	case strings.Contains(path, `\{`):
		return fmt.Errorf("%q has a backslash before a placeholder, which makes its brace a plain character; write %s",
			path, strings.ReplaceAll(path, `\`, "/"))
	case ofMatcher.MatchString(path):
		return fmt.Errorf("%q may become a file of the next handlers, such as a script; "+
			"write the files in a row, as in {http.vars.root}/a/404.html {http.vars.root}/404.html: "+
			"the first that can be sent is the page", path)
	case beginsWithRequest(path):
		return fmt.Errorf("%q begins with what a client or an upstream sends; "+
			"begin with a folder, or with {http.vars.root}, as in {http.vars.root}/404.html", path)
	case isRow.MatchString(path):
		return fmt.Errorf("%q is one path, because of the quotes; write each path without them, or in its own", path)
	case ofMoment.MatchString(path):
		return fmt.Errorf("%q has a placeholder of the file or the time, which no path can have; "+
			"write the path itself, or {env.NAME}", path)
	}
	return CheckNoBody(path)
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
	// ofMatcher matches a placeholder of the file matcher, which the next handlers set anew before a path is expanded.
	ofMatcher = regexp.MustCompile(`\{http\.matchers\.file\.`)

	// ofMoment matches a placeholder that Caddy would read a file for, or that is never the same.
	ofMoment = regexp.MustCompile(`\{(file|time)\.`)

	// isRow matches several paths in one pair of quotes.
	isRow = regexp.MustCompile(`\.\w+\s+[/{]`)
)

const isWindows = runtime.GOOS == "windows"

// expand returns the path of a site's own file for a request. The error is [fs.ErrNotExist] if the request names no
// site, which is no mistake.
func (f *file) expand(placeholders Placeholders) (string, error) {
	path, err := placeholders.ReplaceFunc(f.path, func(name string, value any) (any, error) {
		text := caddy.ToString(value)
		switch {
		case value != nil && !isOperators(name) && !isElement(text):
			return nil, fs.ErrNotExist
		case text == "":
			return nil, fmt.Errorf("the placeholder {%s} is unknown or empty", name)
		}
		return text, nil
	})
	switch {
	case err != nil:
		return f.path, err
	case leaves(path):
		return path, fs.ErrNotExist
	case isWindows && filepath.VolumeName(path) != f.volumeForAnother(placeholders):
		return path, fs.ErrNotExist
	}
	return path, nil
}

// volumeForAnother returns the volume of the path, on Windows, for a client that sends other values. If it is another
// volume, a client chooses it: if the root is /, {http.vars.root}/{http.request.host}/404.html begins with a server.
func (f *file) volumeForAnother(placeholders Placeholders) string {
	path, _ := placeholders.ReplaceFunc(f.path, func(name string, value any) (any, error) {
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

const (
	maxSize     = 1 << 20  // bytes of a file
	maxBuffered = 64 << 10 // bytes of a file that leaves in one write with its header, which is faster than to stream it
)

// openFile opens a file as the content of a page.
func openFile(name string) (content, error) {
	f, size, err := openRegular(name)
	if err != nil {
		return content{}, err
	}
	return contentOf(f, size)
}

// contentOf returns the content of an open file. The file is closed, unless it is long: then the content has it.
func contentOf(f *os.File, size int64) (content, error) {
	if size > maxBuffered {
		return content{size: size, file: f}, nil
	}
	defer f.Close()
	b := newBuffer()
	n, err := b.ReadFrom(io.LimitReader(f, size))
	if err == nil && n == 0 { // it was cut just now
		err = errEmpty
	}
	if err != nil {
		freeBuffer(b)
		return content{}, err
	}
	return buffered(b), nil
}

func readFile(name string) ([]byte, error) {
	f, size, err := openRegular(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text := make([]byte, size)
	n, err := io.ReadFull(f, text)
	if err == io.ErrUnexpectedEOF { // it was cut just now
		err = nil
	}
	return text[:n], err
}

var errEmpty = errors.New("it is empty")

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
		err = errEmpty
	case info.Size() > maxSize:
		err = errors.New("it has more than 1 MiB")
	default:
		return f, info.Size(), nil
	}
	f.Close()
	return nil, 0, err
}
