package accept

import (
	"os"
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

// choice is an Accept field, and the offer that it gets of some.
type choice struct{ offers, accept, want string }

// choices returns those of testdata/choices.txt, and others.
func choices(t testing.TB) []choice {
	t.Helper()
	content, err := os.ReadFile("testdata/choices.txt")
	if err != nil {
		t.Fatal(err)
	}
	choices := []choice{
		{"json xml", "text/html, application/xml;q=0.9, */*;q=0.8", "xml"},            // Chrome, without HTML
		{"json text", "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2", "json"}, // Java, without HTML
		{all, "", "text"},         // Go
		{"html json", "", "html"}, // Go, HTML first
		{"html text", "text/markdown, text/html;q=0.9, */*;q=0.1", "html"},                      // an agent, no Markdown
		{"json text", "*/*, TEXT/*", "text"},                                                    // a subtype wildcard
		{"html json", "text/html, text/html;q=0, application/json;q=0.1", "json"},               // refused, and accepted
		{"html text", "application/xhtml+xml;q=0, */*", "html"},                                 // its alias is refused
		{"json xml", "text/html", "json"},                                                       // HTML from JSON
		{"html json", "application/problem+json", "json"},                                       // problem details from JSON
		{all, " , ,\t", "text"},                                                                 // blank
		{all, "text / html, application/xml\t; \tq=0.1", "xml"},                                 // white space
		{all, "\x80\xff,;;;,/,=,\"\\", "text"},                                                  // garbage
		{all, "application/json," + strings.Repeat(`a/b;c="d,e\"f",;=/,"`, 100<<10/20), "json"}, // 100 KB of junk
	}
	for line := range strings.Lines(string(content)) {
		want, accept, _ := strings.Cut(strings.TrimSpace(line), " ")
		if want != "" && want != "#" {
			choices = append(choices, choice{offers: all, accept: strings.TrimLeft(accept, " "), want: want})
		}
	}
	return choices
}

func TestChoose(t *testing.T) {
	for _, c := range choices(t) {
		if got := strings.Fields(c.offers)[offersOf(c.offers).Choose(c.accept)]; got != c.want {
			t.Errorf("of %s, %.300q gets %s, want %s", c.offers, c.accept, got, c.want)
		}
	}
}

// FuzzChoose checks that an offer is chosen whatever a client sends, and that neither case nor malformed members
// change it.
func FuzzChoose(f *testing.F) {
	for _, c := range choices(f) {
		f.Add(c.accept)
	}
	o := offersOf(all)
	f.Fuzz(func(t *testing.T, accept string) {
		chosen := o.Choose(accept)
		if chosen < 0 || chosen >= len(o) {
			t.Fatalf("%q: got the offer %d", accept, chosen)
		}
		upper := []byte(accept) // strings.ToUpper would change what is not UTF-8
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
