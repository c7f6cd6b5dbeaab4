package userfile

import (
	"cmp"
	"errors"
	"io/fs"
	"os"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// sidecar is a compressed file beside one that is sent as it is, such as 404.html.br, which a build has made of it. If it
// does not count, the file itself is sent, so that is no mistake.
type sidecar struct {
	text []byte
	err  error // why it does not count
}

// sidecarOf returns the first accepted sidecar of a kept file that counts.
func (s *snapshot) sidecarOf(path string, accepted []string, logger *zap.Logger) (text []byte, suffix string) {
	for _, suffix := range accepted {
		sidecar, isRead := s.sidecars[suffix]
		if isRead && sidecar.err == nil {
			return sidecar.text, suffix
		}
		logUnsent(path+suffix, sidecar.err, logger)
	}
	return nil, ""
}

// openWithSidecars opens the first accepted sidecar of a site's own file that counts, or else the file. The file is not
// opened to find out its age, because that takes three system calls more.
func openWithSidecars(path string, accepted []string, logger *zap.Logger) (f *os.File, size int64, suffix string, err error) {
	if len(accepted) > 0 {
		page, err := os.Stat(path)
		if err != nil {
			return nil, 0, "", err
		}
		if err := checkRegular(page); err != nil {
			return nil, 0, "", err
		}
		for _, suffix := range accepted {
			f, info, err := openRegular(path + suffix)
			if err == nil {
				err = checkAge(info, page)
			}
			if err == nil {
				return f, info.Size(), suffix, nil
			}
			f.Close() // which may be nil
			logUnsent(path+suffix, err, logger)
		}
	}
	f, info, err := openRegular(path)
	if err != nil {
		return nil, 0, "", err
	}
	return f, info.Size(), "", nil
}

// logUnsent says why a sidecar does not count. Without an error, it was not read, because the page has one.
func logUnsent(path string, err error, logger *zap.Logger) {
	if e := logger.Check(zapcore.DebugLevel, "a page has no such compressed file"); e != nil {
		e.Write(zap.String("template", path), zap.Error(cmp.Or(err, errors.New("the page beside it cannot be used"))))
	}
}

// withSidecars returns a snapshot with the sidecars as they are now. If the file cannot be used, the text of an earlier one
// is sent, of which they are not made.
func (f *keptFile) withSidecars(s *snapshot, file fs.FileInfo) *snapshot {
	if s.err != nil || len(f.format.Suffixes) == 0 {
		return s
	}
	with := *s
	with.sidecars = make(map[string]sidecar)
	for _, suffix := range f.format.Suffixes {
		text, info, err := readFile(f.path + suffix)
		if err == nil {
			err = checkAge(info, file)
		}
		with.sidecars[suffix] = sidecar{text, err}
	}
	return &with
}

// checkAge refuses a sidecar that was made of an earlier file. What compresses or copies a file may give the sidecar its
// time without the fraction of a second.
func checkAge(sidecar, file fs.FileInfo) error {
	if sidecar.ModTime().Unix() < file.ModTime().Unix() {
		return errors.New("it is older than the page")
	}
	return nil
}
