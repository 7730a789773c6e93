// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// The config maps of an old installation.
const (
	configMapGoBGP  = "kube-gobgp-cfg"
	configMapIPRule = "kube-iprule-cfg"
)

// multihopTTL is what a session over several hops sends with; the manifests only say yes or no.
const multihopTTL = 255

// formatBGP is the first format of the record that holds what older members would stop at: options of peers.
const formatBGP = 2

// planPeers keeps the BGP neighbours of the record as the sources have them.
func (p *planner) planPeers() {
	wanted, keep := p.wantedPeers()
	have := fsm.List[*fsm.Peer](p.in.Record, fsm.TablePeers)
	known := map[fsm.PeerName]*fsm.Peer{}
	var taken takenPeers
	for _, h := range have {
		known[h.Name] = h
		if _, stays := wanted[h.Name]; stays {
			continue
		}
		if keep(h.Name) {
			taken.take(h)
			p.peerAt(h)
			p.explainKeptAsWas(fsm.TablePeers, world.KindPeer, string(h.Name), h.Object)
			continue
		}
		p.propose("BGPPeer is gone", &fsm.DeletePeer{Name: h.Name})
	}
	// Whoever has an address already goes first, so that a newcomer never bounces a session.
	names := sortedKeys(wanted)
	slices.SortStableFunc(names, func(a, b fsm.PeerName) int { return firstIf(known[a] != nil, known[b] != nil) })
	for _, name := range names {
		w := wanted[name]
		if p.format < formatBGP && w.Nodes.Speak {
			p.explain(fsm.TablePeers, string(name), WaitsForMend, "nodes that peer need format 2 of the record: `fairlead raft finalize`; nobody peers so far")
			continue
		}
		w.Object = p.referable(w.Object)
		if p.format < formatBGP && w.Options != (fsm.PeerOptions{}) {
			w.Options = fsm.PeerOptions{}
			p.explain(fsm.TablePeers, string(name), WaitsForMend,
				"TTL security and keeping paths at a NOTIFICATION need format 2 of the record: `fairlead raft finalize`; the session goes on without")
		}
		if why := taken.overlap(&w); why != "" {
			p.explain(fsm.TablePeers, string(name), WaitsForOverlap, why)
			continue
		}
		whole := w
		taken.take(&whole)
		p.peerAt(&w)
		if !yielded(&w, have, wanted) {
			continue
		}
		if h := known[name]; h == nil || !samePeer(h, &w) {
			p.propose("BGPPeer "+string(name), &fsm.PutPeer{Peer: w})
		}
	}
}

// takenPeers are the peers that a plan keeps, or has already.
type takenPeers struct {
	numbered   map[netip.Addr][]*fsm.Peer
	unnumbered map[string][]*fsm.Peer // by interface
}

func (t *takenPeers) take(p *fsm.Peer) {
	if t.numbered == nil {
		t.numbered, t.unnumbered = map[netip.Addr][]*fsm.Peer{}, map[string][]*fsm.Peer{}
	}
	if p.Interface != "" {
		t.unnumbered[p.Interface] = append(t.unnumbered[p.Interface], p)
		return
	}
	t.numbered[p.Address] = append(t.numbered[p.Address], p)
}

// overlap says which other peer is the same neighbour of somebody, or nothing.
func (t *takenPeers) overlap(p *fsm.Peer) string {
	if p.Interface == "" {
		return t.atAddress(p)
	}
	for _, other := range t.unnumbered[p.Interface] {
		if other.Nodes.Meets(p.Nodes) {
			return fmt.Sprintf("peer %s is behind interface %s of the same nodes already; remove one of the two, or have their spec.nodeSelectors choose different nodes",
				other.Name, p.Interface)
		}
	}
	return ""
}

// atAddress says which other peer has the address of a peer, or nothing. Nobody has two at one address, not at two ports either: a speaker
// knows its peers by their addresses.
func (t *takenPeers) atAddress(p *fsm.Peer) string {
	for _, other := range t.numbered[p.Address] {
		switch {
		case other.Port == p.Port:
			return fmt.Sprintf("peer %s has the address %s and port %d already; remove one of the two", other.Name, p.Address, p.Port)
		case !other.Nodes.Speak && !p.Nodes.Speak, other.Nodes.Meets(p.Nodes):
			return fmt.Sprintf("peer %s has the address %s already, and a speaker has one session with an address, whatever the port; remove one of the two",
				other.Name, p.Address)
		}
	}
	return ""
}

