// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/osrg/gobgp/v4/api"

	"fairlead.io/fairlead/dataplane/bgp"
)

// GoBGP writes what it finds in its queue for a session in an order of its own: withdrawals first, then announcements, of one family
// after the other, and those of different attributes in no order at all (since 4.5). So two changes must not be in a queue together
// where their order counts:
//
//   - A path that goes because another one came. The switch would have none for a moment.
//   - For a peer without ADD-PATH, which knows the paths of a prefix by the prefix alone: any two changes of the best path of one
//     prefix. The peer might be left with the one that is over, for ever.
//   - Two changes of one path: GoBGP writes the last of them alone, and how many are on the way would not be known any more.
//
// Steps are done in rounds, and each waits until all that it must not meet has been written.

// A switch that does not read must not hold up others, nor must GoBGP for ever.
const (
	unmoved = time.Second      // how long a queue to a switch that does not read must not have moved for a round to wait no longer
	stalled = 10 * time.Second // and any queue; and how long a round waits for queues that move
)

// lookAgain is how long to wait between two looks at the queues.
const lookAgain = time.Millisecond

// round is some steps of a plan, of one kind.
type round struct {
	kind  int
	steps []bgp.Step
	// best are the prefixes whose best path they change, which peers without ADD-PATH are told; false where some are not sent some path
	// of it, so that it may be another one for them.
	best map[netip.Prefix]bool
	// due is what peers are to be told, after it, of the prefixes that it changes.
	due map[netip.Prefix]bgp.Due
}

// inRounds divides the steps of a plan into rounds, in each of which the best path of a prefix changes once at most: paths that come, the
// best first, so that those that follow change nothing more; paths that change, each of a prefix in a round of its own; paths that go,
// the best last. observed are the paths that there are.
func inRounds(steps []bgp.Step, observed []bgp.Path) []round {
	there := newTable(observed)
	var rounds []round
	seen := map[netip.Prefix]bool{} // of the round, where paths change
	for _, step := range steps {
		kind := there.kindOf(step)
		if len(rounds) == 0 || kind != rounds[len(rounds)-1].kind || kind == changes && seen[step.Path.Prefix] {
			rounds = append(rounds, round{kind: kind})
			clear(seen)
		}
		seen[step.Path.Prefix] = true
		last := &rounds[len(rounds)-1]
		last.steps = append(last.steps, step)
	}
	for i := range rounds {
		r := &rounds[i]
		switch r.kind {
		case comes:
			slices.SortStableFunc(r.steps, func(a, b bgp.Step) int { return preference(a.Path, b.Path) })
		case goes:
			slices.SortStableFunc(r.steps, func(a, b bgp.Step) int { return preference(b.Path, a.Path) })
		}
		r.best = there.take(r.steps)
		r.due = there.due(r.steps)
	}
	return rounds
}

// table is the paths that GoBGP has, of the prefixes that a plan is about, by their identifiers.
type table map[netip.Prefix]map[uint32]bgp.Path

func newTable(paths []bgp.Path) table {
	t := table{}
	for _, p := range paths {
		t.set(p)
	}
	return t
}

func (t table) set(p bgp.Path) {
	if t[p.Prefix] == nil {
		t[p.Prefix] = map[uint32]bgp.Path{}
	}
	t[p.Prefix][p.PathID] = p
}

// take takes in steps, and returns what a round holds as best.
func (t table) take(steps []bgp.Step) map[netip.Prefix]bool {
	before, partly := map[netip.Prefix]*bgp.Path{}, map[netip.Prefix]bool{}
	for _, step := range steps {
		p := step.Path
		if step.Action != bgp.AddPath && step.Action != bgp.RemovePath {
			continue
		}
		if _, ok := before[p.Prefix]; !ok {
			before[p.Prefix], partly[p.Prefix] = t.best(p.Prefix)
		}
		if step.Action == bgp.AddPath {
			t.set(p)
		} else {
			delete(t[p.Prefix], p.PathID)
		}
	}
	changed := map[netip.Prefix]bool{}
	for prefix, was := range before {
		is, some := t.best(prefix)
		if some = some || partly[prefix]; some || (was == nil) != (is == nil) || was != nil && !was.Equal(*is) {
			changed[prefix] = !some
		}
	}
	return changed
}

