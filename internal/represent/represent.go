// Package represent has the representations of the 404 page, which are those of docs/representations.md. A
// representation is a user's file, or else built in. Package userfile has the files: a kept one is the page, or a
// template of it, and a site's own one is sent as it is.
//
// A call goes down these files: represent.go chooses a representation; header.go sends its header; template.go makes it
// of a kept file; content.go is what it consists of; format.go has the formats and their built-in pages; valid.go
// checks what a template makes.
package represent

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"go.uber.org/zap"

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
	Encodings []string    // of the compressed files beside one that is sent as it is, the preferred one first
	Suffixes  []string    // of these files, one for each encoding
	Logger    *zap.Logger // says why a file cannot be sent

	Trial // may be kept
}

// CheckFormats refuses unknown formats and repeated ones.
func CheckFormats(names []string) error {
	_, err := formatsOf(names)
	return err
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

// Formats are the representations on offer.
type Formats struct {
	offered         []*format
	offers          accept.Offers // of offered
	rows            []row         // one for each format that has files
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
// mistake in one is logged, and stops no site: another page is sent until the file can be used. New fails if a
// placeholder of the environment or the system in a path is not set.
func New(o Options) (*Formats, error) {
	formats, _ := formatsOf(o.Formats)
	all := &Formats{
		offered:   formats,
		offers:    offersOf(formats),
		encodings: o.Encodings,
		suffixes:  o.Suffixes,
		logger:    o.Logger,
	}
	for _, format := range formats {
		row := row{format: format}
		for _, path := range o.Templates[format.name] {
			f, err := userfile.Take(path, ofKeptFiles(format, &o), &all.mistakesOfSites, o.Logger)
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

// Check says why kept files cannot be used, and what else a user should know. It returns how many it has read.
func (all *Formats) Check() (read int, notes []string, mistakes error) {
	for _, row := range all.rows {
		for _, f := range row.files {
			isRead, ofFile, mistake := f.Check()
			if isRead {
				read++
			}
			notes = append(notes, ofFile...)
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

// Accepted has the header fields that say what a client accepts.
type Accepted struct{ Accept, AcceptEncoding string }

// Represent renders a page in the representation that a client asks for: the first file of the row that can be sent, or
// the built-in page. The caller frees it.
func (all *Formats) Represent(pg *page.Page, placeholders *caddy.Replacer, client Accepted) Representation {
	format := all.offered[all.offers.Choose(client.Accept)]
	r := Representation{
		format:     format,
		isForStyle: accept.Names(client.Accept, "text/css") && !accept.Names(client.Accept, "text/html"),
	}
	files := all.filesFor(format)
	var accepted []string
	if len(files) > 0 {
		accepted = all.acceptedSuffixes(client.AcceptEncoding)
	}
	for _, f := range files {
		if all.useFile(f, &r, format, pg, placeholders, accepted) {
			return r
		}
	}
	b := newBuffer()
	format.write(b, pg)
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
func (all *Formats) useFile(
	f *userfile.File, r *Representation, format *format, pg *page.Page, placeholders *caddy.Replacer, accepted []string,
) bool {
	opened, ok := f.Open(placeholders, all.logger, accepted...)
	if !ok {
		return false
	}
	kept, _ := opened.Page.(*userPage)
	var c content
	var err error
	switch {
	case opened.File != nil:
		c, err = contentOfFile(opened.File, opened.Size)
	case opened.Suffix != "":
		c = contentOfText(opened.Text)
	default:
		c, err = kept.content(format, pg, placeholders)
	}
	if err != nil {
		f.LogMistake(opened.Path+opened.Suffix, err, all.logger)
		return opened.Suffix != "" && all.useFile(f, r, format, pg, placeholders, nil) // the file itself may be readable
	}
	r.content = c
	isTemplate := kept != nil && kept.literal == nil
	r.MayBeEncoded = len(all.encodings) > 0 && !isTemplate
	if opened.Suffix != "" {
		r.encoding = all.encodings[slices.Index(all.suffixes, opened.Suffix)]
	}
	return true
}

// acceptedSuffixes returns those of the compressed files that a client accepts, the preferred one first, as file_server
// does.
func (all *Formats) acceptedSuffixes(acceptEncoding string) (suffixes []string) {
	if len(all.encodings) == 0 {
		return nil
	}
	r := http.Request{Header: http.Header{"Accept-Encoding": {acceptEncoding}}}
	for _, encoding := range encode.AcceptedEncodings(&r, all.encodings) {
		if i := slices.Index(all.encodings, encoding); i >= 0 {
			suffixes = append(suffixes, all.suffixes[i])
		}
	}
	return suffixes
}