// peerAt notes an address that no Service can have.
func (p *planner) peerAt(peer *fsm.Peer) {
	if peer.Address.IsValid() {
		p.peerWith[peer.Address] = peer.Name
	}
}

// yielded takes from a peer by interface the nodes that others have behind that interface in the record, and are to have no more: two
// commands that give them to one another would refuse each other. They follow once the record has it. False if the peer has to wait
// as a whole.
func yielded(w *fsm.Peer, have []*fsm.Peer, wanted map[fsm.PeerName]fsm.Peer) bool {
	for _, h := range have {
		_, stays := wanted[h.Name]
		switch {
		case !stays || h.Name == w.Name || w.Interface == "" || h.Interface != w.Interface || !h.Nodes.Meets(w.Nodes):
		case !w.Nodes.Only || !h.Nodes.Only:
			return false
		default:
			w.Nodes.Names = slices.DeleteFunc(slices.Clone(w.Nodes.Names), h.Nodes.Admits)
		}
	}
	return true
}

// wantedPeers lists the neighbours that the sources show, and tells of one that they do not show whether it stays.
func (p *planner) wantedPeers() (wanted map[fsm.PeerName]fsm.Peer, keep func(fsm.PeerName) bool) {
	wanted = map[fsm.PeerName]fsm.Peer{}
	for _, w := range p.seen.peers {
		peer, why := peerOf(w)
		if why != "" {
			p.explain(fsm.TablePeers, w.Name, WaitsForMend, why)
			continue
		}
		p.choosePeers(&peer, w)
		wanted[peer.Name] = peer
	}
	legacy := map[string]bool{} // config maps whose peers are all known
	inPart := map[string]bool{} // and those of which some cannot be used
	for _, c := range p.seen.configMaps {
		if c.Name != configMapGoBGP || p.in.Options.LegacyPeers == nil {
			continue
		}
		peers, faults, err := p.in.Options.LegacyPeers(*c)
		if err != nil {
			p.explain(fsm.TablePeers, c.Name, WaitsForMend, err.Error())
			continue
		}
		for _, fault := range faults {
			p.explain(fsm.TablePeers, c.Name, WaitsForMend, fault.Error()+"; until then this neighbour is as it was, and none of the file's goes")
		}
		legacy[c.ID.String()], inPart[c.ID.String()] = len(faults) == 0, len(faults) > 0
		for _, peer := range p.nameNeighbours(c.ID, peers) {
			peer.Version, peer.Object = c.Version, fsm.ObjectRef{Namespace: c.Namespace, UID: c.UID}
			wanted[peer.Name] = peer
		}
	}
	return wanted, func(name fsm.PeerName) bool {
		of, isLegacy := ConfigMapOf(name)
		switch {
		case !isLegacy:
			return !p.seen.mayRemove(world.KindPeer, world.ID{Name: string(name)})
		case legacy[of.String()]:
			return false // the config map is there and does not name it
		case inPart[of.String()]:
			return !p.replaced(name, wanted) // it may be one of those that cannot be used
		}
		return !p.seen.mayRemove(world.KindConfigMap, of)
	}
}

// replaced tells whether a neighbour that a config map had in the record is to be there under another name.
func (p *planner) replaced(name fsm.PeerName, wanted map[fsm.PeerName]fsm.Peer) bool {
	h, known := fsm.Get[*fsm.Peer](p.in.Record, fsm.TablePeers, string(name))
	for _, w := range wanted {
		if _, legacy := ConfigMapOf(w.Name); known && legacy && w.Address == h.Address {
			return true
		}
	}
	return false
}

// objectRef says which object a part of the configuration came from.
func objectRef(m *world.Meta, h world.Homed) fsm.ObjectRef {
	return fsm.ObjectRef{Namespace: h.Home, UID: m.UID}
}

// formatObjectRef is the first format that knows fsm.ObjectRef.
const formatObjectRef = 2

