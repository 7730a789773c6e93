// SPDX-License-Identifier: Apache-2.0

package world

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Peer is a BGP neighbour of the group.
type Peer struct {
	Meta
	Homed
	// Address is the neighbour's; the zero Addr for one that is behind an Interface of each node that peers.
	Address   netip.Addr
	Interface string
	// Port is 179 unless the manifest says otherwise.
	Port   uint16
	ASN    uint32
	OwnASN uint32
	// HoldTime, KeepaliveTime and ConnectTime are zero where nobody chose.
	HoldTime      time.Duration
	KeepaliveTime time.Duration
	ConnectTime   time.Duration
	Multihop      bool
	// TTLSecurity is how many hops away the peer may be (RFC 5082); zero where nobody asked for that.
	TTLSecurity uint8
	// SendMax is how many paths of a prefix it is sent at most; zero where nobody chose.
	SendMax uint8
	// Passive says that the peer dials, and is not dialled.
	Passive bool
	// OneFamily says that only prefixes of the family of Address are announced.
	OneFamily bool
	Restart   Restart
	// Mode is who peers; NodeSelectors choose the nodes that do in PeerNode, all if there are none.
	Mode          PeerMode
	NodeSelectors []Selector
	// Password signs the TCP segments (RFC 2385). PasswordFrom names the Secret that holds it otherwise.
	Password     Secret
	PasswordFrom string
}

// passwordSecret begins the name of a password that is in a Secret.
const passwordSecret = "Secret/"

// PasswordSecret is how a password is named that is in a Secret: of a file of that name, where files hold passwords.
func PasswordSecret(namespace, name string) string { return passwordSecret + namespace + "/" + name }

// ParsePasswordSecret is the inverse; false for passwords that are elsewhere.
func ParsePasswordSecret(from string) (namespace, name string, ok bool) {
	rest, ok := strings.CutPrefix(from, passwordSecret)
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, "/")
}

// PeerMode is who peers with a neighbour.
type PeerMode string

// The modes; where nobody chose it is the first one.
const (
	PeerGroup PeerMode = "group" // every member, announcing all nodes
	PeerNode  PeerMode = "node"  // nodes, each announcing itself
)

// RestartMode is what a peer shall do with our paths while a member is away.
type RestartMode string

// The modes of graceful restart; where nobody chose it is the first one.
const (
	RestartLongLived RestartMode = "long-lived" // keep them, ranked last (RFC 9494)
	RestartPlain     RestartMode = "plain"      // keep them at full rank for some time (RFC 4724)
	RestartNone      RestartMode = "none"       // drop them
)

// Restart is what a member asks of a peer for the time of its absence. Times are zero where nobody chose.
type Restart struct {
	Mode               RestartMode
	Time               time.Duration
	StaleTime          time.Duration
	KeepOnNotification bool // also when the session ends by a NOTIFICATION (RFC 8538)
}

// Advertisement says how the addresses of some pools are announced to some peers.
type Advertisement struct {
	Meta
	Homed
	// AggregationLength (IPv4) and AggregationLengthV6 are 32 and 128 unless the manifest rolls addresses up.
	AggregationLength   uint8
	AggregationLengthV6 uint8
	// LocalPref is zero where nobody chose.
	LocalPref uint32
	// Communities are written as in the manifest: numbers, well-known names or names of Community objects' entries.
	Communities []string
	// Pools and Peers name what it is about; none means all.
	Pools []string
	Peers []string
	// PoolSelectors choose further pools, and NodeSelectors the next hops; without the latter it is about all.
	PoolSelectors []Selector
	NodeSelectors []Selector
	// ServiceSelectors choose the Services whose addresses it is about; none means all.
	ServiceSelectors []Selector
	// Weighted has next hops weigh as much as they have ready endpoints.
	Weighted bool
	// MED is zero where nobody chose.
	MED uint32
	// Fault is what of the manifest cannot be used; empty for nothing. Nobody shall be sent an address under such an advertisement.
	Fault string
}

