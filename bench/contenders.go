package main

import (
	"fmt"
	"net/http"
	"strings"
)

// group is a set of servers that do the same work, and so compare. The first is what the others are compared with.
type group struct {
	name, title string
	target      string // what is requested
	status      int    // what every contender answers
	contenders  []contender
}

// contender is a way to configure a server. One of the two is given: the directives of a site in a Caddyfile, or
// those of a server in nginx. In both, [page] is the body to answer with, [root] a folder that has it as 404.html,
// [footer] the last line of it, and [backend] the address of the backend.
type contender struct {
	name         string // in Markdown
	caddy, nginx string
}

// pageOf is the page of not_found in text, which is what a client gets that asks for nothing else, as wrk and h2load
// do. Every contender that answers with a page of its own sends this one.
func pageOf(method, uri, footer string) string {
	return fmt.Sprintf(`HTTP ERROR 404 No endpoint %[1]s /missing.html.
URI: %[2]s
STATUS: 404
MESSAGE: No endpoint %[1]s /missing.html.
%[3]s
`, method, uri, footer)
}

// backendPage is what the backend sends, with whatever status.
const backendPage = "<!doctype html>\n<title>A page</title>\n<h1>A page</h1>\n<p>It comes from the backend.</p>\n"

// backend answers /found with a 200, and everything else with a 404.
var backend = contender{
	name: "backend",
	nginx: `
	default_type text/html;
	location = /found { return 200 "` + backendPage + `"; }
	location / { return 404 "` + backendPage + `"; }`,
}

// The page, made for each request.
var (
	respondPage     = "respond `" + pageOf("{method}", "{scheme}://{hostport}{uri}", "[footer]") + "` 404"
	respondTemplate = "respond `" + pageOf("{{.Req.Method}}", `{{placeholder "http.request.scheme"}}://{{.Req.Host}}{{.OriginalReq.URL.RequestURI}}`, "[footer]") + "` 404"
	returnPage      = `return 404 "` + pageOf("$request_method", "$scheme://$http_host$request_uri", "[footer]") + `";`
)

// groups are what is compared.
var groups = []group{{
	name: "answering", title: "A request that nothing answers",
	target: "/docs/apis?x=1", status: http.StatusNotFound,
	contenders: []contender{
		{name: "`not_found`", caddy: "not_found"},
		{name: "`respond`, a constant", caddy: "respond `[page]` 404"},
		{name: "`respond` with placeholders", caddy: respondPage},
		{name: "`error 404` and `handle_errors`", caddy: "error 404\nhandle_errors {\n" + respondPage + "\n}"},
		{name: "`templates`", caddy: "templates\n" + respondTemplate},
		{name: "nginx, `return 404`", nginx: returnPage},
		{name: "nginx, `error_page` for a missing file", nginx: "root [root];\nerror_page 404 /404.html;"},
	},
}, {
	name: "replacing", title: "A backend's 404 page, replaced",
	target: "/docs/apis?x=1", status: http.StatusNotFound,
	contenders: []contender{
		{name: "`not_found`", caddy: "not_found\nreverse_proxy [backend]"},
		// intercept leaves the header as it is, and a longer body does not fit the old length
		{name: "`intercept` and `respond`", caddy: `
			intercept {
				@missing status 404
				handle_response @missing {
					header -Content-Length
					` + respondPage + `
				}
			}
			reverse_proxy [backend]`},
		{name: "`handle_response` and `respond`", caddy: `
			reverse_proxy [backend] {
				@missing status 404
				handle_response @missing {
					` + respondPage + `
				}
			}`},
		{name: "nginx, `proxy_intercept_errors`", nginx: `
			location / {
				proxy_pass http://backend;
				proxy_intercept_errors on;
				error_page 404 @page;
			}
			location @page { ` + returnPage + ` }`},
	},
}, {
	name: "passing", title: "A backend's 200, passed on",
	target: "/found", status: http.StatusOK,
	contenders: []contender{
		{name: "`reverse_proxy`", caddy: "reverse_proxy [backend]"},
		{name: "`reverse_proxy` behind `not_found`", caddy: "not_found\nreverse_proxy [backend]"},
	},
}}

// body is what a contender of the group has to answer with, at the given base URL.
func (g *group) body(base, footer string) string {
	if g.status == http.StatusOK {
		return backendPage
	}
	return pageOf(http.MethodGet, base+g.target, footer)
}

const caddyfile = `
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

// nginxConf has what is not nginx's default for a reason: connections that end after 1000 requests would cost
// handshakes that Caddy has not; it would encrypt with longer keys than Caddy does; and a file that
// is missing is no error here, while everything else in the error log is one.
const nginxConf = `
daemon off;
master_process off;
pid nginx.pid;
error_log stderr error;
events {}
http {
	access_log off;
	log_not_found off;
	default_type text/plain;
	client_body_temp_path body;
	proxy_temp_path proxy;
	fastcgi_temp_path fastcgi;
	uwsgi_temp_path uwsgi;
	scgi_temp_path scgi;

	keepalive_requests 1000000000;
	ssl_protocols TLSv1.3;
	ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;

	upstream backend {
		server [backend];
		keepalive 32;
		keepalive_requests 1000000000;
	}
	proxy_http_version 1.1;
	proxy_set_header Connection "";
`

// config writes the contender's configuration, for its two addresses.
func (c *contender) config(plain, secure *site) string {
	if c.nginx != "" {
		return plain.fill(nginxConf+"server {\nlisten "+plain.addr+";\n"+c.nginx+"\n}\n") +
			secure.fill("server {\nlisten "+secure.addr+" ssl http2;\nssl_certificate [cert];\nssl_certificate_key [key];\n"+c.nginx+"\n}\n}\n")
	}
	return caddyfile +
		plain.fill(plain.base+" {\n"+c.caddy+"\n}\n") +
		secure.fill(secure.base+" {\ntls [cert] [key]\n"+c.caddy+"\n}\n")
}

// site is one of the addresses of a server, and what its configuration refers to.
type site struct {
	addr, base         string
	page, footer, root string
	cert, key, backend string
}

func (s *site) fill(config string) string {
	return strings.NewReplacer("[page]", s.page, "[footer]", s.footer, "[root]", s.root, "[cert]", s.cert, "[key]", s.key,
		"[backend]", s.backend).Replace(config)
}
