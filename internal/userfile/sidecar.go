package userfile

import (
	"errors"
	"io/fs"
	"os"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// sidecar is a compressed file beside one that is sent as it is, such as 404.html.br, which a build has made of it. If
// it does not count, the file itself is sent, so that is no mistake.
type sidecar struct {
	text []byte
	err  error // why it does not count
}

// useSidecarOf puts the first accepted sidecar of a kept file that counts in the place of its page.
func (o *Opened) useSidecarOf(s *snapshot, accepted []string, logger *zap.Logger) {
	for _, suffix := range accepted {
		sidecar, isRead := s.sidecars[suffix]
		if isRead && sidecar.err == nil {
			o.Text, o.Suffix = sidecar.text, suffix
			return
		}
		logUnsent(o.Path+suffix, sidecar.err, logger)
	}
}

// open opens the first accepted sidecar of a site's own file that counts, or else the file. The file's age is found
// without opening it, which would take three more system calls.
func (o *Opened) open(accepted []string, logger *zap.Logger) error {
	if len(accepted) > 0 {
		page, err := os.Stat(o.Path)
		if err == nil {
			err = checkRegular(page)
		}
		if err != nil {
			return err
		}
		for _, suffix := range accepted {
			err := o.openSidecar(suffix, page)
			if err == nil {
				return nil
			}
			logUnsent(o.Path+suffix, err, logger)
		}
	}
	f, info, err := openRegular(o.Path)
	if err != nil {
		return err
	}
	o.File, o.Size = f, info.Size()
	return nil
}

func (o *Opened) openSidecar(suffix string, page fs.FileInfo) error {
	f, info, err := openRegular(o.Path + suffix)
	if err != nil {
		return err
	}
	if err := checkAge(info, page); err != nil {
		f.Close()
		return err
	}
	o.File, o.Size, o.Suffix = f, info.Size(), suffix
	return nil
}

// logUnsent says why a sidecar does not count. It has no error if it was not read, as beside a template.
func logUnsent(path string, err error, logger *zap.Logger) {
	if err == nil {
		err = errors.New("the page beside it is a template, or cannot be used")
	}
	if e := logger.Check(zapcore.DebugLevel, "a page has no such compressed file"); e != nil {
		e.Write(zap.String("template", path), zap.Error(err))
	}
}

// withSidecars returns a snapshot with the sidecars as they are now. A file that cannot be used has none: its last good
// page is sent, and they were made of a newer text. Nor has a template, which makes another text.
func (f *keptFile) withSidecars(s *snapshot, file fs.FileInfo) *snapshot {
	if s.err != nil || len(f.suffixes) == 0 || !f.format.IsText(s.page) {
		return s
	}
	with := *s
	with.sidecars = make(map[string]sidecar)
	for _, suffix := range f.suffixes {
		text, info, err := readFile(f.path + suffix)
		if err == nil {
			err = checkAge(info, file)
		}
		with.sidecars[suffix] = sidecar{text, err}
	}
	return &with
}

// checkAge refuses a sidecar that was made of an earlier file. What compresses or copies a file may give the sidecar
// its time without the fraction of a second.
func checkAge(sidecar, file fs.FileInfo) error {
	if sidecar.ModTime().Unix() < file.ModTime().Unix() {
		return errors.New("it is older than the page")
	}
	return nil
}
