// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// FormatSessions is the first format in which speakers say with whom they have sessions. Before it, what they have on the wire of their
// sessions counts for every peer.
const FormatSessions uint32 = 2

// Sessions are the BGP sessions that a speaker, a member's or a node's, has open. The zero value says nothing of them: one that never told is taken
// at its word for what is on the wire. From format 2 on.
type Sessions struct {
	Told bool    `pb:"1" json:"told"`
	Open []Reach `pb:"2" json:"open"` // by peer
}

// Reach is a peer with an open session, and the families of which it takes addresses there.
type Reach struct {
	Peer PeerName `pb:"1" json:"peer"`
	IPv4 bool     `pb:"2" json:"ipv4"`
	IPv6 bool     `pb:"3" json:"ipv6"`
}

// Takes tells whether addresses of the family of a are sent there.
func (r Reach) Takes(a netip.Addr) bool {
	if a.Is4() {
		return r.IPv4
	}
	return r.IPv6
}

// Equal tells whether s and o say the same.
func (s Sessions) Equal(o Sessions) bool { return s.Told == o.Told && slices.Equal(s.Open, o.Open) }

// inOrder tells whether the peers are in order.
func (s Sessions) inOrder() bool {
	return slices.IsSortedFunc(s.Open, func(a, b Reach) int { return strings.Compare(string(a.Peer), string(b.Peer)) })
}

// reaches tells whether any of some peers is sent an address.
func (s Sessions) reaches(peers []*Peer, a netip.Addr) bool {
	return !s.Told || slices.ContainsFunc(peers, func(p *Peer) bool {
		i, found := slices.BinarySearchFunc(s.Open, p.Name, func(r Reach, n PeerName) int { return strings.Compare(string(r.Peer), string(n)) })
		return found && s.Open[i].Takes(a)
	})
}

// ReportSessions says which sessions members have open. What they say holds until they say something else, also over their restarts: a
// session that is away for a moment is still said to be open (see the proposer).
type ReportSessions struct {
	Members []MemberSessions `pb:"1"`
}

// MemberSessions are those of one member, in order of peers.
type MemberSessions struct {
	Server ServerID `pb:"1"`
	Run    string   `pb:"2"`
	Open   []Reach  `pb:"3"`
}

// Kind is KindReportSessions.
func (*ReportSessions) Kind() Kind { return KindReportSessions }

// What is of a run that ended is skipped, one by one: they come from different members.
func (c *ReportSessions) apply(tx *txn) Outcome {
	if out, old := tx.formatBelow(FormatSessions, "sessions of members"); old {
		return out
	}
	out := tx.ok()
	for _, s := range c.Members {
		m, ok := find[*Member](tx.rows, TableMembers, string(s.Server))
		switch {
		case !ok || m.Run != s.Run:
			out = refuse(RejectStaleRevision, "sessions of member "+string(s.Server), "", s.Run)
			continue
		case !(Sessions{Open: s.Open}).inOrder():
			out = refuse(RejectInvalid, "sessions of member "+string(s.Server), "", "peers in order")
			continue
		}
		next := *m
		next.Sessions, next.Absence = Sessions{Told: true, Open: s.Open}, Absence{}
		if next.Sessions.Equal(m.Sessions) && m.Absence == next.Absence {
			continue
		}
		tx.put(&next)
	}
	return out
}

// Audience lists the peers of the record that an address is to be sent to by way of a node, in order: those that take its family and that
// no advertisement about it leaves out. Whether there is a session with them is another matter; see Announcers.
func (v *View) Audience(a netip.Addr, node NodeID) (out []*Peer) {
	about := v.advertising(a, node)
	for _, p := range List[*Peer](v, TablePeers) {
		if p.takes(a) && (!p.Nodes.Speak || p.Nodes.Admits(node)) && sentTo(about, p.Name) {
			out = append(out, p)
		}
	}
	return out
}

// WhyUnreached says to people why a hop that is Unreached is announced to nobody, and what to do; empty where it is not.
func (v *View) WhyUnreached(r *Route, h NextHop) string {
	if !v.Unreached(r, h) {
		return ""
	}
	a := r.Prefix.Addr()
	audience := v.Audience(a, h.Node())
	if len(audience) == 0 {
		return v.WhyNobody(a, h.Node())
	}
	names := make([]string, 0, fewNames)
	for _, p := range audience[:min(len(audience), fewNames)] {
		names = append(names, fmt.Sprintf("%s (%s)", p.Name, p.Neighbour()))
	}
	text := strings.Join(names, ", ")
	if more := len(audience) - fewNames; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return "no session that takes " + familyText(a) + " is open with whom it is to be sent to: BGPPeer " + text +
		"; bring the session up (`fairlead get peers` says what is in its way), or have a BGPAdvertisement name another peer"
}

