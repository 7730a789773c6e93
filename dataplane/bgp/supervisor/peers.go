// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"fairlead.io/fairlead/dataplane/bgp"
)

// admit lets in whose turn it is, and notes what those keep who have to wait. Who calls it has the turn, and tells the child.
func (s *Speaker) admit() (more bool) {
	now := time.Now()
	more = s.admits.let(now)
	for _, p := range s.admits.withheld() {
		if !p.noted { // an earlier run may have announced to it, too
			p.noted = true
			s.former.met(p.peer, now)
		}
	}
	return more
}

// look has it looked soon how things stand with peers, if that matters. Who calls it has the turn.
func (s *Speaker) look() {
	if !s.admits.attends(time.Now()) {
		return
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// attend has the child hear that its parent is there, looks how things stand with its peers, if that matters, and lets in whose turn it is. It
// returns after what time that is to be done again. Who calls it has the turn.
func (s *Speaker) attend() (time.Duration, error) {
	s.fence()
	now := time.Now()
	r := request{Do: doNothing}
	if s.admits.watches(now) {
		r.Do = doLinks
	}
	a, err := s.ask(r)
	if err != nil {
		return wordEvery, err
	}
	s.admits.hear(a.Links, now)
	if s.desired != nil && s.admit() {
		if err := s.tell(*s.desired); err != nil {
			s.options.Logger.Error("bgp speaker announces not all to a peer that was let in", "err", err)
		}
	}
	if s.admits.attends(now) {
		return lookEvery, nil
	}
	return wordEvery, nil
}

// Peers returns how things stand with every peer, by address. Errors: the child's; ErrDown.
func (s *Speaker) Peers(ctx context.Context) ([]bgp.PeerStatus, error) {
	return with(ctx, s, func() ([]bgp.PeerStatus, error) {
		a, err := s.ask(request{Do: doPeers})
		if err != nil {
			return nil, err
		}
		out := a.Peers
		for _, p := range s.admits.withheld() {
			out = append(out, p.status(time.Now()))
		}
		slices.SortFunc(out, func(p, q bgp.PeerStatus) int { return p.Address.Compare(q.Address) })
		return out, nil
	})
}

// FaultHeldBack is the code of the fault of a peer that is held back.
const FaultHeldBack = "held-back"

// status is that of a peer that the child does not have.
func (p *account) status(now time.Time) bgp.PeerStatus {
	out := bgp.PeerStatus{Name: p.peer.Name, Address: p.peer.Address.Unmap(), State: "idle", Demoted: p.peer.Demoted}
	if p.held(now) {
		out.Fault = p.fault()
	}
	return out
}

// fault says why a peer is held back, until when, and what to do.
func (p *account) fault() bgp.Fault {
	return bgp.Fault{
		Code: FaultHeldBack,
		Reason: fmt.Sprintf("the speaker's process died %d times while it had a session with this peer or opened one, which is held back until %s",
			p.strikes, p.until.UTC().Format(time.TimeOnly+"Z")),
		Remedy: "find out what the switch sends (the log has what the process wrote last); a change of its BGPPeer has it tried at once",
	}
}
