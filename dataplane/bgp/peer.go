// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"cmp"
	"log/slog"
	"net/netip"
	"slices"
	"time"
)

// Family is an address family of BGP (unicast).
type Family uint8

// The families that we announce.
const (
	IPv4 Family = 4
	IPv6 Family = 6
)

// String returns the family's name as GoBGP's configuration spells it.
func (f Family) String() string {
	switch f {
	case IPv4:
		return "ipv4-unicast"
	case IPv6:
		return "ipv6-unicast"
	}
	return "unknown"
}

// FamilyOf returns the family of a.
func FamilyOf(a netip.Addr) Family {
	if a.Is4() {
		return IPv4
	}
	return IPv6
}

// Defaults of a peer. The timers of graceful restart are measured, not guessed.
const (
	DefaultPort    = 179
	DefaultSendMax = 64
	// DefaultHoldTime is the figure that users of the earlier controllers know. A lost member needs no short hold time:
	// its connection closes when it dies. Only a silent cut waits for it, and expiring falsely costs more than that,
	// since some switches drop the paths then. Keepalive is a third of it.
	DefaultHoldTime     = 30 * time.Second
	DefaultConnectRetry = time.Second
	// DefaultRestartTime is one second because a switch keeps a lost speaker's paths at full rank for this long, and
	// with them nodes that died meanwhile. 0 would be sent as the hold time.
	DefaultRestartTime = time.Second
	// DefaultStaleTime is how long a switch keeps the paths of a lost speaker as a last resort (RFC 9494).
	DefaultStaleTime = 600 * time.Second
	// DefaultDeferral is how long a returning speaker waits for the switches' End-of-RIB before it announces anyway.
	DefaultDeferral = 2 * time.Second
)

// RestartMode is what a switch shall do with our paths when the session is lost without a NOTIFICATION.
type RestartMode uint8

// The zero value is the one with both quick withdrawal and survival of all speakers.
const (
	RestartLongLived RestartMode = iota // keep them, ranked last (RFC 9494, with a short restart time)
	RestartPlain                        // keep them at full rank for the restart time (RFC 4724)
	RestartNone                         // drop them
)

// GracefulRestart is what we ask of a switch for the time of our absence. Zero durations stand for the defaults.
type GracefulRestart struct {
	Mode        RestartMode
	RestartTime time.Duration // whole seconds, up to 4095
	StaleTime   time.Duration // whole seconds, up to 2^24-1; RestartLongLived only
	Deferral    time.Duration // whole seconds; how long a returning speaker waits for End-of-RIB
	// Notification keeps paths also when the session ends by a NOTIFICATION that is no hard reset (RFC 8538), such as
	// an expired hold timer. FRR drops them otherwise.
	Notification bool
}

// Secret is a password. It shows itself to nobody by accident: formatting, logs and JSON get stars.
type Secret string

const stars = "***"

// String returns stars, or nothing for an empty secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return stars
}

// GoString does as String.
func (s Secret) GoString() string { return s.String() }

// LogValue does as String.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText does as String. Who must store a secret converts it to a string on purpose.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Peer is a neighbour to which paths are announced. What it announces to us is ignored.
//
// Zero fields stand for defaults, which Normal fills in.
type Peer struct {
	Name         string     // for people and logs; changing it changes nothing on the wire
	Address      netip.Addr // identity: one peer per address. A link-local one has its interface as a zone: see Unnumbered
	Port         uint16     // that we dial
	RemoteASN    uint32
	LocalASN     uint32     // 0: the speaker's
	LocalAddress netip.Addr // that we dial from and are dialled at; zero: the kernel's choice
	Passive      bool       // wait to be dialled. FRR does not dial a lost speaker for a while: not passive is better
	EBGPMultihop uint8      // TTL; 0: the peer is on an attached network
	TTLSecurity  uint8      // hops that the peer may be away (RFC 5082); 0: any. Not with EBGPMultihop
	Families     []Family   // sorted; empty: the family of Address, or both for an unnumbered peer
	SendMax      uint8      // paths per prefix that we send at most, by ADD-PATH (RFC 7911)
	HoldTime     time.Duration
	Keepalive    time.Duration
	ConnectRetry time.Duration
	Restart      GracefulRestart
	Password     Secret // TCP MD5 (RFC 2385)
	Demoted      bool   // this peer alone sees our paths behind all others, to take load off one switch
}

