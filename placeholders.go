package notfound

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/page"
)

// checkShorthands refuses the Caddyfile's shorthands of placeholders in JSON, where nothing expands them. A global
// placeholder, such as {file.motd}, may have the name of a shorthand.
func checkShorthands(value string) (mistake error) {
	// What the Replacer itself refuses, such as too many open braces, is not expanded for a request either.
	_, _ = caddy.NewReplacer().ReplaceFunc(value, func(name string, global any) (any, error) {
		if global != nil || strings.HasPrefix(name, "http.") { // a full name, as a Caddyfile always has
			return "", nil
		}
		if full := fullName(name); full != name { // slow, so it is the last check
			mistake = fmt.Errorf("%q has the shorthand {%s}, which only a Caddyfile has; write {%s}", value, name, full)
		}
		return "", mistake
	})
	return mistake
}

// fullName returns the full name of a placeholder, which may be a shorthand.
func fullName(name string) string {
	return strings.Trim(expandShorthands([]string{"{" + name + "}"})[0], "{}")
}

// expandShorthands expands the Caddyfile's shorthands of placeholders.
func expandShorthands(args []string) []string {
	var segment caddyfile.Segment
	for _, arg := range args {
		segment = append(segment, caddyfile.Token{Text: arg})
	}
	httpcaddyfile.NewShorthandReplacer().ApplyToSegment(&segment)
	return textsOf(segment)
}

// sample returns a harmless page, which ignores the options, and the placeholders of its request.
func sample() (page.Page, *caddy.Replacer) {
	local := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 2), Port: 443}
	ctx := context.WithValue(context.Background(), http.LocalAddrContextKey, local)
	const address = "https://www.example.com/docs/apis?x=1"
	r, _ := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody) // the URL is valid
	r.RequestURI, r.RemoteAddr = r.URL.RequestURI(), "192.0.2.1:1234"
	repl := caddy.NewReplacer()
	caddyhttp.PrepareRequest(r, repl, nil, new(caddyhttp.Server)) // {http.shutting_down} needs a server
	asked := page.Asked{Method: r.Method, Target: address}
	return page.NewMaker(page.Options{DefaultFooter: serverLine()}).Make(&asked, repl), repl
}

func textsOf(tokens []caddyfile.Token) []string {
	var texts []string
	for _, token := range tokens {
		texts = append(texts, token.Text)
	}
	return texts
}

// serverLine is the default footer. It is made once: Caddy looks for its version among all modules of the build.
var serverLine = sync.OnceValue(func() string {
	version, _ := caddy.Version()
	return "Powered by Caddy " + version
})
