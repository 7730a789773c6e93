// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Desired is all that a speaker shall announce.
type Desired struct {
	Paths Paths
	Peers []Peer
	// Demoted puts our paths behind those of every other speaker at every peer: they serve when nothing else does.
	Demoted bool
	// Touched says, if it is not nil, that Paths differ at most at these prefixes, in order, from what was applied last; all else is as it was. A speaker need not look further then.
	Touched []netip.Prefix
}

// Normal returns d sorted, with path identifiers assigned and defaults spelled out, as a speaker of the AS asn runs it.
// What is invalid is left out; the error joins what is wrong with it, one line each, every line an ErrInvalid.
func (d Desired) Normal(asn uint32) (Desired, error) {
	var errs []error
	out := Desired{Demoted: d.Demoted}
	var valid []Path
	for prefix := range d.Paths.Prefixes() {
		valid = valid[:0]
		for _, p := range AssignPathIDs(d.Paths.Of(prefix)) {
			p = p.Normal()
			switch last := len(valid) - 1; {
			case p.fault() != "":
				errs = append(errs, p.Validate())
			case last >= 0 && p.NextHop == valid[last].NextHop:
				errs = append(errs, fmt.Errorf("path %s: %w: given twice", p, ErrInvalid))
			default:
				valid = append(valid, p)
			}
		}
		if len(valid) > 0 {
			out.Paths.add(valid, nil)
		}
	}
	peers := make([]Peer, len(d.Peers))
	for i, p := range d.Peers {
		peers[i] = p.Normal(asn)
		peers[i].Demoted = p.Demoted || d.Demoted
	}
	slices.SortStableFunc(peers, comparePeers)
	for _, p := range peers {
		switch last := len(out.Peers) - 1; {
		case p.fault() != "":
			errs = append(errs, p.Validate(asn))
		case last >= 0 && p.Address == out.Peers[last].Address:
			errs = append(errs, fmt.Errorf("peer %s: %w: its address is that of peer %s, and an address is one peer",
				p.label(), ErrInvalid, out.Peers[last].label()))
		case last >= 0 && p.Address.WithZone("") == out.Peers[last].Address.WithZone(""):
			// GoBGP's policies know no zones: what one is not to be sent, the other would not be sent either.
			errs = append(errs, fmt.Errorf("peer %s: %w: peer %s has this link-local address on another interface (give the interfaces of "+
				"switches addresses of their own)", p.label(), ErrInvalid, out.Peers[last].label()))
		default:
			out.Peers = append(out.Peers, p)
		}
	}
	return out, errors.Join(errs...)
}

func comparePeers(p, q Peer) int { return p.Address.Compare(q.Address) }

// ErrInvalid is wrapped by every error about a path or peer that cannot be announced as it is.
var ErrInvalid = errors.New("invalid")

// leftOut counts what an error says was left out.
func leftOut(err error) (n int) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			n += leftOut(e)
		}
		return n
	}
	if errors.Is(err, ErrInvalid) {
		return 1
	}
	return 0
}

// fault says what makes p unfit to be announced, or nothing.
func (p Path) fault() string {
	switch {
	case !p.Prefix.IsValid():
		return "no prefix"
	case p.Prefix.Addr().Is4In6():
		return "IPv4 address written as IPv6: write it as IPv4"
	case p.Prefix != p.Prefix.Masked():
		return fmt.Sprintf("bits set behind the mask: write %s", p.Prefix.Masked())
	case !p.NextHop.IsValid():
		return "no next hop"
	case p.NextHop.Is4() != p.Prefix.Addr().Is4():
		return "next hop of another address family"
	case p.NextHop.Zone() != "":
		return "next hop with a zone, which means nothing to a neighbour"
	case p.NextHop.IsUnspecified(), p.NextHop.IsMulticast(), p.NextHop.IsLinkLocalUnicast():
		return "next hop is no unicast address that a neighbour can reach"
	case len(p.Communities)+len(p.LargeCommunities) > maxCommunities:
		return fmt.Sprintf("%d communities: at most %d fit", len(p.Communities)+len(p.LargeCommunities), maxCommunities)
	case slices.ContainsFunc(p.Terms, func(t Terms) bool { return t.under(p).fault() != "" }):
		i := slices.IndexFunc(p.Terms, func(t Terms) bool { return t.under(p).fault() != "" })
		return "towards " + p.Terms[i].Peer + ": " + p.Terms[i].under(p).fault()
	case p.Origin > OriginEGP:
		return "unknown origin " + p.Origin.String()
	case p.MED >= DemotionMED:
		return fmt.Sprintf("MED %d: must be below %d, which demotion adds", p.MED, DemotionMED)
	case p.Weight > MaxWeight:
		return fmt.Sprintf("weight %d: at most %d", p.Weight, MaxWeight)
	case p.LocalPref != 0 && p.LocalPref < LowestLocalPref:
		return fmt.Sprintf("local preference %d: must be above %d, which demotion sets", p.LocalPref, DemotedLocalPref)
	}
	return ""
}

// Validate says what makes p unfit to be peered with by a speaker of the AS asn. The error is an ErrInvalid.
func (p Peer) Validate(asn uint32) error {
	p = p.Normal(asn)
	if why := p.fault(); why != "" {
		return fmt.Errorf("peer %s: %w: %s", p.label(), ErrInvalid, why)
	}
	return nil
}

