// Package represent renders the 404 page in the representations of docs/representations.md. A representation is built
// in, or comes from a user's file, which package userfile opens. A kept file is the page or a template of it; a site's
// own file is sent as it is.
//
// A call goes down these files: represent.go chooses a representation; header.go sets its header; template.go renders a
// kept file; content.go holds the body; format.go defines the formats and their built-in pages; valid.go checks the
// output of a template.
package represent

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/encode"

	"github.com/caddy-notfound/notfound/internal/accept"
	"github.com/caddy-notfound/notfound/internal/page"
	"github.com/caddy-notfound/notfound/internal/userfile"
)

// Options are as in Handler, and what a template is tried with.
type Options struct {
	Formats   []string
	Templates map[string][]string
	Encodings []string    // of the compressed files beside a site's own one, the preferred one first
	Suffixes  []string    // of these files, one for each encoding
	Logger    *zap.Logger // says why a file cannot be sent

	Trial // the only part that may outlive the handler
}

// CheckFormats refuses unknown formats and repeated ones.
func CheckFormats(names []string) error {
	for i, name := range names {
		if _, err := formatOf(name); err != nil {
			return err
		}
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("%s is given twice; give each format once", name)
		}
	}
	return nil
}

// CheckTemplates checks the user's files by their formats. It refuses files that no client could get.
func CheckTemplates(rows map[string][]string, offered []string) error {
	if len(offered) == 0 {
		offered = FormatNames()
	}
	for name, row := range rows {
		if !slices.Contains(offered, name) {
			return fmt.Errorf("the format %s is not on offer; the formats are %s", name, strings.Join(offered, ", "))
		}
		if len(row) == 0 {
			return fmt.Errorf("%s needs a file", name)
		}
		for _, path := range row {
			if err := cmp.Or(userfile.CheckPath(path), page.CheckNoBody(path), page.CheckNoError(path)); err != nil {
				return err
			}
		}
	}
	return nil
}

// CheckPrecompressed refuses paths whose sidecar could be somebody else's file, and rows without a site's own file,
// because no other file has sidecars.
func CheckPrecompressed(rows map[string][]string) error {
	hasSidecars := false
	for _, row := range rows {
		for _, path := range row {
			isOfSite, err := userfile.HasSidecars(path)
			if err != nil {
				return err
			}
			hasSidecars = hasSidecars || isOfSite
		}
	}
	if hasSidecars {
		return nil
	}
	return errors.New("only a template whose path has a placeholder of a request has compressed files; write the " +
		"directive root and template {vars.root}/404.html, in JSON {http.vars.root}/404.html, or leave this out")
}

// Formats are the representations on offer.
type Formats struct {
	order           *order
	orderOfBuiltIn  *order // if there is a row for the format, but no file of it can be sent
	rows            []row  // one for each format that has files
	encodings       []string
	suffixes        []string
	mistakesOfSites userfile.OnceAMinute
	logger          *zap.Logger
}

// row is the user's files for a format. The first that can be sent is the page.
type row struct {
	format *format
	files  []*userfile.File
}

// New returns the representations of a handler's pages, whose options have been checked. It reads the kept files. A
// mistake in one is logged, but the config loads: another page is sent until the file can be used. New fails if a
// placeholder of the environment or the system in a path is not set.
func New(o Options) (*Formats, error) {
	preferred, builtIn := o.Formats, o.Formats
	if len(o.Formats) == 0 {
		preferred, builtIn = ownFirst(o.Templates), FormatNames()
	}
	all := &Formats{
		order:          orderOf(preferred),
		orderOfBuiltIn: orderOf(builtIn),
		encodings:      o.Encodings,
		suffixes:       o.Suffixes,
		logger:         o.Logger,
	}
	for _, format := range all.order.formats {
		row := row{format: format}
		for _, path := range o.Templates[format.name] {
			f, err := userfile.New(path, ofKeptFiles(format, o.Trial), &all.mistakesOfSites, o.Logger)
			if err != nil {
				return nil, fmt.Errorf("template: %w", err)
			}
			row.files = append(row.files, f)
		}
		if len(row.files) > 0 {
			all.rows = append(all.rows, row)
		}
	}
	return all, nil
}

