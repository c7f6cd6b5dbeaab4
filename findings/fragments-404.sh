#!/usr/bin/env bash
# ESI of Varnish, and SSI of nginx and Apache, take the body of a 404 for the fragment that they put into a page. ESI's
# onerror="continue" should leave out what cannot be fetched (https://www.w3.org/TR/esi-lang). Varnish does not leave
# out the body of a 404, even with its feature esi_include_onerror.
#
# Debian 12: varnish 7.1.1-2+deb12u1, nginx 1.22.1-9+deb12u11, apache2 2.4.71-1~deb12u1. Tried on 2026-11-28. Seen:
#
#   Varnish: <p>no such fragment</p>
#   Varnish with esi_include_onerror: <p>no such fragment</p>
#   nginx: <p>no such fragment</p>
#   Apache: <p>no such fragment</p>
#
# This exits with 1 if one of the four does otherwise.
set -euo pipefail

apt-get install --yes --quiet --no-install-recommends varnish=7.1.1-2+deb12u1 nginx=1.22.1-9+deb12u11 \
	apache2=2.4.71-1~deb12u1 >/dev/null

work=$(mktemp -d)
servers=()
trap 'kill "${servers[@]}" 2>/dev/null; wait; rm -rf "$work"' EXIT
cd "$work"
chmod 711 .

cat >backend.py <<'PY'
import http.server

pages = {
    '/esi': b'<p><esi:include src="/missing" onerror="continue"/></p>',
    '/ssi': b'<p><!--#include virtual="/missing" --></p>',
}

class Backend(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        page = pages.get(self.path)
        self.send_response(200 if page else 404)
        self.send_header('Content-Type', 'text/html')
        self.end_headers()
        self.wfile.write(page or b'no such fragment')

server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Backend)
print(server.server_port, flush=True)
server.serve_forever()
PY
python3 backend.py >port 2>/dev/null &
servers+=($!)
until [[ -s port ]]; do sleep 0.1; done
backend=127.0.0.1:$(<port)
free() {
	python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print("127.0.0.1:%d" % s.getsockname()[1])'
}

status=0
want() { # <name> <url>
	local got
	got=$(curl --silent --retry 20 --retry-connrefused --retry-delay 1 "http://$2")
	echo "$1: $got"
	[[ $got == '<p>no such fragment</p>' ]] || status=1
}

cat >varnish.vcl <<END
vcl 4.1;
backend b { .host = "127.0.0.1"; .port = "$(<port)"; }
sub vcl_backend_response { set beresp.do_esi = true; }
END
varnish() { # <name> <parameter...>
	local addr
	addr=$(free)
	varnishd -F -j none -n "$work/$1" -a "$addr" -f "$work/varnish.vcl" "${@:2}" >/dev/null 2>&1 &
	servers+=($!)
	want "$1" "$addr/esi"
}
varnish 'Varnish'
varnish 'Varnish with esi_include_onerror' -p feature=+esi_include_onerror

nginx=$(free)
cat >nginx.conf <<END
daemon off;
pid $work/nginx.pid;
error_log $work/nginx.log;
events {}
http {
	access_log off;
	server {
		listen $nginx;
		location / {
			proxy_pass http://$backend;
			ssi on;
		}
	}
}
END
nginx -c "$work/nginx.conf" &
servers+=($!)
want nginx "$nginx/ssi"

apache=$(free)
{
	for module in mpm_event authz_core include proxy proxy_http; do
		echo "LoadModule ${module}_module /usr/lib/apache2/modules/mod_$module.so"
	done
	cat <<END
Listen $apache
ServerName localhost
ServerRoot $work
PidFile pid
ErrorLog apache.log
User nobody
Group nogroup
ProxyPass / http://$backend/
<Location />
	Options +Includes
	SetOutputFilter INCLUDES
</Location>
END
} >apache.conf
apache2 -D FOREGROUND -f "$work/apache.conf" &
servers+=($!)
want Apache "$apache/ssi"
exit $status
