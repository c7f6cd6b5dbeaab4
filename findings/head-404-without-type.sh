#!/usr/bin/env bash
# echo and restify answer GET for an unknown path with a 404 in JSON, and HEAD with a 404 that has neither Content-Type
# nor Content-Length. So HEAD does not tell what GET has, as RFC 9110, section 9.3.2, recommends. hapi and h3 send the
# type for HEAD, too.
#
# github.com/labstack/echo/v4 v4.13.4 and, from npm, restify 12.0.0, @hapi/hapi 21.4.3 and h3 1.15.4. Tried on 2026-11-28
# with Go 1.26.8 and Node 20. Seen:
#
#   echo: GET 404 application/json, HEAD nothing
#   restify: GET 404 application/json, HEAD nothing
#   hapi: GET 404 application/json, HEAD application/json
#   h3: GET 404 application/json, HEAD application/json
#
# This exits with 1 if one of the four does otherwise.
set -euo pipefail

work=$(mktemp -d)
servers=()
trap 'kill "${servers[@]}" 2>/dev/null; rm -rf "$work"' EXIT
cd "$work"
npm init --yes >/dev/null
npm install --silent --no-audit --no-fund restify@12.0.0 @hapi/hapi@21.4.3 h3@1.15.4

mkdir echo
cat >echo/main.go <<'GO'
package main

import (
	"fmt"
	"net"
	"net/http"

	"github.com/labstack/echo/v4"
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	panic(http.Serve(listener, echo.New()))
}
GO
(cd echo && go mod init example.com/echo && go get github.com/labstack/echo/v4@v4.13.4 && go build -o ../echo-server .) 2>/dev/null

cat >restify.js <<'JS'
const server = require('restify').createServer()
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
JS
cat >hapi.js <<'JS'
const server = require('@hapi/hapi').server({ host: '127.0.0.1', port: 0 })
server.start().then(() => console.log(server.info.port))
JS
cat >h3.js <<'JS'
const { createApp, toNodeListener } = require('h3')
const server = require('http').createServer(toNodeListener(createApp()))
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
JS

status=0
want() { # <name> <type for HEAD> <command...>
	local name=$1 type=$2 port get head
	shift 2
	"$@" >"$name.port" 2>/dev/null &
	servers+=($!)
	until port=$(grep -m 1 -E '^[0-9]+$' "$name.port"); do sleep 0.1; done
	get=$(curl --silent --output /dev/null --write-out '%{http_code} %{content_type}' "http://127.0.0.1:$port/missing")
	head=$(curl --silent --head "http://127.0.0.1:$port/missing" | tr -d '\r' | grep -i -E '^content-(type|length):' || true)
	head=$(sed -n 's/^content-type: *\([^;]*\).*/\1/Ip; s/^content-length.*/a length/Ip' <<<"$head" | sort | tail -n 1)
	echo "$name: GET ${get%%;*}, HEAD ${head:-nothing}"
	[[ $get == "404 application/json"* && ${head:-nothing} == "$type" ]] || status=1
}
want echo nothing ./echo-server
want restify nothing node restify.js
want hapi application/json node hapi.js
want h3 application/json node h3.js
exit $status
