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

// group is a set of sites that do the same work, so that they can be compared. The first is the reference.
type group struct {
	Name, Title string
	target      string // of every request; empty: /docs/apis?x=1
	status      string // of every response
	contains    string // a part of every response that is not encoded
	varies      bool   // each request is for another address

	accept, encodings string // the clients' Accept and Accept-Encoding; empty: they send none
	Sites             []site
}

// protocol is a way to load a server.
type protocol struct {
	name, origin          string // the origin has the number of the server
	connections, inFlight int    // how many requests are in flight on each connection
}

// protocols have as many requests in flight as reverse_proxy keeps idle connections to an upstream by default.
var protocols = []protocol{
	{"HTTP/1.1", "http://127.0.0.1:180%02d", 32, 1},
	{"HTTP/2 over TLS", "https://127.0.0.1:184%02d", 4, 8},
}

// site is a way to configure a server: the directives of a site in a Caddyfile, where [origin] and [target] stand for
// the URL of a request, [version] for Caddy's, [html] for a page, and [dir] for a folder with a 404.html.
type site struct {
	Name    string // in Markdown
	caddy   string
	accept  string // the clients' Accept, if it is not the group's
	Against int    // the site of the group that the ratio is to, whose client and answers are the same

	sameHeader bool // the header fields of the answers, too, are the same
	isEncoded  bool // the answers are, in another way
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

// constant has a site respond with the page as not_found writes it for an Accept, and with the same header fields.
func constant(accept string) string {
	version, _ := caddy.Version()
	asked := page.Asked{Method: http.MethodGet, Target: "/target", Scheme: "http", Authority: "origin"}
	p := page.NewMaker(page.Options{DefaultFooter: "Powered by Caddy " + version}).Make(&asked, nil)
	formats, _ := represent.New(represent.Options{}) // there is nothing that could be wrong
	representation := formats.Represent(&represent.Input{Page: p, Accept: accept})
	defer representation.Free()
	header := make(http.Header)
	representation.SetHeader(header, nil)
	header.Del("Content-Length")
	var site, body strings.Builder
	for field := range header {
		fmt.Fprintf(&site, "header %s %q\n", field, header.Get(field))
	}
	_, _ = representation.WriteTo(&body)
	return site.String() + "respond `" + strings.ReplaceAll(body.String(), "http://origin/target", "[origin][target]") +
		"` 404"
}

// These are a plain proxy, and the ways that Caddy has to answer with the page without not_found.
const (
	responding = "respond `HTTP ERROR 404 No endpoint {method} /missing.html.\nURI: {scheme}://{hostport}{uri}\n" +
		"STATUS: 404\n" +
		"MESSAGE: No endpoint {method} /missing.html.\nPowered by Caddy [version]\n` 404"
	handlingErrors = "error 404\nhandle_errors {\n" + responding + "\n}"
	proxying       = "reverse_proxy 127.0.0.1:18000"
	intercepting   = "@missing status 404\nhandle_response @missing {\nheader -Content-Length\n" + responding + "\n}\n"
	intercepted    = "intercept {\n" + intercepting + "}\n" + proxying
)

// These send a file of 12 kB. Beside 404.html is a 404.html.gz, and none beside plain.html.
const (
	fileOnError        = "root [dir]\nfile_server\nhandle_errors 404 {\nrewrite /404.html\nfile_server {\nstatus 404\n}\n}"
	fileByPlaceholders = "root [dir]\nnot_found {\ntemplate {vars.root}/404.html [dir]/brand.html\n}\nfile_server"
	fileOfSite         = "root [dir]\nnot_found {\ntemplate {vars.root}/404.html\n}\nfile_server"
	fileByFixedPath    = "root [dir]\nnot_found {\ntemplate [dir]/404.html\n}\nfile_server"
)

var compressedOnError = compressed(strings.Replace(fileOnError, "rewrite", "encode\nrewrite", 1))

// compressed returns the site that sends 404.html.gz.
func compressed(site string) string {
	return strings.Replace(site, "\n}", "\nprecompressed gzip\n}", 1)
}

// uncompressed returns the site that looks for three files that do not exist.
func uncompressed(site string) string {
	return strings.NewReplacer("404.html", "plain.html", "\n}", "\nprecompressed\n}").Replace(site)
}

// upstream answers /found with a 200 and everything else with a 404.
var upstream = server{
	group: new(group),
	site:  site{Name: "upstream", caddy: "header Content-Type text/html\nrespond /found `[html]`\nrespond `[html]` 404"},
}

var groups = []group{
	{
		Name:     "page",
		Title:    "A page for a request that nothing answers",
		status:   "404",
		contains: message,
		Sites: []site{
			{Name: "`respond`, the same response", caddy: constant("")},
			{Name: "`not_found`", caddy: "not_found", sameHeader: true},
			{Name: "`error 404` and `handle_errors`", caddy: handlingErrors},
			{Name: "`respond`, HTML", caddy: constant(chrome), accept: chrome, Against: 3},
			{Name: "`not_found`, HTML", caddy: "not_found", accept: chrome, Against: 3, sameHeader: true},
		},
	},
	{
		Name:      "file",
		Title:     "A page of one's own, of 12 kB, for clients that accept `gzip, br, zstd`",
		status:    "404",
		contains:  html,
		accept:    chrome,
		encodings: "gzip, br, zstd",
		Sites: []site{
			{Name: "`handle_errors` and `file_server`", caddy: fileOnError},
			{Name: "`not_found`, a path with placeholders", caddy: fileByPlaceholders},
			{Name: "`not_found`, a fixed path", caddy: fileByFixedPath},
			{Name: "`handle_errors` with `encode` and `precompressed`", caddy: compressedOnError, isEncoded: true},
			{Name: "`not_found`, placeholders, `precompressed`", caddy: compressed(fileOfSite), isEncoded: true},
			{
				Name:      "`not_found`, placeholders, in `encode`",
				caddy:     "route {\nencode\n" + fileByPlaceholders + "\n}",
				isEncoded: true,
			},
			{Name: "`precompressed`, placeholders, no file", caddy: uncompressed(fileOfSite)},
		},
	},
	{
		Name:     "replace",
		Title:    "An upstream's 404 page, replaced",
		status:   "404",
		contains: message,
		Sites: []site{
			{Name: "`intercept` and `respond`", caddy: intercepted},
			{Name: "`not_found`", caddy: "not_found\n" + proxying},
			{Name: "`handle_response` and `respond`", caddy: proxying + " {\n" + intercepting + "}"},
		},
	},
	{
		Name:     "pass",
		Title:    "An upstream's 200, passed on",
		target:   "/found",
		status:   "200",
		contains: html,
		Sites: []site{
			{Name: "`reverse_proxy`", caddy: proxying},
			{Name: "`reverse_proxy` after `not_found`", caddy: "not_found\n" + proxying},
			{Name: "`reverse_proxy` after `intercept`", caddy: intercepted},
		},
	},
	{
		Name:     "report",
		Title:    "A page that is counted, half of them for ever new addresses",
		varies:   true,
		status:   "404",
		contains: message,
		Sites: []site{
			{Name: "`not_found`", caddy: "not_found"},
			{Name: "`not_found` with `report`", caddy: "not_found {\nreport\n}"},
		},
	},
}
