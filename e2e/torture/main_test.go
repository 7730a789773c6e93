// SPDX-License-Identifier: Apache-2.0

// Package torture_test has a group of real processes beside a real switch go through faults that a seed draws, for as long as somebody
// asks, and judges by what its clients were told, by what the switch held and by what the members took. README.md has the rules and the
// faults.
//
// A run is rounds. In each, a nemesis draws faults and edits of manifests and carries them out while clients write and read registers and
// the switch's table is watched; then all is healed, the group has to come back within a bound, and the round is judged. Start reading at
// TestTorture, then round.
package torture_test

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/e2e/lab"
)

func TestMain(m *testing.M) { lab.MainIn(m, "--mount") }

var (
	lasts = flag.Duration("torture.for", 60*time.Second, "how long to draw new rounds")
	seed  = flag.Uint64("torture.seed", 5926, "what faults and edits are drawn from, by default sixteen kinds within a minute; 0 takes one by chance")
	span  = flag.Duration("torture.round", 10*time.Second, "for how long a round has faults")
	known = flag.String("torture.known", "", "kinds of faults, separated by commas, to draw although the group is known not to withstand them, or all")
	only  = flag.String("torture.only", "", "kinds of faults, separated by commas, to draw and no others")
	logs  = flag.String("torture.logs", "", "folder in which a run that fails leaves its logs; one in the machine's folder for such if empty")
)

// A group of three members withstands what the README of this package lists, and no clock on the wall decides that: bounds are counted in
// beats of a process that has as much to do as a member (pace).
func TestTorture(t *testing.T) {
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	r := newRun(t, options{seed: *seed, span: *span, kinds: drawn(t, split(*known), split(*only)), logs: *logs})
	for n, began := 1, time.Now(); n == 1 || time.Since(began) < *lasts; n++ {
		r.round(n)
	}
	r.finish()
}

func split(list string) []string {
	return strings.FieldsFunc(list, func(c rune) bool { return c == ',' })
}

// folderForLogs is where a run that failed leaves its logs.
func (o options) folderForLogs(t *testing.T) string {
	t.Helper()
	folder := o.logs
	var err error
	if folder == "" {
		folder, err = os.MkdirTemp("", "fairlead-torture-")
	} else {
		err = os.MkdirAll(folder, 0o700)
	}
	if err != nil {
		t.Logf("no logs are kept: %v", err)
	}
	return folder
}
