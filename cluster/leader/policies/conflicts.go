// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"net/netip"
	"slices"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// tellLosers says of each policy that another one of its kind wins from it somewhere, which (balancing §3, stored conflicts). Only those
// that capture the same somewhere are looked at host by host.
func (p *planner) tellLosers() {
	contested := map[fsm.PolicyID]bool{}
	for _, e := range world.Elect(claimsOf(p.rows)) {
		for _, name := range append(e.Losers, e.Winner) {
			contested[idOf(e.Kind, name)] = contested[idOf(e.Kind, name)] || len(e.Losers) > 0
		}
	}
	rows := slices.DeleteFunc(slices.Clone(p.rows), func(r *fsm.Policy) bool { return !contested[r.ID] })
	if len(rows) == 0 {
		return
	}
	rowOf := map[fsm.PolicyID]*fsm.Policy{}
	for _, r := range rows {
		rowOf[r.ID] = r
	}
	seen := map[string]bool{} // sets of policies that are effective on a host, by their places in rows
	told := map[fsm.PolicyID]bool{}
	p.eachHost(rows, func(on func(*fsm.Policy) bool) {
		var here []*fsm.Policy
		key := make([]byte, len(rows))
		for i, r := range rows {
			if on(r) {
				here, key[i] = append(here, r), 1
			}
		}
		if seen[string(key)] {
			return
		}
		seen[string(key)] = true
		for _, e := range world.Elect(claimsOf(here)) {
			for _, name := range e.Losers {
				if id := idOf(e.Kind, name); !told[id] {
					told[id] = true
					lose(rowOf[id], e)
				}
			}
		}
	})
}

// eachHost visits every node, and last the hosts that are none.
func (p *planner) eachHost(rows []*fsm.Policy, visit func(on func(*fsm.Policy) bool)) {
	var nodes []fsm.NodeID
	for id := range p.nodes {
		nodes = append(nodes, id)
	}
	for _, r := range rows {
		nodes = append(nodes, r.Nodes...)
	}
	slices.Sort(nodes)
	for _, n := range slices.Compact(nodes) {
		visit(func(r *fsm.Policy) bool { return r.EffectiveOn(n) })
	}
	visit(func(r *fsm.Policy) bool { return r.Outside })
}

// lose says which one wins.
func lose(r *fsm.Policy, e world.Election) {
	at := netip.AddrPortFrom(e.Address, e.Port)
	r.Pending = fsm.Pending{Code: WaitsForWinner, Text: fmt.Sprintf("%s %s, which counts before it, captures %s/%s already", e.Kind, e.Winner, at, e.Protocol)}
}

// claimsOf are what policies capture.
func claimsOf(rows []*fsm.Policy) []world.Claim {
	out := make([]world.Claim, 0, len(rows))
	for _, r := range rows {
		kind, id := ObjectOf(r.ID)
		c := world.Claim{Kind: kind, Policy: world.Meta{ID: id, UID: r.UID, Created: uint32(r.Created)}}
		for _, at := range r.Captures {
			c.Tuples = append(c.Tuples, world.Tuple{Address: at.Address, Port: at.Port.Number, Protocol: protocolOf(at.Port)})
		}
		out = append(out, c)
	}
	return out
}

func protocolOf(p fsm.Port) world.Protocol {
	if p.Protocol == fsm.UDP {
		return world.UDP
	}
	return world.TCP
}

func idOf(kind world.Kind, name string) fsm.PolicyID {
	return fsm.PolicyID(string(kind) + "/" + name)
}
