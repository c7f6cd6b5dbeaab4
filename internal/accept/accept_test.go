package accept

import (
	"slices"
	"strings"
	"testing"
)

func TestChoose(t *testing.T) {
	const (
		chrome = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7"
		java   = "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2"
		every  = "text html markdown json problem xml"
	)
	junk := strings.Repeat(`a/b;c="d,e\"f",;=/,"`, 100<<10/20)

	for _, tt := range []struct {
		name   string
		offers string
		accept []string
		want   string
	}{
		{"none", every, nil, "text"},
		{"none, HTML first", "html json", nil, "html"},
		{"empty", every, []string{""}, "text"},
		{"blank", every, []string{" , ,\t"}, "text"},
		{"Chrome without HTML", "json xml", []string{chrome}, "xml"},
		{"Java without HTML", "json text", []string{java}, "json"},
		{"JSON", every, []string{"application/json"}, "json"},
		{"problem or JSON", every, []string{"application/problem+json, application/json"}, "problem"},
		{"XML", every, []string{"application/xml"}, "xml"},
		{"odd case", every, []string{"Application/JSON;Q=0.5, TEXT/*;q=0.4"}, "json"},
		{"two lines", every, []string{"text/plain;q=0.1", "application/json"}, "json"},

		// quality, then specificity, then what the client names first, then the order of offers
		{"quality", every, []string{"text/*;q=0.3, text/html;q=0.7"}, "html"},
		{"quality in thousandths", every, []string{"text/plain;q=0.998, application/xml;q=0.999"}, "xml"},
		{"specificity", every, []string{"*/*, application/*, text/html"}, "html"},
		{"a subtype wildcard", every, []string{"*/*, application/*"}, "json"},
		{"a low specific range", every, []string{"text/plain;q=0.1, */*;q=0.5"}, "html"},
		{"named first", every, []string{"application/xml, text/plain"}, "xml"},
		{"named twice", every, []string{"text/plain;q=0.9, text/plain;q=0.1, text/html;q=0.5"}, "text"},
		{"with a parameter", every, []string{"text/html;level=1;q=0.9, text/html;q=0.2, text/plain;q=0.5"}, "text"},
		{"with a parameter, or anything", every, []string{"application/json;odata=verbose, */*;q=0.1"}, "text"},
		{"with a parameter, or another", every, []string{"text/html;level=1, text/plain;q=0.5"}, "text"},
		{"with a quoted parameter, or another", every, []string{`image/png, application/problem+json;q=0.7, text/html;level="1"`}, "problem"},
		{"with a charset", every, []string{`text/html;charset=utf-8, text/plain;charset="UTF-8";q=0.3`}, "html"},
		{"after the weight", every, []string{"application/json;q=0.2;x=y, text/html;q=0.1"}, "json"},

		// an alias
		{"an alias counts only when named", every, []string{"application/*;q=0.9, text/html;q=0.5"}, "json"},
		{"an alias before what is named", every, []string{"application/xhtml+xml, text/plain"}, "html"},
		{"an alias after what is named", every, []string{"text/plain, application/xhtml+xml"}, "text"},
		{"an alias and its type", every, []string{"text/html;q=0.5, application/xhtml+xml, text/plain;q=0.8"}, "text"},
		{"an alias and a wildcard", every, []string{"*/*;q=0.5, text/xml"}, "xml"},
		{"an alias with a parameter", every, []string{"application/xhtml+xml;x=y, */*;q=0.5"}, "text"},
		{"an alias that is ruled out", "html text", []string{"application/xhtml+xml;q=0, */*"}, "html"},

		// Markdown
		{"Markdown by a suffix", every, []string{"text/vnd.daringfireball.x-markdown, text/html;q=0.9"}, "html"},
		{"Markdown without it", "html text", []string{"text/markdown, text/html;q=0.9, */*;q=0.1"}, "html"},

		// q=0
		{"not HTML", every, []string{"text/html;q=0, */*"}, "text"},
		{"not text", every, []string{"text/plain;q=0, */*"}, "html"},
		{"not text at all", every, []string{"text/*;q=0, */*;q=0.001"}, "json"},
		{"not HTML but XHTML or anything", every, []string{"text/html;q=0, application/xhtml+xml, */*;q=0.1"}, "text"},
		{"not HTML but XHTML, which is XML", every, []string{"text/html;q=0, application/xhtml+xml"}, "xml"},
		{"not HTML but XHTML or JSON", every, []string{"text/html;q=0.000, application/xhtml+xml, application/json;q=0.1"}, "json"},
		{"nothing else than XHTML", every, []string{"application/xhtml+xml, */*;q=0"}, "html"},
		{"nothing at all", every, []string{"*/*;q=0"}, "text"},

		// what is refused is never sent while anything else is acceptable or nearly named
		{"refused, and covered by a wildcard", "xml html", []string{"text/*, text/html;q=0"}, "xml"},
		{"refused, but for a parameter", "json html", []string{"text/html;level=1, text/html;q=0"}, "json"},
		{"refused, with another that is nearly named", "html json", []string{"text/html;level=1, text/html;q=0, a/b+json;q=0.1"}, "json"},
		{"refused with its charset", "html json", []string{"text/html, text/html;charset=utf-8;q=0, application/json;q=0.1"}, "json"},
		{"refused and accepted", "html json", []string{"text/html, text/html;q=0, application/json;q=0.1"}, "json"},
		{"refused on another line", "html json", []string{"text/*", "text/html;q=0", "application/json;q=0.1"}, "json"},
		{"refused, and so is the first", "html json text", []string{"text/html;q=0, text/plain;q=0.1"}, "text"},

		// what is not on offer
		{"images only", every, []string{"image/png, image/*;q=0.5"}, "text"},
		{"HTML from JSON", "json xml", []string{"text/html"}, "json"},
		{"a structured suffix", every, []string{"application/vnd.api+json"}, "json"},
		{"another structured suffix", every, []string{"image/png, application/atom+xml;q=0.1"}, "xml"},
		{"the better of two suffixes", every, []string{"a/b+json;q=0.1, a/b+xml;q=0.2"}, "xml"},
		{"a suffix and a type", every, []string{"application/vnd.api+json, text/html;q=0.1"}, "html"},
		{"a suffix of what is not on offer", "html text", []string{"application/vnd.api+json"}, "html"},
		{"a suffix of what is ruled out", every, []string{"application/vnd.api+json, application/json;q=0"}, "text"},
		{"a suffix of what is ruled out, or another", every, []string{"application/vnd.api+json, application/json;q=0, text/html;q=0.1"}, "html"},
		{"a type but for its parameter", every, []string{"application/json;odata=verbose"}, "json"},
		{"a type with a suffix but for its parameter", every, []string{"application/problem+json;version=2"}, "problem"},
		{"an alias but for its parameter", every, []string{"image/png, text/xml;version=2"}, "xml"},
		{"a wildcard but for its parameter", "json html text", []string{"text/*;level=1"}, "html"},
		{"the better of two that are nearly named", every, []string{"text/html;level=1;q=0.2, application/vnd.api+json;q=0.3"}, "json"},
		{"the first of two that are nearly named", every, []string{"application/xml;version=2, text/html;level=1"}, "xml"},
		{"nearly named, but not accepted", "text json", []string{"application/json;odata=verbose;q=0"}, "text"},
		{"problem from JSON", "html json", []string{"application/problem+json"}, "json"},

		// a malformed member is skipped, the rest counts
		{"no slash", every, []string{"json, application/xml;q=0.1"}, "xml"},
		{"no subtype", every, []string{"text/, application/xml;q=0.1"}, "xml"},
		{"half a wildcard", every, []string{"*/html, application/xml;q=0.1"}, "xml"},
		{"weight too large", every, []string{"text/html;q=1.001, text/html;q=2, application/xml;q=0.1"}, "xml"},
		{"weight without digits", every, []string{"text/html;q=, text/html;q=., text/html;q=x, application/xml;q=0.1"}, "xml"},
		{"negative weight", every, []string{"text/html;q=-1, application/xml;q=0.1"}, "xml"},
		{"weight without its zero", every, []string{"text/html;q=.1, application/xml;q=.2"}, "xml"},
		{"parameter without value", every, []string{"text/html;level, application/xml;q=0.1"}, "xml"},
		{"empty parameters", every, []string{"text/html;;q=0.1; ;, application/xml;q=0.2"}, "xml"},
		{"separators in quotes", every, []string{`text/html;a="b,text/plain";q=0.3, application/xml;q=0.2`}, "xml"},
		{"quote without end", every, []string{`application/xml;q=0.1, text/html;a="b, text/plain`}, "xml"},
		{"spaces", every, []string{"text / html, application/xml\t; \tq=0.1"}, "xml"},
		{"garbage", every, []string{"\x80\xff,;;;,/,=,\"\\"}, "text"},
		{"what no format is, with a charset", every, []string{"image/png;charset=utf-8, a/b+xml"}, "xml"},
		{"100 KB of junk and JSON", every, []string{"application/json", junk}, "json"},
		{"100 KB of commas and JSON", every, []string{strings.Repeat(",", 100<<10) + "application/json"}, "json"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := choose(t, strings.Fields(tt.offers), strings.Join(tt.accept, ",")); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// clients is what clients send as Accept, and the offer that each of them gets.
var clients = []struct{ name, accept, want string }{
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

func TestChoosesForClients(t *testing.T) {
	offers := offersOf(t, "text", "html", "markdown", "json", "problem", "xml")
	for _, client := range clients {
		if got := all[offers.Choose(client.accept)].name; got != client.want {
			t.Errorf("%s: got %s, want %s", client.name, got, client.want)
		}
	}
}

func TestManyOffers(t *testing.T) {
	var offers Offers
	for i := range 20 {
		offers = append(offers, Offer{Types: []string{"a/" + string(rune('a'+i))}})
	}
	if got := offers.Choose("a/b;q=0.1, a/t"); got != 19 {
		t.Errorf("got the offer %d, want 19", got)
	}
}

// named is an offer with a name.
type named struct {
	name string
	Offer
}

// all is what the tests offer: what a page does.
var all = []named{
	{"text", Offer{Types: []string{"text/plain"}}},
	{"html", Offer{Types: []string{"text/html", "application/xhtml+xml"}}},
	{"markdown", Offer{Types: []string{"text/markdown", "text/x-markdown"}}},
	{"json", Offer{Types: []string{"application/json", "text/json"}, Suffix: "+json"}},
	{"problem", Offer{Types: []string{"application/problem+json"}}},
	{"xml", Offer{Types: []string{"application/xml", "text/xml"}, Suffix: "+xml"}},
}

func offersOf(t testing.TB, names ...string) (offers Offers) {
	t.Helper()
	for _, name := range names {
		i := slices.IndexFunc(all, func(n named) bool { return n.name == name })
		if i < 0 {
			t.Fatalf("there is no offer %s", name)
		}
		offers = append(offers, all[i].Offer)
	}
	return offers
}

// choose returns the name of the offer that an Accept field chooses.
func choose(t testing.TB, names []string, accept string) string {
	t.Helper()
	return names[offersOf(t, names...).Choose(accept)]
}

// FuzzChoose checks that an offer is chosen whatever a client sends, and that neither the case nor members that are malformed
// change which one.
func FuzzChoose(f *testing.F) {
	for _, client := range clients {
		f.Add(client.accept)
	}
	f.Add(`text/html;a="b,text/plain;q=0";q=0.3, application/vnd.api+json`)
	f.Add(`application/json;q=0.1, text/html;a="b\`)
	offers := offersOf(f, "text", "html", "markdown", "json", "problem", "xml")
	f.Fuzz(func(t *testing.T, accept string) {
		chosen := offers.Choose(accept)
		if chosen < 0 || chosen >= len(offers) {
			t.Fatalf("%q: got the offer %d", accept, chosen)
		}
		upper := []byte(accept)
		for i, c := range upper {
			if 'a' <= c && c <= 'z' {
				upper[i] -= 'a' - 'A'
			}
		}
		for _, same := range []string{string(upper), ";,*/html, text/plain;q=2," + accept, accept + ",;"} {
			if got := offers.Choose(same); got != chosen {
				t.Errorf("%q: got the offer %d, but %d for %q", same, got, chosen, accept)
			}
		}
	})
}
