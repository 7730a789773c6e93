// SPDX-License-Identifier: Apache-2.0

package message

import (
	"net/netip"
	"time"
)

// Most is the longest message, in bytes with its head, as in BGP.
const Most = 4096

// Message is one of Open, Keepalive, Update, EndOfRIB, Notification, Arrived, Deadly and Confusing.
type Message interface{ kind() byte }

// Family is an address family: 4 or 6.
type Family uint8

// FamilyOf is the family of an address.
func FamilyOf(a netip.Addr) Family {
	if a.Is4() {
		return 4
	}
	return 6
}

type (
	// Open begins a session, from both ends.
	Open struct {
		ASN      uint32
		RouterID netip.Addr    // IPv4
		Hold     time.Duration // whole seconds
		Families []Family      // in order
		// AddPath says that the sender can tell several paths of a prefix apart: both ends must have said so. SendMax
		// is how many of a prefix it will announce at most.
		AddPath bool
		SendMax uint8
		// Restart is offered by those who want their paths kept, or keep the other's.
		Restart *Restart
		// Key is a digest of the password of the session, empty without one. It stands for the signature of each
		// segment (RFC 2385).
		Key string
	}
	// Restart is the capability of graceful restart.
	Restart struct {
		Time time.Duration // whole seconds
		// Forwarding says that the sender went on forwarding while it was away: its paths may be kept now.
		Forwarding bool
		// Notification says that a Notification which is no hard reset leaves the paths where they are (RFC 8538).
		Notification bool
		// Stale is for how long the paths are kept as a last resort (RFC 9494), whole seconds; 0 for not at all.
		Stale time.Duration
	}
	// Keepalive says that the sender lives.
	Keepalive struct{}
	// Update withdraws and announces paths; those that it announces share their attributes.
	Update struct {
		Withdrawn  []NLRI
		Attributes Attributes // of what is announced
		Announced  []NLRI
	}
	// NLRI names a path: a prefix and, where ADD-PATH is agreed on, an identifier.
	NLRI struct {
		Prefix netip.Prefix
		PathID uint32
	}
	// EndOfRIB ends the first sending of all paths of a family.
	EndOfRIB struct{ Family Family }
	// Arrived tells a speaker how many Updates and EndOfRIBs of its connection have arrived at the switch. BGP has nothing
	// like it: it stands for the acknowledgements of TCP, which a speaker asks its kernel about.
	Arrived struct{ Count uint32 }
	// Notification ends a session.
	Notification struct {
		Code, Subcode uint8
		Text          string
	}
)

// Deadly stands for bytes by which the program dies that reads them: some decoders of BGP do at an UPDATE, or at an unknown type.
type Deadly struct{}

// Confusing stands for whatever has a speaker's library lose count of what it told this neighbour, as a limit of paths did that GoBGP kept
// wrongly: it takes none of that back any more when it goes.
type Confusing struct{}

// Attributes are those of a path.
type Attributes struct {
	NextHop   netip.Addr
	Origin    uint8 // 0 IGP, 1 EGP, 2 incomplete
	ASPath    []uint32
	MED       uint32
	LocalPref uint32 // 0: none, as towards another AS
	// Communities and LargeCommunities are in order.
	Communities      []uint32
	LargeCommunities [][3]uint32
}

// Codes of notifications (RFC 4271 §4.5, RFC 4486, RFC 8538).
const (
	OpenError     uint8 = 2
	UpdateError   uint8 = 3
	HoldExpired   uint8 = 4
	FSMError      uint8 = 5
	Cease         uint8 = 6
	HardReset     uint8 = 9 // subcode of Cease
	PeerGone      uint8 = 3 // subcode of Cease: the neighbour was unconfigured
	BadPeerAS     uint8 = 2 // subcode of OpenError
	BadAttributes uint8 = 1 // subcode of UpdateError
)

func (Open) kind() byte         { return 1 }
func (Update) kind() byte       { return 2 }
func (Notification) kind() byte { return 3 }
func (Keepalive) kind() byte    { return 4 }
func (EndOfRIB) kind() byte     { return 5 }
func (Arrived) kind() byte      { return 6 }
func (Deadly) kind() byte       { return 7 }
func (Confusing) kind() byte    { return 8 }