// due is what peers are to be told of the prefixes that steps are about.
func (t table) due(steps []bgp.Step) map[netip.Prefix]bgp.Due {
	out := map[netip.Prefix]bgp.Due{}
	for _, step := range steps {
		if _, done := out[step.Path.Prefix]; !done && step.Path.Prefix.IsValid() {
			out[step.Path.Prefix] = bgp.DueOf(maps.Values(t[step.Path.Prefix]))
		}
	}
	return out
}

// best returns the best path of a prefix, and whether some peers are not sent some of them.
func (t table) best(of netip.Prefix) (best *bgp.Path, partly bool) {
	for _, p := range t[of] {
		partly = partly || p.Withheld
		if best == nil || preference(p, *best) < 0 {
			best = &p
		}
	}
	return best, partly
}

// Kinds of steps.
const (
	comes   = iota // a path
	changes        // its attributes
	goes
	demotes // all paths are sent again
	other
)

func (t table) kindOf(step bgp.Step) int {
	_, known := t[step.Path.Prefix][step.Path.PathID]
	switch {
	case step.Action == bgp.RemovePath:
		return goes
	case step.Action == bgp.SetDemoted:
		return demotes
	case step.Action != bgp.AddPath:
		return other
	case known:
		return changes
	}
	return comes
}

// preference tells, as a negative number, that GoBGP prefers path a of a prefix to path b (RFC 4271 §9.1.2). Where all else is equal it
// prefers the one that it has had longer; we say that that is the one of the lower identifier, so that all speakers prefer the same one.
func preference(a, b bgp.Path) int { return cmp.Or(bgp.Prefer(a, b), cmp.Compare(a.PathID, b.PathID)) }

// expect waits until the steps of a round may be put into the queues, and notes that they are about to be. The caller calls done when they
// are; no session opens until then. Errors: GoBGP's; ctx.Err().
func (s *Speaker) expect(ctx context.Context, r round) (done func(), err error) {
	if r.kind == other {
		return func() {}, nil
	}
	for waits := newPatience(time.Now()); ; {
		s.openings.mu.Lock()
		peers, err := s.listPeers(ctx)
		if err != nil {
			s.openings.mu.Unlock()
			return nil, fmt.Errorf("list peers: %w", err)
		}
		if s.mayBegin(r, peers, &waits) {
			return func() {
				s.noteSynchronised(ctx, r, peers)
				s.openings.mu.Unlock()
			}, nil
		}
		s.openings.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(lookAgain):
		}
	}
}

// mayBegin tells whether a round that waits may begin now, and notes that it does.
func (s *Speaker) mayBegin(r round, peers map[netip.Addr]*api.Peer, waits *patience) bool {
	now := time.Now()
	waited := waits.look(now)
	return s.openings.none(peers, now) && (s.allKnown(peers) || waited > unmoved) && s.enqueue(r, peers, now, waited >= stalled)
}

// noteSynchronised notes the steps of a round, which have been done, for the sessions that synchronised meanwhile: whether those paths came
// with all others or after them is not known. before are the peers when the round began.
func (s *Speaker) noteSynchronised(ctx context.Context, r round, before map[netip.Addr]*api.Peer) {
	if !slices.ContainsFunc(slices.Collect(maps.Values(before)), synchronising) {
		return
	}
	after, err := s.listPeers(ctx)
	s.sessionsMu.Lock()
	defer s.sessionsMu.Unlock()
	for a, n := range s.sessions {
		if p := before[a]; synchronising(p) && (err != nil || !synchronising(after[a])) {
			with := negotiated(p)
			n.mixed = n.mixed || n.mixes(r, with)
			n.putAll(r, with, time.Now())
		}
	}
}

// synchronising tells whether a peer is yet to be sent all paths, in one go, once all peers have told theirs (RFC 4724 §4.1).
func synchronising(p *api.Peer) bool { return p.GetGracefulRestart().GetLocalRestarting() }

