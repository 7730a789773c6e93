// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"strings"
	"testing"
	"time"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster/admin"
)

// A member that knows nobody who leads says which of the three it is: the group is not founded, this member is in none, or voters are away. Each has a
// remedy of its own: a token for members that are merely down has an operator look in the wrong place.
func TestLeaderlessMembersTellWhatIsSo(t *testing.T) {
	t.Parallel()
	trio := []string{"m1", "m2", "m3"}
	for name, c := range map[string]struct {
		l         admin.Leaderless
		want, not []string
	}{
		"founding": {
			admin.Leaderless{Member: "m1", Founders: trio, Obstacle: "ask m2: connection refused"},
			[]string{"the group of m1, m2, m3 is not founded yet", "ask m2: connection refused", "start all of them", "same bootstrapToken"}, []string{"nobody leads"},
		},
		"no-token": {
			admin.Leaderless{Member: "m4", Obstacle: "ask m1: connection refused"},
			[]string{"m4 belongs to no group yet", "ask m1: connection refused", "joins by itself", "bootstrapToken"}, []string{"nobody leads"},
		},
		"lost": {
			admin.Leaderless{Member: "m1", Voters: trio, Founders: trio, Heard: true, Silence: 13 * time.Second},
			[]string{"nobody leads", "no leader for 13s", "2 of the voters (m1, m2, m3)", "raft status", "traffic goes on"}, []string{"oken", "founded"},
		},
		"started-alone": {
			admin.Leaderless{Member: "m1", Voters: []string{"m1", "m2", "m3", "m4", "m5"}, Founders: trio},
			[]string{"nobody leads", "since it started", "3 of the voters", "raft status"}, []string{"oken", "founded"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			why, remedy := c.l.Tell()
			text := why + "; " + remedy
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("%q is missing in %s", want, text)
				}
			}
			for _, not := range append(c.not, "not the leader", "behind", "0 of 0", "\n") {
				if strings.Contains(text, not) {
					t.Errorf("%q is said in %s", not, text)
				}
			}
		})
	}
}

// While a group is founded, the status of a member says whom it waits for, and what is in the way.
func TestStatusBeforeThereIsAGroupSaysWhy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.group.edit(func() { w.group.leader, w.group.members = "", nil })
	w.member("m2").view.leaderless = admin.Leaderless{Founders: []string{"m1", "m2"}, Obstacle: "ask m1: connection refused"}
	for _, local := range []bool{false, true} {
		status, err := w.client("viewer", "bob", "m2").Raft.Status(w.ctx(), &fairleadv1.StatusRequest{Local: local})
		if err != nil {
			t.Fatal(err)
		}
		if advice := status.GetAdvice(); !strings.Contains(advice, "m1, m2 is not founded yet (ask m1: connection refused)") || !strings.Contains(advice, "same bootstrapToken") {
			t.Errorf("local %v: advice %q", local, advice)
		}
	}
}

// All members may come back with other addresses. Each is up and answers, and nobody can be elected: the advice names both addresses and the way back.
// While somebody leads, the configuration follows by itself.
func TestStatusNamesRaftAddressesThatChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.group.edit(func() {
		w.member("m1").view.reachedAt, w.member("m3").view.reachedAt = "198.51.100.1:7444", "198.51.100.3:7444"
	})
	if advice := w.status("m2").GetAdvice(); strings.Contains(advice, "198.51.100.") {
		t.Errorf("m1 leads, and advice is %q", advice)
	}
	w.group.edit(func() { w.group.leader = "" })
	advice := w.status("m2").GetAdvice()
	for _, want := range []string{
		"nobody leads", "m1 is at 198.51.100.1:7444, where the group's configuration has 192.0.2.1:7444", "m3 is at 198.51.100.3:7444", "raft recover", "former addresses",
	} {
		if !strings.Contains(advice, want) {
			t.Errorf("advice lacks %q: %s", want, advice)
		}
	}
	if strings.Contains(advice, "m2 is at") {
		t.Errorf("m2 did not move: %s", advice)
	}
}
