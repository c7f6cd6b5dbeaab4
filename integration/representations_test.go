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
		{"a", "text/markdown, text/html, */*", "text/markdown; charset=utf-8", "Accept"},
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
