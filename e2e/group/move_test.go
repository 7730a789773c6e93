// SPDX-License-Identifier: Apache-2.0

package group_test

import (
	"fmt"
	"strings"
	"testing"

	"fairlead.io/fairlead/e2e/lab"
)

// Planned move: the switch has a next hop all along, and the one of the move alone when the command says so. A node that dies does not
// take the address along.
func TestMovedServiceComesInByOneNode(t *testing.T) {
	l, machines := withMachines(t, 3)
	stop := l.NeverMissing(prefix(0))
	move := func(code int, text string, args ...string) {
		t.Helper()
		out, stderr, got := l.CLI(append([]string{"move", "default/svc-0"}, args...)...)
		if got != code || !strings.Contains(out+stderr, text) {
			t.Fatalf("move %v: exit %d, want %d: %s%s", args, got, code, out, stderr)
		}
	}
	only := func(node int) {
		t.Helper()
		if got := fmt.Sprint(l.Bird.NextHops(prefix(0))); got != fmt.Sprint([]any{lab.NodeAddress(node)}) {
			t.Errorf("%s leads to %s after the move", prefix(0), got)
		}
	}
	move(0, "moved:  default/svc-0", "n2", "--wait", "--timeout", "2m", "--reason", "line card")
	only(2)
	move(0, "moved:  default/svc-0", "n3", "--wait", "--timeout", "2m") // which has no pod of it
	only(3)
	move(1, "node n9: not-found", "n9")
	if out, _, _ := l.CLI("why", lab.VIP(0).String()); !strings.Contains(out, "moved it to node n3") {
		t.Errorf("why does not tell who moved it:\n%s", out)
	}

	leader := l.Leader()
	leader.Kill() // another one leads, and keeps to it
	l.Eventually("the move is told of by another leader", func() error {
		d, err := askWhy(l, lab.VIP(0).String())
		if err == nil && (d.Doubt != "" || !strings.Contains(fmt.Sprint(nodesOf(d)), "n3 announced moved-here")) {
			err = fmt.Errorf("nodes %q, doubt %q", nodesOf(d), d.Doubt)
		}
		return err
	})
	leader.Start()
	l.Agreed()
	only(3)
	stop()

	machines[2].Fail()
	l.Bird.WaitNextHops(prefix(0), lab.NodeAddress(1), lab.NodeAddress(2))
	move(0, "no longer moved:  default/svc-0", "--undo")
}
