// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

// s10 judges every frame by which a node says on a segment that an address is at it. At that moment
//
//   - the record has a lease of the address, and the node holds it: so no two nodes ever answer for one;
//   - a process of the node has heard a member since it began, and within the lease's term and what clocks may run wrong,
//     unless it keeps the lease when it is cut off: only a member's answer makes a lease last.
//
// Frames are excused while the clock of the node or of a member runs more wrong than leases allow for, and two terms longer. When
// the record is replaced, who held a lease by the former one may use it to the end of its term, unless somebody else has spoken
// since; if it keeps the lease, until it hears a member, and what the record knows instead is not judged until then.
type s10 struct {
	idle
	*judge
	heard   map[string]time.Duration // when a node last heard of a member, in the present life of its process
	skewed  map[string]int           // by how many faults clocks run more wrong than leases allow for
	righted map[string]time.Duration // when that ended
	lost    map[netip.Addr]*lostLease
}

// lostLease is a lease that the record had before it was replaced.
type lostLease struct {
	*fsm.Lease
	at    time.Duration // when it was
	other bool          // whether somebody else spoke for the address since
}

func newS10(j *judge) rule {
	return &s10{
		judge: j, heard: map[string]time.Duration{}, skewed: map[string]int{}, righted: map[string]time.Duration{},
		lost: map[netip.Addr]*lostLease{},
	}
}

func (r *s10) step(s *step) {
	if !s.replaced {
		return
	}
	clear(r.lost)
	for _, l := range fsm.List[*fsm.Lease](s.before, fsm.TableLeases) {
		r.lost[l.VIP] = &lostLease{Lease: l, at: s.At}
	}
}

// mayUse tells whether a holder by the former record may use its lease yet.
func (r *s10) mayUse(l *lostLease) bool {
	if l.Keep {
		heard, ever := r.heard[string(l.Holder)]
		return ever && heard <= l.at
	}
	return r.scene.now-l.at <= allowed(l.Term)
}

func (r *s10) hear(e event.Stamped) {
	if len(r.topology.Links) == 0 {
		return
	}
	switch x := e.Event.(type) {
	case event.Message:
		if x.Arrived > 0 && slices.Contains(r.scene.members(), x.From) {
			r.heard[x.To] = e.At
		}
	case event.Started:
		delete(r.heard, x.Process)
	case event.FaultBegan:
		r.skew(x.Fault, x.On, 1)
	case event.FaultEnded:
		r.skew(x.Fault, x.On, -1)
	case event.Claim:
		r.claimed(e.Number, x)
	}
}

// skew counts faults of clocks beyond what is allowed for: those that excuse whom they befall.
func (r *s10) skew(fault string, on []string, by int) {
	if fault != "clock-drift" {
		return
	}
	for _, name := range on {
		if !strings.Contains(name, "/") {
			r.skewed[name] += by
			r.righted[name] = r.scene.now
		}
	}
}

func (r *s10) claimed(number uint64, x event.Claim) {
	l, leased := fsm.Get[*fsm.Lease](r.record.View(), fsm.TableLeases, x.Address.String())
	if leased && r.excused(x.Node, 2*l.Term) {
		return
	}
	if before := r.lost[x.Address]; before != nil && r.mayUse(before) {
		switch {
		case string(before.Holder) != x.Node:
			before.other = before.other || !before.Keep
		case !before.other:
			l, leased = before.Lease, true
		}
	}
	r.checked()
	if !leased || string(l.Holder) != x.Node {
		r.broken(x.Address.String(), fmt.Sprintf("%s says on %s that it has the address; %s", x.Node, x.Segment, holderText(l, leased)), number)
		return
	}
	heard, ever := r.heard[x.Node]
	most := allowed(l.Term)
	switch {
	case !ever:
		r.broken(x.Address.String(), fmt.Sprintf("%s says on %s that it has the address, and has heard no member since its agent started", x.Node, x.Segment), number)
	case !l.Keep && r.scene.now-heard > most:
		r.broken(x.Address.String(), fmt.Sprintf("%s says on %s that it has the address, and has heard no member for %s: its lease lasts %s",
			x.Node, x.Segment, r.scene.now-heard, l.Term), number)
	}
}

// allowed is how long a term may last by right time: clocks may run wrong by 1.5 %.
func allowed(term time.Duration) time.Duration { return term + term*3/200 }

func holderText(l *fsm.Lease, leased bool) string {
	if !leased {
		return "nobody has a lease of it"
	}
	return fmt.Sprintf("%s has its lease", l.Holder)
}

// excused tells whether leases cannot be held to for now.
func (r *s10) excused(node string, grace time.Duration) bool {
	return slices.ContainsFunc(append([]string{node}, r.scene.members()...), func(name string) bool {
		at, ever := r.righted[name]
		return r.skewed[name] > 0 || ever && r.scene.now-at < grace
	})
}
