// SPDX-License-Identifier: Apache-2.0

package group_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"fairlead.io/fairlead/e2e/lab"
)

// design §4: a restore begins a new epoch; what the backup did not know stays announced until a complete view has
// filled the record again, and a member that missed it is refused.
func TestRestoreKeepsRoutesAndRefusesAMemberThatMissedIt(t *testing.T) {
	l := started(t, lab.Options{})
	backup := filepath.Join(t.TempDir(), "backup")
	l.Agreed()
	if _, stderr, code := l.CLI("raft", "backup", backup); code != 0 {
		t.Fatalf("backup: %s", stderr)
	}
	l.Manifests.Service(1, 3)
	l.Bird.WaitNextHops(prefix(1), lab.NodeAddress(3))
	l.Agreed()
	out, stderr, code := l.CLI("raft", "restore", backup, "--dry-run")
	if code != 0 || !strings.Contains(out, "service default/svc-1: removed") {
		t.Fatalf("the dry run does not tell that svc-1 would go: %s%s", out, stderr)
	}
	stop := l.NeverMissing(prefix(0), prefix(1))
	missed := l.Others(l.Leader())[0]
	missed.Kill()
	if _, stderr, code := l.CLI("raft", "restore", backup); code != 0 {
		t.Fatalf("restore: %s", stderr)
	}
	l.Eventually("epoch 2, with everything in it again", func() error {
		s, ok := l.Status()
		services, _, _ := l.CLI("get", "services", "-o", "json")
		if !ok || s.Epoch != 2 || !strings.Contains(services, "svc-1") {
			return fmt.Errorf("epoch %d, services %s", s.Epoch, services)
		}
		return nil
	})
	l.Manifests.Service(1, 2) // the group goes on
	l.Bird.WaitNextHops(prefix(1), lab.NodeAddress(2))
	stop()
	missed.Start()
	l.Agreed() // it reads what it missed
	if hops := l.Bird.NextHops(prefix(1)); len(hops) != 1 || hops[0] != lab.NodeAddress(2) {
		t.Errorf("the member that missed the restore turned the route: %v", hops)
	}
	for _, m := range l.Members {
		if strings.Contains(m.Log(), "outdated") {
			t.Errorf("%s refused a member over a restore, or was refused", m.Name)
		}
	}
	l.Eventually("three voters, the same as before", func() error {
		s, ok := l.Status()
		if !ok || len(s.Members) != 3 {
			return fmt.Errorf("%d members", len(s.Members))
		}
		for _, m := range s.Members {
			if m.Suffrage != "voter" {
				return fmt.Errorf("%s is a %s", m.Name, m.Suffrage)
			}
		}
		return nil
	})
}
