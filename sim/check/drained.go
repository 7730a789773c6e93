// SPDX-License-Identifier: Apache-2.0

package check

import (
	"net/netip"
	"slices"
	"time"

	"fairlead.io/fairlead/fsm"
)

// drained tells whether an operator has new flows go past a node.
func drained(v *fsm.View, node string) bool {
	_, is := fsm.Get[*fsm.Drain](v, fsm.TableDrains, "node/"+node)
	return is
}

// drainedBeside tells whether a node is drained beside others that serve the same and are not: it is no next hop then.
func drainedBeside(v *fsm.View, node string, serving []string) bool {
	return drained(v, node) && slices.ContainsFunc(serving, func(o string) bool { return !drained(v, o) })
}

// drains tells which next hops may go for the drain of their node, or for a move to another: all that do not leave an address
// without one that works.
//
// The leader may have decided a while (Bounds.Late) before that counts: before a drain or a move ended, or before the other next hop
// stopped working.
type drains struct {
	ended   map[string]time.Duration     // when the drain of a node did, or the move of a Service, by its key
	spoiled map[fsm.NodeID]time.Duration // when a node had another boot, or failed at something more, or was found silent
}

func newDrains() drains {
	return drains{ended: map[string]time.Duration{}, spoiled: map[fsm.NodeID]time.Duration{}}
}

func (d *drains) step(s *step) {
	fsm.Changes(s.before, s.after, fsm.TableDrains, func(was, is *fsm.Drain) {
		if was != nil && was.Of == fsm.DrainNode && is == nil {
			d.ended["node/"+was.Name] = s.At
		}
	})
	fsm.Changes(s.before, s.after, fsm.TableMoves, func(was, _ *fsm.Move) {
		if was != nil {
			d.ended["service/"+was.Key()] = s.At
		}
	})
	fsm.Changes(s.before, s.after, fsm.TableNodes, func(was, is *fsm.Node) {
		if was != nil && (is == nil || was.Boot != is.Boot || len(is.Failed) > len(was.Failed) || was.Liveness != is.Liveness || was.Eligible != is.Eligible) {
			d.spoiled[was.ID] = s.At
		}
	})
}

// excuse tells whether a next hop may go for the drain of its node, or the move to another.
func (d *drains) excuse(s *step, prefix netip.Prefix, h fsm.NextHop, late time.Duration) bool {
	lately := func(at time.Duration, known bool) bool { return known && s.At-at <= late }
	ended, known := d.ended["node/"+string(h.Node())]
	to := movedTo(s.before, prefix.Addr())
	movedLately := slices.ContainsFunc(s.before.Owners(prefix.Addr().String()), func(o *fsm.Allocation) bool {
		ended, known := d.ended["service/"+string(o.Service)]
		return lately(ended, known)
	})
	if !drained(s.before, string(h.Node())) && !lately(ended, known) && (to == "" || to == string(h.Node())) && !movedLately {
		return false
	}
	if len(committed(s.after, prefix)) > 0 {
		return true
	}
	r, ok := fsm.Get[*fsm.Route](s.after, fsm.TableRoutes, prefix.String())
	return ok && slices.ContainsFunc(r.NextHops, func(o fsm.NextHop) bool {
		at, known := d.spoiled[o.Node()]
		return !o.Withdrawing && lately(at, known)
	})
}
