// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"cmp"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"fairlead.io/fairlead/dataplane/bgp"
)

// A switch keeps what a lost session told it until the next one has told it everything; what that had not when it is lost, too, the switch
// drops (RFC 4724 §4.2). So a peer whose bytes end each child would cost paths at all others. After a death, therefore, peers are let in one
// after the other, each once the former has everything: a child that dies then costs a session that was opening, and who had that is
// suspected. Suspects are let in last, and after a second time held back for a while, longer each time, while the others live on.

// Times of an admission.
const (
	patience    = 5 * time.Second // for a peer that was let in to have everything, before the next one is let in all the same
	quiet       = 3 * time.Second // in which nobody is let in, before a suspect is: who waits for another one's turn to end the child shows
	firstHold   = 5 * time.Second // for which a peer is held back, twice as long each time
	longestHold = 5 * time.Minute
	mostSteps   = 8 // in which peers that nobody suspects are let in: where there are more peers, several at once are
)

// admission says which peers the present child is to have. It is for one goroutine at a time.
type admission struct {
	careful bool // a child died, and its followers have not yet lived with all peers for long enough
	of      map[netip.Addr]*account
	order   []netip.Addr   // of those of the peers that are there
	chance  func() float64 // from 0 up to 1
}

// account is what is known of a peer.
type account struct {
	peer    bgp.Peer
	in      time.Time // since when the present child has it; zero if it does not
	has     time.Time // since when it has had everything of the present child; zero if it has not yet
	reached bool      // it had everything of the child that had it last
	noted   bool      // that it may keep what it was told, while the present child does not have it

	strikes int           // deaths that are put down to it
	there   int           // deaths in a row, of those that cannot be put down to one that was on the way in, at which it was there
	hold    time.Duration // for which it was held back last; 0 if it was not
	until   time.Time     // until when it is
	spared  bool          // a child died without it, so that what was put down to it before is forgotten: once
}

func newAdmission() *admission {
	return &admission{of: map[netip.Addr]*account{}, chance: rand.Float64}
}

// identity is what a peer is known by. A neighbour on a link chooses its own link-local address: it is known by the link.
func identity(p bgp.Peer) netip.Addr {
	if p.Unnumbered() {
		return netip.MustParseAddr("fe80::").WithZone(p.Address.Zone())
	}
	return p.Address.Unmap()
}

// same tells whether a peer is configured as before.
func same(p, q bgp.Peer) bool {
	if p.Unnumbered() && q.Unnumbered() {
		p.Address = q.Address
	}
	return p.Equal(q)
}

// want takes in which peers there are to be. Nothing is held against one that was configured anew, or away; a neighbour on a link that is away is
// held back on, as its own silence takes it away.
func (a *admission) want(peers []bgp.Peer, now time.Time) {
	before := a.of
	a.of, a.order = map[netip.Addr]*account{}, nil
	for _, p := range peers {
		id := identity(p)
		if a.of[id] != nil {
			continue // the second one of an address is invalid
		}
		known := before[id]
		switch {
		case known == nil:
			known = &account{}
		case !same(known.peer, p) && known.in.IsZero():
			known = &account{}
		case !same(known.peer, p):
			known = &account{in: now} // on another session
		}
		known.peer = p
		a.of[id] = known
		a.order = append(a.order, id)
	}
	for id, known := range before {
		if a.of[id] == nil && known.peer.Unnumbered() && known.held(now) {
			a.of[id] = known
		}
	}
}

// peers are those that there are to be, in order.
func (a *admission) peers() (out []*account) {
	for _, id := range a.order {
		out = append(out, a.of[id])
	}
	return out
}

// let lets in whose turn it is, and tells whether there was one.
func (a *admission) let(now time.Time) bool {
	a.forgive(now)
	waiting := a.waiting(now)
	if len(waiting) == 0 {
		return false
	}
	next := waiting
	if a.careful {
		next = a.next(waiting, now)
	}
	for _, p := range next {
		p.in, p.has, p.noted = now, time.Time{}, false
	}
	return len(next) > 0
}

// waiting are those that may be let in, if it is their turn: those that are suspected least first, and of these those that answered before.
func (a *admission) waiting(now time.Time) (out []*account) {
	for _, p := range a.peers() {
		if p.in.IsZero() && !p.held(now) {
			out = append(out, p)
		}
	}
	slices.SortStableFunc(out, func(p, q *account) int {
		return cmp.Or(cmp.Compare(p.strikes, q.strikes), cmp.Compare(rank(p.reached), rank(q.reached)))
	})
	return out
}

func rank(reached bool) int {
	if reached {
		return 0
	}
	return 1
}

// next are those of the waiting whose turn it is.
func (a *admission) next(waiting []*account, now time.Time) []*account {
	rest := time.Time{} // since when nobody has been on the way in
	for _, p := range a.peers() {
		if p.in.IsZero() {
			continue
		}
		if p.opening(now) {
			return nil
		}
		since := p.has
		if since.IsZero() {
			since = p.in.Add(patience)
		}
		if since.After(rest) {
			rest = since
		}
	}
	if waiting[0].strikes > 0 {
		if now.Sub(rest) < quiet {
			return nil
		}
		return waiting[:1]
	}
	n := 0
	for n < len(waiting) && n < (len(a.order)+mostSteps-1)/mostSteps && waiting[n].strikes == 0 {
		n++
	}
	return waiting[:n]
}

