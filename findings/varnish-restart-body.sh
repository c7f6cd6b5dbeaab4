#!/usr/bin/env bash
# When Varnish asks a second time for what a POST has asked for, the body is used up. `return (retry)` then makes a 503
# of it. After `return (restart)`, the second request has no body, but it still has the Content-Length of the first one.
# `unset bereq.body` in vcl_backend_fetch does not change that, although vcl-var(7) says that it "will also remove
# bereq.http.Content-Length". `unset req.http.Content-Length` in vcl_recv does.
#
# Debian 12: varnish 7.1.1-2+deb12u1. Tried on 2026-11-28 with a POST of three bytes, whose first response is a 404.
# Seen, as the status and what the backend got the second time:
#
#   retry: 503
#   restart: 200, Content-Length 3 and no body
#   restart, unset bereq.body: 200, Content-Length 3 and no body
#   restart, unset req.http.Content-Length: 200, no Content-Length and no body
#
# This exits with 1 if one of the four differs.
set -euo pipefail

apt-get install --yes --quiet --no-install-recommends varnish=7.1.1-2+deb12u1 >/dev/null

work=$(mktemp -d)
servers=()
trap 'kill "${servers[@]}" 2>/dev/null; wait; rm -rf "$work"' EXIT
cd "$work"

# It does not wait for a body, and says what has come after a tenth of a second.
cat >backend.py <<'PY'
import socket, time

listener = socket.create_server(('127.0.0.1', 0))
print(listener.getsockname()[1], flush=True)
first = True
while True:
    connection = listener.accept()[0]
    time.sleep(0.1)
    header, _, body = connection.recv(65536).decode().partition('\r\n\r\n')
    fields = dict(line.lower().split(': ', 1) for line in header.split('\r\n')[1:])
    length = 'Content-Length ' + fields['content-length'] if 'content-length' in fields else 'no Content-Length'
    text = length + ' and ' + ('a body' if body else 'no body')
    status = '404 Not Found' if first else '200 OK'
    first = not first
    response = 'HTTP/1.1 %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s' % (status, len(text), text)
    connection.sendall(response.encode())
    connection.close()
PY

status=0
want() { # <what> <subroutines> <response>
	local name=${1//[^a-z]/} address got
	python3 backend.py >"$name.port" &
	servers+=($!)
	until [[ -s $name.port ]]; do sleep 0.1; done
	printf 'vcl 4.1;\nbackend b { .host = "127.0.0.1"; .port = "%s"; }\n%s\n' "$(<"$name.port")" "$2" >"$name.vcl"
	varnishd -F -j none -n "$work/$name" -a 127.0.0.1:0 -f "$work/$name.vcl" >/dev/null 2>&1 &
	servers+=($!)
	until
		address=$(varnishadm -n "$work/$name" debug.listen_address 2>/dev/null | awk 'NF { print $2 ":" $3 }')
		[[ $address ]]
	do
		sleep 0.1
	done
	got=$(curl --silent --data abc --output body --write-out '%{http_code}' "http://$address/")
	[[ $got != 200 ]] || got+=", $(<body)"
	echo "$1: $got"
	[[ $got == "$3" ]] || status=1
}
restart='sub vcl_deliver { if (resp.status == 404 && req.restarts == 0) { return (restart); } }'
want 'retry' 'sub vcl_backend_response { if (beresp.status == 404) { return (retry); } }' '503'
want 'restart' "$restart" '200, Content-Length 3 and no body'
want 'restart, unset bereq.body' "$restart
sub vcl_backend_fetch { if (bereq.http.X-Second) { unset bereq.body; } }
sub vcl_recv { if (req.restarts > 0) { set req.http.X-Second = 1; } }" '200, Content-Length 3 and no body'
want 'restart, unset req.http.Content-Length' "$restart
sub vcl_recv { if (req.restarts > 0) { unset req.http.Content-Length; } }" '200, no Content-Length and no body'
exit $status
