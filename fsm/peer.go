// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"net/netip"
	"slices"
	"time"
)

// Peer is a BGP neighbour of every member, or of nodes. It is in the record so that all speakers announce what was agreed on;
// only listen port, router id and source address are a speaker's own.
type Peer struct {
	seal
	Name          PeerName      `pb:"1" json:"name"`
	Address       netip.Addr    `pb:"2" json:"address"`
	Port          uint16        `pb:"3" json:"port"` // 0 means 179
	ASN           uint32        `pb:"4" json:"asn"`
	LocalASN      uint32        `pb:"5" json:"localASN"`
	Passive       bool          `pb:"6" json:"passive"`
	MultihopTTL   uint8         `pb:"7" json:"multihopTTL"`    // 0: directly connected
	SendMax       uint8         `pb:"8" json:"sendMax"`        // paths per prefix; 0 means 64
	HoldTime      time.Duration `pb:"9" json:"holdTime"`       // 0 means the default
	KeepaliveTime time.Duration `pb:"10" json:"keepaliveTime"` // 0 means a third of the hold time
	ConnectTime   time.Duration `pb:"11" json:"connectTime"`   // 0 means the default
	IPv4          bool          `pb:"12" json:"ipv4"`
	IPv6          bool          `pb:"13" json:"ipv6"`
	// PasswordFrom names where the TCP-MD5 password is kept; the password itself never enters the record.
	PasswordFrom string `pb:"14" json:"passwordFrom,omitempty"`
	// Restart and Stale are the graceful-restart and long-lived stale times; both 0 means the defaults of
	// design §6, and NoRestart turns both off.
	RestartTime time.Duration `pb:"15" json:"restartTime"`
	StaleTime   time.Duration `pb:"16" json:"staleTime"`
	NoRestart   bool          `pb:"17" json:"noRestart"`
	Version     uint64        `pb:"18" json:"version"`
	// Nodes are from format 2 on.
	Nodes PeerNodes `pb:"65" json:"nodes"`
	// Options are from format 2 on.
	Options PeerOptions `pb:"70" json:"options"`
	Object  ObjectRef   `pb:"71" json:"object"`
	// Interface is behind which the peer is, where it has no Address: each node that peers finds the neighbour of its own link
	// (RFC 4861). From format 2 on.
	Interface string `pb:"72" json:"interface,omitempty"`
}

// PeerNodes are the nodes that peer themselves, in the place of members. Each announces the addresses that it is a next hop of,
// with itself as the next hop. What the object selects by labels is resolved by the proposer.
type PeerNodes struct {
	Speak bool     `pb:"1" json:"speak"` // nodes peer, members do not
	Only  bool     `pb:"2" json:"only"`  // those that are named, and no others
	Names []NodeID `pb:"3" json:"names"`
}

// IsZero tells whether members peer.
func (n PeerNodes) IsZero() bool { return !n.Speak && !n.Only && len(n.Names) == 0 }

// Admits tells whether a node peers.
func (n PeerNodes) Admits(id NodeID) bool {
	return n.Speak && (!n.Only || slices.Contains(n.Names, id))
}

// Meets tells whether some node peers by n and by o, whichever nodes there are.
func (n PeerNodes) Meets(o PeerNodes) bool {
	switch {
	case !n.Speak || !o.Speak:
		return false
	case !n.Only:
		return !o.Only || len(o.Names) > 0
	}
	return slices.ContainsFunc(n.Names, o.Admits)
}

// Equal tells whether n and o are the same.
func (n PeerNodes) Equal(o PeerNodes) bool {
	return n.Speak == o.Speak && n.Only == o.Only && slices.Equal(n.Names, o.Names)
}

// PeerOptions are what a session can do beyond what format 1 knows.
type PeerOptions struct {
	// TTLSecurity is how many hops away the peer may be (RFC 5082): packets from further away are dropped. 0 asks for nothing.
	TTLSecurity uint8 `pb:"1" json:"ttlSecurity"`
	// KeepOnNotification asks the peer to keep paths also when the session ends by a NOTIFICATION (RFC 8538).
	KeepOnNotification bool `pb:"2" json:"keepOnNotification"`
}

// formatBGP is the first format that knows PeerOptions, PeerNodes, peers by interface, AdvertisementTerms and nodes that speak.
const formatBGP = 2

// Table is TablePeers.
func (*Peer) Table() Table { return TablePeers }

// Key is the peer's name.
func (p *Peer) Key() string { return string(p.Name) }

// PutPeer adds or replaces a peer. Two peers never have one address and port, and no node has two behind one interface.
type PutPeer struct {
	Peer Peer `pb:"1"`
}

// Kind is KindPutPeer.
func (*PutPeer) Kind() Kind { return KindPutPeer }

