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

// choice is an Accept field, and the offer that it gets of those that are named.
type choice struct{ offers, accept, want string }

func (c choice) chosen() string {
	var o Offers
	names := strings.Fields(c.offers)
	for _, name := range names {
		offer := offers[name]
		o = append(o, &offer)
	}
	return names[o.Choose(c.accept)]
}

// choices returns those of testdata/choices.txt, and others.
func choices(t testing.TB) []choice {
	t.Helper()
	content, err := os.ReadFile("testdata/choices.txt")
	if err != nil {
		t.Fatal(err)
	}
	junk := strings.Repeat(`a/b;c="d,e\"f",;=/,"`, 100<<10/20)
	choices := []choice{
		{ // Chrome, without HTML.
			offers: "json xml",
			accept: "text/html, application/xml;q=0.9, */*;q=0.8",
			want:   "xml",
		},
		{ // Java, without HTML.
			offers: "json text",
			accept: "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2",
			want:   "json",
		},
		{ // Go, which sends no Accept.
			offers: "html json",
			want:   "html",
		},
		{ // An agent, without Markdown.
			offers: "html text",
			accept: "text/markdown, text/html;q=0.9, */*;q=0.1",
			want:   "html",
		},
		{ // A subtype wildcard.
			offers: "json text",
			accept: "*/*, TEXT/*",
			want:   "text",
		},
		{ // A part of a subtype is none.
			offers: "json text",
			accept: "text/pl*",
			want:   "json",
		},
		{ // HTML is refused, and accepted.
			offers: "html json",
			accept: "text/html, text/html;q=0, application/json;q=0.1",
			want:   "json",
		},
		{ // Only an alias of HTML is refused.
			offers: "html text",
			accept: "application/xhtml+xml;q=0, */*",
			want:   "html",
		},
		{ // Nothing is acceptable.
			offers: "json xml",
			accept: "text/html",
			want:   "json",
		},
		{ // Problem details are nearly JSON.
			offers: "html json",
			accept: "application/problem+json",
			want:   "json",
		},
		{ // There are only blanks.
			offers: all,
			accept: " , ,\t",
			want:   "text",
		},
		{ // White space is allowed nearly everywhere.
			offers: all,
			accept: "text / html, application/xml\t; \tq=0.1",
			want:   "xml",
		},
		{ // Nothing is well-formed.
			offers: all,
			accept: "\x80\xff,;;;,/,=, a b/c+xml,\"\\",
			want:   "text",
		},
		{ // 100 KB of junk follow.
			offers: all,
			accept: "application/json," + junk,
			want:   "json",
		},
	}
	for line := range strings.Lines(string(content)) {
		want, accept, _ := strings.Cut(strings.TrimSpace(line), " ")
		if want != "" && want != "#" {
			choices = append(choices, choice{
				offers: all,
				accept: strings.TrimLeft(accept, " "),
				want:   want,
			})
		}
	}
	return choices
}

func TestChoose(t *testing.T) {
	for _, c := range choices(t) {
		if got := c.chosen(); got != c.want {
			t.Errorf("of %s, %.300q gets %s, want %s", c.offers, c.accept, got, c.want)
		}
	}
}

func TestNames(t *testing.T) {
	for field, want := range map[string]bool{
		"*/*, TEXT/HTML;q=0.1":                       true,
		"*/*, text/html;q=0":                         false, // it is refused
		"text/html5":                                 false,
		`application/json;profile="text/html,"`:      false,
		"application/xml;q=x,text/html;level=1;q=.5": true,
	} {
		if got := Names(field, "text/html"); got != want {
			t.Errorf("%s: got %v", field, got)
		}
	}
}

// FuzzChoose checks that an offer is chosen whatever a client sends, and that neither case nor malformed members
// change it.
func FuzzChoose(f *testing.F) {
	for _, c := range choices(f) {
		f.Add(c.accept)
	}
	f.Fuzz(func(t *testing.T, accept string) {
		upper := []byte(accept) // strings.ToUpper would change what is not UTF-8
		for i, c := range upper {
			if 'a' <= c && c <= 'z' {
				upper[i] -= 'a' - 'A'
			}
		}
		want := choice{offers: all, accept: accept}.chosen()
		for _, same := range []string{
			string(upper),
			";,*/html, text/plain;q=2," + accept,
			accept + ",;",
		} {
			got := choice{offers: all, accept: same}.chosen()
			if got != want {
				t.Errorf("%q: got %s, but %s for %q", same, got, want, accept)
			}
		}
	})
}