// Validate says what makes p unfit to be announced. The error is an ErrInvalid.
func (p Path) Validate() error {
	if why := p.fault(); why != "" {
		return fmt.Errorf("path %s: %w: %s", p, ErrInvalid, why)
	}
	return nil
}

// label names p to people: by name and address, or what there is of them.
func (p Peer) label() string {
	switch {
	case p.Name == "":
		return p.Address.String()
	case !p.Address.IsValid():
		return p.Name
	}
	return p.Name + " (" + p.Address.String() + ")"
}

// maxCommunities keeps attributes far below the 4,096 bytes of a BGP message, which they share with the prefixes.
const maxCommunities = 128

// Longest times that fit into the messages of BGP.
const (
	maxHoldTime    = 65535 * time.Second
	maxRestartTime = 4095 * time.Second
	maxStaleTime   = (1<<24 - 1) * time.Second
)

// fault says what makes a normal p unfit to be peered with, or nothing.
func (p Peer) fault() string {
	switch {
	case !p.Address.IsValid():
		return "no address"
	case p.Address.IsUnspecified(), p.Address.IsMulticast(), p.Address.Zone() != "" && !p.Unnumbered():
		return "its address is neither a unicast address without a zone nor a link-local one"
	case p.Unnumbered():
		if why := p.unnumberedFault(); why != "" {
			return why
		}
	case p.Address.Is6() && p.Address.IsLinkLocalUnicast():
		return "a link-local address without the interface that it is behind"
	}
	switch {
	case p.RemoteASN == 0:
		return "no AS number: set the switch's"
	case p.LocalASN == 0:
		return "no AS number of our own"
	case p.LocalAddress.IsValid() && p.LocalAddress.Is4() != p.Address.Is4():
		return fmt.Sprintf("local address %s is of another address family", p.LocalAddress)
	case p.LocalAddress.IsValid() && p.LocalAddress == p.Address:
		return "local address equals the peer's"
	case slices.ContainsFunc(p.Families, func(f Family) bool { return f != IPv4 && f != IPv6 }):
		return "unknown address family: use ipv4-unicast or ipv6-unicast"
	case len(p.Password) > MaxPasswordBytes:
		return fmt.Sprintf("password of %d bytes: TCP MD5 takes up to %d", len(p.Password), MaxPasswordBytes)
	case p.IBGP() && p.EBGPMultihop != 0:
		return "eBGP multihop set for a peer of our own AS"
	case p.TTLSecurity != 0 && p.EBGPMultihop != 0:
		return "TTL security and eBGP multihop set: TTL security alone says how many hops away the peer may be"
	}
	return cmp.Or(
		wholeSeconds("hold time", p.HoldTime, 3*time.Second, maxHoldTime),
		wholeSeconds("keepalive", p.Keepalive, time.Second, p.HoldTime),
		wholeSeconds("connect retry", p.ConnectRetry, time.Second, maxHoldTime),
		p.Restart.fault(),
	)
}

// unnumberedFault says what a session between link-local addresses cannot do, or nothing.
func (p Peer) unnumberedFault() string {
	switch {
	case p.Password != "":
		return "password set, and GoBGP does not sign sessions with link-local addresses: give the switch an address"
	case p.LocalAddress.IsValid():
		return fmt.Sprintf("local address %s set: a session with a link-local address comes from that of the interface", p.LocalAddress)
	case p.EBGPMultihop != 0:
		return "eBGP multihop set: a link-local address is no hop away"
	}
	return ""
}

// MaxPasswordBytes is the longest password of a session: Linux's TCP_MD5SIG_MAXKEYLEN.
const MaxPasswordBytes = 80

func (g GracefulRestart) fault() string {
	if g.Mode > RestartNone {
		return "unknown restart mode"
	}
	if g.Mode == RestartNone {
		return ""
	}
	return cmp.Or(
		wholeSeconds("restart time", g.RestartTime, time.Second, maxRestartTime),
		wholeSeconds("deferral time", g.Deferral, time.Second, maxHoldTime),
		wholeSeconds("stale time", g.StaleTime, 0, maxStaleTime),
	)
}

func wholeSeconds(what string, d, least, most time.Duration) string {
	switch {
	case d < least || d > most:
		return fmt.Sprintf("%s %s: must be from %s to %s", what, d, least, most)
	case d%time.Second != 0:
		return fmt.Sprintf("%s %s: must be whole seconds", what, d)
	}
	return ""
}

// Overfull returns the prefixes of d that have more paths than a peer may be sent, each with the number of paths. Only
// send-max paths leave the speaker, so that nodes behind the others stay without traffic: raise SendMax.
func (d Desired) Overfull() map[netip.Prefix]int {
	for p := range d.Paths.All() {
		if p.Withheld {
			return d.overfullByPeer()
		}
	}
	limit := map[Family]int{}
	for _, p := range d.Peers {
		p = p.Normal(0)
		for _, f := range p.Families {
			if n, ok := limit[f]; !ok || int(p.SendMax) < n {
				limit[f] = int(p.SendMax)
			}
		}
	}
	out := map[netip.Prefix]int{}
	for of := range d.Paths.destinations() {
		if most, ok := limit[FamilyOf(of.prefix.Addr())]; ok && len(of.ways) > most {
			out[of.prefix] = len(of.ways)
		}
	}
	return out
}
