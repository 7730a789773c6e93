// SPDX-License-Identifier: Apache-2.0

// Package share is what one node announces itself, on its way from a member to the node's own speaker.
//
// It knows how that is encoded, and what a node goes on announcing while a restored record is in quarantine. It promises that
// what is decoded is what was encoded, times in whole seconds. It performs no I/O. Start reading at Share.
package share

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/dataplane/bgp"
)

// Share is everything that one node announces, and to whom.
type Share struct {
	Revision bgp.Revision
	Paths    []bgp.Path // of single addresses, in order
	Peers    []bgp.Peer // of sessions without a password
	// Signed are peers of which the node has to have the password.
	Signed []SignedPeer
	// Unnumbered are peers of which the node has to find the address.
	Unnumbered []UnnumberedPeer
	// Aggregates stand for their addresses. A node of an older release announces these.
	Aggregates []netip.Prefix
	// Summaries are paths of prefixes beside those of their addresses, in order. A node of an older release announces the addresses alone.
	Summaries []bgp.Path
	// Keep says that the record knows less than was agreed on: what was announced before goes on, but for Gone.
	Keep bool
	Gone []netip.Prefix
}

// SignedPeer is a peer without its password, and what that is called.
type SignedPeer struct {
	bgp.Peer
	PasswordFrom string
}

// UnnumberedPeer is a peer without its address, and the interface that it is behind.
type UnnumberedPeer struct {
	bgp.Peer
	Interface string
}

// Sign gives all numbered peers, signed ones with their passwords. Those that lack theirs are missing: with none, a session would be open to
// anybody.
func (s Share) Sign(password func(peer bgp.Peer, from string) (bgp.Secret, bool)) (peers []bgp.Peer, missing []SignedPeer) {
	peers = slices.Clone(s.Peers)
	for _, p := range s.Signed {
		found, ok := password(p.Peer, p.PasswordFrom)
		if !ok || found == "" {
			missing = append(missing, p)
			continue
		}
		p.Password = found
		peers = append(peers, p.Peer)
	}
	return peers, missing
}

// Routes are what the speaker shall announce, when it announced before so far; to whom, Sign tells.
func (s Share) Routes(before bgp.Routes) bgp.Routes {
	var summaries []netip.Prefix
	known := map[netip.Prefix]bool{}
	for _, p := range s.Summaries {
		summaries, known[p.Prefix] = append(summaries, p.Prefix), true
	}
	paths := bgp.NewPaths(slices.Concat(s.Paths, s.Summaries)...).WithoutBare(summaries)
	out := bgp.Routes{Revision: s.Revision, Paths: bgp.Aggregated(paths, s.Aggregates)}
	if !s.Keep {
		return out
	}
	for _, p := range s.Paths {
		known[p.Prefix] = true
	}
	for _, p := range s.Gone {
		known[p] = true
	}
	singles := bgp.Singles(before.Paths)
	kept := slices.DeleteFunc(slices.Collect(singles.Prefixes()), func(p netip.Prefix) bool { return known[p] })
	out.Paths = out.Paths.With(kept, singles.Of).WithoutBare(kept)
	return out
}

// Message encodes s.
func (s Share) Message() *fairleadv1.AnnouncementsResponse {
	m := &fairleadv1.AnnouncementsResponse{
		Revision: &fairleadv1.Revision{Epoch: s.Revision.Epoch, Index: s.Revision.Index}, Keep: s.Keep,
	}
	for _, p := range s.Paths {
		m.Paths = append(m.Paths, pathMessage(p))
	}
	for _, p := range s.Peers {
		m.Neighbours = append(m.Neighbours, neighbour(p))
	}
	for _, p := range s.Signed {
		m.SignedNeighbours = append(m.SignedNeighbours, &fairleadv1.SignedNeighbour{Neighbour: neighbour(p.Peer), PasswordFrom: p.PasswordFrom})
	}
	for _, p := range s.Unnumbered {
		m.UnnumberedNeighbours = append(m.UnnumberedNeighbours, &fairleadv1.UnnumberedNeighbour{Neighbour: neighbour(p.Peer), Interface: p.Interface})
	}
	for _, p := range s.Gone {
		m.Gone = append(m.Gone, p.Addr().AsSlice())
	}
	for _, p := range s.Aggregates {
		m.Aggregates = append(m.Aggregates, &fairleadv1.Aggregate{Address: p.Addr().AsSlice(), Bits: uint32(p.Bits())})
	}
	for _, p := range s.Summaries {
		path := pathMessage(p)
		path.Bits = uint32(p.Prefix.Bits())
		m.Summaries = append(m.Summaries, path)
	}
	return m
}

