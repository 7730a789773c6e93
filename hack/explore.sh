#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Looks for what nobody knows yet, for as long as the first argument says (10m): properties with draws that nobody had, properties that do
# not repeat their draws, fuzz targets, the race detector with other schedules, and worlds of fresh seeds. Each find is told with the command
# that repeats it, and makes this end red; what properties, fuzz targets and worlds found is kept as a regression. It never decides whether a
# change may land: chance would. Whoever hands in something large runs it before, and deploy/ci/nightly.yaml every night.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds_of() {
	case $1 in
	*h) echo $((${1%h} * 3600)) ;;
	*m) echo $((${1%m} * 60)) ;;
	*s) echo "${1%s}" ;;
	*) echo "explore: \"$1\" is no time; write 90s, 10m or 2h" >&2 && return 2 ;;
	esac
}
total=$(seconds_of "${1:-10m}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
finds=$work/finds
: >"$finds"

say() { printf '== %s\n' "$*" >&2; }
found() { printf '%s\n' "$*" >>"$finds"; }
random() { od -An -N4 -tu4 /dev/urandom | tr -d ' '; }

# Packages by what they have in their tests.
with() { git grep -lE "$1" -- '*_test.go' | xargs -rn1 dirname | sort -u | sed 's|^|./|' | grep -vE '^\./(e2e|sim$|sim/(balancer|whatif|mutants|vm|program)$|internal/testkit)'; }

# properties has each package's properties draw ten times as often, from a seed of this run's, again and again. rapid keeps a find in
# testdata/rapid, where the test draws it first from then on.
properties() {
	local end=$((SECONDS + $1)) packages pkg seed
	mapfile -t packages < <(with 'testkit\.Check' | shuf)
	while [ $SECONDS -lt $end ]; do
		for pkg in "${packages[@]}"; do
			[ $SECONDS -lt $end ] || return 0
			seed=$(random)
			say "properties of $pkg, RAPID_SEED=$seed"
			if ! FAIRLEAD_TEST_FAST=1 RAPID_NOFAILFILE=false RAPID_SEED=$seed RAPID_CHECKS=1000 go test -count=1 -timeout "$((end - SECONDS + 60))s" "$pkg" >"$work/log" 2>&1; then
				if grep -q 'panic: test timed out' "$work/log"; then return 0; fi
				cat "$work/log"
				found "properties of $pkg: RAPID_SEED=$seed RAPID_CHECKS=1000 go test -count=1 $pkg   (kept: $(git status --porcelain -- "$pkg/testdata/rapid" | awk '{print $2}' | tr '\n' ' '))"
			fi
		done
	done
}

# fuzz runs each target for its share. The go command keeps a find in testdata/fuzz, which `go test` runs from then on.
fuzz() {
	local targets line pkg name
	mapfile -t targets < <(git grep -oE '^func Fuzz\w+' -- '*_test.go')
	for line in "${targets[@]}"; do
		pkg=./$(dirname "${line%%:*}") name=${line##* }
		say "$name of $pkg for $(($1 / ${#targets[@]})) s"
		go test -run '^$' -fuzz "^$name\$" -fuzztime "$(($1 / ${#targets[@]}))s" "$pkg" || found "$name: go test -run '^$name\$' $pkg   (kept in $pkg/testdata/fuzz/$name)"
	done
}

# drawn tells in a file what the properties of a package draw with so many processors.
drawn() {
	rm -rf "$work/draws" && mkdir "$work/draws"
	(cd "$1" && FAIRLEAD_DRAWS=$work/draws FAIRLEAD_TEST_FAST=1 GOMAXPROCS=$2 "$work/repeats.test" -test.timeout 10m) >"$work/log" 2>&1 &&
		find "$work/draws" -type f -exec cat {} + | sort >"$3"
}

# repeats has properties draw a dozen times, with other numbers of processors: what they draw must not depend on what else happens, or a red
# run would not be red again.
repeats() {
	local end=$((SECONDS + $1)) packages pkg procs
	mapfile -t packages < <(with 'testkit\.Check' | shuf)
	for pkg in "${packages[@]}"; do
		[ $SECONDS -lt $end ] || return 0
		say "whether properties of $pkg draw the same each time"
		go test -c -o "$work/repeats.test" "$pkg" || { found "repeats: go vet $pkg" && continue; }
		drawn "$pkg" 1 "$work/first" || true # what fails here fails again
		for procs in 1 2 3 8 1 2 3 8 1 2 3 8; do
			drawn "$pkg" "$procs" "$work/again" && diff "$work/first" "$work/again" >"$work/log" || {
				cat "$work/log"
				found "repeats of $pkg: FAIRLEAD_DRAWS=FOLDER GOMAXPROCS=$procs go test -count=1 $pkg, several times: the lines in FOLDER differ"
				break
			}
		done
	done
}

# races runs packages with goroutines under the race detector, with one to eight processors, in orders of this run's, each as often as its
# share of the time allows: some faults show in one run of a thousand.
races() {
	local end=$((SECONDS + $1)) packages pkg procs until seed
	mapfile -t packages < <(with '\bgo func|sync\.' | shuf)
	for pkg in "${packages[@]}"; do
		[ $SECONDS -lt $end ] || return 0
		go test -race -c -o "$work/race.test" "$pkg" || { found "races: go vet $pkg" && continue; }
		procs=$((1 + $(random) % 8)) until=$((SECONDS + $1 / ${#packages[@]}))
		say "$pkg under the race detector, GOMAXPROCS=$procs"
		while :; do
			seed=$(random)
			(cd "$pkg" && FAIRLEAD_TEST_FAST=1 GOMAXPROCS=$procs GORACE=atexit_sleep_ms=50 "$work/race.test" -test.short \
				-test.shuffle "$seed" -test.failfast -test.timeout 10m) >"$work/log" 2>&1 || {
				cat "$work/log"
				found "races of $pkg: FAIRLEAD_TEST_FAST=1 GOMAXPROCS=$procs go test -race -short -count=20 -failfast -shuffle $seed $pkg"
				break
			}
			[ $SECONDS -lt $until ] || break
		done
	done
}

# worlds plays seeds that nobody has tried.
worlds() { FRESH="${1}s" FIRST=$(random) hack/sim.sh fresh || found "worlds: see above, and sim/testdata/regressions"; }

properties $((total * 2 / 10))
repeats $((total / 10))
fuzz $((total * 2 / 10))
races $((total * 2 / 10))
make --no-print-directory build
worlds $((total * 3 / 10))
if [ -s "$finds" ]; then
	say "found:"
	cat "$finds" >&2
	exit 1
fi
say "nothing was found"
