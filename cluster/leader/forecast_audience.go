// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"fairlead.io/fairlead/fsm"
)

// audience is whom addresses are to be announced to in a record. Whether there are sessions with them is another matter.
type audience struct {
	view  *fsm.View
	nodes []fsm.NodeID // to ask about where an address has no next hops; one stands for all where peers and advertisements choose none
	alike bool         // it does
}

func audienceIn(v *fsm.View) *audience {
	r := &audience{view: v, alike: true}
	for _, ad := range fsm.List[*fsm.Advertisement](v, fsm.TableAdvertisements) {
		r.alike = r.alike && !ad.Terms.OnlyNodes
	}
	for _, peer := range fsm.List[*fsm.Peer](v, fsm.TablePeers) {
		r.alike = r.alike && !peer.Nodes.Speak
	}
	if !r.alike {
		for _, n := range fsm.List[*fsm.Node](v, fsm.TableNodes) {
			r.nodes = append(r.nodes, n.ID)
		}
	}
	if len(r.nodes) == 0 {
		r.nodes = []fsm.NodeID{""}
	}
	return r
}

// by lists the nodes by way of which an address is announced, or may be.
func (r *audience) by(a netip.Addr) []fsm.NodeID {
	if r.alike {
		return r.nodes
	}
	route, _ := fsm.Get[*fsm.Route](r.view, fsm.TableRoutes, fsm.HostPrefix(a).String())
	if hops := wantedNodes(route); len(hops) > 0 {
		return hops
	}
	return r.nodes
}

// peers names who is to be sent an address, in order.
func (r *audience) peers(a netip.Addr) (out []string) {
	for _, node := range r.by(a) {
		for _, p := range r.view.Audience(a, node) {
			out = append(out, string(p.Name))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// compareAudiences tells of the addresses that two records have which BGPPeers come to be sent them, and which are sent them no more.
func compareAudiences(before, after *fsm.View, say func(target, name, what string, args ...any)) {
	was, is := audienceIn(before), audienceIn(after)
	for _, a := range addressesOf(after) {
		if len(before.Owners(a.String())) == 0 {
			continue // it comes, and what is in the way of that is waited for
		}
		had, has := was.peers(a), is.peers(a)
		if more := less(has, had); len(more) > 0 {
			say("address", a.String(), "comes to be sent to BGPPeer %s", strings.Join(more, ", "))
		}
		switch fewer := less(had, has); {
		case len(fewer) == 0:
		case len(has) == 0:
			say("address", a.String(), "is sent to no BGPPeer any more, before to %s: %s", strings.Join(fewer, ", "), after.WhyNobody(a, is.by(a)[0]))
		default:
			say("address", a.String(), "is sent to BGPPeer %s no more", strings.Join(fewer, ", "))
		}
	}
}

// addressesOf lists the addresses that Services have, once each, in order.
func addressesOf(v *fsm.View) (out []netip.Addr) {
	for _, al := range fsm.List[*fsm.Allocation](v, fsm.TableAllocations) { // by address
		if !al.Releasing && (len(out) == 0 || out[len(out)-1] != al.Address) {
			out = append(out, al.Address)
		}
	}
	return out
}

// unsent explains of the addresses that come that nobody would be told of them, and why. What is to be said of their pools anyway is all that says
// it where that is the reason.
func unsent(before, after *fsm.View, ofPools []Explanation) (out []Explanation) {
	if after.Count(fsm.TablePeers) == 0 {
		return nil // the group announces nothing by BGP, and nobody expects it to
	}
	r := audienceIn(after)
	for _, a := range addressesOf(after) {
		owners := after.Owners(a.String())
		if len(before.Owners(a.String())) > 0 || len(r.peers(a)) > 0 || slices.ContainsFunc(owners, func(o *fsm.Allocation) bool {
			return after.OnSegment(o.Pool()) || explains(ofPools, fsm.TablePools, string(o.Pool()))
		}) {
			continue
		}
		why := after.WhyNobody(a, r.by(a)[0])
		for _, o := range owners {
			out = append(out, Explanation{string(fsm.TableServices), string(o.Service), WaitsForAdvertisement, fmt.Sprintf("no BGPPeer would be sent %s: %s", a, why)})
		}
	}
	return out
}

// ofPoolsTaken are the explanations about pools that addresses come out of. They are news to whose draft takes them, though they were so before.
func ofPoolsTaken(before, after *fsm.View, all []Explanation) (out []Explanation) {
	taken := map[fsm.PoolName]bool{}
	for _, a := range addressesOf(after) {
		for _, o := range after.Owners(a.String()) {
			taken[o.Pool()] = taken[o.Pool()] || len(before.Owners(a.String())) == 0
		}
	}
	for _, e := range all {
		if e.Kind == string(fsm.TablePools) && e.Code == WaitsForAdvertisement && taken[fsm.PoolName(e.Name)] {
			out = append(out, e)
		}
	}
	return out
}

func explains(all []Explanation, table fsm.Table, name string) bool {
	return slices.ContainsFunc(all, func(e Explanation) bool { return e.Kind == string(table) && e.Name == name })
}
