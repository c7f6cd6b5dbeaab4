package notfound

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"go.uber.org/zap"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// templateData is what a template sees of the page.
type templateData struct {
	Heading string
	URI     string
	Status  int
	Message string
	Footer  string
}

// render fills in the page's body as format f, and returns the Content-Security-Policy that this needs.
func (h *Handler) render(p *page, f *format, repl *caddy.Replacer) (policy string) {
	if f.name == "html" {
		if h.template != nil {
			err := h.template.render(p, repl)
			if err == nil {
				return ""
			}
			h.logger.Error("rendering the template; sending the built-in page instead",
				zap.String("template", h.Template),
				zap.Error(err))
		}
		policy = builtinPolicy
	}
	p.body = f.append(p.body[:0], p)
	return policy
}

// pageTemplate is a template of the user's, parsed.
//
// The function that gives placeholders is bound to a template, but differs from request to request. So
// each rendering has an instance for itself: a copy of the template, with a function of its own.
type pageTemplate struct{ instances sync.Pool }

type templateInstance struct {
	template *template.Template
	repl     *caddy.Replacer
}

func (i *templateInstance) placeholder(name string) string {
	value, _ := i.repl.GetString(name)
	return value
}

// loadTemplate reads and parses a template, and tries it on a sample page.
func loadTemplate(file string) (*pageTemplate, error) {
	source, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the file: %w", err)
	}
	stub := template.FuncMap{"placeholder": new(templateInstance).placeholder}
	master, err := template.New(filepath.Base(file)).Funcs(stub).Parse(string(source))
	if err != nil {
		return nil, fmt.Errorf("parsing %s: %w", file, err)
	}

	t := &pageTemplate{instances: sync.Pool{New: func() any {
		i := new(templateInstance)
		// Clone fails only for a template that was executed, which the master never is
		i.template = template.Must(master.Clone()).Funcs(template.FuncMap{"placeholder": i.placeholder})
		return i
	}}}

	p, repl := samplePage()
	if err := t.render(p, repl); err != nil {
		return nil, fmt.Errorf("trying %s on a sample page: %w", file, err)
	}
	if len(bytes.TrimSpace(p.body)) == 0 {
		return nil, fmt.Errorf("%s renders a blank page; write the page at the top level of the file, outside of define", file)
	}
	return t, nil
}

// samplePage returns a page for a request that has everything a template may ask for, placeholders included.
func samplePage() (*page, *caddy.Replacer) {
	const uri = "https://www.example.com/docs/apis?x=1"
	r, err := http.NewRequest(http.MethodGet, uri, http.NoBody)
	if err != nil {
		panic(err)
	}
	r.RequestURI, r.RemoteAddr = r.URL.RequestURI(), "192.0.2.1:1234"
	repl := caddy.NewReplacer()
	caddyhttp.PrepareRequest(r, repl, nil, nil)
	return &page{
		uri:     []byte(uri),
		message: []byte("No endpoint GET /missing.html."),
		footer:  defaultFooter(),
	}, repl
}

func (t *pageTemplate) execute(w io.Writer, data templateData, repl *caddy.Replacer) error {
	i := t.instances.Get().(*templateInstance)
	defer t.instances.Put(i)
	i.repl = repl
	defer func() { i.repl = nil }()
	return i.template.Execute(w, data)
}

func (t *pageTemplate) render(p *page, repl *caddy.Replacer) error {
	buf := bytes.NewBuffer(p.body[:0])
	err := t.execute(buf, templateData{
		Heading: heading + string(p.message),
		URI:     string(p.uri),
		Status:  404,
		Message: string(p.message),
		Footer:  p.footer,
	}, repl)
	p.body = buf.Bytes()
	return err
}

// The built-in page is a template as a user would write it, but one that is executed only here: its
// result is kept in pieces, between which each request puts its own fields.
var (
	//go:embed page.html
	builtinSource string

	builtinPieces = splitBuiltin()
	builtinPolicy = "default-src 'none'; style-src " + styleHash(builtinSource) + "; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

// piece is a part of the built-in page: a literal, and the field behind it.
type piece struct {
	literal string
	field   string
}

func splitBuiltin() []piece {
	const mark = "mark-of-"
	var b strings.Builder
	t := template.Must(template.New("page.html").Parse(builtinSource))
	if err := t.Execute(&b, templateData{mark + "Heading", mark + "URI", 404, mark + "Message", mark + "Footer"}); err != nil {
		panic(err)
	}

	var pieces []piece
	page, done := b.String(), 0
	marks := regexp.MustCompile(mark + "(Heading|URI|Message|Footer)")
	for _, m := range marks.FindAllStringSubmatchIndex(page, -1) {
		pieces = append(pieces, piece{page[done:m[0]], page[m[2]:m[3]]})
		done = m[1]
	}
	return append(pieces, piece{literal: page[done:]})
}

func appendHTML(b []byte, p *page) []byte {
	for _, piece := range builtinPieces {
		b = append(b, piece.literal...)
		switch piece.field {
		case "Heading":
			b = append(b, heading...)
			b = appendEscaped(b, p.message)
		case "URI":
			b = appendEscaped(b, p.uri)
		case "Message":
			b = appendEscaped(b, p.message)
		case "Footer":
			b = appendEscaped(b, p.footer)
		}
	}
	return b
}

// styleHash returns the source expression that allows the style element of a page (CSP Level 3).
func styleHash(page string) string {
	_, style, _ := strings.Cut(page, "<style>")
	style, _, _ = strings.Cut(style, "</style>")
	sum := sha256.Sum256([]byte(style))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