// Of decodes a share. Errors: what cannot be announced to anybody.
func Of(m *fairleadv1.AnnouncementsResponse) (Share, error) {
	s := Share{Revision: bgp.Revision{Epoch: m.GetRevision().GetEpoch(), Index: m.GetRevision().GetIndex()}, Keep: m.GetKeep()}
	for _, p := range m.GetPaths() {
		path, err := pathOf(p)
		if err != nil {
			return Share{}, fmt.Errorf("decode announcements: %w", err)
		}
		s.Paths = append(s.Paths, path)
	}
	for _, n := range m.GetNeighbours() {
		peer, err := peerOf(n)
		if err != nil {
			return Share{}, fmt.Errorf("decode announcements: %w", err)
		}
		s.Peers = append(s.Peers, peer)
	}
	for _, n := range m.GetSignedNeighbours() {
		peer, err := peerOf(n.GetNeighbour())
		if err == nil && n.GetPasswordFrom() == "" {
			err = fmt.Errorf("neighbour %s: nobody says what its password is called", peer.Name)
		}
		if err != nil {
			return Share{}, fmt.Errorf("decode announcements: %w", err)
		}
		s.Signed = append(s.Signed, SignedPeer{peer, n.GetPasswordFrom()})
	}
	for _, n := range m.GetUnnumberedNeighbours() {
		peer, err := sessionOf(n.GetNeighbour())
		if err == nil && n.GetInterface() == "" {
			err = fmt.Errorf("neighbour %s: nobody says behind which interface it is", peer.Name)
		}
		if err != nil {
			return Share{}, fmt.Errorf("decode announcements: %w", err)
		}
		s.Unnumbered = append(s.Unnumbered, UnnumberedPeer{peer, n.GetInterface()})
	}
	for _, b := range m.GetGone() {
		a, ok := netip.AddrFromSlice(b)
		if !ok {
			return Share{}, fmt.Errorf("decode announcements: an address has 4 or 16 bytes, not %d", len(b))
		}
		s.Gone = append(s.Gone, netip.PrefixFrom(a, a.BitLen()))
	}
	for _, p := range m.GetAggregates() {
		a, ok := netip.AddrFromSlice(p.GetAddress())
		if !ok || p.GetBits() > uint32(a.BitLen()) {
			return Share{}, fmt.Errorf("decode announcements: an aggregate of %d bytes and %d bits", len(p.GetAddress()), p.GetBits())
		}
		s.Aggregates = append(s.Aggregates, netip.PrefixFrom(a, int(p.GetBits())).Masked())
	}
	for _, p := range m.GetSummaries() {
		path, err := pathOf(p)
		if err == nil && (p.GetBits() == 0 || int(p.GetBits()) >= path.Prefix.Bits()) {
			err = fmt.Errorf("summary of %s: %d bits", path.Prefix.Addr(), p.GetBits())
		}
		if err != nil {
			return Share{}, fmt.Errorf("decode announcements: %w", err)
		}
		path.Prefix = netip.PrefixFrom(path.Prefix.Addr(), int(p.GetBits())).Masked()
		s.Summaries = append(s.Summaries, path)
	}
	return s, nil
}

func pathMessage(p bgp.Path) *fairleadv1.AnnouncedPath {
	m := &fairleadv1.AnnouncedPath{Address: p.Prefix.Addr().AsSlice(), NextHop: p.NextHop.AsSlice(), Withheld: p.Withheld, Weight: p.Weight}
	others := termsMessage(bgp.Terms{MED: p.MED, LocalPref: p.LocalPref, Communities: p.Communities, LargeCommunities: p.LargeCommunities})
	if others.GetMed() != 0 || others.GetLocalPref() != 0 || len(others.GetCommunities())+len(others.GetLargeCommunities()) > 0 {
		m.Others = others
	}
	for _, t := range p.Terms {
		m.Terms = append(m.Terms, termsMessage(t))
	}
	return m
}

func pathOf(m *fairleadv1.AnnouncedPath) (bgp.Path, error) {
	a, ok := netip.AddrFromSlice(m.GetAddress())
	hop, ok2 := netip.AddrFromSlice(m.GetNextHop())
	if !ok || !ok2 {
		return bgp.Path{}, fmt.Errorf("path: an address has 4 or 16 bytes, not %d and %d", len(m.GetAddress()), len(m.GetNextHop()))
	}
	others := termsOf(m.GetOthers())
	p := bgp.Path{
		Prefix: netip.PrefixFrom(a, a.BitLen()), NextHop: hop, Withheld: m.GetWithheld(), Weight: m.GetWeight(),
		MED: others.MED, LocalPref: others.LocalPref, Communities: others.Communities, LargeCommunities: others.LargeCommunities,
	}
	for _, t := range m.GetTerms() {
		p.Terms = append(p.Terms, termsOf(t))
	}
	return p, nil
}

