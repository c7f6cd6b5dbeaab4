package main

import (
	"fmt"
	"net/http"
	"strings"
)

// group is a set of sites that do the same work, and so compare.
type group struct {
	name, title string
	note        string // what a reader has to know besides the title
	cores       string // that the servers have
	loads       []loading
	target      string
	many        bool // whether requests are for many addresses instead of target
	status      int  // of every site's response
	sites       []site
}

// The first site of a group is the reference; the second is identical to it, so that the noise stands beside the
// figures. The third has not_found, which is also compared with the fourth.
const reference, control, ours, peer = 0, 1, 2, 3

// loading is a way to load a site.
type loading struct {
	name     string
	protocol string
	inFlight int // requests, on as many connections, or, in HTTP/2, on four
}

// protocols have as many requests in flight as reverse_proxy keeps idle connections to an upstream by default.
var protocols = []loading{{http1, http1, 32}, {http2, http2, 32}}

var connections = []loading{{"1 connection", http1, 1}, {"10 connections", http1, 10}, {"100 connections", http1, 100}, {"1,000 connections", http1, 1000}}

// site is a way to configure a server: the directives of a site in a Caddyfile, or those of a server in nginx.
// In them, [page] is the body of the response, [footer] its last line, and [upstream] the address of the upstream.
type site struct {
	name         string // in Markdown
	caddy, nginx string
}

// pageBody is the page of not_found in text, which a client gets that sends no Accept. Every site that answers with
// a page sends this one.
func pageBody(method, uri, footer string) string {
	return fmt.Sprintf("HTTP ERROR 404 No endpoint %[1]s /missing.html.\nURI: %[2]s\nSTATUS: 404\nMESSAGE: No endpoint %[1]s /missing.html.\n%[3]s\n",
		method, uri, footer)
}

// The page, made for each request.
var (
	withPlaceholders = "respond `" + pageBody("{method}", "{scheme}://{hostport}{uri}", "[footer]") + "` 404"
	withTemplate     = "respond `" + pageBody("{{.Req.Method}}", `{{placeholder "http.request.scheme"}}://{{.Req.Host}}{{.OriginalReq.URL.RequestURI}}`, "[footer]") + "` 404"
	withVariables    = `return 404 "` + pageBody("$request_method", "$scheme://$http_host$request_uri", "[footer]") + `";`
)

// The page, as it is and with the header fields that not_found sends.
const (
	constant   = "respond `[page]` 404"
	sameFields = "header X-Content-Type-Options nosniff\nheader Cache-Control no-store\nheader Vary Accept\n" + constant
)

// intercepting is how intercept and handle_response answer with the page.
var intercepting = `
	@missing status 404
	handle_response @missing {
		header -Content-Length
		` + withPlaceholders + `
	}`

// upstreamBody is the body of the upstream, which answers /found with a 200 and everything else with a 404.
const upstreamBody = "<!doctype html>\n<title>A page</title>\n<h1>A page</h1>\n<p>It comes from the upstream.</p>\n"

var upstream = group{cores: loadCore, sites: []site{{name: "upstream", nginx: "default_type text/html;\nlocation = /found { return 200 \"" + upstreamBody + "\"; }\nlocation / { return 404 \"" + upstreamBody + "\"; }"}}}

