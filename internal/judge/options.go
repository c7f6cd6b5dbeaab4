package judge

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// Options are the options of a handler that decide about a response.
type Options struct {
	Mode  string                      // which 404 responses are replaced
	Keep  []caddyhttp.ResponseMatcher // which are never replaced
	Group string                      // one of its handlers runs at a time; empty: none
}

// The modes of the option replace.
const (
	Pages    = "pages"    // what people look at
	Browsers = "browsers" // the same, for clients that open a page
	All      = "all"
	None     = "none"
)

var modes = []string{Pages, Browsers, All, None}

// CheckMode refuses an unknown mode.
func CheckMode(mode string) error {
	if slices.Contains(modes, mode) {
		return nil
	}
	return fmt.Errorf("unknown mode %q; the modes are %s", mode, strings.Join(modes, ", "))
}

// CheckKeep refuses a matcher that matches every 404 response or none, and one that cannot work.
func CheckKeep(m caddyhttp.ResponseMatcher) error {
	const instead = "write one as in header X-Error-Page *"
	if !(caddyhttp.ResponseMatcher{StatusCode: m.StatusCode}).Match(http.StatusNotFound, nil) {
		return fmt.Errorf("a matcher of this status never matches a 404 response; leave the status out, and %s", instead)
	}
	if len(m.Headers) == 0 {
		return fmt.Errorf("a matcher without a header field would keep every 404 response; %s, or use replace none", instead)
	}
	for field, values := range m.Headers {
		if !httpguts.ValidHeaderFieldName(field) {
			return fmt.Errorf("%q is not the name of a header field; %s", field, instead)
		}
		for _, value := range values {
			if strings.Contains(value, "{") {
				return fmt.Errorf("header %s: %q takes no placeholders; "+
					"{$NAME} in a Caddyfile is expanded when it is read", field, value)
			}
		}
	}
	return nil
}

// keeps reports whether a 404 response with this header is never replaced.
func (o *Options) keeps(header http.Header) bool {
	return slices.ContainsFunc(o.Keep, func(m caddyhttp.ResponseMatcher) bool {
		return m.Match(http.StatusNotFound, header)
	})
}
