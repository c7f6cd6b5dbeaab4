//go:build linux

package main

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-notfound/notfound/internal/page"
	"github.com/caddy-notfound/notfound/internal/represent"
)

// group is a set of sites that do the same work, so that they can be compared. The first is the reference. A second one
// that is the same again shows the noise.
type group struct {
	Name, Title string
	Loads       []load
	target      string
	status      string // of every response
	contains    string // a part of every response, in text and in HTML
	Varies      bool   // Each request is for another address, and only CPU times are measured.
	Sites       []site
}

// load is a way to load a server.
type load struct {
	Name, origin          string
	connections, inFlight int // how many requests are in flight on each connection
}

// The origins of a server, with its number. The upstream has the number 0.
const (
	http1 = "http://127.0.0.1:180%02d"
	http2 = "https://127.0.0.1:184%02d"
)

// protocols have as many requests in flight as reverse_proxy keeps idle connections to an upstream by default.
// Latencies are measured with the first.
var protocols = []load{
	{"HTTP/1.1", http1, 32, 1},
	{"HTTP/2 over TLS", http2, 4, 8},
}

// site is a way to configure a server: the directives of a site in a Caddyfile, where [origin] and [target] stand for
// the URL of a request, [version] for Caddy's, [html] for a page, and [dir] for a folder with a 404.html.
type site struct {
	Name    string // in Markdown
	caddy   string
	accept  string // the clients' Accept, if they send one
	Against int    // the site of the group that the ratio is to, whose client and answers are the same

	sameHeader bool // the header fields of the answers, too, are the same
	isOld      bool // the build of -against runs it
}

// chrome is the Accept of Chrome.
const chrome = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8," +
	"application/signed-exchange;v=b3;q=0.7"

// message and html are in the page and in what the upstream and the file send.
const (
	message = "No endpoint GET /missing.html."
	html    = "<!doctype html>\n<title>A page</title>\n<h1>A page</h1>\n<p>It is neither short nor long.</p>\n"
)

// respond has a site respond with the page in text, as not_found writes it for a client without Accept.
func respond(method, url string) string {
	message := strings.Replace(message, "GET", method, 1)
	return "respond `HTTP ERROR 404 " + message + "\nURI: " + url + "\nSTATUS: 404\nMESSAGE: " + message + `
Powered by Caddy [version]
` + "` 404"
}

// respondHTML has a site respond with the page in HTML, as not_found writes it for Chrome, and with the same header
// fields.
func respondHTML() string {
	version, _ := caddy.Version()
	maker := page.NewMaker(page.Options{DefaultFooter: "Powered by Caddy " + version})
	formats, err := represent.New(represent.Options{})
	if err != nil {
		panic(err) // there is nothing that could be wrong
	}
	asked := page.Asked{Method: http.MethodGet, Target: "/target", Scheme: "http", Authority: "origin"}
	p := maker.Make(&asked, caddy.NewEmptyReplacer())
	representation := formats.Represent(&p, nil, chrome)
	defer representation.Free()
	header := make(http.Header)
	representation.SetHeader(header, "Accept", nil)
	header.Del("Content-Length")
	var site, body strings.Builder
	for field := range header {
		fmt.Fprintf(&site, "header %s %q\n", field, header.Get(field))
	}
	_, _ = representation.WriteTo(&body)
	text := strings.ReplaceAll(body.String(), "http://origin/target", "[origin][target]")
	return site.String() + "respond `" + text + "` 404"
}

// These are a plain proxy, and the ways that Caddy has to answer with the page without not_found.
var (
	constant = "header X-Content-Type-Options nosniff\nheader Cache-Control no-store\nheader Vary Accept\n" +
		respond("GET", "[origin][target]")
	responding        = respond("{method}", "{scheme}://{hostport}{uri}")
	handlingErrors    = "error 404\nhandle_errors {\n" + responding + "\n}"
	proxying          = "reverse_proxy 127.0.0.1:18000"
	intercepting      = "@missing status 404\nhandle_response @missing {\nheader -Content-Length\n" + responding + "\n}\n"
	intercepted       = "intercept {\n" + intercepting + "}\n" + proxying
	handlingResponses = proxying + " {\n" + intercepting + "}"
)

