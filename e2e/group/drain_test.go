// SPDX-License-Identifier: Apache-2.0

package group_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fairlead.io/fairlead/e2e/lab"
)

// Planned drain: the switch has a next hop for every address all along. A node leaves where another one serves, stays where it is the
// last, and neither another leader nor a repeated word changes that.
func TestDrainedNodeLeavesButNeverTheLastOne(t *testing.T) {
	l, _ := withMachines(t, 3)
	l.Manifests.Service(1, 1)
	l.Bird.WaitNextHops(prefix(1), lab.NodeAddress(1))
	stop, stopLast := l.NeverMissing(prefix(0)), l.NeverMissing(prefix(1))
	drain := func(code int, text string, flags ...string) {
		t.Helper()
		out, stderr, got := l.CLI(append([]string{"drain", "node", "n1"}, flags...)...)
		if got != code || !strings.Contains(out+stderr, text) {
			t.Fatalf("drain %v: exit %d, want %d: %s%s", flags, got, code, out, stderr)
		}
	}
	drain(1, prefix(1).String()+" via n1 (announced: no other node may be announced yet", "--wait", "--timeout", "5s")
	l.Bird.WaitNextHops(prefix(0), lab.NodeAddress(2))

	leader := l.Leader()
	leader.Kill()
	l.Eventually("why of a drained node, by another leader", func() error {
		d, err := askWhy(l, lab.VIP(0).String())
		if err == nil && (d.Doubt != "" || !slices.Contains(nodesOf(d), "n1 none node-drained")) {
			err = fmt.Errorf("nodes %q, doubt %q", nodesOf(d), d.Doubt)
		}
		return err
	})
	leader.Start()
	l.Agreed()

	l.Manifests.Service(1, 3) // the pod moves
	drain(0, "drained:  node/n1", "--wait", "--timeout", "2m")
	for i, want := range []any{lab.NodeAddress(2), lab.NodeAddress(3)} { // the switch has it, when the command says so
		if got := fmt.Sprint(l.Bird.NextHops(prefix(i))); got != fmt.Sprint([]any{want}) {
			t.Errorf("%s leads to %s after the drain", prefix(i), got)
		}
	}
	drain(0, "no longer drained:  node/n1", "--undo")
	drain(0, "no longer drained:  node/n1", "--undo")
	l.Bird.WaitNextHops(prefix(0), lab.NodeAddress(1), lab.NodeAddress(2))
	stop()
	stopLast()
}
