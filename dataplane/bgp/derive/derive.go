// SPDX-License-Identifier: Apache-2.0

// Package derive turns the record into what a member announces. It is the one place where the words of fsm
// meet those of bgp: the speaker itself knows nothing of records or members.
//
// Every member derives from its own copy, so that equal copies announce equal paths; only a member's own
// source address differs. Start reading at Paths, then Follower, which has the same at the cost of a change.
package derive

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/fsm"
)

// Tables are the tables that announcements are derived from: nothing else can change what is announced.
func Tables() []fsm.Table {
	return []fsm.Table{
		fsm.TableGroup, fsm.TableRoutes, fsm.TableNodes, fsm.TableAllocations, fsm.TableServices, fsm.TableAdvertisements, fsm.TablePeers,
		fsm.TableDrains,
	}
}

// Secrets finds the TCP-MD5 password of a peer, by what its PasswordFrom names. It is a member's own: passwords are
// never in the record.
type Secrets func(peer bgp.Peer, from string) (bgp.Secret, bool)

// Peers gives the peers of members that v asks for, in order. One whose password this member does not have is left out and named
// in missing: without it the session could not open, and with an empty one it would be open to anybody.
func Peers(v *fsm.View, secrets Secrets) (peers []bgp.Peer, missing []fsm.PeerName) {
	for _, p := range fsm.List[*fsm.Peer](v, fsm.TablePeers) {
		if p.Nodes.Speak || p.Interface != "" {
			continue
		}
		peer := peerOf(p)
		if p.PasswordFrom != "" {
			password, ok := secrets(peer, p.PasswordFrom)
			if !ok {
				missing = append(missing, p.Name)
				continue
			}
			peer.Password = password
		}
		peers = append(peers, peer)
	}
	return peers, missing
}

// Paths gives one path for every next hop that may be on the wire.
func Paths(v *fsm.View) []bgp.Path {
	settings := v.Group().Settings
	nodes := map[fsm.NodeID]*fsm.Node{}
	for _, n := range fsm.List[*fsm.Node](v, fsm.TableNodes) {
		nodes[n.ID] = n
	}
	attributes := newAttributes(v)
	var out []bgp.Path
	for _, r := range fsm.List[*fsm.Route](v, fsm.TableRoutes) {
		out = append(out, attributes.paths(r, func(id fsm.NodeID) *fsm.Node { return nodes[id] }, settings)...)
	}
	slices.SortFunc(out, bgp.Path.Compare)
	return out
}

// attributes finds how an address is announced.
type attributes struct {
	view           *fsm.View
	advertisements []*fsm.Advertisement
	pools          map[netip.Addr]fsm.PoolName
	mixed          map[netip.Addr]bool // not all owners of the address have it of one pool
}

func newAttributes(v *fsm.View) attributes {
	a := attributes{view: v, advertisements: fsm.List[*fsm.Advertisement](v, fsm.TableAdvertisements)}
	if len(a.advertisements) > 0 {
		a.pools, a.mixed = map[netip.Addr]fsm.PoolName{}, map[netip.Addr]bool{}
		for _, al := range fsm.List[*fsm.Allocation](v, fsm.TableAllocations) {
			a.note(al)
		}
	}
	return a
}

// note takes one owner of an address in.
func (a attributes) note(al *fsm.Allocation) {
	if pool, known := a.pools[al.Address]; known && pool != al.Pool() {
		a.mixed[al.Address] = true
	}
	a.pools[al.Address] = al.Pool()
}

// repool looks up anew which pool an address is of.
func (a attributes) repool(v *fsm.View, address netip.Addr) {
	delete(a.pools, address)
	delete(a.mixed, address)
	for _, owner := range v.Owners(address.String()) {
		a.note(owner)
	}
}

// paths gives one path for every next hop of a route that may be on the wire, in order. Two node objects may carry one
// address; the switch sees one next hop.
func (a attributes) paths(r *fsm.Route, node func(fsm.NodeID) *fsm.Node, settings fsm.Settings) []bgp.Path {
	var out []bgp.Path
	var about []*fsm.Advertisement
	looked, choosy := false, false
	var path bgp.Path
	for _, h := range r.NextHops {
		if !fsm.Announceable(r.Prefix, h, node(h.Node()), settings) {
			continue
		}
		if !looked {
			about, looked = a.about(r.Prefix), true
			choosy = slices.ContainsFunc(about, func(ad *fsm.Advertisement) bool { return ad.Terms.OnlyNodes })
			path = announcement(r.Prefix, about)
		}
		if choosy {
			path = announcement(r.Prefix, choosing(about, h.Node()))
		}
		path.NextHop, path.Weight = h.Address(), a.weight(choosing(about, h.Node()), r.Prefix.Addr(), h.Node())
		out = append(out, path)
	}
	slices.SortFunc(out, bgp.Path.Compare)
	return slices.CompactFunc(out, func(a, b bgp.Path) bool { return a.NextHop == b.NextHop })
}

func peerOf(p *fsm.Peer) bgp.Peer {
	out := bgp.Peer{
		Name: string(p.Name), Address: p.Address, Port: p.Port, RemoteASN: p.ASN, LocalASN: p.LocalASN, Passive: p.Passive,
		EBGPMultihop: p.MultihopTTL, TTLSecurity: p.Options.TTLSecurity, SendMax: p.SendMax,
		HoldTime: p.HoldTime, Keepalive: p.KeepaliveTime, ConnectRetry: p.ConnectTime,
		Restart: restartOf(p),
	}
	if p.IPv4 {
		out.Families = append(out.Families, bgp.IPv4)
	}
	if p.IPv6 {
		out.Families = append(out.Families, bgp.IPv6)
	}
	return out
}

func restartOf(p *fsm.Peer) bgp.GracefulRestart {
	keep := p.Options.KeepOnNotification
	switch {
	case p.NoRestart:
		return bgp.GracefulRestart{Mode: bgp.RestartNone}
	case p.RestartTime > time.Second && p.StaleTime == 0:
		return bgp.GracefulRestart{Mode: bgp.RestartPlain, RestartTime: p.RestartTime, Notification: keep}
	}
	return bgp.GracefulRestart{RestartTime: p.RestartTime, StaleTime: p.StaleTime, Notification: keep}
}

// Record is the inverse for one peer, for sources that speak bgp's words: what the group shall know of it. A
// password stays outside the record; passwordFrom names where members find it.
func Record(p bgp.Peer, passwordFrom string) fsm.Peer {
	out := fsm.Peer{
		Name: fsm.PeerName(p.Name), Address: p.Address, Port: p.Port, ASN: p.RemoteASN, LocalASN: p.LocalASN, Passive: p.Passive,
		MultihopTTL: p.EBGPMultihop, SendMax: p.SendMax,
		HoldTime: p.HoldTime, KeepaliveTime: p.Keepalive, ConnectTime: p.ConnectRetry,
		RestartTime: p.Restart.RestartTime, StaleTime: p.Restart.StaleTime, NoRestart: p.Restart.Mode == bgp.RestartNone,
		IPv4: slices.Contains(p.Families, bgp.IPv4), IPv6: slices.Contains(p.Families, bgp.IPv6),
		Options: fsm.PeerOptions{TTLSecurity: p.TTLSecurity, KeepOnNotification: p.Restart.Notification},
	}
	if p.Restart.Mode == bgp.RestartLongLived && out.RestartTime > time.Second {
		out.StaleTime = cmp.Or(out.StaleTime, bgp.DefaultStaleTime) // without one the record means plain
	}
	if p.Password != "" {
		out.PasswordFrom = passwordFrom
	}
	return out
}
