#!/usr/bin/env bash
# Apache's ErrorDocument sets REDIRECT_STATUS, but neither REDIRECT_URL nor REDIRECT_QUERY_STRING, for a document that
# is proxied. Its documentation says that the three "are guaranteed to be set"
# (https://httpd.apache.org/docs/2.4/custom-error.html). Only a script gets the other two. So mod_headers cannot tell a
# backend which address has failed, except by THE_REQUEST.
#
# Debian 12: apache2 2.4.71-1~deb12u1. Tried on 2026-11-28 with GET /missing?x=1, for a file that does not exist. Seen:
#
#   REDIRECT_STATUS=404
#   REDIRECT_URL=
#   REDIRECT_QUERY_STRING=
#   THE_REQUEST=GET /missing?x=1 HTTP/1.1
#
# This exits with 1 if one of the four differs.
set -euo pipefail

apt-get install --yes --quiet --no-install-recommends apache2=2.4.71-1~deb12u1 >/dev/null

work=$(mktemp -d)
servers=()
trap 'kill "${servers[@]}" 2>/dev/null; wait; rm -rf "$work"' EXIT
cd "$work"

cat >backend.py <<'PY'
import http.server

class Backend(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(404)
        self.end_headers()
        self.wfile.write((self.headers['X-Variables'] or '').replace(';', '\n').encode())

server = http.server.HTTPServer(('127.0.0.1', 0), Backend)
print(server.server_port, flush=True)
server.serve_forever()
PY
python3 backend.py >port 2>/dev/null &
servers+=($!)
until [[ -s port ]]; do sleep 0.1; done
apache=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')

variables=
for name in REDIRECT_STATUS REDIRECT_URL REDIRECT_QUERY_STRING; do
	variables+="$name=%{env:$name};"
done
{
	for module in mpm_event authz_core headers proxy proxy_http; do
		echo "LoadModule ${module}_module /usr/lib/apache2/modules/mod_$module.so"
	done
	cat <<END
Listen 127.0.0.1:$apache
ServerName localhost
ServerRoot $work
DocumentRoot $work
PidFile pid
ErrorLog log
User nobody
Group nogroup
ErrorDocument 404 /document
<Location /document>
	ProxyPass http://127.0.0.1:$(<port)/
	RequestHeader set X-Variables "expr=${variables}THE_REQUEST=%{THE_REQUEST}"
</Location>
<Directory $work>
	Require all granted
</Directory>
END
} >apache.conf
chmod 711 .
apache2 -D FOREGROUND -f "$work/apache.conf" &
servers+=($!)

got=$(curl --silent --retry 20 --retry-connrefused --retry-delay 1 "http://127.0.0.1:$apache/missing?x=1")
echo "$got"
[[ $got == 'REDIRECT_STATUS=404
REDIRECT_URL=
REDIRECT_QUERY_STRING=
THE_REQUEST=GET /missing?x=1 HTTP/1.1' ]]
