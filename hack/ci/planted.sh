#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Shows that each stage of .ci/run can fail, and fails twice in the same place: plants a failure into a clone of what is committed, runs
# the stage twice, and compares what it says. Arguments are stages; all of them if there are none. It ends with 1 if a stage passed or
# said two things. Of the tests only those of the package with the failure run: that all others do is what .ci/run is for.
set -euo pipefail
cd "$(dirname "$0")/../.."
source=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

plant() {
	case $1 in
	build) printf 'package fsm\n\nvar planted = missing\n' >fsm/planted.go ;;
	lint) printf 'package freeport\n\nimport "os"\n\n// Planted ignores an error.\nfunc Planted() { os.Remove("planted") }\n' >internal/freeport/planted.go ;;
	vuln) echo 'GO-2020-0001 2020-01-01 planted: its time is over' >>hack/vuln/accepted.txt ;;
	fast) cat >fsm/planted_test.go <<-'GO' ;;
		package fsm

		import (
			"testing"

			"pgregory.net/rapid"

			"fairlead.io/fairlead/internal/testkit"
		)

		// It breaks for one draw of some hundred, and for the same one each time.
		func TestPlanted(t *testing.T) {
			testkit.Check(t, func(t *rapid.T) {
				if n := rapid.Uint64().Draw(t, "n"); n%97 == 13 {
					t.Fatalf("drew %d", n)
				}
			})
		}
	GO
	race) cat >internal/freeport/planted_test.go <<-'GO' ;;
		package freeport

		import (
			"sync"
			"testing"
		)

		func TestPlanted(t *testing.T) {
			n := 0
			var both sync.WaitGroup
			for range 2 {
				both.Go(func() { n++ })
			}
			both.Wait()
		}
	GO
	rest) cat >e2e/l2/planted_test.go <<-'GO' ;;
		package l2_test

		import "testing"

		func TestPlanted(t *testing.T) { t.Fatal("planted") }
	GO
	# As sim/mutants/planted/acknowledged-before-applied.mutant: rule S9 of seed 1 sees it.
	sim) sed -i 's/^\ta\.fleet\.set(members)$/&\n\ta.done.put(ack{s.Revision, nil})/' dataplane/agent/follow.go ;;
	*) echo "planted: no stage is called $1" >&2 && exit 2 ;;
	esac
}

# packages is where the failure of a stage of tests is.
packages() {
	case $1 in
	fast) echo fairlead/fsm ;;
	race) echo internal/freeport ;;
	rest) echo e2e/l2 ;;
	esac
}

# says is what a run says of its failure, without times.
says() { sed -n '/^stage .* failed: /,$p' "$1" | sed -E 's/\([0-9.]+m?s\)//g; s/[0-9]+\.[0-9]+s//g; s/after [0-9]+ tests/after some tests/'; }

code=0
[ $# -gt 0 ] || set -- build lint vuln fast race rest sim
for stage in "$@"; do
	git clone -q "$source" "$work/$stage"
	cd "$work/$stage"
	plant "$stage"
	for run in 1 2; do
		if .ci/run -only "$stage" -packages "$(packages "$stage")" >"$work/$stage.$run" 2>&1; then
			echo "$stage passed with a planted failure" >&2
			code=1
		fi
		says "$work/$stage.$run" >"$work/$stage.$run.says"
	done
	if [ -s "$work/$stage.1.says" ] && diff "$work/$stage.1.says" "$work/$stage.2.says"; then
		echo "== $stage is red twice in the same place:"
		cat "$work/$stage.1.says"
	else
		echo "$stage said two things" >&2
		code=1
	fi
	cd "$source"
	rm -rf "${work:?}/$stage"
done
exit $code