func (c *PutPeer) apply(tx *txn) Outcome {
	p := c.Peer
	subject := "peer " + string(p.Name)
	if p.Name == "" || p.ASN == 0 || p.Address.IsValid() == (p.Interface != "") {
		return refuse(RejectInvalid, subject, "", "a name, an AS number, and an address or an interface")
	}
	if why := p.unnumberedFault(); why != "" {
		return refuse(RejectInvalid, subject, "interface "+p.Interface, why)
	}
	if p.Options != (PeerOptions{}) || !p.Nodes.IsZero() { // those by interface have nodes
		if out, old := tx.formatBelow(formatBGP, subject); old {
			return out
		}
	}
	if out, old := tx.refersBelow(p.Object, subject); old {
		return out
	}
	for _, o := range list[*Peer](tx.rows, TablePeers) {
		if o.Name != p.Name && o.overlaps(&p) {
			return refuse(RejectOverlap, subject, "peer "+string(o.Name), p.Neighbour())
		}
	}
	tx.put(&p)
	return tx.ok()
}

// unnumberedFault says what a peer by interface cannot have, or nothing.
func (p *Peer) unnumberedFault() string {
	switch {
	case p.Interface == "":
		return ""
	case !p.Nodes.Speak:
		return "nodes that peer: a member's paths name other nodes, which are no neighbours on that link"
	case p.PasswordFrom != "":
		return "no password: sessions between link-local addresses are not signed"
	case p.MultihopTTL != 0:
		return "no multihop: whoever is on the link is no hop away"
	}
	return ""
}

// overlaps tells whether p and o are one neighbour of somebody.
func (p *Peer) overlaps(o *Peer) bool {
	if p.Interface != "" || o.Interface != "" {
		return p.Interface == o.Interface && p.Nodes.Meets(o.Nodes)
	}
	return p.Address == o.Address && orDefault(uint32(p.Port), 179) == orDefault(uint32(o.Port), 179)
}

// Neighbour says to people where the peer is: its address, or "interface" and the interface's name.
func (p *Peer) Neighbour() string {
	if p.Interface != "" {
		return "interface " + p.Interface
	}
	return p.Address.String()
}

// DeletePeer removes a peer.
type DeletePeer struct {
	Name PeerName `pb:"1"`
}

// Kind is KindDeletePeer.
func (*DeletePeer) Kind() Kind { return KindDeletePeer }

func (c *DeletePeer) apply(tx *txn) Outcome {
	p, ok := find[*Peer](tx.rows, TablePeers, string(c.Name))
	if !ok {
		return refuse(RejectNotFound, "peer "+string(c.Name), "", "")
	}
	tx.remove(p)
	return tx.ok()
}

// Advertisement says how the addresses of some pools are announced to some peers.
type Advertisement struct {
	seal
	Name  AdvertisementName `pb:"1" json:"name"`
	Pools []PoolName        `pb:"2" json:"pools"` // none means all, and addresses of no pool
	Peers []PeerName        `pb:"3" json:"peers"` // none means all
	// Communities are standard ones, as "AS:value" packed into 32 bits (RFC 1997).
	Communities []uint32 `pb:"4" json:"communities"`
	LocalPref   uint32   `pb:"5" json:"localPref"` // 0: not sent
	Version     uint64   `pb:"6" json:"version"`
	// Terms are from format 2 on.
	Terms  AdvertisementTerms `pb:"70" json:"terms"`
	Object ObjectRef          `pb:"71" json:"object"`
}

// AdvertisementTerms are what an advertisement can say beyond what format 1 knows.
type AdvertisementTerms struct {
	LargeCommunities []LargeCommunity `pb:"1" json:"largeCommunities"`
	MED              uint32           `pb:"2" json:"med"` // 0: none of its own
	// OnlyNodes says that it is about next hops that are Nodes, and no others.
	OnlyNodes bool     `pb:"3" json:"onlyNodes"`
	Nodes     []NodeID `pb:"4" json:"nodes"`
	// OnlyServices says that it is about addresses of Services that it chooses, and no others.
	OnlyServices bool `pb:"5" json:"onlyServices,omitempty"`
	// Weighted has next hops weigh as much as they have ready endpoints.
	Weighted bool `pb:"6" json:"weighted,omitempty"`
	// AggregateV4 and AggregateV6 are how many bits the prefixes have that may be announced in place of all their addresses; 0
	// for none.
	AggregateV4 uint8 `pb:"7" json:"aggregateV4,omitempty"`
	AggregateV6 uint8 `pb:"8" json:"aggregateV6,omitempty"`
	// Fallback says that it is about addresses that no other advertisement is about, and no others; see Counting.
	Fallback bool `pb:"9" json:"fallback,omitempty"`
}

// Aggregate is AggregateV4 or AggregateV6, that of the family of an address.
func (t AdvertisementTerms) Aggregate(a netip.Addr) int {
	if a.Is4() {
		return int(t.AggregateV4)
	}
	return int(t.AggregateV6)
}

