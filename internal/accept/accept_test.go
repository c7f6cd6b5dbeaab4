package accept

import (
	"strings"
	"testing"
)

// offers are those of a page, by name.
var offers = map[string]Offer{
	"text":     {Types: []string{"text/plain"}},
	"html":     {Types: []string{"text/html", "application/xhtml+xml"}},
	"markdown": {Types: []string{"text/markdown", "text/x-markdown"}},
	"json":     {Types: []string{"application/json", "text/json"}, Suffix: "+json"},
	"problem":  {Types: []string{"application/problem+json"}},
	"xml":      {Types: []string{"application/xml", "text/xml"}, Suffix: "+xml"},
}

const all = "text html markdown json problem xml"

func offersOf(names string) (o Offers) {
	for _, name := range strings.Fields(names) {
		o = append(o, offers[name])
	}
	return o
}

const (
	chrome = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7"
	java   = "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2"
)

// choices are Accept fields, and the offer that each one gets.
var choices = map[string]struct{ offers, accept, want string }{
	"Chrome":                {all, chrome, "html"},
	"Chrome, without HTML":  {"json xml", chrome, "xml"},
	"Java":                  {all, java, "html"},
	"Java, without HTML":    {"json text", java, "json"},
	"curl":                  {all, "*/*", "text"},
	"Go":                    {all, "", "text"},
	"Go, HTML first":        {"html json", "", "html"},
	"axios":                 {all, "application/json, text/plain, */*", "json"},
	"Claude Code":           {all, "text/markdown, text/html, */*", "markdown"},
	"Cursor":                {all, "text/markdown, text/plain;q=0.9, */*;q=0.8", "markdown"},
	"OpenCode":              {all, "text/markdown;q=1.0, text/x-markdown;q=0.9, text/plain;q=0.8, text/html;q=0.7, */*;q=0.1", "markdown"},
	"an agent, no Markdown": {"html text", "text/markdown, text/html;q=0.9, */*;q=0.1", "html"},
	"capital letters":       {all, "TEXT/HTML;Q=0.5, Application/Problem+JSON, IMAGE/*", "problem"},

	// quality, then specificity, then what the client names first, then the order of the offers
	"quality":                    {all, "text/*;q=0.3, text/html;q=0.7", "html"},
	"quality in thousandths":     {all, "text/plain;q=0.998, application/xml;q=0.999", "xml"},
	"quality of one":             {all, "text/plain;q=0.9, application/xml;q=1.000", "xml"},
	"quality of more digits":     {all, "text/plain;q=0.33333333, application/xml;q=0.6666666666666666", "xml"},
	"quality without a zero":     {all, "text/html;q=.1, application/xml;q=.2", "xml"},
	"specificity":                {all, "*/*, application/*, text/html", "html"},
	"a subtype wildcard":         {"json text", "*/*, TEXT/*", "text"},
	"a low specific range":       {all, "text/plain;q=0.1, */*;q=0.5", "html"},
	"named first":                {all, "application/xml, text/plain", "xml"},
	"after the weight":           {all, "application/json;q=0.2;x=y, text/html;q=0.1", "json"},
	"a parameter, or anything":   {all, "application/json;odata=verbose, */*;q=0.1", "text"},
	"a charset":                  {all, `text/html;charset="UTF-8", text/plain;q=0.3`, "html"},
	"separators in quotes":       {all, `text/html;a="b,text/plain";q=0.3, application/xml;q=0.2`, "xml"},
	"quotes in quotes":           {all, `text/html;a="\",text/plain,\"";q=0.3, application/xml;q=0.2`, "xml"},
	"a backslash, no quotes":     {all, `text/html;a=\";q=0.3, application/xml;q=0.2`, "html"},
	"an alias":                   {all, "application/xhtml+xml;q=0.001", "html"},
	"an alias, and its type":     {all, "text/html;q=0.5, application/xhtml+xml, text/plain;q=0.8", "html"},
	"its type, and an alias":     {all, "application/xml, text/xml;q=0.1, text/plain;q=0.8", "xml"},
	"an alias that is not named": {all, "application/*;q=0.9, text/html;q=0.5", "json"},

	// q=0
	"not text":                   {all, "text/plain;q=0, */*", "html"},
	"not text of any kind":       {all, "text/*;q=0, */*;q=0.001", "json"},
	"refused, and accepted":      {"html json", "text/html, text/html;q=0, application/json;q=0.1", "json"},
	"refused, but not its alias": {all, "text/html;q=0.000, application/xhtml+xml, application/json;q=0.1", "json"},
	"its alias is refused":       {"html text", "application/xhtml+xml;q=0, */*", "html"},
	"nothing at all":             {all, "*/*;q=0", "text"},

	// what is not on offer
	"images":                      {all, "image/png, image/*;q=0.5", "text"},
	"HTML from JSON":              {"json xml", "text/html", "json"},
	"problem details from JSON":   {"html json", "application/problem+json", "json"},
	"+json":                       {all, "application/vnd.api+JSON", "json"},
	"+xml":                        {all, "image/png, application/atom+xml;q=0.1", "xml"},
	"+json, or a type":            {all, "application/vnd.api+json, text/html;q=0.1", "html"},
	"+json, but no JSON":          {all, "application/vnd.api+json, application/json;q=0", "text"},
	"a type but for a parameter":  {all, "application/json;odata=verbose", "json"},
	"the better of two near ones": {all, "text/html;level=1;q=0.2, application/vnd.api+json;q=0.3", "json"},

	// a malformed member is skipped, the rest counts
	"blank":             {all, " , ,\t", "text"},
	"no slash":          {all, "json, application/xml;q=0.1", "xml"},
	"no weight":         {all, "text/html;q=, text/html;q=x, text/html;q=., text/html;q=NaN, text/html;q=0.9e0, text/html;q=-1, text/html;q=1.001, text/html;q=2.5, application/xml;q=0.1", "xml"},
	"not a weight":      {all, "text/html;q=, text/html;q=x, text/html;q=-1, text/html;q=0.9e0, text/html;q=0.2, application/xml;q=0.1", "html"},
	"empty parameter":   {all, "text/html;;q=0.2, application/xml;q=0.1", "html"},
	"better near name":  {all, "text/html;level=1, text/html;level=2;q=0.1, application/xml;version=2;q=0.5", "html"},
	"nearest name":      {all, "application/problem+json;version=2", "problem"},
	"white space":       {all, "text / html, application/xml\t; \tq=0.1", "xml"},
	"quote without end": {all, `application/xml;q=0.1, text/html;a="b, text/plain`, "xml"},
	"garbage":           {all, "\x80\xff,;;;,/,=,\"\\", "text"},
	"100 KB of junk":    {all, "application/json," + strings.Repeat(`a/b;c="d,e\"f",;=/,"`, 100<<10/20), "json"},
}

func TestChoose(t *testing.T) {
	for name, tt := range choices {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := strings.Fields(tt.offers)[offersOf(tt.offers).Choose(tt.accept)]; got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// FuzzChoose checks that an offer is chosen whatever a client sends, and that neither case nor malformed members
// change it.
func FuzzChoose(f *testing.F) {
	for _, tt := range choices {
		f.Add(tt.accept)
	}
	o := offersOf(all)
	f.Fuzz(func(t *testing.T, accept string) {
		chosen := o.Choose(accept)
		if chosen < 0 || chosen >= len(o) {
			t.Fatalf("%q: got the offer %d", accept, chosen)
		}
		upper := []byte(accept)
		for i, c := range upper {
			if 'a' <= c && c <= 'z' {
				upper[i] -= 'a' - 'A'
			}
		}
		for _, same := range []string{string(upper), ";,*/html, text/plain;q=2," + accept, accept + ",;"} {
			if got := o.Choose(same); got != chosen {
				t.Errorf("%q: got the offer %d, but %d for %q", same, got, chosen, accept)
			}
		}
	})
}
