package userfile

import (
	"errors"
	"io/fs"
	"os"
)

// tolerance is how much older than the page a sidecar of the same build may seem, in whole seconds. What compresses or
// copies a file may drop or round the fraction of a second, and a zip archive has steps of two seconds.
const tolerance = 2

// OpenSidecar opens a sidecar of a site's own file: a compressed file beside it, such as 404.html.br, which a build has
// made from it. It fails if the sidecar cannot be sent, or seems older than the page.
func (o *Opened) OpenSidecar(suffix string) (f *os.File, info fs.FileInfo, err error) {
	f, info, err = openRegular(o.Path + suffix)
	if err != nil {
		return nil, nil, err
	}
	age := o.Info.ModTime().Unix() - info.ModTime().Unix()
	if age > tolerance {
		f.Close()
		return nil, nil, errors.New("it is more than two seconds older than the page")
	}
	return f, info, nil
}