// referable is a reference as far as the record can hold one.
func (p *planner) referable(r fsm.ObjectRef) fsm.ObjectRef {
	if p.format < formatObjectRef {
		return fsm.ObjectRef{}
	}
	return r
}

func peerOf(w *world.Peer) (peer fsm.Peer, why string) {
	if !w.Address.IsValid() && w.Interface == "" || w.ASN == 0 {
		return fsm.Peer{}, "it lacks an address or an AS number"
	}
	peer = fsm.Peer{
		Name: fsm.PeerName(w.Name), Address: w.Address, Interface: w.Interface, Port: w.Port, ASN: w.ASN, LocalASN: w.OwnASN,
		HoldTime: w.HoldTime, KeepaliveTime: w.KeepaliveTime, ConnectTime: w.ConnectTime,
		IPv4: !w.OneFamily || w.Address.Is4(), IPv6: !w.OneFamily || w.Address.Is6(), PasswordFrom: w.PasswordFrom, Version: w.Version, Object: objectRef(&w.Meta, w.Homed),
		Passive: w.Passive, SendMax: w.SendMax,
		Options: fsm.PeerOptions{TTLSecurity: w.TTLSecurity, KeepOnNotification: w.Restart.KeepOnNotification},
	}
	peer.NoRestart, peer.RestartTime, peer.StaleTime = restartOf(w.Restart)
	if w.Multihop {
		peer.MultihopTTL = multihopTTL
	}
	if w.Password != "" && w.PasswordFrom == "" {
		peer.PasswordFrom = PasswordName(w.Name)
	}
	return peer, ""
}

// choosePeers says which nodes peer, where nodes do. One that was chosen and is not shown stays so while its absence is no
// evidence.
func (p *planner) choosePeers(peer *fsm.Peer, w *world.Peer) {
	if w.Mode != world.PeerNode {
		return
	}
	peer.Nodes.Speak = true
	if len(w.NodeSelectors) == 0 {
		return
	}
	var had []fsm.NodeID
	if h, known := fsm.Get[*fsm.Peer](p.in.Record, fsm.TablePeers, w.Name); known {
		had = h.Nodes.Names
	}
	peer.Nodes.Only, peer.Nodes.Names = true, p.nodesOf(w.NodeSelectors, had)
	if len(peer.Nodes.Names) == 0 {
		p.explain(fsm.TablePeers, w.Name, WaitsForMend, "no node has labels that spec.nodeSelectors choose: nobody peers; label a node")
	}
}

// What is asked for where times are left out: plain graceful restart keeps paths at full rank, for long enough to start anew;
// a long restart time alone would mean that.
const (
	plainRestartTime = 120 * time.Second
	longLivedStale   = 600 * time.Second
)

// restartOf says in the words of the record what a peer shall do while a member is away.
func restartOf(r world.Restart) (none bool, restart, stale time.Duration) {
	switch {
	case r.Mode == world.RestartNone:
		return true, 0, 0
	case r.Mode == world.RestartPlain:
		return false, cmp.Or(r.Time, plainRestartTime), 0
	case r.Time > 0:
		return false, r.Time, cmp.Or(r.StaleTime, longLivedStale)
	}
	return false, 0, r.StaleTime
}

// PasswordName is how the record refers to a password that stands in a BGPPeer itself.
func PasswordName(peer string) string { return string(world.KindPeer) + "/" + peer }

// samePeer compares all but the version: a write that changes nothing else is not worth a commit.
func samePeer(a, b *fsm.Peer) bool {
	return a.Name == b.Name && a.Address == b.Address && a.Interface == b.Interface && a.Port == b.Port && a.ASN == b.ASN && a.LocalASN == b.LocalASN &&
		a.Passive == b.Passive && a.MultihopTTL == b.MultihopTTL && a.SendMax == b.SendMax && a.HoldTime == b.HoldTime &&
		a.KeepaliveTime == b.KeepaliveTime && a.ConnectTime == b.ConnectTime && a.IPv4 == b.IPv4 && a.IPv6 == b.IPv6 &&
		a.PasswordFrom == b.PasswordFrom && a.RestartTime == b.RestartTime && a.StaleTime == b.StaleTime && a.NoRestart == b.NoRestart && a.Options == b.Options && a.Nodes.Equal(b.Nodes) &&
		a.Object == b.Object
}