func termsMessage(t bgp.Terms) *fairleadv1.PathTerms {
	m := &fairleadv1.PathTerms{Neighbour: t.Peer, Med: t.MED, LocalPref: t.LocalPref}
	for _, c := range t.Communities {
		m.Communities = append(m.Communities, uint32(c))
	}
	for _, c := range t.LargeCommunities {
		m.LargeCommunities = append(m.LargeCommunities, &fairleadv1.LargeCommunity{Global: c.Global, Local1: c.Local1, Local2: c.Local2})
	}
	return m
}

func termsOf(m *fairleadv1.PathTerms) bgp.Terms {
	t := bgp.Terms{Peer: m.GetNeighbour(), MED: m.GetMed(), LocalPref: m.GetLocalPref()}
	for _, c := range m.GetCommunities() {
		t.Communities = append(t.Communities, bgp.Community(c))
	}
	for _, c := range m.GetLargeCommunities() {
		t.LargeCommunities = append(t.LargeCommunities, bgp.LargeCommunity{Global: c.GetGlobal(), Local1: c.GetLocal1(), Local2: c.GetLocal2()})
	}
	return t
}

func neighbour(p bgp.Peer) *fairleadv1.Neighbour {
	return &fairleadv1.Neighbour{
		Name: p.Name, Address: p.Address.AsSlice(), Port: uint32(p.Port), Asn: p.RemoteASN, LocalAsn: p.LocalASN, Passive: p.Passive,
		MultihopTtl: uint32(p.EBGPMultihop), TtlSecurity: uint32(p.TTLSecurity), SendMax: uint32(p.SendMax),
		Ipv4: slices.Contains(p.Families, bgp.IPv4), Ipv6: slices.Contains(p.Families, bgp.IPv6),
		HoldSeconds: seconds(p.HoldTime), KeepaliveSeconds: seconds(p.Keepalive), ConnectSeconds: seconds(p.ConnectRetry),
		Restart: uint32(p.Restart.Mode), RestartSeconds: seconds(p.Restart.RestartTime), StaleSeconds: seconds(p.Restart.StaleTime),
		KeepOnNotification: p.Restart.Notification,
	}
}

func peerOf(m *fairleadv1.Neighbour) (bgp.Peer, error) {
	a, ok := netip.AddrFromSlice(m.GetAddress())
	if !ok {
		return bgp.Peer{}, fmt.Errorf("neighbour %s: an address has 4 or 16 bytes, not %d", m.GetName(), len(m.GetAddress()))
	}
	p, err := sessionOf(m)
	p.Address = a
	return p, err
}

// sessionOf is a peer without its address.
func sessionOf(m *fairleadv1.Neighbour) (bgp.Peer, error) {
	for _, small := range []uint32{m.GetMultihopTtl(), m.GetTtlSecurity(), m.GetSendMax(), m.GetRestart()} {
		if small > 0xff || m.GetPort() > 0xffff {
			return bgp.Peer{}, fmt.Errorf("neighbour %s: a number is out of range", m.GetName())
		}
	}
	p := bgp.Peer{
		Name: m.GetName(), Port: uint16(m.GetPort()), RemoteASN: m.GetAsn(), LocalASN: m.GetLocalAsn(), Passive: m.GetPassive(),
		EBGPMultihop: uint8(m.GetMultihopTtl()), TTLSecurity: uint8(m.GetTtlSecurity()), SendMax: uint8(m.GetSendMax()),
		HoldTime: ofSeconds(m.GetHoldSeconds()), Keepalive: ofSeconds(m.GetKeepaliveSeconds()), ConnectRetry: ofSeconds(m.GetConnectSeconds()),
		Restart: bgp.GracefulRestart{
			Mode: bgp.RestartMode(m.GetRestart()), RestartTime: ofSeconds(m.GetRestartSeconds()), StaleTime: ofSeconds(m.GetStaleSeconds()),
			Notification: m.GetKeepOnNotification(),
		},
	}
	if m.GetIpv4() {
		p.Families = append(p.Families, bgp.IPv4)
	}
	if m.GetIpv6() {
		p.Families = append(p.Families, bgp.IPv6)
	}
	return p, nil
}

func seconds(d time.Duration) uint32 { return uint32(d / time.Second) }

func ofSeconds(n uint32) time.Duration { return time.Duration(n) * time.Second }