// given are those peers that the present child is to have.
func (a *admission) given(peers []bgp.Peer) (out []bgp.Peer) {
	for _, p := range peers {
		if known := a.of[identity(p)]; known != nil && !known.in.IsZero() {
			out = append(out, p)
		}
	}
	return out
}

// withheld are those that it is not.
func (a *admission) withheld() []*account {
	return slices.DeleteFunc(a.peers(), func(p *account) bool { return !p.in.IsZero() })
}

// hear takes in how things stand with peers.
func (a *admission) hear(links []bgp.Link, now time.Time) {
	for _, p := range a.peers() {
		through := func(l bgp.Link) bool {
			return l.Peer == p.peer.Address.Unmap() && l.Session > 0 && l.Written && l.Arrived >= l.Sent
		}
		if !p.in.IsZero() && p.has.IsZero() && slices.ContainsFunc(links, through) {
			p.has, p.reached = now, true
		}
	}
}

// attends tells whether it is to be looked soon how things stand with peers, and watches whether at all.
func (a *admission) attends(now time.Time) bool {
	return len(a.waiting(now)) > 0 || slices.ContainsFunc(a.peers(), func(p *account) bool { return p.opening(now) })
}

func (a *admission) watches(now time.Time) bool {
	return a.attends(now) || slices.ContainsFunc(a.peers(), func(p *account) bool { return p.fresh(now) && p.has.IsZero() })
}

// died takes in that the child did, and returns the peers that are held back for it.
func (a *admission) died(now time.Time) (held []*account) {
	if a.careful && len(a.order) > 1 {
		held = a.blame(now)
	}
	a.careful = true
	for _, p := range a.peers() {
		if !p.in.IsZero() && p.has.IsZero() && !p.opening(now) {
			p.reached = false
		}
		p.in, p.has = time.Time{}, time.Time{}
	}
	return held
}

// blame puts a death down to those that were on the way in, and holds back whom that befell before.
func (a *admission) blame(now time.Time) (held []*account) {
	var accused []*account
	for _, p := range a.peers() {
		if p.fresh(now) && p.has.IsZero() {
			accused = append(accused, p)
		}
	}
	longest := time.Duration(0)
	if len(accused) == 0 {
		p := a.likeliest(now)
		if p == nil {
			return nil
		}
		accused, longest = []*account{p}, now.Sub(p.in)
	}
	for _, p := range accused {
		if p.strikes++; p.strikes < 2 || !a.others(p, now) {
			continue
		}
		p.hold = min(max(firstHold, 2*p.hold, 2*longest), longestHold)
		// Members that were told the same do not try it again at once: each time would cost all sessions of all of them.
		p.until = now.Add(p.hold - time.Duration(a.chance()*float64(p.hold/4)))
		held = append(held, p)
	}
	return held
}

// likeliest is who may have ended a child of which everybody had everything: who was there at the most such deaths in a row, and of these who was let
// in last. It is nobody who has been in for long. What was put down to those without whom the child died is forgotten, once: two that end children
// in turn would have each other let in again for ever.
func (a *admission) likeliest(now time.Time) (it *account) {
	for _, p := range a.peers() {
		if !p.fresh(now) {
			continue
		}
		p.there++
		if it == nil || p.there > it.there || p.there == it.there && !p.in.Before(it.in) {
			it = p
		}
	}
	for _, p := range a.peers() {
		if it == nil || !p.in.IsZero() {
			continue
		}
		if p.there = 0; p.strikes > 0 && !p.spared {
			p.strikes, p.hold, p.until, p.spared = 0, 0, time.Time{}, true
		}
	}
	return it
}

// others tells whether there are peers to be protected from p: that are not held back themselves.
func (a *admission) others(p *account, now time.Time) bool {
	return slices.ContainsFunc(a.peers(), func(q *account) bool { return q != p && !q.held(now) })
}

// forgive forgets what was put down to peers with which a child has lived for long enough.
func (a *admission) forgive(now time.Time) {
	all := true
	for _, p := range a.peers() {
		if p.in.IsZero() || p.fresh(now) {
			all = false
			continue
		}
		p.strikes, p.there, p.hold, p.spared = 0, 0, 0, false
	}
	a.careful = a.careful && !all
}

// held tells whether a peer is held back.
func (p *account) held(now time.Time) bool { return now.Before(p.until) }

// fresh tells whether it was let in not long ago.
func (p *account) fresh(now time.Time) bool { return !p.in.IsZero() && now.Sub(p.in) < steadyAfter }

// opening tells whether the others wait for it to have everything.
func (p *account) opening(now time.Time) bool {
	return !p.in.IsZero() && p.has.IsZero() && now.Sub(p.in) < patience
}
