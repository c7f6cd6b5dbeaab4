package notfound

import (
	"strings"
	"testing"
)

func TestNegotiation(t *testing.T) {
	const (
		chrome     = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7"
		firefox    = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
		safari     = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
		image      = "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"
		java       = "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2"
		axios      = "application/json, text/plain, */*"
		allFormats = "text html markdown json problem xml"
	)
	junk := strings.Repeat(`a/b;c="d,e\"f",;=/,"`, 100<<10/20)

	for _, tt := range []struct {
		name    string
		formats string
		accept  []string
		want    string
	}{
		{"none", allFormats, nil, "text"},
		{"none, HTML first", "html json", nil, "html"},
		{"empty", allFormats, []string{""}, "text"},
		{"blank", allFormats, []string{" , ,\t"}, "text"},
		{"anything", allFormats, []string{"*/*"}, "text"},
		{"anything, HTML first", "html json", []string{"*/*"}, "html"},
		{"Chrome", allFormats, []string{chrome}, "html"},
		{"Firefox", allFormats, []string{firefox}, "html"},
		{"Safari", allFormats, []string{safari}, "html"},
		{"Chrome without HTML", "json xml", []string{chrome}, "xml"},
		{"image tag", allFormats, []string{image}, "text"},
		{"Java", allFormats, []string{java}, "html"},
		{"Java without HTML", "json text", []string{java}, "json"},
		{"axios", allFormats, []string{axios}, "json"},
		{"axios, text first all the same", "text json", []string{axios}, "json"},
		{"JSON", allFormats, []string{"application/json"}, "json"},
		{"JSON by its old name", allFormats, []string{"text/json"}, "json"},
		{"problem", allFormats, []string{"application/problem+json"}, "problem"},
		{"problem or JSON", allFormats, []string{"application/problem+json, application/json"}, "problem"},
		{"XML", allFormats, []string{"application/xml"}, "xml"},
		{"XML by its other name", allFormats, []string{"text/xml"}, "xml"},
		{"XHTML", allFormats, []string{"application/xhtml+xml"}, "html"},
		{"odd case", allFormats, []string{"Application/JSON;Q=0.5, TEXT/*;q=0.4"}, "json"},
		{"two lines", allFormats, []string{"text/plain;q=0.1", "application/json"}, "json"},

		// quality, then specificity, then what the client names first, then the order of formats
		{"quality", allFormats, []string{"text/*;q=0.3, text/html;q=0.7"}, "html"},
		{"quality in thousandths", allFormats, []string{"text/plain;q=0.998, application/xml;q=0.999"}, "xml"},
		{"specificity", allFormats, []string{"*/*, application/*, text/html"}, "html"},
		{"a subtype wildcard", allFormats, []string{"*/*, application/*"}, "json"},
		{"a low specific range", allFormats, []string{"text/plain;q=0.1, */*;q=0.5"}, "html"},
		{"named first", allFormats, []string{"application/xml, text/plain"}, "xml"},
		{"named first in lines", allFormats, []string{"application/xml", "text/plain"}, "xml"},
		{"named twice", allFormats, []string{"text/plain;q=0.9, text/plain;q=0.1, text/html;q=0.5"}, "text"},
		{"with a parameter", allFormats, []string{"text/html;level=1;q=0.9, text/html;q=0.2, text/plain;q=0.5"}, "text"},
		{"with a parameter, or anything", allFormats, []string{"application/json;odata=verbose, */*;q=0.1"}, "text"},
		{"with a parameter, or another", allFormats, []string{"text/html;level=1, text/plain;q=0.5"}, "text"},
		{"with a quoted parameter, or another", allFormats, []string{`image/png, application/problem+json;q=0.7, text/html;level="1"`}, "problem"},
		{"with a charset", allFormats, []string{`text/html;charset=utf-8, text/plain;charset="UTF-8";q=0.3`}, "html"},
		{"after the weight", allFormats, []string{"application/json;q=0.2;x=y, text/html;q=0.1"}, "json"},

		// an alias
		{"an alias counts only when named", allFormats, []string{"application/*;q=0.9, text/html;q=0.5"}, "json"},
		{"an alias before what is named", allFormats, []string{"application/xhtml+xml, text/plain"}, "html"},
		{"an alias after what is named", allFormats, []string{"text/plain, application/xhtml+xml"}, "text"},
		{"an alias and its type", allFormats, []string{"text/html;q=0.5, application/xhtml+xml, text/plain;q=0.8"}, "text"},
		{"an alias and its type, in the other order", allFormats, []string{"application/xhtml+xml, text/html;q=0.5, text/plain;q=0.8"}, "text"},
		{"an alias and a wildcard", allFormats, []string{"*/*;q=0.5, text/xml"}, "xml"},
		{"an alias with a parameter", allFormats, []string{"application/xhtml+xml;x=y, */*;q=0.5"}, "text"},
		{"an alias that is ruled out", "html text", []string{"application/xhtml+xml;q=0, */*"}, "html"},

		// Markdown
		{"Markdown", allFormats, []string{"text/markdown"}, "markdown"},
		{"Markdown by its old name", allFormats, []string{"text/x-markdown, text/html;q=0.9"}, "markdown"},
		{"Markdown by a suffix", allFormats, []string{"text/vnd.daringfireball.x-markdown, text/html;q=0.9"}, "html"},
		{"Markdown without it", "html text", []string{"text/markdown, text/html;q=0.9, */*;q=0.1"}, "html"},

		// q=0
		{"not HTML", allFormats, []string{"text/html;q=0, */*"}, "text"},
		{"not text", allFormats, []string{"text/plain;q=0, */*"}, "html"},
		{"not text at all", allFormats, []string{"text/*;q=0, */*;q=0.001"}, "json"},
		{"not HTML but XHTML or anything", allFormats, []string{"text/html;q=0, application/xhtml+xml, */*;q=0.1"}, "text"},
		{"not HTML but XHTML, which is XML", allFormats, []string{"text/html;q=0, application/xhtml+xml"}, "xml"},
		{"not HTML but XHTML, without XML", "text html", []string{"text/html;q=0, application/xhtml+xml"}, "html"},
		{"not HTML but XHTML or JSON", allFormats, []string{"text/html;q=0.000, application/xhtml+xml, application/json;q=0.1"}, "json"},
		{"nothing else than XHTML", allFormats, []string{"application/xhtml+xml, */*;q=0"}, "html"},
		{"nothing at all", allFormats, []string{"*/*;q=0"}, "text"},

		// what is refused is never sent while anything else is acceptable or nearly named
		{"refused, and covered by a wildcard", "xml html", []string{"text/*, text/html;q=0"}, "xml"},
		{"refused, but for a parameter", "json html", []string{"text/html;level=1, text/html;q=0"}, "json"},
		{"refused by a wildcard, but for a parameter", "json html", []string{"text/html;level=1, text/*;q=0"}, "json"},
		{"refused, with another that is nearly named", "html json", []string{"text/html;level=1, text/html;q=0, a/b+json;q=0.1"}, "json"},
		{"refused with a suffix, with another that is nearly named", "text json xml", []string{"a/b+json, application/json;q=0, a/b+xml;q=0.1"}, "xml"},
		{"refused but by its alias, with another that is nearly named", "html json", []string{"text/html;q=0, application/xhtml+xml, a/b+json;q=0.1"}, "json"},
		{"refused but by its alias with a parameter", "json html", []string{"text/html;q=0, application/xhtml+xml;x=y"}, "json"},
		{"refused by a wildcard but by its alias", "html json", []string{"application/xhtml+xml, text/*;q=0, application/json;q=0.1"}, "json"},
		{"refused with its charset", "html json", []string{"text/html, text/html;charset=utf-8;q=0, application/json;q=0.1"}, "json"},
		{"refused but with its charset", "html json", []string{"text/html;q=0, text/html;charset=utf-8;q=0.2, application/json;q=0.1"}, "html"},
		{"refused and accepted", "html json", []string{"text/html, text/html;q=0, application/json;q=0.1"}, "json"},
		{"a parameter refused", "html json", []string{"text/html;level=1;q=0, text/html;q=0.2, application/json;q=0.1"}, "html"},
		{"refused on another line", "html json", []string{"text/*", "text/html;q=0", "application/json;q=0.1"}, "json"},
		{"refused, and so is the first", "html json text", []string{"text/html;q=0, text/plain;q=0.1"}, "text"},

		// what is not on offer
		{"images only", allFormats, []string{"image/png, image/*;q=0.5"}, "text"},
		{"HTML from JSON", "json xml", []string{"text/html"}, "json"},
		{"a structured suffix", allFormats, []string{"application/vnd.api+json"}, "json"},
		{"another structured suffix", allFormats, []string{"image/png, application/atom+xml;q=0.1"}, "xml"},
		{"the better of two suffixes", allFormats, []string{"a/b+json;q=0.1, a/b+xml;q=0.2"}, "xml"},
		{"a suffix and a type", allFormats, []string{"application/vnd.api+json, text/html;q=0.1"}, "html"},
		{"a suffix of what is not on offer", "html text", []string{"application/vnd.api+json"}, "html"},
		{"a suffix of what is ruled out", allFormats, []string{"application/vnd.api+json, application/json;q=0"}, "text"},
		{"a suffix of what is ruled out, or another", allFormats, []string{"application/vnd.api+json, application/json;q=0, text/html;q=0.1"}, "html"},
		{"a type but for its parameter", allFormats, []string{"application/json;odata=verbose"}, "json"},
		{"a type with a suffix but for its parameter", allFormats, []string{"application/problem+json;version=2"}, "problem"},
		{"an alias but for its parameter", allFormats, []string{"image/png, text/xml;version=2"}, "xml"},
		{"a wildcard but for its parameter", "json html text", []string{"text/*;level=1"}, "html"},
		{"the better of two that are nearly named", allFormats, []string{"text/html;level=1;q=0.2, application/vnd.api+json;q=0.3"}, "json"},
		{"the first of two that are nearly named", allFormats, []string{"application/xml;version=2, text/html;level=1"}, "xml"},
		{"nearly named, but not accepted", "text json", []string{"application/json;odata=verbose;q=0"}, "text"},
		{"problem from JSON", "html json", []string{"application/problem+json"}, "json"},

		// a malformed member is skipped, the rest counts
		{"no slash", allFormats, []string{"json, application/xml;q=0.1"}, "xml"},
		{"no subtype", allFormats, []string{"text/, application/xml;q=0.1"}, "xml"},
		{"half a wildcard", allFormats, []string{"*/html, application/xml;q=0.1"}, "xml"},
		{"weight too large", allFormats, []string{"text/html;q=1.001, text/html;q=2, application/xml;q=0.1"}, "xml"},
		{"weight with four digits", allFormats, []string{"text/html;q=0.1234, application/xml;q=0.1"}, "xml"},
		{"weight without digits", allFormats, []string{"text/html;q=, text/html;q=., text/html;q=x, application/xml;q=0.1"}, "xml"},
		{"negative weight", allFormats, []string{"text/html;q=-1, application/xml;q=0.1"}, "xml"},
		{"weight without its zero", allFormats, []string{"text/html;q=.1, application/xml;q=.2"}, "xml"},
		{"parameter without value", allFormats, []string{"text/html;level, application/xml;q=0.1"}, "xml"},
		{"empty parameters", allFormats, []string{"text/html;;q=0.1; ;, application/xml;q=0.2"}, "xml"},
		{"separators in quotes", allFormats, []string{`text/html;a="b,text/plain";q=0.3, application/xml;q=0.2`}, "xml"},
		{"escaped quotes", allFormats, []string{`text/html;a="\",text/plain,";q=0.3, application/xml;q=0.2`}, "xml"},
		{"quote without end", allFormats, []string{`application/xml;q=0.1, text/html;a="b, text/plain`}, "xml"},
		{"spaces", allFormats, []string{"text / html, application/xml\t; \tq=0.1"}, "xml"},
		{"garbage", allFormats, []string{"\x80\xff,;;;,/,=,\"\\"}, "text"},
		{"what no format is, with a charset", allFormats, []string{"image/png;charset=utf-8, a/b+xml"}, "xml"},
		{"100 KB of junk", allFormats, []string{junk}, "text"},
		{"100 KB of junk and JSON", allFormats, []string{"application/json", junk}, "json"},
		{"100 KB of commas and JSON", allFormats, []string{strings.Repeat(",", 100<<10) + "application/json"}, "json"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			offered := formatsByName(t, strings.Fields(tt.formats)...)
			if got := negotiate(offered, strings.Join(tt.accept, ",")).name; got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// acceptOfClients is what clients send as Accept, and the format that each of them gets.
var acceptOfClients = []struct{ name, accept, format string }{
	{"Chrome", "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7", "html"},
	{"Firefox", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "html"},
	{"Safari", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "html"},
	{"curl", "*/*", "text"},
	{"Java", "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2", "html"},
	{"Python requests", "*/*", "text"},
	{"Go", "", "text"},
	{"axios", "application/json, text/plain, */*", "json"},
	{"Claude Code", "text/markdown, text/html, */*", "markdown"},
	{"Cursor", "text/markdown, text/plain;q=0.9, */*;q=0.8", "markdown"},
	{"OpenCode", "text/markdown;q=1.0, text/x-markdown;q=0.9, text/plain;q=0.8, text/html;q=0.7, */*;q=0.1", "markdown"},
	{"one in capital letters", "TEXT/HTML;Q=0.5, Application/Problem+JSON, IMAGE/*", "problem"},
}

func TestNegotiationAllocatesNothing(t *testing.T) {
	offered := formatsByName(t)
	for _, client := range acceptOfClients {
		if got := negotiate(offered, client.accept).name; got != client.format {
			t.Errorf("%s: got %s, want %s", client.name, got, client.format)
		}
		if allocs := testing.AllocsPerRun(100, func() { negotiate(offered, client.accept) }); allocs != 0 {
			t.Errorf("%s: %v allocations", client.name, allocs)
		}
	}
}

func formatsByName(t testing.TB, names ...string) []*format {
	t.Helper()
	found, err := parseFormats(names)
	if err != nil {
		t.Fatal(err)
	}
	return found
}
