package main

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/caddy-notfound/notfound/internal/page"
)

// group is a set of sites that do the same work, so that they can be compared.
type group struct {
	name, title string
	note        string // what a reader has to know besides the title
	loads       []loading
	target      string
	many        bool // whether requests are for many addresses instead of target
	status      int  // of every site's response
	hasPeer     bool // whether the third site is compared with the fourth, too
	sites       []site
}

// The first site of a group is the reference. The second is identical, to show the noise. The third has not_found.
// The fourth is its peer.
const reference, control, ours, peer = 0, 1, 2, 3

// loading is a way to load a site.
type loading struct {
	name     string
	protocol string
	inFlight int // requests. HTTP/1.1 has a connection for each of them, and HTTP/2 has four connections.
}

// protocols have as many requests in flight as reverse_proxy keeps idle connections to an upstream by default.
var protocols = []loading{
	{http1, http1, 32},
	{http2, http2, 32},
}

// latencyLoad is the load with which latencies are measured.
var latencyLoad = protocols[0]

var connections = []loading{
	{"1 connection", http1, 1},
	{"10 connections", http1, 10},
	{"100 connections", http1, 100},
	{"1,000 connections", http1, 1000},
}

// site is a way to configure a server: the directives of a site in a Caddyfile. In them, [page] is the body of the
// response, [footer] its last line, and [upstream] the address of the upstream.
type site struct {
	name    string // in Markdown
	caddy   string
	accept  string // the clients' Accept, if they send one; otherwise they get text
	forUser bool   // whether docs/performance.md has it
}

// chrome is the Accept of Chrome.
const chrome = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8," +
	"application/signed-exchange;v=b3;q=0.7"

// pageBody is the page in text, as a client without Accept gets it from every site that answers with a page.
func pageBody(method, uri, footer string) string {
	return fmt.Sprintf(`HTTP ERROR 404 No endpoint %[1]s /missing.html.
URI: %[2]s
STATUS: 404
MESSAGE: No endpoint %[1]s /missing.html.
%[3]s
`, method, uri, footer)
}

// addressInTemplate is the address of a request, as `templates` writes it.
const addressInTemplate = `{{placeholder "http.request.scheme"}}://{{.Req.Host}}{{.OriginalReq.URL.RequestURI}}`

// These sites make the page anew for each request.
var (
	withPlaceholders = "respond `" + pageBody("{method}", "{scheme}://{hostport}{uri}", "[footer]") + "` 404"
	withTemplate     = "respond `" + pageBody("{{.Req.Method}}", addressInTemplate, "[footer]") + "` 404"
)

// These sites send a constant page, without and with the header fields that not_found sends.
const (
	constant   = "respond `[page]` 404"
	sameFields = "header X-Content-Type-Options nosniff\nheader Cache-Control no-store\nheader Vary Accept\n" + constant
)

// intercepting has intercept and reverse_proxy answer with the page.
var intercepting = `
	@missing status 404
	handle_response @missing {
		header -Content-Length
		` + withPlaceholders + `
	}`

// These are a plain proxy, and the ways that Caddy has to answer with the page without not_found.
var (
	handlingErrors    = "error 404\nhandle_errors {\n" + withPlaceholders + "\n}"
	proxying          = "reverse_proxy [upstream]"
	intercepted       = "intercept {" + intercepting + "\n}\n" + proxying
	handlingResponses = proxying + " {" + intercepting + "\n}"
)

// upstreamBody is the body of the upstream, which answers /found with a 200 and everything else with a 404.
const upstreamBody = "<!doctype html>\n<title>A page</title>\n<h1>A page</h1>\n<p>It comes from the upstream.</p>\n"

var upstream = site{
	name: "upstream",
	caddy: "header Content-Type text/html\n" +
		"respond /found `" + upstreamBody + "`\n" +
		"respond `" + upstreamBody + "` 404",
}

