#!/usr/bin/env bash
# Takes docs/page.png again: the quickstart's HTML page in headless Chromium.
# Needs Go and Chromium (Debian: apt-get install chromium); run it from anywhere.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'kill "${caddy:-}" 2>/dev/null || true; rm -rf "$work"' EXIT

go build -o "$work/caddy" ./cmd/caddy
"$work/caddy" run --config examples/quickstart/Caddyfile 2>"$work/log" &
caddy=$!
for _ in $(seq 100); do
	curl --silent --output /dev/null http://127.0.0.1:8080/ && break
	kill -0 "$caddy" || { cat "$work/log" >&2; exit 1; }
	sleep 0.1
done

chromium --headless --no-sandbox --disable-gpu --disable-background-networking --no-first-run \
	--user-data-dir="$work/profile" --hide-scrollbars --window-size=1000,620 \
	--screenshot="$PWD/docs/page.png" 'http://127.0.0.1:8080/docs/nothing?x=1' 2>"$work/chromium" ||
	{ cat "$work/chromium" >&2; exit 1; }
