#!/usr/bin/env bash
# Caddy's cache-handler stores no response without a body, whatever its Cache-Control, unless it is a 204 or a redirect.
# So a backend that answers a 404 with max-age and no body is asked each time. In Cache-Status, the reason has the same
# words as that for a backend that fails: UPSTREAM-ERROR-OR-EMPTY-RESPONSE.
#
# github.com/caddyserver/cache-handler v0.16.0 in github.com/caddyserver/caddy/v2 v2.11.9. Tried on 2026-11-28 with Go
# 1.26.8, and responses with max-age=60. Seen for the second of two requests:
#
#   200 with a body: hit
#   404 with a body: hit
#   200 without a body: uri-miss, UPSTREAM-ERROR-OR-EMPTY-RESPONSE
#   404 without a body: uri-miss, UPSTREAM-ERROR-OR-EMPTY-RESPONSE
#   204 without a body: hit
#   301 without a body: hit
#
# This exits with 1 if one of the six differs.
set -euo pipefail

work=$(mktemp -d)
server=
trap 'kill "$server" 2>/dev/null; wait; rm -rf "$work"' EXIT
cd "$work"

cat >main.go <<'GO'
package main

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
	_ "github.com/caddyserver/cache-handler"
)

func main() { caddycmd.Main() }
GO
{
	go mod init example.com/caddy
	go mod edit -require github.com/caddyserver/caddy/v2@v2.11.9 -require github.com/caddyserver/cache-handler@v0.16.0
	go mod tidy
	go build -o caddy .
} 2>/dev/null

free() {
	python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print("127.0.0.1:%d" % s.getsockname()[1])'
}
cache=$(free)
backend=$(free)
cat >Caddyfile <<END
{
	admin off
	persist_config off
	cache
}
http://$cache {
	cache
	reverse_proxy $backend
}
http://$backend {
	header Cache-Control max-age=60
	respond /200 200
	respond /404 404
	respond /204 204
	respond /301 301
	respond /404/body "body" 404
	respond /200/body "body" 200
}
END
./caddy run >log 2>&1 &
server=$!

status=0
want() { # <what> <path> <Cache-Status>
	local got
	for _ in first second; do
		got=$(curl --silent --head --request GET --retry 20 --retry-connrefused --retry-delay 1 "http://$cache/$2")
	done
	got=$(sed -n 's/^cache-status: Souin; //Ip' <<<"$got" |
		grep --only-matching --extended-regexp '^hit|^fwd=[a-z-]*|detail=UP[A-Z-]*' |
		sed 's/^[a-z]*=//' | paste --serial --delimiters , | sed 's/,/, /')
	echo "$1: $got"
	[[ $got == "$3" ]] || status=1
}
want '200 with a body' 200/body hit
want '404 with a body' 404/body hit
want '200 without a body' 200 'uri-miss, UPSTREAM-ERROR-OR-EMPTY-RESPONSE'
want '404 without a body' 404 'uri-miss, UPSTREAM-ERROR-OR-EMPTY-RESPONSE'
want '204 without a body' 204 hit
want '301 without a body' 301 hit
exit $status
