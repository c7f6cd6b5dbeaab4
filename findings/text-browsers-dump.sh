#!/usr/bin/env bash
# links and ELinks reflow text/plain when they dump it, as if it were HTML. lynx and w3m keep its lines.
#
# Debian 12: links 2.28-1+b2, elinks 0.13.2-1+b4, lynx 2.9.0dev.12-1, w3m 0.5.3+git20230121-2. Tried on
# 2026-11-28, with a text/plain of the three lines one, two and three. Seen, with each line break as a "/":
#
#   links: one two three/
#   elinks: one two three/
#   lynx: one/two/three//
#   w3m: one/two/three/
#
# A charset in the Content-Type, a name that ends in .txt, the status 404 and, with links, a local file change nothing.
# This exits with 1 if one of the four does otherwise.
set -euo pipefail

versions=(links=2.28-1+b2 elinks=0.13.2-1+b4 lynx=2.9.0dev.12-1 w3m=0.5.3+git20230121-2)
apt-get install --yes --quiet --no-install-recommends "${versions[@]}" >/dev/null

work=$(mktemp -d)
trap 'kill "$server" 2>/dev/null; rm -rf "$work"' EXIT
printf 'one\ntwo\nthree\n' >"$work/lines.txt"
cd "$work"
python3 -u -m http.server --bind 127.0.0.1 0 >log 2>&1 &
server=$!
until port=$(grep -oP 'port \K\d+' log); do sleep 0.1; done

export HOME=$work TERM=dumb
status=0
want() { # <browser> <lines>
	local got
	got=$("$1" -dump "http://127.0.0.1:$port/lines.txt" | sed 's/^ *//' | tr '\n' /)
	echo "$1: $got"
	[[ $got =~ ^$2/*$ ]] || status=1
}
want links 'one two three'
want elinks 'one two three'
want lynx 'one/two/three'
want w3m 'one/two/three'
exit $status
