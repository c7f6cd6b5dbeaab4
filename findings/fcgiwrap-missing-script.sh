#!/usr/bin/env bash
# fcgiwrap answers with a 403 for a CGI script that does not exist, as for one that may not be executed. Its manual
# names no status.
#
# Debian 12: fcgiwrap 1.1.0-14+deb12u1, asked by cgi-fcgi of libfcgi-bin 2.4.2-2+deb12u1. Tried on 2026-11-28.
# Seen:
#
#   a script: no Status, so a 200
#   a script that is not executable: Status: 403 Forbidden
#   no script: Status: 403 Forbidden
#
# This exits with 1 if one of the three differs.
set -euo pipefail

apt-get install --yes --quiet --no-install-recommends fcgiwrap=1.1.0-14+deb12u1 libfcgi-bin=2.4.2-2+deb12u1 >/dev/null

work=$(mktemp -d)
trap 'kill "$server" 2>/dev/null; wait; rm -rf "$work"' EXIT
printf '#!/bin/sh\nprintf "Content-Type: text/plain\\n\\nhello"\n' | tee "$work/there" >"$work/not-executable"
chmod +x "$work/there"
fcgiwrap -s "unix:$work/socket" 2>/dev/null &
server=$!
until [[ -S $work/socket ]]; do sleep 0.1; done

status=0
want() { # <what> <script> <status>
	local got
	got=$(REQUEST_METHOD=GET SCRIPT_FILENAME=$work/$2 cgi-fcgi -bind -connect "$work/socket" 2>/dev/null |
		grep --text --only-matching '^Status: [^'$'\r'']*' || true)
	echo "$1: ${got:-no Status, so a 200}"
	[[ $got == "$3" ]] || status=1
}
want 'a script' there ''
want 'a script that is not executable' not-executable 'Status: 403 Forbidden'
want 'no script' missing 'Status: 403 Forbidden'
exit $status
