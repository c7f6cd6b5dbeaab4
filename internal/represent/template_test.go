package represent

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-notfound/notfound/internal/userfile"
)

const braces = `; plain braces are {{"{{"}}, and in a script { {; a file without {{ is sent as it is`

// TestTemplateIsRefused covers mistakes in the source.
func TestTemplateIsRefused(t *testing.T) {
	const (
		noField  = "can't evaluate field Uri in type *represent.data" + braces
		inString = "not valid JSON: invalid character 'N' looking for beginning of value; " +
			`a field belongs inside quotes, as in "{{.Message}}"`
		isShort  = `"host" is a shorthand, which only a Caddyfile has; write {{.Placeholder "full.host"}}`
		onSample = "trying it on a sample page: template: 404:1:2: executing"
		hostile  = "trying it on a sample page with quotes and brackets: "
		notUTF8  = "the page is not in UTF-8"
		blank    = "the page is blank"
		noPlace  = "where it is not allowed"
	)
	for format, mistakes := range map[string]map[string]string{
		"html": {
			"{{.Uri}}":                noField,
			"{{index .URI 99999}}":    onSample,
			"<p>{{.URI":               "template: 404:1: unclosed action" + braces,
			"<p title='{{.URI}}>":     "ends in a non-text context",
			`{{.Placeholder "host"}}`: isShort,
			"{{with 1}}{{$.Placeholder `{host}`}}{{end}}": `write {{.Placeholder "full.host"}}`,
			`{{printf "\xff"}}`:                           notUTF8,
			"\xff":                                        notUTF8,
			"\ufeff\r\n":                                  blank,
			`{{define "page"}}<p>{{.URI}}{{end}}`:         blank,
		},
		"json": {
			`{"message": {{.Message}}}`:                           inString,
			`{"heading": "none"} {}`:                              "after top-level value",
			`{"port": {{or (.Placeholder "http.vars.port") 80}}}`: hostile + "the page is not valid JSON",
		},
		"problem": {`{"detail": {{.Message}}}`: inString},
		"xml": {
			"<a>{{.Message}}":             "not well-formed XML: ",
			"<a b={{.Message}}/>":         "; a field belongs inside an element, or inside the quotes of an attribute",
			"<a/><b/>":                    "the page has 2 root elements; XML has one",
			"<!-- nothing -->":            "the page has 0 root elements",
			"text<a/>":                    `the page has "text" where it is not allowed`,
			"<a/>\u00A0":                  noPlace,
			"<a/>&#32;":                   noPlace,
			"\n<?xml version='1.0'?><a/>": noPlace,
			"<!DOCTYPE a><a/>":            noPlace,
			"<a><!-- {{.Footer}} --></a>": hostile + "the page is not well-formed XML",
		},
		"text": {"\t\n": blank},
	} {
		for source, want := range mistakes {
			err := parseErr(t, format, source)
			wantError(t, format+": "+source, err, want)
		}
	}
}

// parseErr parses a template as for the first time.
func parseErr(t *testing.T, format, source string) error {
	t.Helper()
	f, err := formatOf(format)
	if err != nil {
		t.Fatal(err)
	}
	_, err = parse(f, "404", []byte(source), &trial)
	return err
}

// TestFileWithoutActionsIsThePage has files as people and frameworks write them, with what html/template would change
// or refuse, and what is no placeholder.
func TestFileWithoutActionsIsThePage(t *testing.T) {
	for format, pages := range map[string][]string{
		"html": {
			"\ufeff<!DOCTYPE html>\r\n<title>Nothing</title>\r\n<p>Nothing\r\n",
			"<div>Not<!-- --> found<!--$--><!--/$--><!--[--><!--]--></div>", // React, Vue
			"<script>\nwhile(n-->0)s+=n;\nif(a)/\"/.test(b)\n/*! licence */\n//# sourceMappingURL=a.js\n</script>",
			"<a href=/s?q=1 title=it's>a <b</a>",
			"<p>{http.request.uuid} { { message } } {% block title %}{% endblock %}<script>`${x}}}`</script>",
			"<style>a{b:c}}</style><!-- not closed <p title='",
			strings.Repeat("x", userfile.MaxSize),
		},
		"markdown": {"# Nothing <!-- {.URI} -->"},
		"text":     {"Nothing\r\n\x00"},
		"json":     {"[{ \"a\": {\"b\":{}}}\n]"},
		"problem":  {`{"title": "{http.request.uuid}"}`},
		"xml":      {"<?xml version='1.0'?>\n<!-- ours --><a>{}</a>"},
	} {
		for _, want := range pages {
			formats := newFormats(t, Options{Templates: rows{format: {tempFile(t, want)}}})
			if got := body(t, formats, anyPage, placeholders(nil), format); got != want {
				t.Errorf("%s: got\n%.200s\nwant\n%.200s", format, got, want)
			}
		}
	}
}

// TestTemplateIsTried loads templates that are unusual and right.
func TestTemplateIsTried(t *testing.T) {
	const (
		slices   = "{{slice .URI 0 7}}{{slice .Message 0 11}}{{slice .Footer 0 7}}{{slice .Heading 0 14}}"
		optional = `"{{slice .Message 0 20}}"{{with .Placeholder "http.auth.user.id"}},"user":"{{.}}"{{end}}`
	)
	for format, source := range map[string]string{
		"html": slices + "{{if ne .Status 404}}{{index .URI 99999}}{{end}}" +
			`{{.Placeholder "map"}}{{.Placeholder "system.os"}}`,
		"markdown": "{{slice .Message 0 20}} {{slice .URI 0 20}}",
		"json":     `{"message":` + optional + `}`,
		"problem":  `{"detail":` + optional + `, "braces": "${err.message} {header.title}"}`,
		"xml": "<?xml version='1.0'?>\n<!-- ours --><?x y?>" +
			"<a b='{{.Message}}' c=\"{{.URI}}\">{{.Footer}}<![CDATA[{{.URI}}]]></a>\n<!-- end -->",
	} {
		if err := parseErr(t, format, source); err != nil {
			t.Errorf("%s: %v", format, err)
		}
	}
}