// These send a file of 12 kB.
const (
	fileOnError = `
root [dir]
file_server
handle_errors 404 {
	rewrite /404.html
	file_server {
		status 404
	}
}`
	fileByPlaceholders = "root [dir]\nnot_found {\ntemplate {vars.root}/404.html [dir]/brand.html\n}\nfile_server"
	fileByFixedPath    = "root [dir]\nnot_found {\ntemplate [dir]/404.html\n}\nfile_server"
)

// upstream answers /found with a 200 and everything else with a 404.
var upstream = server{
	group: new(group),
	site:  site{Name: "upstream", caddy: "header Content-Type text/html\nrespond /found `[html]`\nrespond `[html]` 404"},
}

var groups = []group{
	{
		Name:     "page",
		Title:    "A page for a request that nothing answers",
		Loads:    protocols,
		target:   "/docs/apis?x=1",
		status:   "404",
		contains: message,
		Sites: []site{
			{Name: "`respond`, a constant with the same header fields", caddy: constant},
			{Name: "the same again", caddy: constant},
			{Name: "`not_found`", caddy: "not_found", sameHeader: true},
			{Name: "`error 404` and `handle_errors`", caddy: handlingErrors},
			{Name: "`respond`, the page in HTML for Chrome", caddy: respondHTML(), accept: chrome, Against: 4},
			{Name: "`not_found`, HTML for Chrome, against that", caddy: "not_found", accept: chrome, Against: 4, sameHeader: true},
		},
	},
	{
		Name:     "file",
		Title:    "A page of one's own, of 12 kB",
		Loads:    protocols,
		target:   "/docs/apis?x=1",
		status:   "404",
		contains: html,
		Sites: []site{
			{Name: "`handle_errors` and `file_server`", caddy: fileOnError, accept: "text/html"},
			{Name: "the same again", caddy: fileOnError, accept: "text/html"},
			{Name: "`not_found`, the first of two paths, with placeholders", caddy: fileByPlaceholders, accept: "text/html"},
			{Name: "`not_found`, a fixed path", caddy: fileByFixedPath, accept: "text/html"},
		},
	},
	{
		Name:     "replace",
		Title:    "An upstream's 404 page, replaced",
		Loads:    protocols,
		target:   "/docs/apis?x=1",
		status:   "404",
		contains: message,
		Sites: []site{
			{Name: "`intercept` and `respond`", caddy: intercepted},
			{Name: "the same again", caddy: intercepted},
			{Name: "`not_found`", caddy: "not_found\n" + proxying},
			{Name: "`handle_response` and `respond`", caddy: handlingResponses},
		},
	},
	{
		Name:     "pass",
		Title:    "An upstream's 200, passed on",
		Loads:    protocols,
		target:   "/found",
		status:   "200",
		contains: html,
		Sites: []site{
			{Name: "`reverse_proxy`", caddy: proxying},
			{Name: "the same again", caddy: proxying},
			{Name: "`reverse_proxy` after `not_found`", caddy: "not_found\n" + proxying},
			{Name: "`reverse_proxy` after `intercept` for a 404", caddy: intercepted},
			{Name: "`not_found` again, against `intercept`", caddy: "not_found\n" + proxying, Against: 3},
		},
	},
	{
		Name:   "scale",
		Title:  "Pages with more connections, over HTTP/1.1",
		Varies: true,
		Loads: []load{
			{"1 connection", http1, 1, 1},
			{"10 connections", http1, 10, 1},
			{"100 connections", http1, 100, 1},
			{"1,000 connections", http1, 1000, 1},
		},
		status:   "404",
		contains: message,
		Sites: []site{
			{Name: "`not_found`", caddy: "not_found"},
			{Name: "`not_found` with `report`", caddy: "not_found {\nreport\n}"},
		},
	},
}
