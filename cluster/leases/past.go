// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"slices"
	"time"

	"fairlead.io/fairlead/fsm"
)

// past is what nodes may still use of an earlier life of the record. A record that was restored, or what was left of one,
// knows leases as they were: others may have been granted since, and their holders use them until they hear, or for a term.
type past struct {
	known bool    // whether these are all
	uses  []*told // leases of which some are over
}

// leaves gives what the next keeper of the same leader has to know. The keeper of nobody leaves nothing.
func (k *Keeper) leaves(now time.Duration) past {
	if k == nil {
		return past{}
	}
	p := past{known: k.past.known || now >= k.began+wait(Longest)}
	p.uses = slices.Clone(k.past.uses)
	for _, s := range k.sessions {
		for _, g := range s.grants {
			p.uses = append(p.uses, &told{Lease: g.Lease, answered: s.answered, boot: s.Boot, covered: s.covered})
		}
	}
	for _, e := range k.ending {
		p.uses = append(p.uses, e)
	}
	return p
}

// sure tells whether nobody but a lease's holder can use what the record lost of its address. It is, for leases of this
// life of the record; after the longest term; and when the quarantine is over, which lasts at least as long (Lapse).
func (k *Keeper) sure(now time.Duration, v *fsm.View, l *fsm.Lease) bool {
	switch {
	case l.Fence.Epoch == k.epoch, now >= k.settled():
		return true
	case !k.past.known && !v.Group().Quarantine.IsZero():
		return false
	}
	return !slices.ContainsFunc(k.past.uses, func(e *told) bool {
		return e.VIP == l.VIP && e.Holder != l.Holder && !k.spent(now, e)
	})
}

// settled is when nothing of an earlier life can be in use any more, but for leases that are kept: those are lost sight of.
func (k *Keeper) settled() time.Duration { return k.began + wait(Longest) }

// spent tells whether a node can use a lease no more that it was told of.
func (k *Keeper) spent(now time.Duration, e *told) bool {
	return !e.Keep && now >= e.answered+wait(e.Term) || k.dropped(e)
}

// forget drops what is spent, and says when to look again.
func (k *Keeper) forget(now time.Duration) (again time.Duration) {
	if again = k.settled(); now >= again {
		k.past.uses = nil
	}
	k.past.uses = slices.DeleteFunc(k.past.uses, func(e *told) bool { return k.spent(now, e) })
	for _, e := range k.past.uses {
		if at := e.answered + wait(e.Term); at > now {
			again = min(again, at)
		}
	}
	return again
}

// Lapse is for how long yet somebody may use a lease that the record lost when it began another life, for all that a
// leader knows who took over some time ago.
func Lapse(v *fsm.View, led time.Duration) (left time.Duration) {
	epoch := v.Group().Epoch
	older := func(l *fsm.Lease) bool { return l.Fence.Epoch != epoch }
	if v.Group().Quarantine.IsZero() || !slices.ContainsFunc(fsm.List[*fsm.Lease](v, fsm.TableLeases), older) {
		return 0
	}
	return max(wait(Longest)-led, 0)
}