// fewNames is how many peers or advertisements a sentence names.
const fewNames = 3

// WhyNobody says to people why no peer of the record is to be sent an address by way of a node, and what to do; see Audience.
func (v *View) WhyNobody(a netip.Addr, node NodeID) string {
	family := familyText(a)
	if !slices.ContainsFunc(List[*Peer](v, TablePeers), func(p *Peer) bool { return p.takes(a) }) {
		return "no BGPPeer takes " + family + ": add one that does, or have one take both families"
	}
	var names, mistaken []string
	for _, ad := range v.advertising(a, node) {
		if ad.Terms.Fallback {
			return "its pool is one of MetalLB's, which BGPPeers are sent addresses of only where a BGPAdvertisement is about them, and none is about this one: " + v.whyNoneIsAbout(a)
		}
		if ad.Silent() {
			mistaken = append(mistaken, string(ad.Name))
			continue
		}
		names = append(names, string(ad.Name))
	}
	if len(names) == 0 {
		return "BGPAdvertisement " + strings.Join(mistaken[:min(len(mistaken), fewNames)], ", ") +
			" has a mistake, for which nobody is sent an address under it; mend it, or add another one"
	}
	return "of the BGPPeers that take " + family + " none is to be sent it by BGPAdvertisement " + strings.Join(names[:min(len(names), fewNames)], ", ") +
		": name one in spec.peers, or none for all"
}

// whyNoneIsAbout says what to do about an address that no advertisement is about.
func (v *View) whyNoneIsAbout(a netip.Addr) string {
	var names []string
	owners := v.Owners(a.String())
	for _, ad := range List[*Advertisement](v, TableAdvertisements) {
		if !ad.Terms.Fallback && slices.ContainsFunc(owners, func(o *Allocation) bool { return ad.OfPool(o.Pool()) }) {
			names = append(names, string(ad.Name)) // which its Services keep it from, or it would be about it
		}
	}
	if len(names) == 0 {
		return "add one, or have one name the pool"
	}
	return "spec.serviceSelectors of BGPAdvertisement " + strings.Join(names[:min(len(names), fewNames)], ", ") + " leave its Service out; have them choose it, or add one"
}

func familyText(a netip.Addr) string {
	if a.Is4() {
		return "IPv4"
	}
	return "IPv6"
}

// advertising lists the advertisements under which an address is announced by way of a node: those about the address that choose the node,
// and where none does all about it (see dataplane/bgp/derive, which makes paths by the same rule).
func (v *View) advertising(a netip.Addr, node NodeID) (out []*Advertisement) {
	var about []*Advertisement
	owners := v.Owners(a.String())
	for _, ad := range List[*Advertisement](v, TableAdvertisements) {
		if v.isAbout(ad, owners) {
			about = append(about, ad)
		}
	}
	about = Counting(about)
	for _, ad := range about {
		if ad.Admits(node) {
			out = append(out, ad)
		}
	}
	if len(out) == 0 {
		return about
	}
	return out
}

// isAbout tells whether an advertisement is about an address as any of its owners has it. What nobody owns is of no pool.
func (v *View) isAbout(ad *Advertisement, owners []*Allocation) bool {
	if len(owners) == 0 {
		return ad.OfPool("") && !ad.Terms.OnlyServices
	}
	return slices.ContainsFunc(owners, func(owner *Allocation) bool {
		s, ok := Get[*Service](v, TableServices, string(owner.Service))
		return ad.OfPool(owner.Pool()) && (!ad.Terms.OnlyServices || ok && ad.Chooses(s))
	})
}

// sentTo tells whether a peer is sent what is announced under some advertisements; without any, everybody is.
func sentTo(about []*Advertisement, peer PeerName) bool {
	return len(about) == 0 || slices.ContainsFunc(about, func(ad *Advertisement) bool {
		return len(ad.Peers) == 0 || slices.Contains(ad.Peers, peer)
	})
}

// takes tells whether a peer is asked for sessions that take addresses of the family of a: where it names no family, its own.
func (p *Peer) takes(a netip.Addr) bool {
	switch {
	case p.IPv4 || p.IPv6:
		return a.Is4() && p.IPv4 || !a.Is4() && p.IPv6
	case p.Interface != "":
		return true
	}
	return p.Address.Unmap().Is4() == a.Is4()
}
