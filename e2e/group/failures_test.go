// SPDX-License-Identifier: Apache-2.0

package group_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/e2e/lab"
)

// design §6: every member announces what its own record says, so that losing the leader withdraws nothing.
func TestLeaderKilledLeavesEveryRouteInPlace(t *testing.T) {
	l := started(t, lab.Options{})
	stop := l.NeverMissing(prefix(0))
	for range 3 {
		leader := l.Leader()
		leader.Kill()
		l.Leader()
		l.Manifests.Service(0, 1, 3) // the group still follows
		l.Bird.WaitNextHops(prefix(0), lab.NodeAddress(1), lab.NodeAddress(3))
		leader.Start()
		l.Bird.WaitEstablished("m1", "m2", "m3")
		l.Agreed()
		l.Manifests.Service(0, 1, 2)
		l.Bird.WaitNextHops(prefix(0), lab.NodeAddress(1), lab.NodeAddress(2))
	}
	stop()
}

// design §6: an ordinary election causes not one UPDATE.
func TestElectionSendsNoUpdate(t *testing.T) {
	l := started(t, lab.Options{})
	l.Agreed()
	before := -1 // once every member has sent its table
	l.Eventually("the tables of all members", func() error {
		if n := len(l.Bird.Routes()); n != 2*len(l.Members) {
			return fmt.Errorf("%d paths", n)
		}
		last := before
		if before = l.Updates(); before != last {
			return fmt.Errorf("%d UPDATEs, and before %d", before, last)
		}
		return nil
	})
	for range 5 {
		old := l.Leader()
		if _, stderr, code := l.CLI("raft", "transfer"); code != 0 {
			t.Fatalf("transfer: %s", stderr)
		}
		l.Eventually("another leader", func() error {
			if now := l.Leader(); now == old {
				return fmt.Errorf("%s still leads", now.Name)
			}
			return nil
		})
	}
	l.Agreed()
	if after := l.Updates(); after != before {
		t.Errorf("%d UPDATEs and withdrawals during five elections", after-before)
	}
}

// S8: what a member that is cut off from the others still announces leaves the ECMP set once it knows better than
// to believe itself, after 3 s without contact (dataplane/bgp TestAMemberCutOffStepsAsideAndReturns), and comes back with it.
func TestMemberCutOffIsDemotedAndItsStaleHopLeaves(t *testing.T) {
	l := started(t, lab.Options{})
	stop := l.NeverMissing(prefix(0))
	m3 := l.Member("m3")
	l.Cut([]*lab.Member{m3}, l.Others(m3))
	l.Manifests.Service(0, 2, 3) // m3 cannot hear that node 1 is out
	l.Bird.WaitNextHops(prefix(0), lab.NodeAddress(2), lab.NodeAddress(3))
	if !announces(l, "m3", prefix(0), lab.NodeAddress(1)) {
		t.Error("the member that was cut off withdrew its path; it should only rank behind")
	}
	l.Heal()
	l.Eventually("m3 to catch up, and to regain its rank", func() error {
		if announces(l, "m3", prefix(0), lab.NodeAddress(1)) {
			return errors.New("m3 still announces node 1")
		}
		for _, r := range l.Bird.Routes() {
			if r.Protocol == "m3" && r.MED > 0 {
				return fmt.Errorf("m3 announces %s demoted", r.Prefix)
			}
		}
		return nil
	})
	stop()
}

// announces tells whether the switch holds a path of a member.
func announces(l *lab.Lab, member string, p netip.Prefix, hop netip.Addr) bool {
	for _, r := range l.Bird.Routes() {
		if r.Protocol == member && r.Prefix == p && r.NextHop == hop {
			return true
		}
	}
	return false
}

// design §10: quorum lost, traffic as last agreed; all members stopped and started again, no gap.
func TestAllMembersStoppedAndStartedLeavesNoGap(t *testing.T) {
	l := started(t, lab.Options{})
	l.Agreed()
	stop := l.NeverMissing(prefix(0))
	for _, m := range l.Members {
		m.Kill()
	}
	l.Eventually("only long-lived stale paths are left", func() error {
		for _, r := range l.Bird.Routes() {
			if !r.LongLived {
				return fmt.Errorf("%+v", r)
			}
		}
		return nil
	})
	for _, m := range l.Members {
		m.Start()
	}
	l.Bird.WaitEstablished("m1", "m2", "m3")
	l.Manifests.Service(0, 3)
	l.Bird.WaitNextHops(prefix(0), lab.NodeAddress(3))
	stop()
}

