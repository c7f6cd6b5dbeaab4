#!/usr/bin/env bash
# SWI-Prolog's library(http/http_json) answers an error in JSON "if the Accept header prefers application/json over
# text/html". It sends JSON to a client that accepts anything, such as curl, and HTML to one that names JSON first and
# then accepts anything, such as axios: prefer_json/1 in http_json.pl takes */* for application/json, and then no longer
# for text/html. There is no Vary.
#
# Debian 12: swi-prolog-nox 9.0.4+dfsg-2. Tried on 2026-11-28. Seen:
#
#   Accept: */*: application/json, Vary: none
#   Accept: application/json, text/plain, */*: text/html, Vary: none
#   Accept: application/json: application/json, Vary: none
#   Accept: text/html,*/*;q=0.8: text/html, Vary: none
#
# This exits with 1 if one of the four has another type, or a Vary.
set -euo pipefail

apt-get install --yes --quiet --no-install-recommends swi-prolog-nox=9.0.4+dfsg-2 >/dev/null

work=$(mktemp -d)
# It waits for a message, and does not end by TERM.
trap 'kill -KILL "$server" 2>/dev/null; rm -rf "$work"' EXIT
cat >"$work/server.pl" <<'PL'
:- use_module(library(http/http_json)).
:- use_module(library(http/thread_httpd)).
:- use_module(library(http/http_dispatch)).
:- initialization(main).
main :-
    http_server(http_dispatch, [port(localhost:Port), silent(true)]),
    format("~w~n", [Port]),
    flush_output,
    thread_get_message(quit).
PL
swipl "$work/server.pl" >"$work/port" 2>/dev/null </dev/null &
server=$!
until port=$(grep -m 1 -E '^[0-9]+$' "$work/port"); do sleep 0.1; done

status=0
want() { # <Accept> <type>
	local header type vary
	header=$(curl --silent --output /dev/null --dump-header - --header "Accept: $1" "http://localhost:$port/missing" | tr -d '\r')
	type=$(sed -n 's/^content-type: *\([^;]*\).*/\1/Ip' <<<"$header")
	vary=$(sed -n 's/^vary: *//Ip' <<<"$header")
	echo "Accept: $1: $type, Vary: ${vary:-none}"
	[[ $type == "$2" && -z $vary ]] || status=1
}
want '*/*' application/json
want 'application/json, text/plain, */*' text/html
want 'application/json' application/json
want 'text/html,*/*;q=0.8' text/html
exit $status
