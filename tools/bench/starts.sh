#!/usr/bin/env bash
# This measures what configs of many sites cost, on Linux, and with curl:
#
#	tools/bench/starts.sh [commit]
#
# It compares not_found with `respond` and, if a commit is named, with not_found of that commit. Each figure is the mean of
# three runs, with its standard error.
set -euo pipefail
cd "$(dirname "$0")/../.."
commit=${1-}
runs=3

# As in the bench, the binaries are on a tmpfs, and the same source gives the same binary.
[ "$(stat --file-system --format %T /dev/shm)" = tmpfs ] || { echo '/dev/shm is not a tmpfs' >&2; exit 1; }
dir=$(mktemp -d /dev/shm/starts.XXXXXX)
server=
finish() {
	[ -z "$server" ] || kill -9 "$server" || true
	[ ! -d "$dir/source" ] || git worktree remove --force "$dir/source"
	rm -rf "$dir"
}
trap finish EXIT

go build -trimpath -buildvcs=false -o "$dir/new" ./cmd/caddy
if [ -n "$commit" ]; then
	git worktree add --quiet --detach "$dir/source" "$commit"
	(cd "$dir/source" && go build -trimpath -buildvcs=false -o "$dir/old" ./cmd/caddy)
fi

mkdir "$dir/home"
export HOME=$dir/home GOMAXPROCS=1 CADDY_ADMIN=127.0.0.1:18099

# sites N DIRECTIVES writes a Caddyfile of N sites. The named route is for `invoke`.
sites() {
	printf '{\n\tpersist_config off\n\tauto_https off\n\tlog {\n\t\tlevel ERROR\n\t}\n}\n&(nothing) {\n}\n'
	for ((i = 0; i < $1; i++)); do
		printf 'http://site%d.example:18001 {\n%s\n}\n' "$i" "$2"
	done
}

# adapt BUILD writes the JSON of the Caddyfile, and prints the CPU seconds that it takes.
adapt() {
	local TIMEFORMAT='%U %S'
	{ time taskset -c 0 "$dir/$1" adapt --adapter caddyfile --config "$dir/Caddyfile" \
		>"$dir/config.json" 2>"$dir/log"; } 2>&1 | awk '{ print $1 + $2 }'
}

# start BUILD runs a server without sites, and waits until it answers. Caddy would load a Caddyfile of the working folder.
start() {
	(cd "$HOME" && exec taskset -c 0 "$dir/$1" run 2>"$dir/log") &
	server=$!
	for ((i = 0; i < 100; i++)); do
		! curl --silent --output "$dir/none" "http://$CADDY_ADMIN/config/" || return 0
		sleep 0.1
	done
	cat "$dir/log" >&2
	return 1
}

stop() {
	kill -9 "$server"
	wait "$server" 2>"$dir/none" || true
	server=
}

# load loads the JSON, even if it is the same as before. Caddy answers once it is loaded.
load() {
	curl --silent --show-error --fail-with-body --header 'Content-Type: application/json' \
		--header 'Cache-Control: must-revalidate' --data-binary "@$dir/config.json" "http://$CADDY_ADMIN/load"
}

# cpu prints the CPU seconds of the server until now.
cpu() {
	awk -v hertz="$(getconf CLK_TCK)" '{ print ($14 + $15) / hertz }' "/proc/$server/stat"
}

# heap prints the MiB that are left of the heap, once a collection frees nothing more: those in pools, and those with a
# finalizer, take several.
heap() {
	local before=0 now=1
	while [ "$now" != "$before" ]; do
		before=$now
		sleep 0.5
		curl --silent --fail "http://$CADDY_ADMIN/debug/pprof/heap?gc=1&debug=1" >"$dir/profile"
		now=$(awk '/^# HeapAlloc = / { printf "%.1f", $4 / 2 ^ 20 }' "$dir/profile")
	done
	awk '/^# HeapAlloc = / { print $4 / 2 ^ 20 }' "$dir/profile"
}

# summarize [NAME] prints a row for each name, with the mean and the standard error of each column. Then it prints the
# ratios of the row NAME to the others.
summarize() {
	awk -F '\t' -v subject="${1-}" '
		!($1 in count) { names[++rows] = $1 }
		{ count[$1]++; for (i = 2; i <= NF; i++) { sum[$1, i] += $i; squares[$1, i] += $i ^ 2 } }
		END {
			for (row = 1; row <= rows; row++) {
				name = names[row]; n = count[name]; line = "|" name
				for (i = 2; i <= NF; i++) {
					mean = sum[name, i] / n; variance = (squares[name, i] / n - mean ^ 2) / (n - 1)
					line = line sprintf("|%.2f±%.2f", mean, sqrt(variance < 0 ? 0 : variance))
				}
				print line "|"
			}
			for (row = 1; row <= rows && subject != ""; row++) {
				name = names[row]; line = "|" subject " to " name
				for (i = 2; name != subject && i <= NF; i++) {
					line = line sprintf("|%.3f", sum[subject, i] / sum[name, i])
				}
				if (name != subject) print line "|"
			}
		}'
}

# measure_cpu NAME BUILD DIRECTIVE
measure_cpu() {
	local blocks=$'\thandle /shop/* {\n\t\t'$3$'\n\t}\n\thandle {\n\t\t'$3$'\n\t}'
	sites 40000 "$blocks" >"$dir/Caddyfile"
	local adapted80 adapted40 started reloaded
	adapted80=$(adapt "$2")
	sites 20000 "$blocks" >"$dir/Caddyfile"
	adapted40=$(adapt "$2")
	start "$2"
	load
	started=$(cpu)
	load
	reloaded=$(cpu)
	stop
	printf '%s\t%s\t%s\t%s\t%s\n' "$1" "$started" "$(awk "BEGIN { print $reloaded - $started }")" "$adapted40" "$adapted80"
}

# measure_heap NAME BUILD DIRECTIVE
measure_heap() {
	sites 2000 "	$3" >"$dir/Caddyfile"
	adapt "$2" >"$dir/none"
	start "$2"
	load
	printf '%s\t%s\n' "$1" "$(heap)"
	stop
}

for ((run = 0; run < runs; run++)); do
	measure_cpu '`respond`' new 'respond 404'
	measure_cpu '`not_found`' new not_found
	[ -z "$commit" ] || measure_cpu "\`not_found\` of $commit" old not_found
done >"$dir/cpu"
printf '|CPU seconds|start, 20,000 sites|reload|adapt, 40,000 blocks|80,000 blocks|\n|---|---:|---:|---:|---:|\n'
summarize '`not_found`' <"$dir/cpu"

# Of the handlers in a stock Caddy, `invoke` takes the least: a string, and nothing when it is provisioned.
for ((run = 0; run < runs; run++)); do
	measure_heap 'no directive' new ''
	measure_heap '`invoke` of an empty route' new 'invoke nothing'
	measure_heap '`not_found`' new not_found
	[ -z "$commit" ] || measure_heap "\`not_found\` of $commit" old not_found
done >"$dir/heap"
printf '\n|MiB of heap|2,000 sites|\n|---|---:|\n'
summarize <"$dir/heap"
