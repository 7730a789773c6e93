// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"fairlead.io/fairlead/fsm"
)

// A member is excused once it was lost for as long as the most patient switch keeps its paths, counted anew whenever
// it answers.
func TestExcusesCountFromTheLastAnswer(t *testing.T) {
	g := newGroup(t)
	g.must(&fsm.ReportMember{Server: "m1", Name: "m1", Format: fsm.NewestFormat, Run: "r"}, &fsm.ReportMember{Server: "m2", Name: "m2", Format: fsm.NewestFormat, Run: "r"})
	g.must(&fsm.PutPeer{Peer: fsm.Peer{Name: "patient", Address: netip.MustParseAddr("192.0.2.254"), ASN: 65001, StaleTime: time.Hour}})
	e := newExcuses(0)
	const wait = 30*time.Second + time.Second + time.Hour
	check := func(at time.Duration, answers []fsm.ServerID, want []fsm.ServerID, next time.Duration) {
		t.Helper()
		servers := []Server{{ID: "m1"}, {ID: "m2"}}
		for i := range servers {
			servers[i].Answers = slices.Contains(answers, servers[i].ID)
		}
		have, again := e.update(at, g.state.Read(), servers)
		if !slices.Equal(have, want) || again != next {
			t.Errorf("at %s: excused %v and again in %s, want %v and %s", at, have, again, want, next)
		}
	}
	m1, m2 := []fsm.ServerID{"m1"}, []fsm.ServerID{"m2"}
	check(0, []fsm.ServerID{"m1", "m2"}, nil, 0)
	check(time.Minute, m1, nil, wait)
	check(wait, m1, nil, time.Minute)
	check(wait+time.Minute, m1, m2, 0)
	check(wait+2*time.Minute, m2, nil, wait) // m2 is back, m1 lost
	check(2*wait, nil, nil, 2*time.Minute)   // m2 is lost again
	check(2*wait+2*time.Minute, nil, m1, wait-2*time.Minute)

	// A peer that is taken off the record may still be a lost member's.
	g.must(&fsm.DeletePeer{Name: "patient"})
	check(2*wait+3*time.Minute, nil, m1, wait-3*time.Minute)
}

// A switch without graceful restart drops the paths with the session.
func TestSwitchHoldsAsThePeerAsks(t *testing.T) {
	for _, c := range []struct {
		peer fsm.Peer
		want time.Duration
	}{
		{fsm.Peer{}, 631 * time.Second},
		{fsm.Peer{HoldTime: 9 * time.Second, NoRestart: true}, 9 * time.Second},
		{fsm.Peer{HoldTime: 90 * time.Second, RestartTime: 120 * time.Second, StaleTime: time.Second}, 211 * time.Second},
	} {
		if have := switchHolds(&c.peer); have != c.want {
			t.Errorf("%+v: %s, want %s", c.peer, have, c.want)
		}
	}
}