// S8: a member dies and a node after it; the dead next hop leaves with detection, commit and UPDATE, once the switch keeps the paths of the dead
// member no longer at full rank, for which that one asked for a second.
func TestNodeDyingAfterAMemberLeavesInTime(t *testing.T) {
	l := started(t, lab.Options{})
	l.Bird.WaitEstablished("m1", "m2", "m3")
	l.Agreed()
	asksToBeKept(t, l, "m2", time.Second)
	stop := l.NeverMissing(prefix(0))
	l.Member("m2").Kill()
	l.Manifests.Node(2, false)
	l.Bird.WaitNextHops(prefix(0), lab.NodeAddress(1))
	if !announces(l, "m2", prefix(0), lab.NodeAddress(2)) {
		t.Error("the switch has forgotten the path of the dead member; it should only rank behind")
	}
	stop()
}

// asksToBeKept sees to it that a member asks the switch to keep its paths at full rank for so long when it is lost: how long a next hop stays
// that it alone announces still.
func asksToBeKept(t *testing.T, l *lab.Lab, member string, want time.Duration) {
	t.Helper()
	if of := l.Bird.Command("show protocols all " + member); !strings.Contains(of, fmt.Sprintf("Restart time: %d\n", want/time.Second)) {
		t.Errorf("%s asks for another restart time than %s:\n%s", member, want, of)
	}
}

// design §4: an empty folder is a new server; it joins and gets its vote, and the old server id is removed.
func TestLostDataFolderRejoinsAsANewServer(t *testing.T) {
	l := started(t, lab.Options{})
	l.Agreed()
	stop := l.NeverMissing(prefix(0))
	m3 := l.Member("m3")
	before := serverID(t, l, "m3")
	m3.Kill()
	m3.Wipe()
	m3.Start()
	l.Eventually("m3 as a new voter", func() error {
		s, ok := l.Status()
		if !ok || len(s.Members) != 3 {
			return fmt.Errorf("%d members", len(s.Members))
		}
		for _, m := range s.Members {
			if m.Name == "m3" && (m.ServerID == before || m.Suffrage != "voter" || m.Applied == 0) {
				return fmt.Errorf("m3 is %s, a %s", m.ServerID, m.Suffrage)
			}
		}
		return nil
	})
	l.Bird.WaitEstablished("m3")
	l.Manifests.Service(0, 3)
	l.Bird.WaitNextHops(prefix(0), lab.NodeAddress(3))
	stop()
}

func serverID(t *testing.T, l *lab.Lab, name string) string {
	t.Helper()
	s, ok := l.Status()
	i := slices.IndexFunc(s.Members, func(m lab.MemberStatus) bool { return m.Name == name })
	if !ok || i < 0 {
		t.Fatalf("no status of %s", name)
	}
	return s.Members[i].ServerID
}

// design §4: after a recover the former members are refused until they are wiped.
func TestRecoverRefusesTheFormerMembers(t *testing.T) {
	l := started(t, lab.Options{})
	l.Agreed()
	stop := l.NeverMissing(prefix(0))
	for _, m := range l.Members {
		m.Kill()
	}
	m1, m2 := l.Member("m1"), l.Member("m2")
	out, stderr, code := l.CLI("raft", "recover", "--config", m1.Config, "--yes")
	if code != 0 {
		t.Fatalf("recover: %s", stderr)
	}
	if !strings.Contains(out, "m2") || !strings.Contains(out, "m3") {
		t.Errorf("recover does not say whom to wipe:\n%s", out)
	}
	m1.Start()
	l.Eventually("m1 to lead alone", func() error {
		if s, ok := l.Status(); !ok || s.Leader != "m1" || s.Epoch != 2 {
			return fmt.Errorf("leader %q, epoch %d", s.Leader, s.Epoch)
		}
		return nil
	})
	m2.Start()
	l.Eventually("m2 to be refused", func() error {
		if !strings.Contains(m1.Log(), "peer-outdated") && !strings.Contains(m2.Log(), "we-are-outdated") {
			return fmt.Errorf("no word of it in the logs")
		}
		return nil
	})
	l.Manifests.Service(0, 3)
	l.Bird.WaitNextHops(prefix(0), lab.NodeAddress(3))
	if s, ok := l.Status(); !ok || len(s.Members) != 1 {
		t.Errorf("the former member is back: %+v", s)
	}
	m2.Kill()
	m2.Wipe()
	m2.Start()
	l.Eventually("m2 as a new voter", func() error {
		if s, ok := l.Status(); !ok || len(s.Members) != 2 || s.Members[1].Suffrage != "voter" {
			return fmt.Errorf("members %+v", s.Members)
		}
		return nil
	})
	stop()
}