// LargeCommunity is a community of RFC 8092.
type LargeCommunity struct {
	Global uint32 `pb:"1" json:"global"`
	Local1 uint32 `pb:"2" json:"local1"`
	Local2 uint32 `pb:"3" json:"local2"`
}

// IsZero tells whether there are none.
func (t AdvertisementTerms) IsZero() bool {
	return len(t.LargeCommunities) == 0 && t.MED == 0 && !t.OnlyNodes && len(t.Nodes) == 0 && !t.OnlyServices && !t.Weighted &&
		t.AggregateV4 == 0 && t.AggregateV6 == 0 && !t.Fallback
}

// Table is TableAdvertisements.
func (*Advertisement) Table() Table { return TableAdvertisements }

// Key is the advertisement's name.
func (a *Advertisement) Key() string { return string(a.Name) }

// Chooses tells whether an advertisement is about the addresses of a Service, as far as its labels say.
func (a *Advertisement) Chooses(s *Service) bool {
	return !a.Terms.OnlyServices || slices.Contains(s.Advertisements(), a.Name)
}

// OfPool tells whether an advertisement is about the addresses of a pool, as far as it names pools.
func (a *Advertisement) OfPool(p PoolName) bool {
	return len(a.Pools) == 0 || slices.Contains(a.Pools, p)
}

// Admits tells whether a node may be a next hop by this advertisement.
func (a *Advertisement) Admits(n NodeID) bool {
	return !a.Terms.OnlyNodes || slices.Contains(a.Terms.Nodes, n)
}

// SentWherever tells whether whoever is sent an address by another advertisement is sent it by this one.
func (a *Advertisement) SentWherever(other *Advertisement) bool {
	return len(a.Peers) == 0 || len(other.Peers) > 0 && !slices.ContainsFunc(other.Peers, func(p PeerName) bool { return !slices.Contains(a.Peers, p) })
}

// Nobody is no peer's name, and cannot be: what an advertisement names for whom nobody shall be sent an address under it. All members
// understand it, those of older releases too.
const Nobody PeerName = "(nobody)"

// Silent tells whether an advertisement has nothing sent to anybody: its object has a mistake, or it is Unadvertised.
func (a *Advertisement) Silent() bool { return len(a.Peers) == 1 && a.Peers[0] == Nobody }

// Unadvertised is the advertisement, of no object, of pools that are announced by BGP only where a BGPAdvertisement is about them: a
// Fallback to Nobody. No object can have the name.
const Unadvertised AdvertisementName = "(unadvertised)"

// NoPool is no pool's name, and cannot be: what Unadvertised is of where no such pool is left. Without any it would be of all.
const NoPool PoolName = "(none)"

// Counting are those that count of the advertisements about an address: the fallbacks among them where there are no others. The slice
// is taken over.
func Counting(about []*Advertisement) []*Advertisement {
	fallback := func(ad *Advertisement) bool { return ad.Terms.Fallback }
	if slices.ContainsFunc(about, func(ad *Advertisement) bool { return !ad.Terms.Fallback }) {
		return slices.DeleteFunc(about, fallback)
	}
	return about
}

// PutAdvertisement adds or replaces an advertisement.
type PutAdvertisement struct {
	Advertisement Advertisement `pb:"1"`
}

// Kind is KindPutAdvertisement.
func (*PutAdvertisement) Kind() Kind { return KindPutAdvertisement }

func (c *PutAdvertisement) apply(tx *txn) Outcome {
	a := c.Advertisement
	if a.Name == "" {
		return refuse(RejectInvalid, "advertisement", "", "a name")
	}
	if a.Terms.AggregateV4 >= 32 || a.Terms.AggregateV6 >= 128 {
		return refuse(RejectInvalid, "advertisement "+string(a.Name), "", "aggregates of more than one address")
	}
	if !a.Terms.IsZero() {
		if out, old := tx.formatBelow(formatBGP, "advertisement "+string(a.Name)); old {
			return out
		}
	}
	if out, old := tx.refersBelow(a.Object, "advertisement "+string(a.Name)); old {
		return out
	}
	tx.put(&a)
	return tx.ok()
}

// DeleteAdvertisement removes an advertisement.
type DeleteAdvertisement struct {
	Name AdvertisementName `pb:"1"`
}

// Kind is KindDeleteAdvertisement.
func (*DeleteAdvertisement) Kind() Kind { return KindDeleteAdvertisement }

func (c *DeleteAdvertisement) apply(tx *txn) Outcome {
	a, ok := find[*Advertisement](tx.rows, TableAdvertisements, string(c.Name))
	if !ok {
		return refuse(RejectNotFound, "advertisement "+string(c.Name), "", "")
	}
	tx.remove(a)
	return tx.ok()
}
