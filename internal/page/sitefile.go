package page

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"runtime"
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
	path   string
	format *format
	logged atomic.Int64 // when the last mistake was, in nanoseconds
}

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
	isMistake := !errors.Is(err, fs.ErrNotExist) &&
		!errors.Is(err, syscall.ENOTDIR) &&
		!errors.Is(err, syscall.ENAMETOOLONG)
	now := time.Now().UnixNano()
	last := s.logged.Load()
	if isMistake && now-last >= int64(time.Minute) && s.logged.CompareAndSwap(last, now) {
		logger.Error("the page of a site cannot be sent; sending the built-in page instead",
			zap.String("template", path),
			zap.Error(err))
	}
	return false
}

// ofClient matches a placeholder whose value a client sends.
var ofClient = regexp.MustCompile(`^\{?http\.(request|regexp)\.`)

// reserved are the bytes that a client's value cannot have, because it is one element of a path.
var reserved = `/\` + map[string]string{"windows": `:*?"<>|`}[runtime.GOOS]

// leaves matches a path that could lead out of its folder. Windows drops dots and blanks behind "..".
var leaves = regexp.MustCompile(`\x00|(^|[/\\])\.\.[. ]*([/\\]|$)`)

// expand returns the path for a request. The error is [fs.ErrNotExist] if the request names no site, which is not
// logged.
func (s *siteFile) expand(placeholders Placeholders) (string, error) {
	path, err := placeholders.ReplaceFunc(s.path, func(name string, value any) (any, error) {
		text := caddy.ToString(value)
		_, isKnown := placeholders.GetString(name)
		isElement := strings.Trim(text, ". ") != "" && !strings.ContainsAny(text, reserved)
		switch {
		case ofClient.MatchString(name) && isKnown && !isElement:
			return nil, fs.ErrNotExist
		case text == "":
			return nil, fmt.Errorf("the placeholder {%s} is unknown or empty", name)
		}
		return text, nil
	})
	if err != nil {
		return s.path, err
	}
	if leaves.MatchString(path) {
		return path, fs.ErrNotExist
	}
	return path, nil
}

// maxSize is the size of the longest file that is read, in bytes.
const maxSize = 1 << 20

// readFile reads a regular file. It does not block on a named pipe. No more is read than the size
// says, which is 0 for what the kernel makes up, such as the environment in /proc.
func readFile(body *bytes.Buffer, name string) error {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errors.New("it is not a regular file")
	case info.Size() > maxSize:
		return errors.New("it has more than 1 MiB")
	}
	_, err = body.ReadFrom(io.LimitReader(f, info.Size()))
	return err
}