var groups = []group{
	{
		name:   "page",
		title:  "A page for a request that nothing answers",
		loads:  protocols,
		target: "/docs/apis?x=1",
		status: http.StatusNotFound,
		sites: []site{
			{name: "`respond`, a constant with the same header fields", caddy: sameFields, forUser: true},
			{name: "the same again", caddy: sameFields},
			{name: "`not_found`", caddy: "not_found", forUser: true},
			{name: "`respond`, a bare constant", caddy: constant},
			{name: "`respond` with placeholders", caddy: withPlaceholders},
			{name: "`error 404` and `handle_errors`", caddy: handlingErrors, forUser: true},
			{name: "`templates`", caddy: "templates\n" + withTemplate},
			{name: "`not_found`, HTML for Chrome", caddy: "not_found", accept: chrome, forUser: true},
		},
	},
	{
		name:   "replace",
		title:  "An upstream's 404 page, replaced",
		loads:  protocols,
		target: "/docs/apis?x=1",
		status: http.StatusNotFound,
		sites: []site{
			{name: "`intercept` and `respond`", caddy: intercepted, forUser: true},
			{name: "the same again", caddy: intercepted},
			{name: "`not_found`", caddy: "not_found\n" + proxying, forUser: true},
			{name: "`handle_response` and `respond`", caddy: handlingResponses, forUser: true},
		},
	},
	{
		name:    "pass",
		title:   "An upstream's 200, passed on",
		note:    "An empty `request_body` only calls the next handler. No client sends an `Accept-Encoding` to `encode`.",
		loads:   protocols,
		target:  "/found",
		status:  http.StatusOK,
		hasPeer: true,
		sites: []site{
			{name: "`reverse_proxy`", caddy: proxying, forUser: true},
			{name: "the same again", caddy: proxying},
			{name: "`reverse_proxy` after `not_found`", caddy: "not_found\n" + proxying, forUser: true},
			{name: "`reverse_proxy` after `intercept` for a 404", caddy: intercepted, forUser: true},
			{name: "`reverse_proxy` after `encode`", caddy: "encode\n" + proxying},
			{name: "`reverse_proxy` after an empty `request_body`", caddy: "request_body\n" + proxying},
		},
	},
	{
		name:    "scale",
		title:   "Pages with more connections, over HTTP/1.1",
		note:    "Half of the requests are for 100 addresses, and the others for ever new ones. All have an own link.",
		loads:   connections,
		target:  targetOf(0),
		many:    true,
		status:  http.StatusNotFound,
		hasPeer: true,
		sites: []site{
			{name: "`respond`, a constant with the same header fields", caddy: sameFields},
			{name: "the same again", caddy: sameFields},
			{name: "`not_found` with `report`", caddy: "not_found {\nreport\n}"},
			{name: "`not_found`", caddy: "not_found"},
		},
	},
}

// targetOf returns the target of the nth request where they are for many addresses: one of 100 addresses, or, every
// other time, one that is not asked for again. All are equally long.
func targetOf(n int64) string {
	if n%2 == 0 {
		return fmt.Sprintf("/docs/%09d", n/2%100)
	}
	return fmt.Sprintf("/docs/%09d", 100+n)
}

// body is what a site responds with at a base URL.
func (s *runningSite) body(base, footer string) (string, error) {
	g := s.group
	switch {
	case g.status == http.StatusOK:
		return upstreamBody, nil
	case s.accept == "":
		return pageBody(http.MethodGet, base+g.target, footer), nil
	}
	m, err := page.NewMaker(page.Options{Server: footer})
	if err != nil {
		return "", err
	}
	scheme, authority, _ := strings.Cut(base, "://")
	asked := page.Asked{
		Method:    http.MethodGet,
		Target:    g.target,
		Scheme:    scheme,
		Authority: authority,
	}
	pg := m.Make(&asked, nil)
	rep := m.Represent(&pg, s.accept)
	defer rep.Free()
	return rep.Body.String(), nil
}

const caddyOptions = `
{
	admin off
	persist_config off
	auto_https off
	default_bind 127.0.0.1
	servers {
		protocols h1 h2
	}
	log {
		level ERROR
	}
}
`

// config returns the Caddyfile of a site at its two addresses.
func (b *bench) config(s *runningSite) string {
	footer := b.footer()
	add := func(base, tls string) string {
		body := pageBody(http.MethodGet, base+s.group.target, footer)
		values := strings.NewReplacer(
			"[page]", body,
			"[footer]", footer,
			"[upstream]", b.upstream,
		)
		return values.Replace(base + " {\n" + tls + s.caddy + "\n}\n")
	}
	tls := "tls " + b.certificate() + " " + b.certificate() + "\n"
	return caddyOptions + add(s.plain(), "") + add(s.secure(), tls)
}
