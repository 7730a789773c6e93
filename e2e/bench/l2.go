// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"fairlead.io/fairlead/e2e/lab"
)

// Sizes of l2Failover.
const (
	l2Nodes   = 5
	l2Runs    = 50
	l2Leaders = 10 // how often the leading controller is killed afterwards
)

// l2Failover kills the agent (SIGKILL) of the node that answers for an address, IPv4 and IPv6 in turn, and takes the time
// until another node says on the segment that the address is there. Two owners at once end the benchmark. In detail is for
// how long nobody answered when the leading controller was killed.
func l2Failover(t *bench) figures {
	l := lab.New(t, lab.Options{Steered: true, Log: "warn"})
	s := l.Segment(l2Nodes)
	stop := s.Near.KeepAsking(5 * time.Millisecond)
	var f figures
	elected := []float64{} // samples during which controllers elected another leader: it counts leases from then on
	for i := range l2Runs {
		a := lab.SegmentVIPs[i%len(lab.SegmentVIPs)]
		s.AllUp()
		leader := l.Leader()
		owner := s.Owner(a)
		time.Sleep(time.Duration(i%7) * 17 * time.Millisecond) // another phase of the renewals each time
		begin := time.Now()
		owner.Signal(syscall.SIGKILL)
		next := s.Another(a, owner, begin)
		f.samples = append(f.samples, milliseconds(s.Wire.First(a, next, begin).Sub(begin)))
		if l.Leader() != leader {
			elected = append(elected, f.samples[i])
		}
		owner.Ended(soon)
		owner.Start()
		time.Sleep(time.Second) // were there two owners, they would both answer
		onlyInTurn(t, s, a, begin)
	}
	f.detail = map[string]any{
		"runs_ms": f.samples, "max_ms": slices.Max(f.samples), "new_leader_meanwhile_ms": elected, "leader_killed_silence_ms": leaderKilled(t, l, s),
	}
	stop()
	return f
}

// onlyInTurn ends the benchmark if a node answered for an address after its successor did.
func onlyInTurn(t *bench, s *lab.Segment, a netip.Addr, since time.Time) {
	turns := s.Wire.Turns(a, since)
	if len(slices.Compact(slices.Sorted(slices.Values(turns)))) < len(turns) {
		t.Fatal(fmt.Sprintf("%s was at %v, in turn", a, turns))
	}
}

// leaderKilled kills the leading controller again and again, and gives for how long no address was answered for.
func leaderKilled(t *bench, l *lab.Lab, s *lab.Segment) (silences []float64) {
	s.AllUp()
	for range l2Leaders {
		leader, begin := l.Leader(), time.Now()
		leader.Signal(syscall.SIGKILL)
		leader.Ended(soon)
		time.Sleep(3 * time.Second)
		var longest time.Duration
		for _, a := range lab.SegmentVIPs {
			longest = max(longest, s.Wire.Silence(a, begin))
			onlyInTurn(t, s, a, begin)
		}
		silences = append(silences, milliseconds(longest))
		leader.Start()
		l.Agreed()
	}
	return silences
}
