#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What CI asks of the simulator: a run depends on its seed alone, known seeds hold, and so do seeds never seen before.
set -euo pipefail
cd "$(dirname "$0")/.."
fairlead=${FAIRLEAD:-bin/fairlead}
fresh=${FRESH:-5m}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say() { printf '== %s\n' "$*" >&2; }

# digests prints the seeds and digests of a report.
digests() { grep -E '"(seed|digest)":' "$1"; }

say "the same seeds in two processes, and on one core"
for cores in 1 2 4; do
	GOMAXPROCS=$cores "$fairlead" sim run --seeds 1..4 --json >"$work/$cores.json" 2>/dev/null
	digests "$work/$cores.json" >"$work/$cores"
	cmp "$work/1" "$work/$cores" || {
		echo "equal seeds gave other digests with GOMAXPROCS=$cores" >&2
		diff "$work/1" "$work/$cores" >&2 || true
		exit 1
	}
done

say "seeds 1..50"
"$fairlead" sim run --seeds 1..50 --save "$work/failed" || { cat "$work"/failed/*.yaml >&2; exit 1; }

first=$(($(date +%s) * 1000))
say "$fresh of seeds from $first"
"$fairlead" sim run --seeds "$first..$((first + 999))" --within "$fresh" --save "$work/failed" || { cat "$work"/failed/*.yaml >&2; exit 1; }
