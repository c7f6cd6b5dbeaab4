module example.test/second

go 1.26.0

require github.com/caddyserver/caddy/v2 v2.11.9
