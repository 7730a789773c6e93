#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What CI asks of the simulator: equal (a run depends on its seed alone) and known (seeds 1 to 50 hold, and 1 to 10 with segments). Without arguments
# both. Besides, fresh explores for a while (FRESH=5m, from the seed FIRST if given): it plays seeds that nobody has tried of what is checked out, and keeps what it finds.
set -euo pipefail
cd "$(dirname "$0")/.."
fairlead=${FAIRLEAD:-bin/fairlead}
fresh=${FRESH:-5m}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say() { printf '== %s\n' "$*" >&2; }

# hold runs seeds, and shows the shrunk scenarios of those that broke a rule: last what they are about, since logs lose their beginning.
hold() {
	"$fairlead" sim run --save "$work/failed" "$@" || {
		cat "$work"/failed/*.yaml >&2
		grep -hE '^(about|seed): ' "$work"/failed/*.yaml >&2
		return 1
	}
}

equal() {
	say "the same seeds in two processes, on one core and on two"
	for cores in 1 2; do
		GOMAXPROCS=$cores "$fairlead" sim run --seeds 1..2 --json >"$work/$cores.json"
		grep -E '"(seed|digest)":' "$work/$cores.json" >"$work/$cores"
	done
	diff "$work/1" "$work/2" >&2 || {
		echo "equal seeds gave other digests in another process" >&2
		return 1
	}
}

# known ends with one digest of all worlds, for whoever compares two runs: equal programs give equal ones.
known() {
	say "seeds 1..50"
	hold --seeds 1..50 | tee "$work/known"
	say "seeds 1..10 with segments"
	hold --seeds 1..10 --segments 2 | tee -a "$work/known"
	printf 'digest of %d worlds: %s\n' "$(awk '{ n += $1 } END { print n }' "$work/known")" \
		"$(grep -o 'digest [0-9a-f]*' "$work/known" | sha256sum | cut -c 1-32)"
}

# fresh begins at a seed that the checked out tree gives: other trees have others, and whoever repeats the run of a commit has
# the same. Outside of a clone the time gives it. What it finds is kept, shrunk, where tests play it from then on.
fresh() {
	local tree first failed=0 repeat key text
	tree=$(git rev-parse --verify --quiet 'HEAD^{tree}' 2>/dev/null) && first=$((16#${tree:0:12} * 1000)) || first=$(($(date +%s) * 1000))
	first=${FIRST:-$first}
	say "$fresh of seeds from $first"
	"$fairlead" sim run --seeds "$first..$((first + 999))" --within "$fresh" --save sim/testdata/regressions --json >"$work/fresh.json" || failed=$?
	# A find says first how to repeat it, then where it was saved.
	sed -nE 's/^ *"(repeat|saved)": "(.*)",?$/\1 \2/p' "$work/fresh.json" | while read -r key text; do
		case $key in
		repeat) repeat=$text ;;
		saved)
			printf '# As it was found: %s\n' "$repeat" >>"$text"
			say "$text: as it was found: $repeat"
			say "$text: shrunk: fairlead sim replay --scenario $text"
			;;
		esac
	done
	return "$failed"
}

[ $# -gt 0 ] || set -- equal known
for part in "$@"; do
	case $part in
	equal | known | fresh) "$part" ;;
	*)
		echo "hack/sim.sh: unknown part $part; want equal, known or fresh" >&2
		exit 2
		;;
	esac
done