// Normal returns p with every default spelled out, as a speaker of the AS asn runs it.
func (p Peer) Normal(asn uint32) Peer {
	p.Address, p.LocalAddress = p.Address.Unmap(), p.LocalAddress.Unmap()
	p.Port = cmp.Or(p.Port, DefaultPort)
	p.LocalASN = cmp.Or(p.LocalASN, asn)
	p.SendMax = cmp.Or(p.SendMax, DefaultSendMax)
	p.HoldTime = cmp.Or(p.HoldTime, DefaultHoldTime)
	p.Keepalive = cmp.Or(p.Keepalive, (p.HoldTime / 3).Truncate(time.Second))
	p.ConnectRetry = cmp.Or(p.ConnectRetry, DefaultConnectRetry)
	switch {
	case len(p.Families) == 0 && p.Unnumbered():
		p.Families = []Family{IPv4, IPv6}
	case len(p.Families) == 0:
		p.Families = []Family{FamilyOf(p.Address)}
	default:
		p.Families = slices.Clone(p.Families)
		slices.Sort(p.Families)
		p.Families = slices.Compact(p.Families)
	}
	p.Restart = p.Restart.normal()
	return p
}

func (g GracefulRestart) normal() GracefulRestart {
	if g.Mode == RestartNone {
		return GracefulRestart{Mode: RestartNone}
	}
	g.RestartTime = cmp.Or(g.RestartTime, DefaultRestartTime)
	g.Deferral = cmp.Or(g.Deferral, DefaultDeferral)
	if g.Mode == RestartLongLived {
		g.StaleTime = cmp.Or(g.StaleTime, DefaultStaleTime)
	} else {
		g.StaleTime = 0
	}
	return g
}

// Unnumbered says whether the session is between link-local addresses, which mean nothing but on one interface. Such a peer is sent
// all paths, those of IPv4 too (RFC 8950), with our address on that interface as their next hop.
func (p Peer) Unnumbered() bool {
	return p.Address.Is6() && p.Address.IsLinkLocalUnicast() && p.Address.Zone() != ""
}

// AddPath says whether p is to be sent several paths of a prefix, where it takes them (RFC 7911). p is normal.
func (p Peer) AddPath() bool { return p.SendMax > 1 }

// IBGP says whether p is of the speaker's own AS.
func (p Peer) IBGP() bool { return p.LocalASN == p.RemoteASN }

// Equal says whether p and q are the same in every respect.
func (p Peer) Equal(q Peer) bool {
	return p.sameOnWire(q) && p.Name == q.Name && p.Demoted == q.Demoted && p.SendMax == q.SendMax
}

// sameOnWire says whether two normal peers differ at most in name, demotion and how many of several paths they are sent, which is up to
// the paths: see limits.
func (p Peer) sameOnWire(q Peer) bool {
	return p.sameSession(q) && p.ConnectRetry == q.ConnectRetry
}

// sameSession says whether an open session of q serves p as well: what differs is not part of the session.
func (p Peer) sameSession(q Peer) bool {
	if !slices.Equal(p.Families, q.Families) {
		return false
	}
	p.Families, q.Families = nil, nil
	p.Name, p.Demoted, p.ConnectRetry = q.Name, q.Demoted, q.ConnectRetry
	return p.comparable() == q.comparable()
}

// comparablePeer is a peer without its slice.
type comparablePeer struct {
	address, local     netip.Addr
	port               uint16
	remoteASN, asn     uint32
	passive            bool
	multihop, hops     uint8
	addPath            bool
	hold, alive, retry time.Duration
	restart            GracefulRestart
	password           Secret
}

func (p Peer) comparable() comparablePeer {
	return comparablePeer{
		p.Address, p.LocalAddress, p.Port, p.RemoteASN, p.LocalASN, p.Passive, p.EBGPMultihop, p.TTLSecurity, p.AddPath(),
		p.HoldTime, p.Keepalive, p.ConnectRetry, p.Restart, p.Password,
	}
}