// allKnown tells whether all sessions that are open are known here too: GoBGP tells of one some time after it began to write its table.
func (s *Speaker) allKnown(peers map[netip.Addr]*api.Peer) bool {
	s.sessionsMu.Lock()
	defer s.sessionsMu.Unlock()
	for a, p := range peers {
		if p.GetState().GetSessionState() == api.PeerState_SESSION_STATE_ESTABLISHED && s.sessions[a] == nil {
			return false
		}
	}
	return true
}

// enqueue notes that the steps of a round are put into the queues, unless a queue holds what they must not meet and moves. A round that has
// waited for too long is put there nevertheless, and the queues that it waited for hold up no other until they are empty.
func (s *Speaker) enqueue(r round, peers map[netip.Addr]*api.Peer, now time.Time, tooLong bool) bool {
	s.sessionsMu.Lock()
	defer s.sessionsMu.Unlock()
	to := map[*session]capabilities{}
	for a, n := range s.sessions {
		p := peers[a]
		if p == nil || synchronising(p) {
			continue
		}
		to[n] = negotiated(p)
		empty := n.empty(now, to[n], ofSeconds(p.GetTimers().GetState().GetNegotiatedHoldTime()))
		n.slow = n.slow && !empty
		if !empty && (r.kind == goes || r.kind == demotes || n.meets(r, to[n])) && n.holdsUp(now) {
			if !tooLong {
				return false
			}
			n.slow = true
		}
	}
	for n, with := range to {
		n.mixed = n.mixed || n.mixes(r, with)
		n.putAll(r, with, now)
	}
	return true
}

// holdsUp tells whether a round is to wait for the queue. On a busy machine GoBGP may not have come to write for a while, which is not the
// switch's doing: nothing is on the way to it then.
func (n *session) holdsUp(now time.Time) bool {
	switch quiet := n.quiet.look(now); {
	case quiet >= stalled || n.slow:
		return false
	case quiet < unmoved:
		return true
	}
	read := false
	err := withSocket(n.tuple, func(fd int) error {
		sent, arrived, err := stream(fd)
		read = sent == arrived
		return err
	})
	return err == nil && read
}

// meets tells whether the queue to a peer holds changes of what the round changes too.
func (q *queue) meets(r round, with capabilities) bool {
	return q.mixes(r, with) || slices.ContainsFunc(r.steps, func(step bgp.Step) bool {
		p := step.Path.Prefix
		return r.kind != demotes && with.all(p) && q.holds(p)
	})
}

// mixes tells whether it holds changes of the best path of a prefix that the round changes too, where the peer is told that alone.
func (q *queue) mixes(r round, with capabilities) bool {
	for p := range r.best {
		if with.best(p) && q.holds(p) {
			return true
		}
	}
	return false
}

// all tells whether a peer is sent all paths of a prefix, and best whether it is sent the best one: of a family that was not agreed on it is
// sent nothing, so that nothing of that is to be waited for.
func (c capabilities) all(p netip.Prefix) bool {
	return slices.Contains(c.AddPath, bgp.FamilyOf(p.Addr()))
}

func (c capabilities) best(p netip.Prefix) bool {
	return !c.all(p) && slices.Contains(c.Families, bgp.FamilyOf(p.Addr()))
}

// putAll notes the steps of a round.
func (q *queue) putAll(r round, with capabilities, now time.Time) {
	if r.kind == demotes {
		return // who is sent all paths again is known later
	}
	for p, d := range r.due {
		q.rib.Expect(p, d)
	}
	alone := !q.meets(r, with)
	for _, step := range r.steps {
		if p := step.Path; p.Prefix.IsValid() && with.all(p.Prefix) {
			q.put(p.Prefix, alone && !p.Withheld, now)
		}
	}
	for p, certain := range r.best {
		if with.best(p) {
			q.put(p, alone && certain, now)
		}
	}
}

// unmix restarts a session, once all has been written, in which changes may have been written in the wrong order. It tells whether there
// was none.
func (s *Speaker) unmix(ctx context.Context) (bool, error) {
	var of netip.Addr
	s.sessionsMu.Lock()
	for a, n := range s.sessions {
		if n.mixed && time.Since(s.healed[a]) >= healEvery {
			of = a
		}
	}
	s.sessionsMu.Unlock()
	if !of.IsValid() {
		return true, nil
	}
	return false, s.renewSession(ctx, of, "the switch was slow to read, and may hold paths that are over")
}
