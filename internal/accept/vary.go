package accept

import (
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// AddToVary adds a list of fields of the request, as in "Accept, Origin", to the Vary of a response (RFC 9110, section
// 12.5.5), unless they are there, or it is `*`. Vary becomes one line, because nginx 1.22, as a cache, heeds only the
// last line.
func AddToVary(header http.Header, fields string) {
	vary := header["Vary"]
	if len(vary) == 0 {
		header["Vary"] = []string{fields}
		return
	}
	lines := slices.Clip(vary)
	for field := range strings.SplitSeq(fields, ", ") {
		if !httpguts.HeaderValuesContainsToken(vary, field) && !httpguts.HeaderValuesContainsToken(vary, "*") {
			lines = append(lines, field)
		}
	}
	if len(lines) > 1 {
		header["Vary"] = []string{strings.Join(lines, ", ")}
	}
}
