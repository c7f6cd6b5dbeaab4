#!/usr/bin/env bash
# If h2o's error-doc is proxied, h2o asks for it by GET, without any header field of the visitor, not even Accept, but
# with the body of a POST. So the server of the error document cannot choose a format or a language.
#
# Debian 12: h2o 2.2.5+dfsg2-7. Tried on 2026-11-28 with a POST of three bytes to a file that does not exist. Seen, as
# the request for the document, its fields and its body:
#
#   GET /document, connection content-length host via x-forwarded-for x-forwarded-proto, abc
#
# This exits with 1 if the request differs.
set -euo pipefail

apt-get install --yes --quiet --no-install-recommends h2o=2.2.5+dfsg2-7 >/dev/null

work=$(mktemp -d)
servers=()
trap 'kill "${servers[@]}" 2>/dev/null; wait; rm -rf "$work"' EXIT
cd "$work"
chmod 711 .
mkdir files

cat >backend.py <<'PY'
import http.server

class Backend(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = self.rfile.read(int(self.headers['Content-Length'] or 0)).decode()
        names = ' '.join(sorted(name.lower() for name in self.headers))
        self.send_response(404)
        self.end_headers()
        self.wfile.write(f'{self.command} {self.path}, {names}, {body}'.encode())
    do_POST = do_GET

server = http.server.HTTPServer(('127.0.0.1', 0), Backend)
print(server.server_port, flush=True)
server.serve_forever()
PY
python3 backend.py >port 2>/dev/null &
servers+=($!)
until [[ -s port ]]; do sleep 0.1; done
h2o=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')

cat >h2o.yaml <<END
listen:
  host: 127.0.0.1
  port: $h2o
user: nobody
error-doc:
  status: 404
  url: /document
hosts:
  default:
    paths:
      /:
        file.dir: $work/files
      /document:
        proxy.reverse.url: http://127.0.0.1:$(<port)/document
END
h2o -c "$work/h2o.yaml" >log 2>&1 &
servers+=($!)

got=$(curl --silent --retry 20 --retry-connrefused --retry-delay 1 --header 'Accept: text/html' \
	--header 'Accept-Language: de' --data abc "http://127.0.0.1:$h2o/missing")
echo "$got"
[[ $got == 'GET /document, connection content-length host via x-forwarded-for x-forwarded-proto, abc' ]]
