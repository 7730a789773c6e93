// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"net/netip"
	"slices"
	"strings"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// legacyPeerName marks a peer as one of a config map, so that its removal hangs on the config map's.
func legacyPeerName(of world.ID, name string) string { return of.String() + "#" + name }

// ConfigMapOf is the config map that a peer of the record came from; false for one of another origin.
func ConfigMapOf(peer fsm.PeerName) (world.ID, bool) {
	of, _, ok := strings.Cut(string(peer), "#")
	if !ok {
		return world.ID{}, false
	}
	return idOf(fsm.ServiceID(of)), true
}

// nameNeighbours gives the neighbours of a config map names of their own: they come with their descriptions, which may be alike. One
// that the record has under a name that fits keeps it, whoever comes or goes beside it. The others get theirs in the order of the file,
// and never one that the record has for another of them: two that swapped names would refuse each other.
func (p *planner) nameNeighbours(of world.ID, peers []fsm.Peer) []fsm.Peer {
	had := p.namesByAddress(of)
	out := slices.Clone(peers)
	taken := map[fsm.PeerName]bool{}
	for i := range out {
		n := &out[i]
		n.Name = fsm.PeerName(legacyPeerName(of, string(n.Name)))
		name := had[n.Address]
		taken[name] = true
		if isNameOf(name, n) {
			n.Name = name
		}
	}
	for i := range out {
		n := &out[i]
		if n.Name == had[n.Address] {
			continue
		}
		for taken[n.Name] {
			n.Name += addressMark(n)
		}
		taken[n.Name] = true
	}
	return out
}

// namesByAddress are those under which the record has the neighbours of a config map.
func (p *planner) namesByAddress(of world.ID) map[netip.Addr]fsm.PeerName {
	out := map[netip.Addr]fsm.PeerName{}
	for _, h := range fsm.List[*fsm.Peer](p.in.Record, fsm.TablePeers) {
		if from, legacy := ConfigMapOf(h.Name); legacy && from == of {
			out[h.Address] = h.Name
		}
	}
	return out
}

// addressMark is what tells a neighbour from others of its description.
func addressMark(n *fsm.Peer) fsm.PeerName { return fsm.PeerName("@" + n.Address.String()) }

// isNameOf tells whether a name is the one that a neighbour comes with, perhaps marked with its address.
func isNameOf(name fsm.PeerName, n *fsm.Peer) bool {
	marks, ok := strings.CutPrefix(string(name), string(n.Name))
	return ok && strings.ReplaceAll(marks, string(addressMark(n)), "") == ""
}
