// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"log/slog"
	"time"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/fsm"
)

// noSpeaker says, for a member without an AS number, up to where no switch holds a path of it: as far as it knows the record, once no switch
// can hold what an earlier run announced that had one. Withdrawals wait for the word of every member.
type noSpeaker struct {
	state *fsm.State
	store bgp.Store          // what the earlier run announced
	tell  func(bgp.Revision) // up to where withdrawals came
	log   *slog.Logger
}

// run tells it until ctx ends.
func (n *noSpeaker) run(ctx context.Context) error {
	opened := time.Now()
	for { // what was announced is of a group, which may have to be learnt first
		v := n.state.Read()
		if v.Group().ID != "" {
			break
		}
		if n.state.Wait(ctx, v, fsm.TableGroup) != nil {
			return nil
		}
	}
	if left := time.Until(opened.Add(n.kept())); left > 0 {
		n.log.Warn("withdrawals wait for switches that may keep what this member announced while it had bgp.asn", "for", left.Round(time.Second))
		if !pause(ctx, left) {
			return nil
		}
		n.forget()
	}
	for {
		v := n.state.Read()
		rev := v.Revision()
		n.tell(bgp.Revision{Epoch: uint64(rev.Epoch), Index: uint64(rev.Index)})
		if n.state.Wait(ctx, v, fsm.TableRoutes) != nil {
			return nil
		}
	}
}

// kept is for how long after this start a switch may hold what the earlier run announced. One of which nothing can be read may have had any
// peer, with the times that peers have unless somebody says otherwise.
func (n *noSpeaker) kept() (longest time.Duration) {
	before, err := n.store.Load()
	switch {
	case err != nil:
		n.log.Error("announced state not usable", "err", err)
		return bgp.Peer{}.Normal(0).Keeps()
	case before == nil:
		return 0
	}
	for _, p := range before.Peers {
		longest = max(longest, p.Normal(0).Keeps())
	}
	return longest
}

// forget has the next run wait for nobody.
func (n *noSpeaker) forget() {
	rev := n.state.Read().Revision()
	if err := n.store.Save(bgp.Routes{Revision: bgp.Revision{Epoch: uint64(rev.Epoch), Index: uint64(rev.Index)}}); err != nil {
		n.log.Warn("announced state not emptied: the next start waits for switches again", "err", err)
	}
}
