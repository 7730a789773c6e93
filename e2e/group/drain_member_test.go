// SPDX-License-Identifier: Apache-2.0

package group_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/e2e/lab"
)

// A leader that is drained hands leadership on and leaves the switch, which has every path all along: while it leaves, while its
// machine is rebooted, which changes nothing of the drain, and when it comes back. No other member can be drained meanwhile.
func TestDrainedMemberLeavesWithoutALostPath(t *testing.T) {
	l := started(t, lab.Options{})
	l.Bird.WaitEstablished("m1", "m2", "m3")
	stop := l.NeverMissing(prefix(0))
	drained := l.Leader()
	drain := func(code int, text string, args ...string) {
		t.Helper()
		out, stderr, got := l.CLI(append([]string{"drain", "member"}, args...)...)
		if got != code || !strings.Contains(out+stderr, text) {
			t.Fatalf("drain member %v: exit %d, want %d: %s%s", args, got, code, out, stderr)
		}
	}
	paths := func() (n int) {
		for _, r := range l.Bird.Routes() {
			if r.Protocol == drained.Name {
				n++
			}
		}
		return n
	}
	left := func(when string) {
		t.Helper()
		if n, leader := paths(), l.Leader(); n != 0 || leader == drained {
			t.Errorf("%s: %d paths of %s, and %s leads", when, n, drained.Name, leader.Name)
		}
	}
	drain(0, "drained:  member/"+drained.Name, drained.Name, "--wait", "--timeout", "2m")
	left("after the drain")
	other := l.Others(drained)[0]
	drain(1, "a majority of members that are not drained", other.Name)

	drained.Kill()
	drained.Start()
	l.Agreed()
	time.Sleep(3 * time.Second) // longer than sessions take to open
	left("after the reboot")

	drain(0, "no longer drained:  member/"+drained.Name, drained.Name, "--undo")
	l.Bird.WaitEstablished(drained.Name)
	l.Eventually("the paths of the member", func() error {
		if n := paths(); n != 2 {
			return fmt.Errorf("%d paths", n)
		}
		return nil
	})
	stop()
}

// The last member that announces stays: the others have no session with the switch.
func TestDrainedMemberStaysWhileNobodyElseAnnounces(t *testing.T) {
	l := started(t, lab.Options{})
	l.Bird.WaitEstablished("m1", "m2", "m3")
	for _, m := range []string{"m2", "m3"} {
		l.Bird.Command("disable " + m)
	}
	out, stderr, code := l.CLI("drain", "member", "m1", "--wait", "--timeout", "6s")
	if code != 1 || !strings.Contains(stderr, "announcing still") {
		t.Fatalf("exit %d: %s%s", code, out, stderr)
	}
	if got := fmt.Sprint(l.Bird.NextHops(prefix(0))); got != fmt.Sprint([]any{lab.NodeAddress(1), lab.NodeAddress(2)}) {
		t.Errorf("next hops %s", got)
	}
	l.Eventually("another leader", func() error { // whoever proposes while leadership is handed on has to try again
		if l.Leader().Name == "m1" {
			return errors.New("m1 leads")
		}
		return nil
	})
	for _, m := range []string{"m2", "m3"} {
		l.Bird.Command("enable " + m)
	}
	stop := l.NeverMissing(prefix(0))
	if out, stderr, code := l.CLI("drain", "member", "m1", "--wait", "--timeout", "2m"); code != 0 {
		t.Fatalf("exit %d: %s%s", code, out, stderr)
	}
	stop()
}
