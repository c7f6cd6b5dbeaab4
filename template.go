package notfound

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// templateData is the page as a template sees it.
type templateData struct {
	Heading string
	URI     string
	Status  int
	Message string
	Footer  string
}

// pageTemplate is a template that the user wrote.
//
// The placeholder function is bound to a template, but its replacer is that of a request. So each rendering has an
// instance to itself: a copy of the template, with a function of its own.
type pageTemplate struct{ instances sync.Pool }

type templateInstance struct {
	template *template.Template
	replacer *caddy.Replacer
}

func (i *templateInstance) placeholder(name string) string {
	value, _ := i.replacer.GetString(name)
	return value
}

// loadTemplate reads and parses a template, and tries it on a sample page.
func loadTemplate(file string) (*pageTemplate, error) {
	source, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the file: %w", err)
	}
	stub := template.FuncMap{"placeholder": new(templateInstance).placeholder}
	parsed, err := template.New(filepath.Base(file)).Funcs(stub).Parse(string(source))
	if err != nil {
		return nil, fmt.Errorf("parsing %s: %w", file, err)
	}

	t := &pageTemplate{instances: sync.Pool{New: func() any {
		i := new(templateInstance)
		// Clone fails only for a template that was executed, and the parsed one never is
		i.template = template.Must(parsed.Clone()).Funcs(template.FuncMap{"placeholder": i.placeholder})
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

// samplePage returns a page, and the replacer of the request that it is for.
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

// render fills in the body of a page.
func (t *pageTemplate) render(p *page, repl *caddy.Replacer) error {
	i := t.instances.Get().(*templateInstance)
	defer t.instances.Put(i)
	i.replacer = repl
	defer func() { i.replacer = nil }()

	buf := bytes.NewBuffer(p.body[:0])
	err := i.template.Execute(buf, templateData{
		Heading: heading + string(p.message),
		URI:     string(p.uri),
		Status:  http.StatusNotFound,
		Message: string(p.message),
		Footer:  p.footer,
	})
	p.body = buf.Bytes()
	return err
}