// BFDProfile is how fast BGP sessions that name it shall notice that the other end is gone. Nothing is made of it but a
// word to its user.
type BFDProfile struct {
	Meta
	Homed
}

// Community gives names to BGP communities.
type Community struct {
	Meta
	Homed
	Aliases []KV
}

// wellKnown are the communities that have names of their own (RFC 1997, RFC 8326, RFC 7999, RFC 9494).
func wellKnown(name string) (uint32, bool) {
	switch name {
	case "no-export":
		return 0xFFFFFF01, true
	case "no-advertise":
		return 0xFFFFFF02, true
	case "local-as", "no-export-subconfed":
		return 0xFFFFFF03, true
	case "no-peer":
		return 0xFFFFFF04, true
	case "graceful-shutdown":
		return 0xFFFF0000, true
	case "llgr-stale":
		return 0xFFFF0006, true
	case "no-llgr":
		return 0xFFFF0007, true
	case "blackhole":
		return 0xFFFF029A, true
	}
	return 0, false
}

// ParseCommunity reads a standard community: "AS:value" or a well-known name (RFC 1997).
func ParseCommunity(text string) (uint32, error) {
	if v, ok := wellKnown(text); ok {
		return v, nil
	}
	as, value, ok := strings.Cut(text, ":")
	if !ok {
		return 0, fmt.Errorf("community %q: neither AS:value nor a well-known name", text)
	}
	hi, errHi := strconv.ParseUint(as, 10, 16)
	lo, errLo := strconv.ParseUint(value, 10, 16)
	if errHi != nil || errLo != nil {
		return 0, fmt.Errorf("community %q: both parts must be numbers up to 65535", text)
	}
	return uint32(hi)<<16 | uint32(lo), nil
}

// LargeCommunity is a community of RFC 8092.
type LargeCommunity struct{ Global, Local1, Local2 uint32 }

// largeCommunity begins large communities, as in MetalLB's manifests.
const largeCommunity = "large:"

// IsLargeCommunity tells whether a text is meant to be a large community.
func IsLargeCommunity(text string) bool { return strings.HasPrefix(text, largeCommunity) }

// ParseLargeCommunity reads "large:AS:value:value".
func ParseLargeCommunity(text string) (out LargeCommunity, err error) {
	parts := strings.Split(strings.TrimPrefix(text, largeCommunity), ":")
	if !IsLargeCommunity(text) || len(parts) != 3 {
		return out, fmt.Errorf("community %q: not large:AS:value:value", text)
	}
	for i, part := range []*uint32{&out.Global, &out.Local1, &out.Local2} {
		n, err := strconv.ParseUint(parts[i], 10, 32)
		if err != nil {
			return LargeCommunity{}, fmt.Errorf("community %q: its parts must be numbers up to 4294967295", text)
		}
		*part = uint32(n)
	}
	if out.Global == reservedAS {
		return LargeCommunity{}, fmt.Errorf("community %q: the AS number 4294967295 is reserved (RFC 7300)", text)
	}
	return out, nil
}

// reservedAS is the last AS number, which is nobody's (RFC 7300).
const reservedAS = 1<<32 - 1

// Resolve gives the value that Community objects have for the name of a community, and other texts as they are. Of two that have
// one name for different values the older object counts.
func (w *World) Resolve(text string) string {
	value, since, found := text, uint32(0), false
	for _, c := range w.Communities {
		for _, alias := range c.Aliases {
			if alias.Key == text && (!found || c.Created != 0 && c.Created < since) {
				value, since, found = alias.Value, c.Created, true
			}
		}
	}
	return value
}

// Community resolves a community as an Advertisement writes it, Community objects included.
func (w *World) Community(text string) (uint32, error) { return ParseCommunity(w.Resolve(text)) }
