package integration

const unpoly = "Unpoly 3.14.3, Chromium 156 page by script, https,"

// recipes are the Caddyfiles of the examples, by their folders, and of the documents, by their headings, and what has
// to come of the requests that their readers' visitors send.
var recipes = []recipe{
	{
		of: "README.md: not_found",
		visits: []visit{
			{address: "example.com/html", want: page("From: 9000")},
			{address: "example.com/json", want: missing("application/json", "9000 lacks /json")},
			{address: "example.com/ok", want: found("text/html", "9000 has /ok")},
		},
	},
	{
		of: "README.md: not_found, 2",
		files: map[string]string{
			"/srv/acme.example.com/404.html":  "the page of acme, with {{.URI}}",
			"/srv/acme.example.com/hello.txt": "acme has hello.txt",
		},
		visits: []visit{
			{
				address: "acme.example.com/nothing",
				client:  browser,
				want:    missing("text/html", "the page of acme, with {{.URI}}"),
			},
			{
				address: "acme.example.com/nothing",
				accept:  "application/json",
				want:    missing("application/json", "No endpoint"),
			},
			{address: "acme.example.com/hello.txt", want: found("text/plain", "has hello.txt")},
			{address: "other.example.com/nothing", client: browser, want: missing("text/html", "We looked everywhere")},
		},
	},

	{
		of: "docs/options.md: A page for each site",
		files: map[string]string{
			"/srv/www/404.html":    "the page",
			"/srv/www/de/404.html": "die Seite",
		},
		visits: []visit{
			{address: "www.example.com/de/x", client: browser, want: missing("text/html", "die Seite")},
			{address: "www.example.com/fr/x", client: browser, want: missing("text/html", "the page")},
			{address: "www.example.com/design", client: browser, want: missing("text/html", "the page")},
			{address: "www.example.com/de/404.html", client: browser, want: missing("text/html", "die Seite")},
			{address: "www.example.com/x", want: missing("text/html", "the page")},
			{address: "www.example.com/hello.txt", want: found("text/plain", "has hello.txt")},
		},
	},
	{
		of: "docs/options.md: precompressed",
		files: map[string]string{
			"/srv/www/404.html":    "the page",
			"/srv/www/404.html.br": "compressed",
		},
		visits: []visit{
			{address: "www.example.com/x", client: browser, want: missing("text/html", "the page")},
			{
				address: "www.example.com/x",
				client:  browser,
				fields:  []string{"Accept-Encoding: gzip, br"},
				want:    missing("text/html", "compressed", "Content-Encoding: br"),
			},
			{address: "www.example.com/404.html.br", client: browser, want: missing("text/html", "the page")},
			{address: "www.example.com/x", want: missing("text/html", "the page")},
		},
	},
	{
		of: "README.md: Begin with a dry run",
		finds: []string{ // a dry run does not change Caddy's empty 200
			"www.example.com/.well-known/not-there",
			"www.example.com/robots.txt",
			"www.example.com/404.html",
		},
		visits: []visit{
			{address: "www.example.com/shop/html", want: missing("text/html", "9000 lacks /shop/html")},
			{address: "www.example.com/shop/json", want: missing("application/json", "9000 lacks")},
			{address: "www.example.com/nothing", want: found("").without("HTTP ERROR")},
		},
	},
	{
		of: "api",
		visits: []visit{
			{address: "example.com/api/json", want: missing("application/json", "8081 lacks /api/json")},
			{address: "example.com/html", want: page("From: 8082")},
			{address: "example.com/ok", want: found("text/html", "8082 has /ok")},
			{
				address: "api.example.com/plain",
				client:  browser,
				want:    missing("application/problem+json", "From: 8081"),
			},
			{address: "api.example.com/json", want: missing("application/json", "8081 lacks")},
			{address: "partner.example.com/json", want: missing("application/json", "HTTP ERROR 404", "From: 8081")},
			{
				address: "partner.example.com/json",
				accept:  "application/problem+json",
				want:    missing("application/problem+json"),
			},
			{address: "partner.example.com/public/html", want: missing("text/html", "8081 lacks /public/html")},
			{
				address: `gateway.example.com/nothing?"x`,
				want:    missing("application/json", `{"error": {"code": "not_found", "message": "There is no such resource.", "target": "http://gateway.example.com/nothing?%22x"}}`),
			},
			{
				address: "gateway.example.com/nothing",
				accept:  "application/problem+json",
				want:    missing("application/problem+json", `"status": 404,`, `"code": "not_found"`, `"instance": "http://gateway.example.com/nothing",`),
			},
			{
				address: "gateway.example.com/users/html",
				client:  browser,
				want:    missing("application/json", `{"error": {"code": "not_found",`, "From: 8081"),
			},
			{address: "gateway.example.com/orders/json", want: missing("application/json", "8082 lacks /orders/json")},
		},
	},
	{
		of:   "backends",
		down: []string{"8083"},
		visits: []visit{
			{address: "www.example.com/shop/html", want: page("From: 8081")},
			{address: "www.example.com/shop/ok", want: found("text/html", "8081 has /shop/ok")},
			{address: "www.example.com/blog/html", want: page("From: php")},
			{address: "www.example.com/blog/ok", want: found("text/html", "php has")},
			{address: "www.example.com/account/html", want: page("From: 8082")},
			{address: "www.example.com/account/ok", want: found("text/html", "8082 has")},
			{address: "www.example.com/account/ok", want: found("text/html", "8082 has")},
			{address: "www.example.com/nothing", want: page().without("From:")},
			{address: "www.example.com/hello.txt", want: found("text/plain", "/srv/www has hello.txt")},
			{
				address: "shop.example.com/shop/html",
				want:    missing("text/plain", "No endpoint GET /shop/missing.html.", "From: 8081"),
			},
			{
				address: "shop.example.com/shop/checkout/html",
				want:    missing("text/plain", "/shop/checkout/missing.html.", "Questions? Call 555-0100"),
			},
			{address: "shop.example.com/html", want: page("From: 8082")},
			{address: "shop.example.com/shop/ok", want: found("text/html", "8081 has")},
			{
				address: "apps.example.com/wiki/html",
				want:    missing("text/plain", "No endpoint GET /wiki/missing.html.", "From: 8086"),
			},
			{
				address: "apps.example.com/tracker/html",
				want:    missing("text/plain", "No endpoint GET /tracker/missing.html.", "From: 8084"),
			},
			{address: "apps.example.com/nothing", want: page()},
			{
				address: "acme.customers.example.com/html",
				want:    missing("text/plain", "No endpoint GET /acme/missing.html.", "From: 8085"),
			},
			{address: "legacy.example.com/legacy/html", want: missing("text/html", "8081 lacks")},
			{
				address: "legacy.example.com/html",
				client:  browser,
				want:    missing("text/html", "We looked everywhere", "Example Inc., Springfield", "From: 8082"),
			},
			{address: "legacy.example.com/ok", want: found("text/html", "8082 has")},
			{address: "partly.example.com/legacy/empty", want: missing("", "From: 8081").without("HTTP ERROR")},
			{address: "partly.example.com/html", want: page("From: 8082")},
			{address: "blog.example.com/designed", want: missing("text/html", "8081 lacks /designed")},
			{address: "blog.example.com/html", want: page("From: 8081")},
			{address: "wiki.example.com/german-designed", want: missing("text/html", "8082 lacks")},
			{address: "wiki.example.com/german", want: page("From: 8082")},
			{address: "wiki.example.com/french-designed", want: page("From: 8082")},
			{address: "wiki.example.com/ok", want: found("text/html", "8082 has")},
			{address: "forum.example.com/html", want: missing("text/html", "8081 lacks")},
			{address: "forum.example.com/json", want: missing("application/json", "8081 lacks")},
			{address: "forum.example.com/empty", want: page("From: 8081")},
		},
	},
	{
		of: "brand",
		files: map[string]string{
			"/srv/acme.example.com/404.html":  "the page of acme, with {{.URI}}",
			"/srv/acme.example.com/hello.txt": "acme has hello.txt",
		},
		visits: []visit{
			{
				address: "www.example.com/nothing",
				client:  browser,
				want:    missing("text/html", "We looked everywhere", "Example Inc., Springfield"),
			},
			{
				address: "www.example.com/nothing",
				want:    missing("text/html", "Content-Security-Policy: default-src 'none'; style-src 'self'; img-src 'self'"),
			},
			{
				address: "www.example.com/nothing",
				accept:  "application/json",
				want:    missing("application/json", `"footer":"Example Inc., Springfield"`),
			},
			{address: "www.example.com/hello.txt", want: found("text/plain", "/srv/www has hello.txt")},
			{
				address: "lanterns.example.com/html",
				want:    missing("text/html", "This lantern has gone out.", "Example Lanterns, Springfield", "From: 8081"),
			},
			{
				address: "candles.example.net/html",
				want:    missing("text/html", "This candle has burned down.", "Example Candles, Shelbyville", "From: 8082"),
			},
			{address: "candles.example.net/ok", want: found("text/html", "8082 has")},
			{
				address: "acme.example.com/nothing",
				client:  browser,
				want:    missing("text/html", "the page of acme, with {{.URI}}"),
			},
			{address: "other.example.com/nothing", client: browser, want: missing("text/html", "HTTP ERROR 404")},
			{
				address: "berlin.example.com/html",
				client:  browser,
				fields:  []string{"Accept-Language: de-DE,de;q=0.9,en;q=0.8"},
				want:    missing("text/html", `<html lang="de">`, "Diese Seite", "Beispiel GmbH"),
			},
			{
				address: "berlin.example.com/html",
				accept:  "text/plain",
				fields:  []string{"Accept-Language: de"},
				want:    missing("text/plain", "MESSAGE: Diese Seite gibt es nicht."),
			},
			{
				address: "berlin.example.com/html",
				fields:  []string{"Accept-Language: en,de;q=0.5"},
				want:    page("Example Inc."),
			},
			{
				address: "berlin.example.com/html",
				client:  browser,
				fields:  []string{"Accept-Language: DE-de"},
				want:    missing("text/html", "Diese Seite"),
			},
			{
				address: "berlin.example.com/html",
				client:  browser,
				fields:  []string{"Accept-Language: den"},
				want:    missing("text/html", "Example Inc."),
			},
			{
				address: "berlin.example.com/ok",
				fields:  []string{"Accept-Language: de"},
				want:    found("text/html", "8081 has"),
			},
			{
				address: "support.example.com/html",
				accept:  "application/json",
				want:    missing("application/json", `"footer":"Request `),
			},
			{address: "support.example.com/ok", want: found("text/html", "8081 has", "X-Request-Id: ")},
			{
				address: "guide.example.com/nothing",
				client:  browser,
				want:    missing("text/html", `<form action="/search"`, `Link: </llms.txt>; rel="help"; type="text/plain", </search>; rel="search"`),
			},
			{
				address: "guide.example.com/nothing",
				accept:  "text/markdown, text/html, */*",
				want: missing("text/markdown", `Link: </llms.txt>; rel="help"`, "at <http://guide.example.com/nothing>.",
					"(https://guide.example.com/llms.txt)", "(https://guide.example.com/sitemap.xml)"),
			},
			{
				address: "guide.example.com/docs/nothing.md",
				accept:  "*/*",
				want: missing("text/markdown", `Link: </llms.txt>; rel="help"`,
					"(https://guide.example.com/llms.txt)", "(https://guide.example.com/sitemap.xml)"),
			},
			{
				address: "guide.example.com/docs/nothing.md",
				client:  browser,
				want:    missing("text/html", `<form action="/search"`),
			},
			{
				address: "guide.example.com/nothing",
				accept:  "*/*",
				want:    missing("text/html", `<form action="/search"`, `Link: </llms.txt>; rel="help"`),
			},
			{address: "guide.example.com/nothing", accept: "text/plain", want: page(`Link: </llms.txt>; rel="help"`)},
			{address: "guide.example.com/search?q=x", want: missing("text/html", `<form action="/search"`, "From: 8081")},
			{address: "guide.example.com/hello.txt", want: found("text/plain", "/srv/www has").without("Link")},
		},
	},
	{
		of: "catch-all",
		visits: []visit{
			{address: "www.example.com:443/ok", want: found("text/html", "8081 has /ok")},
			{address: "www.example.com:443/html", want: page("From: 8081")},
			{address: "www.example.com/x?y", want: answers(301, "", "Location: https://www.example.com/x?y")},
			{address: "other.example/.well-known/matrix/client", want: page()},
			{address: "other.example:443/x", want: page()},
			{address: "other.example/", want: page()},
			{address: "localhost/", want: found("").without("HTTP ERROR")},
			{address: "localhost.example/", want: page()},
			{address: "not-localhost/", want: page()},
			{address: "192.0.2.1/", want: found("").without("HTTP ERROR")},
			{method: "OPTIONS", address: "192.0.2.1/", want: found("").without("HTTP ERROR")},
			{method: "HEAD", address: "192.0.2.1:443/", want: found("")},
			{method: "OPTIONS", address: "[2001:db8::1]:443/", want: found("")},
			{address: "192.0.2.1/x", want: page()},
		},
	},
	{
		of: "docker",
		visits: []visit{
			{address: "localhost:8080/nothing", want: page()},
			{address: "localhost:8080/hello.txt", want: found("text/plain", "/usr/share/caddy has hello.txt")},
		},
	},
	{
		of: "dry-run",
		visits: []visit{
			{
				address: "www.example.com/shop/html",
				client:  browser,
				want:    missing("text/html", "8081 lacks /shop/html"),
			},
			{address: "www.example.com/shop/json", want: missing("application/json", "8081 lacks")},
			{address: "www.example.com/shop/ok", want: found("text/html", "8081 has")},
			{address: "www.example.com/health", want: found("").without("HTTP ERROR")},
			{address: "www.example.com/nothing", want: missing("").without("HTTP ERROR")},
			{address: "www.example.com/hello.txt", want: found("text/plain", "/srv/www has")},
		},
	},
	{
		of:   "errors",
		down: []string{"8082"},
		visits: []visit{
			{address: "www.example.com/nothing", client: browser, want: missing("text/html", "We have no page at")},
			{address: "www.example.com/nothing", accept: "text/plain", want: page()},
			{
				address: "www.example.com/shop/html",
				client:  browser,
				want:    missing("text/html", "We have no page at", "From: 8081"),
			},
			{address: "www.example.com/account/ok", want: answers(502, "text/html", "Something went wrong")},
			{address: "www.example.com/shop/unavailable", want: answers(503, "text/html", "Something went wrong", "Retry-After: 30")},
			{
				address: "www.example.com/shop/fails",
				fields:  []string{"Accept-Encoding: gzip"},
				want:    answers(500, "text/html", "Something went wrong", "</html>").without("Content-Encoding", "Content-Disposition"),
			},
			{
				address: "www.example.com/shop/overloaded",
				want:    answers(503, "application/problem+json", "8081 lacks", "Retry-After: 30"),
			},
			{address: "www.example.com/shop/ok", want: found("text/html", "8081 has")},
			{address: "www.example.com/hello.txt", want: found("text/plain", "/srv/www has")},
			{address: "files.example.com/nothing", want: missing("text/html", "The page of handle_errors")},
			{address: "files.example.com/shop/html", want: page("From: 8081")},
			{address: "files.example.com/hello.txt", want: found("text/plain", "/srv/www has")},
			{address: "downloads.example.com/app/html", want: missing("text/html", "8083 lacks")},
			{address: "downloads.example.com/app/empty", want: missing("").without("HTTP ERROR")},
			{address: "downloads.example.com/nothing", want: page()},
			{address: "downloads.example.com/hello.txt", want: found("text/plain", "/srv/www has")},
		},
	},
	{
		of: "jetty",
		visits: []visit{
			{
				address: "localhost:8080/html",
				want:    missing("text/html", "<h2>HTTP ERROR 404", "<td>http://localhost:8080/html</td>", "From: 8081"),
			},
			{address: "localhost:8080/html", accept: "text/plain", want: page()},
			{address: "localhost:8080/ok", want: found("text/html", "8081 has")},
		},
	},
	{
		of: "json",
		visits: []visit{
			{
				address: "localhost:8080/shop/json",
				fields:  []string{"X-Original-URI: /a?b"},
				want:    missing("text/html", "We looked everywhere", "https://www.example.com/a?b"),
			},
			{
				address: "localhost:8080/shop/html",
				accept:  "application/json",
				want:    missing("application/json", "No endpoint GET /shop/missing.html.", `"footer":"Example Inc."`),
			},
			{address: "localhost:8080/shop/designed", want: missing("text/html", "8081 lacks")},
			{address: "localhost:8080/shop/german-designed", want: missing("text/html", "8081 lacks")},
			{address: "localhost:8080/shop/german", want: missing("text/html", "We looked everywhere")},
			{address: "localhost:8080/shop/french-designed", want: missing("text/html", "We looked everywhere")},
			{address: "localhost:8080/html", accept: "text/plain", want: missing("text/plain", "There is nothing here.")},
			{address: "localhost:8080/wiki/html", want: missing("text/html", "8081 lacks")},
			{address: "localhost:8080/ok", want: found("text/html", "8081 has")},
		},
	},
	{
		of: "monitoring",
		finds: []string{ // the site for Prometheus, which has nothing but the metrics
			"localhost:9180/.well-known/not-there",
			"localhost:9180/robots.txt",
			"localhost:9180/404.html",
		},
		visits: []visit{
			{address: "www.example.com/shop/html", want: page("From: 8081")},
			{address: "www.example.com/nothing", want: page()},
			{address: "www.example.com/hello.txt", want: found("text/plain", "/srv/www has")},
			{
				address: "localhost:9180/metrics",
				want:    found("text/plain", `caddy_not_found_pages_total{cause="response",link="none"} `),
			},
			{address: "shop.example.com/wp-login.php", client: browser, want: page()},
			{address: "shop.example.com/.git/config", want: page()},
			{
				address: "shop.example.com/shop/html",
				client:  browser,
				want:    missing("text/html", "HTTP ERROR 404", "From: 8081"),
			},
			{address: "shop.example.com/shop/ok", want: found("text/html", "8081 has")},
			{address: "shop.example.com/nothing", want: page()},
			{address: "shop.example.com/hello.txt", want: found("text/plain", "/srv/www has")},
		},
		logged: []logged{
			{host: "www.example.com", field: "not_found", values: []string{"response", "error", ""}},
		},
	},
	{
		of: "php",
		visits: []visit{
			{address: "www.example.com/html", want: page("From: php")},
			{address: "www.example.com/json", want: missing("application/json", "php lacks /json")},
			{address: "www.example.com/ok", want: found("text/html", "php has /ok")},
			{address: "www.example.com/media/ok.png", want: found("text/html", "php has /media/ok.png")},
			{address: "www.example.com/assets/gone.png", want: page().without("From:")},
			{address: "www.example.com/assets/app.js", want: found("text/javascript", "/srv/www/public has")},
			{address: "www.example.com/hello.txt", want: found("text/plain", "/srv/www/public has hello.txt")},
			{address: "plain.example.com/html", want: page().without("From:")},
			{address: "plain.example.com/hello.txt", want: found("text/plain", "/srv/plain has hello.txt")},
			{address: "plain.example.com/index.php", want: found("text/html", "php has /index.php")},
		},
	},
	{
		of: "proxies",
		visits: []visit{
			{
				address: "localhost:8080/404?url=https%3A%2F%2Fshop.test%2Fa%3Fb",
				want:    missing("text/plain", "URI: https://shop.test/a?b"),
			},
			{
				address: "localhost:8081/404",
				fields:  []string{"X-Original-URI: /a?b", "X-Forwarded-Proto: https"},
				want:    missing("text/plain", "URI: https://localhost:8081/a?b"),
			},
			{address: "localhost:8082/x?url=/evil", want: page()},
			{address: "localhost:8083/x", want: missing("text/html", "We have no page at this address", "Vary: Accept")},
			{
				address: "localhost:8090/html",
				fields:  []string{"X-Forwarded-Proto: https", "X-Forwarded-Host: shop.test"},
				want:    missing("text/plain", "URI: https://shop.test/html", "From: 9001"),
			},
			{
				address: "localhost:8091/html",
				fields:  []string{"X-Forwarded-Host: shop.test"},
				want:    missing("text/plain", "URI: https://www.example.com/html", "From: 9002"),
			},
			{address: "localhost:8091/ok", want: found("text/html", "9002 has")},
		},
	},
	{
		of: "quickstart",
		visits: []visit{
			{address: "localhost:8080/", want: found("text/plain", "Try /docs/nothing")},
			{address: "localhost:8080/files/hello.txt", want: found("text/plain", "Hello from a file.")},
			{address: "localhost:8080/files/nothing.txt", want: page()},
		},
	},
	{
		of: "spa",
		files: map[string]string{
			"/srv/app/robots.txt":               "User-agent: *",
			"/srv/app/.well-known/security.txt": "Contact: mailto:a@example.com",
		},
		finds: []string{"app.example.com/robots.txt"}, // which is there
		visits: []visit{
			{address: "app.example.com/a/view", want: found("text/html", "/srv/app has index.html")},
			{address: "app.example.com/assets/app.js", want: found("text/javascript", "/srv/app has assets/app.js")},
			{address: "app.example.com/assets/gone.js", want: page()},
			{address: "app.example.com/robots.txt", want: found("text/plain", "User-agent")},
			{address: "app.example.com/.well-known/security.txt", want: found("text/plain", "Contact")},
			{address: "app.example.com/.well-known/change-password", want: page()},
			{address: "app.example.com/sitemap.xml", want: page()},
			{address: "app.example.com/sw.js", fields: []string{"Sec-Fetch-Dest: serviceworker"}, want: page()},
			{address: "app.example.com/.env", want: page()},
			{address: "app.example.com/wp-login.php", client: browser, want: missing("text/html", "HTTP ERROR 404")},
			{address: "app.example.com/api/ok.json", want: found("text/html", "8081 has /api/ok.json")},
			{address: "app.example.com/api/avatar/ok.png", want: found("text/html", "8081 has")},
			{address: "app.example.com/api/json", want: missing("application/json", "8081 lacks")},
			{
				address: "www.example.com/a.png",
				accept:  "image/avif,*/*;q=0.8",
				fields:  []string{"Sec-Fetch-Dest: image"},
				want:    page(),
			},
			{
				address: "www.example.com/a.css",
				accept:  "text/css,*/*;q=0.1",
				fields:  []string{"Sec-Fetch-Dest: style"},
				want:    page(),
			},
			{
				address: "www.example.com/a.js",
				accept:  "text/html",
				fields:  []string{"Sec-Fetch-Dest: script"},
				want:    page(),
			},
			{address: "www.example.com/a.woff2", accept: "*/*", fields: []string{"Sec-Fetch-Dest: font"}, want: page()},
			{
				address: "www.example.com/w.js",
				accept:  "*/*",
				fields:  []string{"Sec-Fetch-Dest: serviceworker"},
				want:    page(),
			},
			{address: "www.example.com/page", client: browser, want: missing("text/html", "We looked everywhere")},
			{address: "www.example.com/any", accept: "*/*", want: missing("text/html", "We looked everywhere")},
			{
				address: "www.example.com/hello.txt",
				fields:  []string{"Sec-Fetch-Dest: image"},
				want:    found("text/plain", "/srv/www has hello.txt"),
			},
			{address: "bucket.example.com/a/view", want: found("text/html", "8082 has /index.html")},
			{address: "bucket.example.com/a/xml", client: browser, want: found("text/html", "8082 has /index.html")},
			{address: "bucket.example.com/a/forbidden", want: found("text/html", "8082 has /index.html")},
			{address: "bucket.example.com/a/ok", want: found("text/html", "8082 has /a/ok")},
			{address: "bucket.example.com/assets/ok.js", want: found("text/html", "8082 has /assets/ok.js")},
			{address: "bucket.example.com/assets/xml.js", want: page("From: 8082")},
			{address: "bucket.example.com/assets/forbidden.js", want: page()},
			{method: "POST", address: "bucket.example.com/a/view", want: page("From: 8082")},
			{address: "bucket.example.com/api/json", want: missing("application/json", "8081 lacks")},
			{address: "bucket.example.com/api/html", want: page("From: 8081")},
		},
	},
	{
		of: "docs/applications.md: The application's own page",
		visits: []visit{
			{address: "wiki.example.com", recorded: "MediaWiki 1.39, curl, GET /wiki/Nope", client: browser, want: theirs},
			{address: "wiki.example.com/html", want: page("From: 9001")},
			{address: "next.example.com", recorded: "Next.js 16.4.6, app router, Chromium 156 navigation", want: theirs},
			{
				address:  "next.example.com",
				recorded: "Next.js 16.4.6, pages router, Chromium 156 navigation",
				want:     missing("text/html", "HTTP ERROR 404"),
			},
			{address: "kit.example.com", recorded: "SvelteKit 3.2.0, adapter-node, Chromium 156 navigation", want: theirs},
			{address: "kit.example.com/html", want: page("From: 9003")},
			{address: "blog.example.com", recorded: "WordPress 6.1, curl, GET /nope", client: browser, want: theirs},
			{address: "blog.example.com/html", want: page("From: 9004")},
			{address: "api.example.com", recorded: "Django REST framework 3.14.0, Chromium 156", want: theirs},
			{address: "api.example.com", recorded: "Django 3.2, curl", want: page("From: 9005")},
			{address: "nuxt.example.com", recorded: "Nuxt 4.5.2, curl program that names HTML", want: theirs},
			{address: "nuxt.example.com/html", want: page("From: 9007")},
			{address: "inertia.example.com/Inertia", client: browser, want: missing("text/html", "9009 lacks")},
			{address: "inertia.example.com/html", want: page("From: 9009")},
		},
	},
	{
		of: "docs/applications.md: Forms",
		visits: []visit{
			{address: "forms.example.com", recorded: "SvelteKit 2.70.4, Chromium 156, POST /item/good?/miss", want: theirs},
			{address: "forms.example.com", recorded: "SvelteKit 3.2.0, adapter-node, curl program, http, GET /missing", want: page()},
		},
	},
	{
		of: "docs/applications.md: Only browsers get the page",
		visits: []visit{
			{address: "code.example.com/html", client: browser, want: missing("text/html", "HTTP ERROR")},
			{
				address:  "code.example.com",
				recorded: "Apache 2.4.71: git, Subversion, WebDAV, apt, Go proxy, pip, gem, cargo, git, GET /dumb",
				want:     missing("text/html", "Content-Location: /recorded", "Vary: Accept, Sec-Fetch-Mode, Upgrade-Insecure-Requests"),
			},
			{address: "code.example.com/plain", want: missing("text/plain", "9000 lacks")},
			{address: "code.example.com/empty", want: missing("", "From: 9000").without("HTTP ERROR")},
		},
	},
	{
		of: "docs/applications.md: Only browsers get the page, 2",
		visits: []visit{
			{address: "db.example.com", recorded: "PouchDB Server (express-pouchdb) 4.2.0, PouchDB 9 in Node", want: theirs},
			{
				address:  "db.example.com",
				recorded: "PouchDB Server (express-pouchdb) 4.2.0, PouchDB 9 in Node",
				client:   browser,
				want:     missing("text/html", "HTTP ERROR", "From: 5984"),
			},
			{
				address: "db.example.com/labelled",
				fields:  []string{"Accept-Encoding: gzip"},
				want:    missing("text/plain", `{"error":"5984 lacks /labelled"}`),
			},
		},
	},
	{
		of: "docs/applications.md: Programs that print the page",
		visits: []visit{
			{address: "code.example.com/nothing", accept: "*/*", want: missing("text/html", "HTTP ERROR")},
			{address: "code.example.com/git/plain", accept: "*/*", want: missing("text/plain", "3000 lacks")},
			{address: "code.example.com/git/html", client: browser, want: missing("text/html", "HTTP ERROR")},
		},
	},
	{
		of: "docs/applications.md: Fragments without HTTPS",
		visits: []visit{
			{address: "intranet.example.com/html", want: missing("text/html", "9000 lacks")},
			{
				address:  "intranet.example.com",
				recorded: "Unpoly 3.14.3, Chromium 156 navigation, http,",
				want:     missing("text/html", "HTTP ERROR", "From: 9000"),
			},
			{address: "intranet.example.com", recorded: "htmx 4.0.1, Chromium 156 page by script, http,", want: theirs},
			{address: "intranet.example.com", recorded: "jQuery 4.0.0, Chromium 156 fragment, http,", want: theirs},
			{address: "intranet.example.com", recorded: "Unpoly 3.14.3, Chromium 156 page by script, http,", want: theirs},
			{address: "intranet.example.com", recorded: "Inertia core 3.7.1, Chromium 156 page by script, http,", want: theirs},
			{
				address:  "intranet.example.com",
				recorded: "SolidStart 2.0.5, Chromium 156 action or form by script, http,",
				want:     theirs,
			},
			{
				address:  "intranet.example.com",
				recorded: "TanStack Start 1.169.5, Chromium 156 action or form by script, http, POST /_serverFn/5692",
				want:     theirs,
			},
			{
				address:  "intranet.example.com",
				recorded: "Express 5 with swup 4.10, barba 2.10, Alpine AJAX 0.12.7, localhost, Chromium 156, POST /alpine/vote",
				want:     theirs,
			},
			{
				address:  "intranet.example.com",
				recorded: "Turbo 8.0.23, Chromium 156 page by script, http, GET /turbo/fmissing",
				want:     theirs,
			},
		},
	},
	{
		of: "docs/applications.md: A router that fetches whole pages",
		visits: []visit{
			{address: "app.example.com/html", want: page("From: 9000")},
			{
				address:  "app.example.com",
				recorded: "Turbo 8.0.23, Chromium 156 page by script, https, GET /turbo/missing",
				want:     missing("text/html", "HTTP ERROR"),
			},
			{
				address:  "app.example.com",
				recorded: "swup 4.10.0, Chromium 156 page by script, http,",
				want:     missing("text/html", "HTTP ERROR"),
			},
			{address: "app.example.com", recorded: unpoly, want: missing("text/html", "HTTP ERROR")},
			{ // the page has an element with up-main
				address:  "app.example.com",
				recorded: unpoly,
				fields:   []string{"X-Up-Target: [up-main='']"},
				want:     missing("text/html", "HTTP ERROR"),
			},
			{address: "app.example.com", recorded: unpoly, fields: []string{"X-Up-Target: #fragment"}, want: theirs},
			{address: "app.example.com", recorded: "Unpoly 3.14.3, Chromium 156 action or form by script, https,", want: theirs},
			{address: "app.example.com", recorded: "jQuery 4.0.0, Chromium 156 fragment, https,", want: theirs},
			{address: "app.example.com", recorded: "htmx 4.0.1, Chromium 156 page by script, https,", want: theirs},
			{
				address:  "app.example.com",
				recorded: "htmx 4.0.1, Chromium 156 page by script, https,",
				fields:   []string{"HX-Boosted: true"},
				want:     missing("text/html", "HTTP ERROR"),
			},
			{
				address: "app.example.com/html",
				client:  script,
				fields:  []string{"X-Livewire-Navigate: "},
				want:    missing("text/html", "HTTP ERROR"),
			},
			{address: "app.example.com/html", client: script, want: missing("text/html", "9000 lacks")},
			{method: "POST", address: "app.example.com/html", client: turbo, want: missing("text/html", "9000 lacks")},
			{
				address:  "app.example.com",
				recorded: "Turbo 8.0.23, Chromium 156 page by script, https, GET /turbo/fmissing",
				want:     theirs,
			},
			{address: "app.example.com/json", want: missing("application/json", "9000 lacks")},
		},
	},
	{
		of: "docs/applications.md: A router that fetches whole pages, 2",
		visits: []visit{
			{
				address:  "astro.example.com",
				recorded: "Astro 7.3.5 with ClientRouter, @astrojs/node 11.1.6, Chromium 156 page by script, https,",
				want:     page("From: 9000"),
			},
			{
				address:  "astro.example.com",
				recorded: "Astro 7.3.5 with ClientRouter, @astrojs/node 11.1.6, Chromium 156 navigation",
				want:     missing("text/html", "HTTP ERROR 404"),
			},
			{
				address:  "astro.example.com",
				recorded: "Astro 7.3.5 with ClientRouter, @astrojs/node 11.1.6, Chromium 156 action or form by script, https,",
				want:     theirs,
			},
			{address: "astro.example.com/json", client: script, want: missing("application/json", "9000 lacks")},
		},
	},
	{
		of: "docs/applications.md: People who get JSON",
		visits: []visit{
			{
				address:  "base.example.com",
				recorded: "PocketBase 0.36.8, curl",
				client:   browser,
				want:     missing("text/html", "HTTP ERROR", "From: 8090"),
			},
			{address: "base.example.com/api/json", want: missing("application/json", "8090 lacks")},
			{address: "base.example.com/api/plain", want: missing("text/plain", "8090 lacks")},
		},
	},
	{
		of: "docs/headers.md: What no-store costs",
		visits: []visit{
			{address: "example.com/html", want: page("Cache-Control: public, max-age=10")},
			{address: "example.com/json", want: missing("application/json", "Cache-Control: public, max-age=10")},
			{address: "example.com/ok", want: found("text/html").without("Cache-Control")},
		},
	},
	{
		of: "docs/headers.md: A site with a Content-Security-Policy",
		visits: []visit{
			{
				address: "example.com/html",
				client:  browser,
				want:    missing("text/html", "Content-Security-Policy: default-src 'none'; img-src 'self'; style-src 'sha256-"),
			},
			{address: "example.com/ok", want: found("text/html", "Content-Security-Policy: default-src 'self'")},
			{
				address: "example.com/policy",
				want:    missing("application/json", "Content-Security-Policy: default-src theirs"),
			},
		},
	},
	{
		of: "docs/headers.md: A site with a Content-Security-Policy, 2",
		visits: []visit{
			{
				address: "example.com/html",
				client:  browser,
				want:    missing("text/html", "HTTP ERROR", "Content-Security-Policy: default-src 'self'; style-src 'self' 'sha256-"),
			},
			{
				address: "example.com/ok",
				want:    found("text/html", "Content-Security-Policy: default-src 'self'; style-src 'self' 'sha256-"),
			},
		},
	},
	{
		of: "docs/moving.md: JSON for an API",
		visits: []visit{
			{address: "www.example.com/api/json", client: browser, want: missing("application/json", `"code": "not_found"`)},
			{address: "www.example.com/api/html", want: missing("application/json", `"code": "not_found"`)},
			{address: "www.example.com/html", client: browser, want: missing("text/html", "HTTP ERROR 404")},
		},
	},
	{
		of: "docs/moving.md: Another status as a 404",
		visits: []visit{
			{address: "www.example.com/forbidden", want: page().without("From:", "Via:")},
			{address: "www.example.com/gone", want: page()},
			{address: "www.example.com/html", want: page("From:", "Via:")},
			{address: "www.example.com/ok", want: found("text/html", "9000 has /ok")},
		},
	},
	{
		of: "docs/moving.md: Another status as a 404, 2",
		visits: []visit{
			{address: "www.example.com/private/forbidden", want: page().without("From:", "Via:")},
			{address: "www.example.com/private/gone", want: page().without("From:", "Via:")},
			{address: "www.example.com/private/html", want: page().without("From:", "Via:")},
			{address: "www.example.com/private/json", client: script, want: page().without("From:", "Via:")},
			{address: "www.example.com/private/ok", want: found("text/html", "9000 has /private/ok")},
			{address: "www.example.com/json", want: missing("application/json", "9000 lacks /json")},
			{address: "www.example.com/forbidden", want: answers(403, "text/html", "9000 lacks /forbidden")},
		},
	},
	{
		of: "docs/moving.md: What nobody may see",
		visits: []visit{
			{address: "www.example.com/admin/x", want: page()},
			{address: "www.example.com/hello.txt", want: found("text/plain", "/srv/www has")},
		},
	},
	{
		of: "docs/limits.md: Fragments of pages",
		visits: []visit{
			{address: "www.example.com/fragments/ok", want: found("text/html", "9000 has /fragments/ok")},
			{address: "www.example.com/fragments/html", want: missing("", "Cache-Control: no-store").without("9000", "HTTP ERROR")},
			{address: "www.example.com/html", want: page("From: 9000")},
		},
	},
	{
		of: "docs/no-page.md: Why is it not shown?",
		visits: []visit{
			{address: "www.example.com/html", client: browser, want: missing("text/html", "HTTP ERROR", "From: 9000")},
			{address: "www.example.com/json", want: missing("application/json", "9000 lacks")},
		},
		logged: []logged{
			{host: "www.example.com", field: "not_found", values: []string{"response", ""}},
			{host: "www.example.com", field: "not_found_reason", values: []string{"", "media type"}},
		},
	},
	{
		of: "docs/order.md: A CORS preflight",
		visits: []visit{
			{
				method:  "OPTIONS",
				address: "example.com/x",
				want: answers(204, "",
					"Access-Control-Allow-Origin: https://app.example.com",
					"Access-Control-Allow-Methods: GET, PUT, DELETE",
					"Access-Control-Allow-Headers: Content-Type"),
			},
			{address: "example.com/x", want: page("Access-Control-Allow-Origin")},
		},
	},
	{
		of:     "docs/order.md: Next to intercept and handle_response",
		static: []string{"9001"},
		visits: []visit{
			{address: "example.com/html?a=b", client: browser, want: missing("text/html", "the 404.html of 9001")},
			{address: "example.com/html", want: missing("text/html", "the 404.html of 9001")},
			{method: "POST", address: "example.com/html", want: missing("text/html", "the 404.html of 9001")},
			{address: "example.com/json", want: missing("application/json", "9000 lacks /json")},
			{address: "example.com/plain", want: page("From: 9000")},
			{address: "example.com/ok", want: found("text/html", "9000 has /ok")},
		},
	},
	{
		of: "docs/order.md: The access log",
		visits: []visit{
			{address: "example.com/nothing", want: page()},
		},
		logged: []logged{
			{host: "example.com", field: "not_found", values: []string{"unanswered"}},
			{host: "example.com", field: "not_found_reason", values: []string{""}},
		},
	},
	{
		of: "examples/monitoring/README.md: Traces",
		visits: []visit{
			{address: "www.example.com/html", want: page("From: 8081")},
			{address: "www.example.com/ok", want: found("text/html", "8081 has")},
		},
	},
}
