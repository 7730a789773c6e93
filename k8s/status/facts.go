// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"fairlead.io/fairlead/fsm"
)

// way is a node that an address leads to, and the node's address.
type way struct {
	node    fsm.NodeID
	address netip.Addr
}

func (w way) String() string { return fmt.Sprintf("%s (%s)", w.node, w.address) }

// hop is one way of an address in the record.
type hop struct {
	way
	state  fsm.HopState
	since  fsm.Revision
	failed bool // the node could not carry the address out
	// unreached says why it is announced to nobody though all speakers have it on their sessions; empty where that is not so.
	unreached string
}

// fact is one address that a Service owns.
type fact struct {
	address  netip.Addr
	pool     fsm.PoolName
	external bool // of spec.externalIPs
	since    fsm.Revision
	hops     []hop // but those being withdrawn
	// lacking are the ports of the Service that are not its own on this address: not yet, or no more.
	lacking []fsm.Port
}

func (f *fact) String() string {
	switch {
	case f.external:
		return f.address.String() + " (spec.externalIPs)"
	case f.pool != "":
		return fmt.Sprintf("%s (pool %s)", f.address, f.pool)
	}
	return f.address.String()
}

// stage is how far an address is on its way to the switch.
type stage int

const (
	noNextHop stage = iota
	failedNodes
	waitingForNodes
	unreached
	waitingForMembers
	announced
)

// stage is that of the hop that is furthest.
func (f *fact) stage() stage {
	out := noNextHop
	for _, h := range f.hops {
		switch {
		case h.state == fsm.HopAnnounced:
			return announced
		case h.unreached != "":
			out = max(out, unreached)
		case h.state == fsm.HopAcknowledged:
			out = waitingForMembers
		case h.failed:
			out = max(out, failedNodes)
		default:
			out = max(out, waitingForNodes)
		}
	}
	return out
}

// routed lists the ways that members announce, or are about to.
func (f *fact) routed() []way {
	return f.ways(func(h hop) bool {
		return h.state == fsm.HopAnnounced || h.state == fsm.HopAcknowledged && h.unreached == ""
	})
}

// ways are those of some hops.
func (f *fact) ways(of func(hop) bool) []way {
	out := make([]way, 0, len(f.hops))
	for _, h := range f.hops {
		if of(h) {
			out = append(out, h.way)
		}
	}
	return out
}

func every(hop) bool { return true }

// facts is what the record holds of one Service.
type facts struct {
	service *fsm.Service
	// addresses are those that it owns and is not giving up, IPv4 first.
	addresses []fact
	// quarantined says that the record was restored and removes nothing yet.
	quarantined bool
}

// factsOf reads the record. It is nil for a Service that the record does not hold, or holds an earlier life of.
func factsOf(v *fsm.View, id fsm.ServiceID, uid string) *facts {
	s, ok := fsm.Get[*fsm.Service](v, fsm.TableServices, string(id))
	if !ok || s.UID != uid {
		return nil
	}
	f := &facts{service: s, quarantined: v.Group().Quarantine != fsm.Revision{}}
	silent := len(fsm.List[*fsm.Peer](v, fsm.TablePeers)) == 0
	for _, a := range v.Addresses(id) {
		if a.Releasing {
			continue
		}
		one := fact{
			address: a.Address, pool: a.Pool(), since: a.Since, external: slices.Contains(s.External(), a.Address), hops: hopsOf(v, a.Address, silent, v.OnSegment(a.Pool())),
		}
		for _, front := range s.Frontends {
			if !slices.Contains(a.Ports(), front.Port) {
				one.lacking = append(one.lacking, front.Port)
			}
		}
		f.addresses = append(f.addresses, one)
	}
	slices.SortFunc(f.addresses, func(a, b fact) int { return a.address.Compare(b.address) })
	return f
}

// hopsOf reads the hops of an address. In a silent group, which has no peer to announce anything to, what nodes have
// acknowledged is all that can be had: others bring the traffic there. So it is of an address that nodes answer for at layer 2 where no
// peer hears of it.
func hopsOf(v *fsm.View, a netip.Addr, silent, onSegment bool) []hop {
	prefix := fsm.HostPrefix(a)
	r, ok := fsm.Get[*fsm.Route](v, fsm.TableRoutes, prefix.String())
	if !ok {
		return nil
	}
	var out []hop
	for _, n := range r.NextHops {
		if n.Withdrawing {
			continue
		}
		h := hop{way: way{n.Node(), n.Address()}, since: n.Since, state: v.HopState(r, n)}
		if h.state == fsm.HopAcknowledged {
			h.unreached = v.WhyUnreached(r, n)
		}
		if silent && h.state == fsm.HopAcknowledged || onSegment && h.unreached != "" {
			h.state, h.unreached = fsm.HopAnnounced, ""
		}
		if node, ok := fsm.Get[*fsm.Node](v, fsm.TableNodes, string(n.Node())); ok {
			h.failed = slices.Contains(node.Failed, prefix)
		}
		out = append(out, h)
	}
	return out
}

// fewNodes is how many nodes a message names.
const fewNodes = 5

// listWays names ways for people, the first few.
func listWays(ways []way) string {
	names := make([]string, 0, fewNodes)
	for _, w := range ways[:min(len(ways), fewNodes)] {
		names = append(names, w.String())
	}
	text := strings.Join(names, ", ")
	if more := len(ways) - fewNodes; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
