package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestAcceptHeaderChoosesTheRepresentation asks sites that offer all formats, two of them, and one.
func TestAcceptHeaderChoosesTheRepresentation(t *testing.T) {
	s := testcaddy.Start(t, `
http://a.test:0 {
	not_found
}
http://two.test:0 {
	not_found {
		formats html json
	}
}
http://one.test:0 {
	not_found {
		formats json
	}
}`, "servers {\nmax_header_size 256KB\n}")
	for _, tt := range []struct {
		host, accept, contentType, vary string
	}{
		{"a", "", "text/plain; charset=utf-8", "Accept"},
		{"a", "text/html", "text/html; charset=utf-8", "Accept"},
		{"a", "text/markdown, text/html, */*", "text/markdown; charset=utf-8", "Accept"},
		{"a", "application/json", "application/json", "Accept"},
		{"a", "application/xml", "application/xml; charset=utf-8", "Accept"},
		{"a", strings.Repeat("x,", 50<<10), "text/plain; charset=utf-8", "Accept"},
		{"two", "text/plain, application/xml", "text/html; charset=utf-8", "Accept"},
		{"two", "application/json", "application/json", "Accept"},
		{"one", "text/html", "application/json", ""},
	} {
		t.Run(fmt.Sprintf("%s %.50s", tt.host, tt.accept), func(t *testing.T) {
			t.Parallel()
			uri := "http://" + tt.host + ".test/x"
			res := s.Get(t, uri, "Accept: "+tt.accept)
			res.WantHeader(t, "Content-Type", tt.contentType)
			res.WantHeader(t, "Vary", tt.vary)
			if got := testcaddy.FieldsOf(t, res).URI; got != uri {
				t.Errorf("got the address %s, want %s", got, uri)
			}
		})
	}
}

// hostileTargets are request targets that would harm a careless page, with their percent-encoded form on the page.
var hostileTargets = map[string]string{
	`/<script>alert(1)</script>`:                    `/%3Cscript%3Ealert(1)%3C/script%3E`,
	`/"><img/src=x/onerror=alert(1)>`:               `/%22%3E%3Cimg/src=x/onerror=alert(1)%3E`,
	`/'onmouseover='x`:                              `/'onmouseover='x`,
	`/</title></style><!--`:                         `/%3C/title%3E%3C/style%3E%3C!--`,
	`/]]>&amp;&lt;&#60;`:                            `/%5D%5D%3E&amp;&lt;&%2360;`,
	`/&copy;=1&lt=2`:                                `/&copy;=1&lt=2`,
	`/{{.}}{{printf}}`:                              `/%7B%7B.%7D%7D%7B%7Bprintf%7D%7D`,
	`/x?${7*7}#{7*7}<%=7*7%>`:                       `/x?$%7B7*7%7D%23%7B7*7%7D%3C%25=7*7%25%3E`,
	`/\u003cscript\u003e\`:                          `/%5Cu003cscript%5Cu003e%5C`,
	`/"},"x":"`:                                     `/%22%7D,%22x%22:%22`,
	"/\xc3\xbc\xe2\x80\xa8\xe2\x80\xae\xef\xbf\xbf": `/%C3%BC%E2%80%A8%E2%80%AE%EF%BF%BF`,
	"/\xff\xc0\x80\xed\xa0\x80":                     `/%FF%C0%80%ED%A0%80`,
	`/%00%0A%0D%22%3C`:                              `/%00%0A%0D%22%3C`,
	`/x?%zz%`:                                       `/x?%25zz%25`,
	`/+a+b`:                                         `/+a+b`,
	`/docs/nothing?x=1`:                             `/docs/nothing?x=1`,
	"/" + strings.Repeat("&", 5000):                 "/" + strings.Repeat("&", 5000),
}

// TestEveryRepresentationEchoesSafely reads the fields of the page in every representation. The footer is hostile, too.
func TestEveryRepresentationEchoesSafely(t *testing.T) {
	s := testcaddy.Start(t, "http://a.test:0 {\nnot_found {\nfooter \"<Caddy> & \\\"Co\\\" \\ 'Ü' {{.}}\"\n}\n}")
	for _, f := range testcaddy.Formats {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			want := testcaddy.Fields{
				Heading: "HTTP ERROR 404 No endpoint GET /missing.html.",
				Status:  404,
				Message: "No endpoint GET /missing.html.",
				Footer:  `<Caddy> & "Co" \ 'Ü' {{.}}`,
			}
			if f.Name == "problem" {
				want.Footer = testcaddy.Footer() // problem details have none
			}
			for target, encoded := range hostileTargets {
				res := s.Raw(t, "GET", "GET "+target+" HTTP/1.1\r\nHost: a.test\r\nAccept: "+f.MediaType+"\r\nConnection: close\r\n\r\n")
				res.WantHeader(t, "Content-Type", f.ContentType)
				want.URI = "http://a.test" + encoded
				if got := testcaddy.FieldsOf(t, res); got != want {
					t.Errorf("target %q: got %+v, want %+v", target, got, want)
				}
			}
		})
	}
}
