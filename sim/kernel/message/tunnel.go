// SPDX-License-Identifier: Apache-2.0

package message

import "net/netip"

// ProxyTable and TunnelTable are further nftables tables, of family inet, that are ours: what proxy ports lead to, and who may come in by
// the tunnel. Of the latter the model knows what it depends on, and no rules.
const (
	ProxyTable  = "fairlead-proxy"
	TunnelTable = "fairlead-tunnel"
)

// Tunnel is a call about the interface of the tunnel to other hosts. One of its fields is set.
type Tunnel struct {
	Read  bool          `json:",omitempty"`
	Ways  []netip.Addr  `json:",omitempty"` // what the ways to these hosts carry
	Do    *TunnelChange `json:",omitempty"`
	Guard *TunnelGuard  `json:",omitempty"` // who may come in by it; with Delete nobody says
}

// TunnelLink is the interface.
type TunnelLink struct {
	VNI        uint32
	Port       uint16
	Local      netip.Addr
	Plain      bool
	MAC        [6]byte
	MTU        int
	Up         bool
	Addresses  []netip.Prefix    `json:",omitempty"`
	Neighbours []TunnelNeighbour `json:",omitempty"`
	Forwards   []TunnelForward   `json:",omitempty"`
}

// TunnelNeighbour says which hardware address an address has.
type TunnelNeighbour struct {
	Address netip.Addr
	MAC     [6]byte
}

// TunnelForward says where packets to a hardware address are sent to.
type TunnelForward struct {
	MAC    [6]byte
	Remote netip.Addr
}

// TunnelChange is one change of it, in the words of package tunnel.
type TunnelChange struct {
	Verb      string
	Link      TunnelLink `json:",omitzero"` // of its making: what cannot be changed, hardware address and MTU
	MAC       [6]byte    `json:",omitzero"`
	MTU       int        `json:",omitempty"`
	Address   netip.Prefix
	Neighbour TunnelNeighbour `json:",omitzero"`
	Forward   TunnelForward   `json:",omitzero"`
}

// TunnelGuard is what the table of the tunnel depends on.
type TunnelGuard struct {
	Port   uint16
	VNI    uint32
	Over6  bool           `json:",omitempty"`
	Own    []netip.Addr   `json:",omitempty"`
	Ranges []netip.Prefix `json:",omitempty"`
	Peers  []netip.Addr   `json:",omitempty"`
}
