// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"cmp"
	"net/netip"
	"reflect"
	"slices"
	"time"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/fsm"
)

// Timing is what tests and unusual networks change. Zero fields take their default.
type Timing struct {
	// Term is for how long a lease may be used after a renewal was sent. At most Longest. Default 600 ms: who fell silent is
	// succeeded within a second, and a new leader is there before leases end.
	Term time.Duration
	// Settle is how long an address may wait for all nodes that could answer for it, so that the first one that is heard
	// of does not get all. Default 2 s.
	Settle time.Duration
	// Steady is how long links must have worked for their node to be preferred. Default 5 s.
	Steady time.Duration
	// Park is how long a renewal may wait for something to say, of a node that holds leases: what it waits is lost of
	// their term. Default a tenth of Term, at most 100 ms. Idle is the same of one that holds none. Default a quarter of
	// Term, at most 150 ms. Agents wait longer than both before they ask other members.
	Park, Idle time.Duration
	// Look is how often the leader looks whether something is to be decided that nobody told it of. Default 100 ms; the
	// end of a lease is not missed by that.
	Look time.Duration
}

// Longest bounds the terms of leases. For so long a new leader grants nothing that has no holder by the record.
const Longest = 3 * time.Second

// Takeover is within what time after an owner was last heard of, or addresses came, others are to answer, as far as that depends on
// these times.
func (t Timing) Takeover() time.Duration {
	t = t.withDefaults()
	return wait(max(t.Term, Longest)) + t.Settle + t.Park + t.Look
}

func (t Timing) withDefaults() Timing {
	t.Term = cmp.Or(t.Term, 600*time.Millisecond)
	t.Settle = cmp.Or(t.Settle, 2*time.Second)
	t.Steady = cmp.Or(t.Steady, 5*time.Second)
	t.Park = cmp.Or(t.Park, min(t.Term/10, 100*time.Millisecond))
	t.Idle = cmp.Or(t.Idle, min(t.Term/4, 150*time.Millisecond))
	t.Look = cmp.Or(t.Look, 100*time.Millisecond)
	return t
}

// wait is how long a lease can be used at most, by the leader's clock, from when a renewal was answered. Clocks of holder
// and leader may each run wrong by 1.5 %.
func wait(term time.Duration) time.Duration { return term + term/32 }

// Held is a lease that a node may use, as it says.
type Held struct {
	VIP   netip.Addr
	Fence fsm.Revision
}

// Renewal is what a node says.
type Renewal struct {
	Node fsm.NodeID
	Boot fsm.BootID
	// Sent is by the node's clock, and rises from renewal to renewal of one boot.
	Sent time.Duration
	// Held are all leases that it may use until this renewal is answered, or that it keeps.
	Held  []Held
	Links []desired.Link
	// Leaving is whether the agent ends: it uses nothing any more, and is to be granted nothing.
	Leaving bool
}

// Grant is a lease as its holder is told of it.
type Grant struct {
	*fsm.Lease
	Interfaces []string // where it is to answer; none means all
}

// Keeper keeps the leases for one term of a leader. It reads no clock: now is a reading of the leader's, which neither stops
// nor runs back. One goroutine at a time may use it.
type Keeper struct {
	t        Timing
	epoch    fsm.Epoch // the life of the record that it keeps leases in
	began    time.Duration
	sessions map[fsm.NodeID]*session
	ending   map[netip.Addr]*told
	past     past
	wanting  map[netip.Addr]time.Duration // since when addresses have no holder
	due      time.Duration                // when the next lease ends that is not renewed until then
}

// session is what is known of a node.
type session struct {
	Renewal
	heard    time.Duration            // when the newest renewal came
	stirs    bool                     // whether that one may change what is to be decided
	greeted  bool                     // whether one was answered in this term
	answered time.Duration            // when one was last answered
	covered  time.Duration            // the Sent of that
	grants   []Grant                  // with what
	works    map[string]time.Duration // since when each link works
}

// told is a lease as its holder was told of it last.
type told struct {
	*fsm.Lease
	answered time.Duration // when that was at the latest
	boot     fsm.BootID    // to which boot of it
	covered  time.Duration // in answer to which renewal
	why      string        // why it ends
}

// NewKeeper returns the keeper of a term that began now, in a life of the record, after everything that earlier leaders
// committed was applied. Former is who kept the leases in an earlier life of the record, if nobody else did since.
func NewKeeper(t Timing, epoch fsm.Epoch, began time.Duration, former *Keeper) *Keeper {
	return &Keeper{
		t: t.withDefaults(), epoch: epoch, began: began, past: former.leaves(began), sessions: map[fsm.NodeID]*session{},
		ending: map[netip.Addr]*told{}, wanting: map[netip.Addr]time.Duration{},
	}
}

// Keeps tells whether the record is in the life that the Keeper keeps leases in. In another one it has no part: what a
// restored record says holds once a majority has it.
func (k *Keeper) Keeps(v *fsm.View) bool { return v.Group().Epoch == k.epoch }

