package page

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/caddyserver/caddy/v2"
)

// siteFile is a page whose path has placeholders, as in {http.vars.root}/404.html. The file is read for each page, and
// sent as it is, even if it has actions: whoever writes into the folder of a site may be a tenant, and a template can
// show the environment.
type siteFile struct {
	path     string
	format   *format
	reserved string       // bytes that no value of a client's may have
	logged   atomic.Int64 // when the last mistake was, in nanoseconds
}

func newSiteFile(path string, f *format) *siteFile {
	s := &siteFile{path: path, format: f}
	if runtime.GOOS == "windows" {
		s.reserved = `\:*?"<>|`
	}
	return s
}

// showsRequestID returns false, because the Maker looks at the path.
func (*siteFile) showsRequestID() bool { return false }

func (*siteFile) free() {}

// errNoFile is an expanded path that names no file, by nobody's mistake.
var errNoFile = errors.New("no file has such a path")

// render reads the file. Only a file that exists can be a mistake. It is logged at most once a minute, whatever the
// site.
func (s *siteFile) render(body *bytes.Buffer, pg Page, logger *zap.Logger) bool {
	path, err := s.expand(pg.placeholders)
	if err == nil {
		err = readFile(body, path)
	}
	if err == nil {
		err = s.format.validate(body.Bytes())
	}
	if err == nil {
		return true
	}
	body.Reset()
	isMistake := !errors.Is(err, errNoFile) && !errors.Is(err, fs.ErrNotExist) &&
		!errors.Is(err, syscall.ENOTDIR) && !errors.Is(err, syscall.ENAMETOOLONG)
	now := time.Now().UnixNano()
	last := s.logged.Load()
	if isMistake && now-last >= int64(time.Minute) && s.logged.CompareAndSwap(last, now) {
		logger.Error("the page of a site cannot be sent; sending the built-in page instead",
			zap.String("template", path), zap.Error(err))
	}
	return false
}

// clientPrefix begins the names of the placeholders whose values a client sends.
const clientPrefix = "http.request."

// expand returns the path for a request. No value takes it out of its folder.
func (s *siteFile) expand(placeholders Placeholders) (string, error) {
	path, err := placeholders.ReplaceFunc(s.path, func(name string, value any) (any, error) {
		text := caddy.ToString(value)
		isClients := strings.HasPrefix(name, clientPrefix)
		if isClients && strings.ContainsAny(text, s.reserved) {
			return nil, errNoFile
		}
		if text != "" {
			return text, nil
		}
		if _, isKnown := placeholders.GetString(name); isKnown && isClients {
			return nil, errNoFile
		}
		return nil, fmt.Errorf("the placeholder {%s} is unknown or empty", name)
	})
	if err != nil {
		return s.path, err
	}
	if strings.Contains(path, "\x00") || slices.ContainsFunc(strings.FieldsFunc(path, isSeparator), isUp) {
		return path, errNoFile
	}
	return path, nil
}

func isSeparator(r rune) bool { return r == '/' || r == '\\' }

// isUp reports whether an element of a path is "..". Windows ignores dots and blanks at its end.
func isUp(element string) bool {
	return strings.HasPrefix(element, "..") && strings.Trim(element, ". ") == ""
}

// maxSize is the size of the longest file that is read, in bytes.
const maxSize = 1 << 20

// readFile reads a regular file. A named pipe, opened without blocking, holds nobody up.
func readFile(body *bytes.Buffer, name string) error {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is not a regular file")
	}
	if info.Size() <= maxSize {
		body.Grow(int(info.Size()) + bytes.MinRead)
		_, err = body.ReadFrom(io.LimitReader(f, maxSize+1)) // it may have grown
	}
	if info.Size() > maxSize || body.Len() > maxSize {
		return errors.New("it has more than 1 MiB")
	}
	return err
}