// TestTextsAreEscapedForTheFormat covers what a format escapes. FuzzTemplate shows that parsers read the text again.
func TestTextsAreEscapedForTheFormat(t *testing.T) {
	const (
		text       = `<b>"'&amp;'</b> \ ü€😀 ]]> *_[x](y)_* {a} b|c www.a.test WWW.a.test`
		inMarkup   = `&lt;b&gt;&#34;&#39;&amp;amp;&#39;&lt;/b&gt; \ ü€😀 ]]&gt; *_[x](y)_* {a} b|c www.a.test WWW.a.test`
		inJSON     = `<b>\"'&amp;'</b> \\ ü€😀 ]]> *_[x](y)_* {a} b|c www.a.test WWW.a.test`
		inMarkdown = `\<b\>"'\&amp;'\</b\> \\ ü€😀 \]\]\> \*\_\[x\](y)\_\* \{a\} b\|c www\.a.test WWW\.a.test`
	)
	formats := newFormats(t, Options{})
	pg := pageWith(text, "https://a.test/")
	for format, want := range map[string]string{
		"text":     text,
		"html":     inMarkup,
		"markdown": inMarkdown,
		"json":     inJSON,
		"problem":  inJSON,
		"xml":      inMarkup,
	} {
		got := body(t, formats, pg, nil, format)
		if !strings.Contains(got, want) {
			t.Errorf("%s: got\n%s\nwant it to have\n%s", format, got, want)
		}
	}
}

// TestPlaceholderOfATemplate is about HTML, where a value may have line breaks. FuzzTemplate covers the other formats.
func TestPlaceholderOfATemplate(t *testing.T) {
	file := tempFile(t, `{{with .URI}}{{$.Placeholder "{x}"}}{{end}}|{{.Placeholder "unknown"}}|`+
		"{{\"{{\"}} `${ {x:1}}`")
	formats := newFormats(t, Options{Templates: rows{"html": {file}}})
	repl := placeholders(values{"x": "<\n\xff{secret}", "secret": "a-secret"})
	wantBody(t, formats, anyPage, repl, "html", "&lt;\n\uFFFD{secret}||{{ `${ {x:1}}`")
}

// TestLinkInARefreshIsFiltered has a template that leads to an address of another scheme than those of the web.
func TestLinkInARefreshIsFiltered(t *testing.T) {
	const before = `<meta http-equiv="refresh" content="0; url=`
	file := tempFile(t, before+`{{.Placeholder "x"}}">`)
	formats := newFormats(t, Options{Templates: rows{"html": {file}}})
	wantBody(t, formats, anyPage, placeholders(values{"x": "x:1"}), "html", before+`#ZgotmplZ">`)
}

// TestExportedTemplateIsTheBuiltInPage renders the built-in pages as templates. html/template escapes more in HTML.
func TestExportedTemplateIsTheBuiltInPage(t *testing.T) {
	templates := make(rows)
	for _, format := range FormatNames() {
		source, err := BuiltIn(format)
		if err != nil {
			t.Fatal(err)
		}
		templates[format] = []string{tempFile(t, source)}
	}
	exported := newFormats(t, Options{Templates: templates})
	builtIn := newFormats(t, Options{})
	for _, uri := range []string{"https://a.test/?a&b", "javascript:&a;"} {
		pg := pageWith("<\"a\\ *'&>", uri)
		pg.Footer = "1. x"
		for _, format := range FormatNames() {
			want := body(t, builtIn, pg, nil, format)
			wantBody(t, exported, pg, placeholders(nil), format, want)
		}
	}
}

// TestBrokenPageIsReplaced has a client make templates fail, or make pages that are not valid in their format. The
// built-in page is sent, and the error is logged at most once a minute.
func TestBrokenPageIsReplaced(t *testing.T) {
	for _, tt := range []struct {
		format string
		source string
		value  string
		err    string
	}{
		{
			format: "html",
			source: `{{slice (.Placeholder "x" | printf "%-9s") 0 9}}.`,
			value:  "ääääää",
			err:    "the page is not in UTF-8",
		},
		{
			format: "markdown",
			source: `{{if eq (.Placeholder "x") "yes"}}{{index .URI 99999}}{{end}}a`,
			value:  "yes",
			err:    "index out of range",
		},
		{
			format: "json",
			source: `{"x":"{{.Placeholder "x" | printf "%.3s"}}"}`,
			value:  `ab"`,
			err:    "the page is not valid JSON",
		},
		{
			format: "xml",
			source: `<a>{{.Placeholder "x" | printf "%.10s"}}{{.URI | printf "%.0s"}}</a>`,
			value:  "aaaaaaa<",
			err:    "the page is not well-formed XML",
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			file := tempFile(t, tt.source)
			formats, logs := observed(t, Options{Templates: rows{tt.format: {file}}})
			broken := placeholders(values{"x": tt.value})
			builtIn := body(t, newFormats(t, Options{}), anyPage, nil, tt.format)
			for range 3 {
				for range 3 {
					wantBody(t, formats, anyPage, broken, tt.format, builtIn)
				}
				wantMistake(t, logs, tt.err)
				time.Sleep(time.Minute)
			}
			if body(t, formats, anyPage, placeholders(nil), tt.format) == builtIn {
				t.Errorf("%s: the harmless page is the built-in one", tt.source)
			}
		})
	}
}
