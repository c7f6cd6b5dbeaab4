// Package represent has the representations of the 404 page, which are those of docs/representations.md. A
// representation is a user's file, or else built in. Package userfile has the files: a kept one is the page, or a
// template of it, and a site's own one is sent as it is.
//
// A call goes down these files: represent.go chooses a representation; header.go sends its header; template.go makes it
// of a kept file; content.go is what it consists of; format.go has the formats and their built-in pages; valid.go checks
// what a template makes.
package represent

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-notfound/notfound/internal/accept"
	"github.com/caddy-notfound/notfound/internal/page"
	"github.com/caddy-notfound/notfound/internal/userfile"
)

// Options are as in Handler, and what a template is tried with.
type Options struct {
	Formats   []string
	Templates map[string][]string
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
	formats, err := formatsOf(o.Formats)
	if err != nil {
		return nil, fmt.Errorf("formats: %w", err)
	}
	all := &Formats{
		offered: formats,
		offers:  offersOf(formats),
		logger:  o.Logger,
	}
	for _, format := range formats {
		row := row{format: format}
		for _, path := range o.Templates[format.name] {
			f, err := userfile.Take(path, ofKeptFiles(format, &o.Trial), &all.mistakesOfSites, o.Logger)
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

// Check returns the paths of the kept files, those of the sites' own files, and the mistakes.
func (all *Formats) Check() (kept, ofSites []string, mistakes error) {
	for _, row := range all.rows {
		for _, f := range row.files {
			path, isOfSite, mistake := f.Check()
			if isOfSite {
				ofSites = append(ofSites, path)
			} else {
				kept = append(kept, path)
			}
			mistakes = errors.Join(mistakes, mistake)
		}
	}
	return kept, ofSites, mistakes
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

// Represent renders a page in the representation that an Accept field asks for: the first file of the row that can be
// sent, or the built-in page. The caller frees it.
func (all *Formats) Represent(pg *page.Page, placeholders *caddy.Replacer, field string) Representation {
	format := all.offered[all.offers.Choose(field)]
	r := Representation{
		Format:      format.name,
		contentType: format.contentType,
		isForStyle:  accept.Names(field, "text/css") && !accept.Names(field, "text/html"),
	}
	for _, f := range all.filesFor(format) {
		var ok bool
		if r.content, ok = all.contentOf(f, format, pg, placeholders); ok {
			return r
		}
	}
	b := newBuffer()
	format.write(b, pg)
	r.content = buffered(b)
	r.policy = format.policy
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

// contentOf returns the content of a page that one of the user's files is, or is not ok if the file cannot be sent.
func (all *Formats) contentOf(f *userfile.File, format *format, pg *page.Page, placeholders *caddy.Replacer) (
	c content, ok bool,
) {
	opened, ok := f.Open(placeholders, all.logger)
	if !ok {
		return content{}, false
	}
	var err error
	if kept, isKept := opened.Page.(*userPage); isKept {
		c, err = kept.content(format, pg, placeholders)
	} else {
		c, err = contentOfFile(opened.File, opened.Size)
	}
	if err != nil {
		f.LogMistake(opened.Path, err, all.logger)
	}
	return c, err == nil
}
