// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"cmp"
	"slices"
	"strings"

	"fairlead.io/fairlead/fsm"
)

// mergeEndpoints sorts a list by address and makes one endpoint of all entries of an address, in place. Slices list an address twice while they
// are reshuffled, and while a virtual machine that keeps its address moves to another node: the old pod ends where it was, and the new one is
// ready. What takes connections counts, with its own node, ports, weight and hints: those of a pod that is gone there would lead to nobody.
func mergeEndpoints(entries []fsm.Endpoint) []fsm.Endpoint {
	slices.SortStableFunc(entries, compareEntries)
	out := entries[:0]
	for _, e := range entries {
		n := len(out)
		switch {
		case n == 0 || out[n-1].Address != e.Address:
			out = append(out, e)
		case standing(&out[n-1]) == standing(&e) && (e.Node == "" || e.Node == out[n-1].Node):
			out[n-1] = joinEndpoint(out[n-1], e)
		}
	}
	return out
}

// compareEntries has the entry of an address first that counts. Of two that are at different nodes and equally good, one is as likely the
// right one: it is the same one for every leader.
func compareEntries(a, b fsm.Endpoint) int {
	named := func(e *fsm.Endpoint) int { return min(len(e.Node), 1) }
	return cmp.Or(a.Address.Compare(b.Address), cmp.Compare(standing(&b), standing(&a)), cmp.Compare(named(&b), named(&a)),
		strings.Compare(string(a.Node), string(b.Node)))
}

// standing ranks entries by what they are good for: new connections, those where nobody is ready (KEP-1669), those that are there already,
// and nothing.
func standing(e *fsm.Endpoint) int {
	switch {
	case e.Ready:
		return 3
	case e.Serving && e.Terminating:
		return 2
	case e.Serving:
		return 1
	}
	return 0
}

// joinEndpoint joins two entries of an address that are equally good: slices of one pod, each with ports of its own.
func joinEndpoint(a, b fsm.Endpoint) fsm.Endpoint {
	a.Serving, a.Terminating = a.Serving || b.Serving, a.Terminating && b.Terminating
	if a.Quiesced || !b.Quiesced && max(b.Weight, 1) > max(a.Weight, 1) {
		a.Weight, a.Quiesced = b.Weight, b.Quiesced
	}
	a.Offer = joinOffer(a, b)
	return a
}

func joinOffer(a, b fsm.Endpoint) *fsm.Offer {
	ports, hints := slices.Concat(a.Ports(), b.Ports()), slices.Concat(a.Hints(), b.Hints())
	slices.SortStableFunc(ports, compareEndpointPorts)
	if len(a.Hints()) == 0 || len(b.Hints()) == 0 {
		hints = nil // one of them says: for everybody
	}
	slices.SortStableFunc(hints, func(a, b fsm.Hint) int {
		return cmp.Or(strings.Compare(string(a.Node), string(b.Node)), strings.Compare(a.Zone, b.Zone))
	})
	return &fsm.Offer{Ports: slices.Compact(ports), Hints: slices.Compact(hints)}
}

func compareEndpointPorts(a, b fsm.EndpointPort) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.Port.Protocol, b.Port.Protocol), cmp.Compare(a.Port.Number, b.Port.Number))
}