// Check returns the mistakes in kept files, notes for the user, and how many files it has read.
func (all *Formats) Check() (read int, notes []string, mistakes error) {
	for _, row := range all.rows {
		for _, f := range row.files {
			isRead, note, mistake := f.Check()
			if isRead {
				read++
			}
			if note != "" {
				notes = append(notes, note)
			}
			mistakes = errors.Join(mistakes, mistake)
		}
	}
	return read, notes, mistakes
}

// ShowsRequestID reports whether a template names [RequestID].
func (all *Formats) ShowsRequestID() bool {
	for _, row := range all.rows {
		for _, f := range row.files {
			if pg, ok := f.Page().(*userPage); ok && pg.showsRequestID {
				return true
			}
		}
	}
	return false
}

// Input is what a representation is made of.
type Input struct {
	Page                   page.Page // no pointer, which would escape
	Placeholders           *caddy.Replacer
	Accept, AcceptEncoding string // the client's

	// The page takes the place of a response that other clients get.
	VariesByClient bool
}

// Represent renders a page in the representation that a client asks for: the first file of the row that can be sent, or
// the built-in page. The caller frees it.
func (all *Formats) Represent(in *Input) Representation {
	format := all.order.choose(in.Accept)
	r := Representation{
		format:         format,
		isForStyle:     accept.Names(in.Accept, "text/css") && !accept.Names(in.Accept, "text/html"),
		variesByClient: in.VariesByClient,
	}
	files := all.filesFor(format)
	for _, f := range files {
		if all.useFile(f, &r, in) {
			return r
		}
	}
	if len(files) > 0 {
		r.format = all.orderOfBuiltIn.choose(in.Accept)
	}
	b := newBuffer()
	r.format.write(b, &in.Page)
	r.content = buffered(b)
	r.isBuiltIn = true
	return r
}

// filesFor returns the user's files for a format, or none.
func (all *Formats) filesFor(format *format) []*userfile.File {
	for _, row := range all.rows {
		if row.format == format {
			return row.files
		}
	}
	return nil
}

// useFile makes one of the user's files the content of a representation. It reports whether the file can be sent.
func (all *Formats) useFile(f *userfile.File, r *Representation, in *Input) bool {
	opened, ok := f.Open(in.Placeholders, all.logger)
	if !ok {
		return false
	}
	var err error
	kept, isKept := opened.Page.(*userPage)
	if isKept {
		r.content, err = kept.content(r.format, in)
	} else {
		r.content, r.encoding, err = all.contentOfSites(&opened, in.AcceptEncoding)
	}
	if err != nil {
		f.LogMistake(opened.Path, err, all.logger)
		return false
	}
	r.mayBeEncoded = !isKept && len(all.encodings) > 0
	return true
}

// contentOfSites returns the content of a site's own file, with its encoding: that of the first sidecar that the client
// accepts and that can be used, otherwise that of the file itself. A sidecar that cannot be used is no mistake.
func (all *Formats) contentOfSites(opened *userfile.Opened, acceptEncoding string) (content, string, error) {
	for _, encoding := range all.acceptedEncodings(acceptEncoding) {
		suffix := all.suffixes[slices.Index(all.encodings, encoding)]
		var c content
		f, info, err := opened.OpenSidecar(suffix)
		if err == nil {
			c, err = contentOfFile(f, info.Size())
		}
		if err == nil {
			opened.File.Close()
			return c, encoding, nil
		}
		if e := all.logger.Check(zapcore.DebugLevel, "a page has no such compressed file"); e != nil {
			e.Write(zap.String("template", opened.Path+suffix), zap.Error(err))
		}
	}
	c, err := contentOfFile(opened.File, opened.Info.Size())
	return c, "", err
}

// acceptedEncodings returns the encodings of sidecars that a client accepts, in the order of file_server.
func (all *Formats) acceptedEncodings(acceptEncoding string) (accepted []string) {
	if len(all.encodings) == 0 || acceptEncoding == "" {
		return nil
	}
	r := http.Request{Header: http.Header{"Accept-Encoding": {acceptEncoding}}}
	for _, encoding := range encode.AcceptedEncodings(&r, all.encodings) {
		isNew := !slices.Contains(accepted, encoding) // a client may name one a thousand times
		if isNew && slices.Contains(all.encodings, encoding) {
			accepted = append(accepted, encoding)
		}
	}
	return accepted
}
