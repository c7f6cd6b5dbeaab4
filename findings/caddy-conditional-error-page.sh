#!/usr/bin/env bash
# In handle_errors, Caddy's file_server evaluates the conditions and the Range of the request that failed. Its answers to
# them, a 304, a 412 or a 206, then leave with the status of the error: a browser that has a validator of an earlier
# response gets an empty 503, and a Range gets a 503 with a part of the page.
#
# github.com/caddyserver/caddy/v2 v2.11.9. Tried on 2026-11-28 with Go 1.26.8 on Linux, with a page of 18 bytes. Seen:
#
#   plain: 503, 18 bytes
#   If-None-Match: *: 503, 0 bytes
#   If-Match: "x": 503, 0 bytes
#   Range: bytes=0-4: 503, 5 bytes
#
# This exits with 1 if Caddy does otherwise.
set -euo pipefail

work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; wait; chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$work"
mkdir files
echo 'We are back soon.' >files/error.html
GOBIN=$work go install github.com/caddyserver/caddy/v2/cmd/caddy@v2.11.9

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cat >Caddyfile <<END
{
	admin off
}
http://:$port {
	bind 127.0.0.1
	error 503
	handle_errors 503 {
		root $work/files
		rewrite /error.html
		file_server
	}
}
END
HOME=$work ./caddy run --config Caddyfile 2>log &
ask() {
	curl --silent --output /dev/null --write-out '%{http_code}, %{size_download} bytes\n' "$@" "http://127.0.0.1:$port/"
}
for _ in {1..100}; do
	! ask >/dev/null || break
	sleep 0.1
done
seen="plain: $(ask)"
for field in 'If-None-Match: *' 'If-Match: "x"' 'Range: bytes=0-4'; do
	seen+=$'\n'"$field: $(ask --header "$field")"
done
printf '%s\n' "$seen"
[ "$seen" = 'plain: 503, 18 bytes
If-None-Match: *: 503, 0 bytes
If-Match: "x": 503, 0 bytes
Range: bytes=0-4: 503, 5 bytes' ]