var groups = []group{{
	name: "page", title: "A page for a request that nothing answers",
	cores: serverCore, loads: protocols,
	target: "/docs/apis?x=1", status: http.StatusNotFound,
	sites: []site{
		{name: "`respond`, a constant with the same header fields", caddy: sameFields},
		{name: "the same again", caddy: sameFields},
		{name: "`not_found`", caddy: "not_found"},
		{name: "`respond`, a bare constant", caddy: constant},
		{name: "`respond` with placeholders", caddy: withPlaceholders},
		{name: "`error 404` and `handle_errors`", caddy: "error 404\nhandle_errors {\n" + withPlaceholders + "\n}"},
		{name: "`templates`", caddy: "templates\n" + withTemplate},
		{name: "nginx, `return 404`", nginx: withVariables},
	},
}, {
	name: "replace", title: "An upstream's 404 page, replaced",
	cores: serverCore, loads: protocols,
	target: "/docs/apis?x=1", status: http.StatusNotFound,
	sites: []site{
		{name: "`intercept` and `respond`", caddy: "intercept {" + intercepting + "\n}\nreverse_proxy [upstream]"},
		{name: "the same again", caddy: "intercept {" + intercepting + "\n}\nreverse_proxy [upstream]"},
		{name: "`not_found`", caddy: "not_found\nreverse_proxy [upstream]"},
		{name: "`handle_response` and `respond`", caddy: "reverse_proxy [upstream] {" + intercepting + "\n}"},
		{name: "nginx, `proxy_intercept_errors`", nginx: "location / {\nproxy_pass http://upstream;\nproxy_intercept_errors on;\nerror_page 404 @page;\n}\nlocation @page { " + withVariables + " }"},
	},
}, {
	name: "pass", title: "An upstream's 200, passed on",
	note:  "An empty `request_body` only calls the next handler. No client sends an `Accept-Encoding` to `encode`.",
	cores: serverCore, loads: protocols,
	target: "/found", status: http.StatusOK,
	sites: []site{
		{name: "`reverse_proxy`", caddy: "reverse_proxy [upstream]"},
		{name: "the same again", caddy: "reverse_proxy [upstream]"},
		{name: "`reverse_proxy` after `not_found`", caddy: "not_found\nreverse_proxy [upstream]"},
		{name: "`reverse_proxy` after `intercept` for a 404", caddy: "intercept {" + intercepting + "\n}\nreverse_proxy [upstream]"},
		{name: "`reverse_proxy` after `header -Server`", caddy: "header -Server\nreverse_proxy [upstream]"},
		{name: "`reverse_proxy` after `encode`", caddy: "encode\nreverse_proxy [upstream]"},
		{name: "`reverse_proxy` after an empty `request_body`", caddy: "request_body\nreverse_proxy [upstream]"},
	},
}, {
	name: "scale1", title: "Pages with more connections, on one core",
	note: "In thousands: pages per second, and per second of the server's CPU time. Every other request is for one of 100\n" +
		"addresses, and the rest for addresses that are not asked for again; all have an own link. The last row has ratios.",
	cores: serverCore, loads: connections,
	target: targetOf(0), many: true, status: http.StatusNotFound,
	sites: scaled,
}, {
	name: "scale2", title: "Pages with more connections, on two cores",
	note:  "In thousands. The server shares a core with the load, so pages per second cannot double: compare those per CPU.",
	cores: serverCore + "," + loadCore, loads: connections,
	target: targetOf(0), many: true, status: http.StatusNotFound,
	sites: scaled,
}}

var scaled = []site{
	{name: "`respond`, a constant with the same header fields", caddy: sameFields},
	{name: "the same again", caddy: sameFields},
	{name: "`not_found` with `report`", caddy: "not_found {\nreport\n}"},
	{name: "`not_found`", caddy: "not_found"},
}

// targetOf returns the target of the nth request where they are for many addresses: one of 100 addresses, or, every
// other time, one that is not asked for again. All are equally long.
func targetOf(n int64) string {
	if n%2 == 0 {
		return fmt.Sprintf("/docs/%09d", n/2%100)
	}
	return fmt.Sprintf("/docs/%09d", 100+n)
}

// body is what the sites of a group respond with at a base URL.
func (g *group) body(base, footer string) string {
	if g.status == http.StatusOK {
		return upstreamBody
	}
	return pageBody(http.MethodGet, base+g.target, footer)
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

// nginxOptions change what would not compare: by default, nginx closes connections after 1,000 requests, and uses
// longer keys than Caddy.
const nginxOptions = `
daemon off;
master_process off;
pid nginx.pid;
error_log stderr error;
events {}
http {
	access_log off;
	default_type text/plain;
	client_body_temp_path body;
	proxy_temp_path proxy;
	fastcgi_temp_path fastcgi;
	uwsgi_temp_path uwsgi;
	scgi_temp_path scgi;

	keepalive_requests 1000000000;
	ssl_protocols TLSv1.3;
	ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;

	upstream upstream {
		server [upstream];
		keepalive 32;
		keepalive_requests 1000000000;
	}
	proxy_http_version 1.1;
	proxy_set_header Connection "";
`

// config returns the configuration of a server for sites of one program, each at its two addresses.
func (b *bench) config(sites []*runningSite) string {
	var c strings.Builder
	add := func(s *runningSite, base, config string) {
		c.WriteString(strings.NewReplacer("[page]", s.group.body(base, b.footer()), "[footer]", b.footer(),
			"[cert]", b.certificate(), "[upstream]", b.upstream).Replace(config))
	}
	if sites[0].program() == "caddy" {
		c.WriteString(caddyOptions)
		for _, s := range sites {
			add(s, s.plain(), s.plain()+" {\n"+s.caddy+"\n}\n")
			add(s, s.secure(), s.secure()+" {\ntls [cert] [cert]\n"+s.caddy+"\n}\n")
		}
		return c.String()
	}
	add(sites[0], sites[0].plain(), nginxOptions)
	for _, s := range sites {
		add(s, s.plain(), "server {\nlisten "+s.addrs[0]+";\n"+s.nginx+"\n}\n")
		add(s, s.secure(), "server {\nlisten "+s.addrs[1]+" ssl http2;\nssl_certificate [cert];\nssl_certificate_key [cert];\n"+s.nginx+"\n}\n")
	}
	return c.String() + "}\n"
}
