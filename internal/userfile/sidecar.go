package userfile

import (
	"errors"
	"io/fs"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// sidecar is a compressed file beside one that is sent as it is, such as 404.html.br, which a build has made of it. If it
// does not count, the file itself is sent, so that is no mistake.
type sidecar struct {
	text []byte
	err  error // why it does not count
}

// UseSidecar puts the sidecar with a suffix in the place of what was opened. If it does not count, the debug log says why.
func (o *Opened) UseSidecar(suffix string, logger *zap.Logger) bool {
	var err error
	if o.File == nil {
		s, isRead := o.sidecars[suffix]
		o.Text, err = s.text, s.err
		if !isRead {
			err = errors.New("the page beside it cannot be used")
		}
	} else {
		err = o.openSidecar(suffix)
	}
	if err != nil {
		if e := logger.Check(zapcore.DebugLevel, "a page has no such compressed file"); e != nil {
			e.Write(zap.String("template", o.Path+suffix), zap.Error(err))
		}
	}
	return err == nil
}

// openSidecar opens the sidecar of a site's own file, which it closes.
func (o *Opened) openSidecar(suffix string) error {
	f, info, err := openRegular(o.Path + suffix)
	if err != nil {
		return err
	}
	if err := checkAge(info, o.info); err != nil {
		f.Close()
		return err
	}
	o.File.Close()
	o.File, o.Size = f, info.Size()
	return nil
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
