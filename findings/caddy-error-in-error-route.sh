#!/usr/bin/env bash
# An `error` directive in an error route of Caddy changes no status: `handle_errors 403 { error 404 }` still answers with
# the 403 that the route handles, without a body. `respond 404` there is a 404.
#
# github.com/caddyserver/caddy/v2 v2.11.9. Tried on 2026-11-28 with Go 1.26.8 on Linux. Seen:
#
#   error 404 in handle_errors 403: 403
#   respond 404 in handle_errors 403: 404
#
# This exits with 1 if Caddy does otherwise.
set -euo pipefail

work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; wait; rm -rf "$work"' EXIT
cd "$work"
GOBIN=$work go install github.com/caddyserver/caddy/v2/cmd/caddy@v2.11.9
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cat >Caddyfile <<END
{
	admin off
	http_port $port
}
http://error.test {
	error 403
	handle_errors 403 {
		error 404
	}
}
http://respond.test {
	error 403
	handle_errors 403 {
		respond 404
	}
}
END
HOME=$work ./caddy run --config Caddyfile 2>log &
status() {
	curl --silent --retry 20 --retry-connrefused --retry-delay 1 --output /dev/null --write-out '%{http_code}' \
		--header "Host: $1" "http://127.0.0.1:$port/missing"
}
seen="error 404 in handle_errors 403: $(status error.test)
respond 404 in handle_errors 403: $(status respond.test)"
printf '%s\n' "$seen"
[ "$seen" = 'error 404 in handle_errors 403: 403
respond 404 in handle_errors 403: 404' ]
