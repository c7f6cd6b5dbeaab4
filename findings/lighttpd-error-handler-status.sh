#!/usr/bin/env bash
# lighttpd's server.error-handler-404 with a file answers a missing address with the status 200, a request for a part
# with a 206, and what url.access-deny denies with a 200, too. server.error-handler with the same file keeps the 404 and
# the 403. Clients take a 200 for a page that exists.
#
# Debian 12: lighttpd 1.4.69-1. Tried on 2026-11-28 with GET /missing and /denied.inc. Seen:
#
#   error-handler-404: 200, with a Range 206, denied 200
#   error-handler: 404, with a Range 404, denied 403
#
# This exits with 1 if lighttpd does otherwise.
set -euo pipefail

apt-get install --yes --quiet --no-install-recommends lighttpd=1.4.69-1 >/dev/null

work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; wait; rm -rf "$work"' EXIT
cd "$work"
mkdir files
echo "There is no such page." >files/404.html
echo "a part of a program" >files/denied.inc

ask() {
	port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
	cat >"$1.conf" <<END
server.document-root = "$work/files"
server.bind = "127.0.0.1"
server.port = $port
server.$1 = "/404.html"
server.modules = ("mod_access")
url.access-deny = (".inc")
END
	lighttpd -D -f "$1.conf" 2>log &
	get=(curl --silent --output /dev/null --write-out '%{http_code}')
	missing=http://127.0.0.1:$port/missing
	plain=$("${get[@]}" --retry 20 --retry-connrefused --retry-delay 1 "$missing")
	denied=$("${get[@]}" "http://127.0.0.1:$port/denied.inc")
	echo "$1: $plain, with a Range $("${get[@]}" --range 0-4 "$missing"), denied $denied"
}
{
	ask error-handler-404
	ask error-handler
} >seen
cat seen
[ "$(cat seen)" = 'error-handler-404: 200, with a Range 206, denied 200
error-handler: 404, with a Range 404, denied 403' ]
