#!/usr/bin/env bash
# Caddy's replace-response in stream mode takes a 103 Early Hints for the response. If an upstream sends a 103 and then a
# 404, the client gets a 200. Without `stream`, the client gets the 404.
#
# github.com/caddyserver/replace-response v0.0.0-20250618171559-80962887e4c6 in github.com/caddyserver/caddy/v2 v2.11.9.
# Tried on 2026-11-28 with Go 1.26.8. Seen for an upstream whose 404 is "hello", which becomes "HELLO":
#
#   no replacement, no 103: 404 hello
#   no replacement, a 103: 404 hello
#   replace, no 103: 404 HELLO
#   replace, a 103: 404 HELLO
#   replace stream, no 103: 404 HELLO
#   replace stream, a 103: 200 HELLO
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
	"net"
	"net/http"
	"os"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
	_ "github.com/caddyserver/replace-response"
)

// upstream sends a 404, after a 103 if the path is /103.
func upstream(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/103" {
		w.Header().Set("Link", "</style.css>; rel=preload; as=style")
		w.WriteHeader(http.StatusEarlyHints)
	}
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusNotFound)
	_, _ = w.Write([]byte("hello"))
}

func main() {
	listener, err := net.Listen("tcp", os.Getenv("UPSTREAM"))
	if err != nil {
		panic(err)
	}
	go http.Serve(listener, http.HandlerFunc(upstream))
	caddycmd.Main()
}
GO
{
	go mod init example.com/caddy
	go mod edit -require github.com/caddyserver/caddy/v2@v2.11.9
	go mod edit -require github.com/caddyserver/replace-response@v0.0.0-20250618171559-80962887e4c6
	go mod tidy
	go build -o caddy .
} 2>/dev/null

free() {
	python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print("127.0.0.1:%d" % s.getsockname()[1])'
}
export UPSTREAM
UPSTREAM=$(free)
none=$(free)
whole=$(free)
stream=$(free)
cat >Caddyfile <<END
{
	admin off
	persist_config off
	order replace after encode
}
http://$none {
	reverse_proxy $UPSTREAM
}
http://$whole {
	replace hello HELLO
	reverse_proxy $UPSTREAM
}
http://$stream {
	replace stream {
		hello HELLO
	}
	reverse_proxy $UPSTREAM
}
END
./caddy run >log 2>&1 &
server=$!

status=0
want() { # <what> <URL> <status and body>
	local got
	got=$(curl --silent --max-time 10 --retry 20 --retry-connrefused --retry-delay 1 --write-out ' %{http_code}' "http://$2" || true)
	got="${got##* } ${got% *}"
	echo "$1: $got"
	[[ $got == "$3" ]] || status=1
}
want 'no replacement, no 103' "$none/" '404 hello'
want 'no replacement, a 103' "$none/103" '404 hello'
want 'replace, no 103' "$whole/" '404 HELLO'
want 'replace, a 103' "$whole/103" '404 HELLO'
want 'replace stream, no 103' "$stream/" '404 HELLO'
want 'replace stream, a 103' "$stream/103" '200 HELLO'
exit $status
