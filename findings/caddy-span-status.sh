#!/usr/bin/env bash
# The span of Caddy's `tracing` has the status 200 for a 404 error that no handler answers, such as that of a missing file:
# the handlers return the error, and Caddy writes the 404 after the span has ended. A 404 response has a span with 404.
#
# github.com/caddyserver/caddy/v2 v2.11.9. Tried on 2026-11-28 with Go 1.26.8 on Linux. Seen:
#
#   missing file: 404, in the span 200
#   respond 404: 404, in the span 404
#
# This exits with 1 if Caddy does otherwise.
set -euo pipefail

work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; wait; chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$work"
mkdir empty
GOBIN=$work go install github.com/caddyserver/caddy/v2/cmd/caddy@v2.11.9

# The collector prints the attribute http.response.status_code of each span, which is an integer in protobuf.
cat >collector.py <<'PY'
import gzip, http.server, re

class Collector(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        spans = self.rfile.read(int(self.headers['Content-Length']))
        if self.headers['Content-Encoding'] == 'gzip':
            spans = gzip.decompress(spans)
        for low, high in re.findall(rb'http.response.status_code\x12.\x18(.)(.)', spans, re.S):
            print(low[0] % 128 + 128 * high[0], flush=True)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass

server = http.server.HTTPServer(('127.0.0.1', 0), Collector)
print(server.server_port, flush=True)
server.serve_forever()
PY
python3 collector.py >collected &
until [[ -s collected ]]; do sleep 0.1; done
collector=$(head -1 collected)
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cat >Caddyfile <<END
{
	admin off
	http_port $port
}
http://files.test {
	tracing
	root $work/empty
	file_server
}
http://response.test {
	tracing
	respond 404
}
END
HOME=$work OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:$collector OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf \
	OTEL_BSP_SCHEDULE_DELAY=100 ./caddy run --config Caddyfile 2>log &
status() {
	curl --silent --retry 20 --retry-connrefused --retry-delay 1 --output /dev/null --write-out '%{http_code}' \
		--header "Host: $1" "http://127.0.0.1:$port/missing"
}
span() {
	for _ in {1..100}; do
		[[ $(wc -l <collected) -le $1 ]] || break
		sleep 0.1
	done
	sed -n "$(($1 + 1))p" collected
}
seen="missing file: $(status files.test), in the span $(span 1)
respond 404: $(status response.test), in the span $(span 2)"
printf '%s\n' "$seen"
[ "$seen" = 'missing file: 404, in the span 200
respond 404: 404, in the span 404' ]
