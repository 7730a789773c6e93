// SPDX-License-Identifier: Apache-2.0

package group_test

import (
	"fmt"
	"strings"
	"testing"

	"fairlead.io/fairlead/e2e/lab"
	"fairlead.io/fairlead/internal/testkit"
)

// A group goes from one release to the next and back again, member by member, without a route that is missing for a
// moment, until an operator finalizes the newer format: formats never rise by themselves, and once one has, the older
// release is refused before it can do harm.
func TestUpgradeAndBackBeforeFinalize(t *testing.T) {
	older, newer := lab.Release(t), lab.Binary(t)
	l := started(t, lab.Options{Binary: older})
	stop := l.NeverMissing(prefix(0))
	roll := func(binary string, members []*lab.Member) {
		t.Helper()
		for _, m := range members {
			l.Agreed()
			m.Stop()
			m.Use(binary)
			m.Start()
			l.Agreed()
			l.Bird.WaitEstablished("m1", "m2", "m3")
		}
	}
	roll(newer, l.Members)
	l.Manifests.Service(1, 3)
	l.Bird.WaitNextHops(prefix(1), lab.NodeAddress(3))
	format(t, l, 1)
	roll(older, l.Members[:2]) // mixed, then forward again
	l.Manifests.Service(2, 1)
	l.Bird.WaitNextHops(prefix(2), lab.NodeAddress(1))
	roll(newer, l.Members[:2])
	testkit.Eventually(t, "the newer format", func() error { // on a busy machine an election may be going on
		if _, stderr, code := l.CLI("raft", "finalize"); code != 0 {
			return fmt.Errorf("finalize: %s", stderr)
		}
		return nil
	})
	format(t, l, 2)
	stop()
	last := l.Members[2]
	last.Stop()
	last.Use(older)
	last.Start()
	if code := last.Ended(testkit.Patience); code != 1 {
		t.Fatalf("the older release ended with %d", code)
	}
	if !strings.Contains(last.Log(), "upgrade") {
		t.Errorf("it does not say what to do:\n%s", last.Log())
	}
	last.Use(newer)
	last.Start()
	l.Agreed()
}

func format(t *testing.T, l *lab.Lab, want int) {
	t.Helper()
	l.Eventually(fmt.Sprintf("format %d", want), func() error {
		out, stderr, code := l.CLI("raft", "status", "-o", "json")
		if code != 0 || !strings.Contains(strings.ReplaceAll(out, " ", ""), fmt.Sprintf(`"format":%d`, want)) {
			return fmt.Errorf("status: %s%s", out, stderr)
		}
		return nil
	})
}
