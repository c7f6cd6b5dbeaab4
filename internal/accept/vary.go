package accept

import (
	"net/http"

	"golang.org/x/net/http/httpguts"
)

// AddToVary adds fields of the request to the Vary of a response (RFC 9110, section 12.5.5), unless they are there, or it
// says that everything varies.
func AddToVary(header http.Header, fields ...string) {
	for _, field := range fields {
		vary := header["Vary"]
		if !httpguts.HeaderValuesContainsToken(vary, field) && !httpguts.HeaderValuesContainsToken(vary, "*") {
			header["Vary"] = append(vary, field)
		}
	}
}