// Heard takes in a renewal. It tells whether it is news: one that was overtaken is not.
func (k *Keeper) Heard(now time.Duration, r Renewal) bool {
	s := k.sessions[r.Node]
	if s != nil && s.Boot == r.Boot && r.Sent <= s.Sent {
		return false
	}
	next := &session{Renewal: r, heard: now, answered: k.began, stirs: true, works: map[string]time.Duration{}}
	if s != nil {
		next.answered, next.greeted, next.grants = s.answered, s.greeted, s.grants
		next.stirs = r.Leaving || !reflect.DeepEqual(r.Links, s.Links)
		if s.Boot == r.Boot {
			next.covered = s.covered
		}
	}
	for _, l := range r.Links {
		if !l.Works() {
			continue
		}
		next.works[l.Name] = now
		if s != nil {
			if since, worked := s.works[l.Name]; worked {
				next.works[l.Name] = since
			}
		}
	}
	k.sessions[r.Node] = next
	return true
}

// tells lists what a node is to be told of: the leases that are its own, are not ending, and that nobody else may use still.
func (k *Keeper) tells(now time.Duration, v *fsm.View, node fsm.NodeID) (out []Grant) {
	p := newPolicy(v)
	if k.leaving(node) {
		return nil
	}
	for _, l := range fsm.List[*fsm.Lease](v, fsm.TableLeases) {
		if e := k.ending[l.VIP]; l.Holder == node && (e == nil || e.Fence != l.Fence) && k.sure(now, v, l) && !p.released(l) {
			out = append(out, Grant{l, p.interfaces(l.VIP, node)})
		}
	}
	return out
}

// Stirs tells whether a node's newest renewal may change what is to be decided.
func (k *Keeper) Stirs(node fsm.NodeID) bool {
	return len(k.ending) > 0 || len(k.past.uses) > 0 || k.sessions[node].stirs
}

// leaving tells whether a node said that its agent ends.
func (k *Keeper) leaving(node fsm.NodeID) bool {
	s := k.sessions[node]
	return s != nil && s.Leaving
}

// News tells whether an answer to a node's newest renewal would change what it holds, or is not to wait: one that was
// not answered in this term may have little left of its leases, and one that is leaving waits for nothing.
func (k *Keeper) News(now time.Duration, v *fsm.View, node fsm.NodeID) bool {
	s := k.sessions[node]
	if s == nil {
		return false
	}
	told := k.tells(now, v, node)
	return !s.greeted || s.Leaving || len(told) != len(s.Held) || slices.ContainsFunc(told, func(g Grant) bool {
		return !slices.Contains(s.Held, Held{g.VIP, g.Fence})
	})
}

// Answer gives what a renewal is answered with; false for one that was overtaken, or if the record has begun another life. Since the renewal came, a majority must
// have confirmed that this leader leads.
func (k *Keeper) Answer(now time.Duration, v *fsm.View, node fsm.NodeID, boot fsm.BootID, sent time.Duration) ([]Grant, bool) {
	s := k.sessions[node]
	if !k.Keeps(v) || s == nil || s.Boot != boot || s.Sent != sent {
		return nil, false
	}
	s.answered, s.covered, s.greeted, s.grants = now, sent, true, k.tells(now, v, node)
	return s.grants, true
}

// end marks a lease: its holder is not told of it any more.
func (k *Keeper) end(l *fsm.Lease, why string) *told {
	if e := k.ending[l.VIP]; e != nil && e.Fence == l.Fence {
		return e
	}
	e := &told{Lease: l, answered: k.began, why: why}
	if s := k.sessions[l.Holder]; s != nil {
		e.answered, e.boot, e.covered = s.answered, s.Boot, s.covered
	}
	k.ending[l.VIP] = e
	return e
}

// ends is when the time of a lease has passed, whatever its holder was told.
func (k *Keeper) ends(l *fsm.Lease) time.Duration {
	last := k.began
	if e := k.ending[l.VIP]; e != nil && e.Fence == l.Fence {
		last = e.answered
	} else if s := k.sessions[l.Holder]; s != nil {
		last = s.answered
	}
	return last + wait(l.Term)
}

// over tells whether it has.
func (k *Keeper) over(now time.Duration, l *fsm.Lease) bool { return !l.Keep && now >= k.ends(l) }

// Due is when to decide anew, although nothing was heard until then.
func (k *Keeper) Due(now time.Duration) time.Duration { return min(now+k.t.Look, k.due) }

// letGo tells whether the holder of a lease that is ending said that it does not use it any more.
func (k *Keeper) letGo(l *fsm.Lease) bool {
	e := k.ending[l.VIP]
	return e != nil && e.Fence == l.Fence && k.dropped(e)
}

// dropped tells whether a node said, after it was told of a lease for the last time, that it does not use it any more. A
// machine that booted uses nothing of what it was told before.
func (k *Keeper) dropped(e *told) bool {
	s := k.sessions[e.Holder]
	if s == nil || s.Boot == e.boot && s.Sent <= e.covered {
		return false
	}
	return !slices.Contains(s.Held, Held{e.VIP, e.Fence})
}

// present tells whether a node was heard of within a term.
func (k *Keeper) present(now time.Duration, node fsm.NodeID) bool {
	s := k.sessions[node]
	return s != nil && now-s.heard < k.t.Term
}
