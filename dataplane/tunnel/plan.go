// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"fairlead.io/fairlead/api/desired"
)

// Interface is the name of the tunnel's interface. One of this name is ours if it is of VXLAN and its hardware address begins as ours do.
const Interface = "fairlead-tun"

// MAC is a hardware address.
type MAC [6]byte

// ours is how hardware addresses of tunnels begin: administered locally, and of nobody else whom we know.
var ours = [3]byte{0x0a, 0x66, 0x6c}

// macOf is what the interface of the host with a number has, so that nobody has to ask for it.
func macOf(number uint32) (m MAC) {
	copy(m[:], ours[:])
	var n [4]byte
	binary.BigEndian.PutUint32(n[:], number)
	copy(m[3:], n[1:])
	return m
}

func (m MAC) ours() bool { return [3]byte(m[:3]) == ours }

func (m MAC) String() string {
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5])
}

// Settings are what an interface cannot change while it is there.
type Settings struct {
	VNI   uint32
	Port  uint16
	Local netip.Addr // that packets to other hosts come from
	Plain bool       // it is as ours are otherwise: it learns nothing, and has no group
}

// Neighbour says which hardware address an address has.
type Neighbour struct {
	Address netip.Addr
	MAC     MAC
}

// Forward says where packets to a hardware address are sent to.
type Forward struct {
	MAC    MAC
	Remote netip.Addr
}

// Link is the tunnel's interface, and what it knows of other hosts. Lists are in order.
type Link struct {
	Settings
	MAC        MAC
	MTU        int // bytes
	Up         bool
	Addresses  []netip.Prefix
	Neighbours []Neighbour
	Forwards   []Forward
}

// Wanted is what a host's tunnel shall be like.
type Wanted struct {
	Link   // its MTU is found out from the way to the others, unless one is asked for
	Rules  Rules
	Others []netip.Addr // underlay addresses of the other hosts, in order and each once
	asked  int          // MTU; 0 for none in particular
}

// Rules are what our table depends on.
type Rules struct {
	Port  uint16
	VNI   uint32
	Over6 bool
	// Own are the host's tunnel addresses, Ranges what those of all hosts are of.
	Own    []netip.Addr
	Ranges []netip.Prefix
	Peers  []netip.Addr // who may send, in order
}

// Want says what a State asks for of a host, nil for no tunnel.
func Want(s desired.State, host string) *Wanted {
	own := s.OwnTunnel(host)
	if own == nil || len(own.Addresses) == 0 {
		return nil
	}
	w := &Wanted{Link: Link{
		Settings: Settings{VNI: s.Tunnels.VNI, Port: s.Tunnels.Port, Local: own.Underlay, Plain: true},
		MAC:      macOf(own.Number), Up: true,
	}, asked: int(s.Tunnels.MTU)}
	for _, a := range own.Addresses {
		bits := a.BitLen()
		for _, r := range s.Tunnels.Ranges {
			if r.Contains(a) {
				bits = r.Bits() // the kernel makes a route to all of it
			}
		}
		w.Addresses = append(w.Addresses, netip.PrefixFrom(a, bits))
	}
	for _, h := range s.TunnelHosts() {
		if h.Name == own.Name || h.Underlay.BitLen() != own.Underlay.BitLen() || h.Number == own.Number {
			continue
		}
		w.Others = append(w.Others, h.Underlay)
		w.Forwards = append(w.Forwards, Forward{macOf(h.Number), h.Underlay})
		for _, a := range h.Addresses {
			w.Neighbours = append(w.Neighbours, Neighbour{a, macOf(h.Number)})
		}
	}
	w.Others = sorted(w.Others, netip.Addr.Compare)
	w.sort()
	w.Rules = Rules{Port: w.Port, VNI: w.VNI, Over6: own.Underlay.Is6(), Own: own.Addresses, Ranges: s.Tunnels.Ranges, Peers: w.Others}
	return w
}

func (l *Link) sort() {
	l.Addresses = sorted(l.Addresses, netip.Prefix.Compare)
	l.Neighbours = sorted(l.Neighbours, Neighbour.compare)
	l.Forwards = sorted(l.Forwards, Forward.compare)
}

func (n Neighbour) compare(o Neighbour) int {
	if c := n.Address.Compare(o.Address); c != 0 {
		return c
	}
	return strings.Compare(string(n.MAC[:]), string(o.MAC[:]))
}

func (f Forward) compare(o Forward) int {
	if c := strings.Compare(string(f.MAC[:]), string(o.MAC[:])); c != 0 {
		return c
	}
	return f.Remote.Compare(o.Remote)
}

func sorted[T comparable](list []T, compare func(a, b T) int) []T {
	out := slices.Clone(list)
	slices.SortFunc(out, compare)
	return slices.Compact(out)
}

// Change is one thing to do. Put replaces what is there for the same address.
type Change struct {
	Do        Verb
	Link      Settings     // of Create
	MAC       MAC          // of Create and SetMAC
	MTU       int          // of Create and SetMTU
	Address   netip.Prefix // of AddAddress and DropAddress
	Neighbour Neighbour    // of PutNeighbour and DropNeighbour
	Forward   Forward      // of PutForward and DropForward
}

// Verb is what a Change does.
type Verb string

// The verbs, in the order in which they come in a plan.
const (
	Delete        Verb = "delete the interface"
	Create        Verb = "make the interface"
	SetMAC        Verb = "set its hardware address"
	SetMTU        Verb = "set its MTU"
	SetUp         Verb = "bring it up"
	AddAddress    Verb = "give it an address"
	PutForward    Verb = "say where a host is"
	PutNeighbour  Verb = "say which host has an address"
	DropNeighbour Verb = "forget who has an address"
	DropForward   Verb = "forget where a host is"
	DropAddress   Verb = "take an address from it"
)

// Plan tells what has to change: want is nil for no tunnel, have for no interface. What is new comes before what goes, so that hosts
// that stay are reached all the time. Only where settings change that an interface cannot, it is made anew.
func Plan(want, have *Link) (out []Change) {
	if want == nil {
		if have != nil {
			out = append(out, Change{Do: Delete})
		}
		return out
	}
	if have != nil && have.Settings != want.Settings {
		out, have = append(out, Change{Do: Delete}), nil
	}
	switch {
	case have == nil:
		out = append(out, Change{Do: Create, Link: want.Settings, MAC: want.MAC, MTU: want.MTU})
		have = &Link{Settings: want.Settings, MAC: want.MAC, MTU: want.MTU}
	case have.MAC != want.MAC:
		out = append(out, Change{Do: SetMAC, MAC: want.MAC})
	}
	if have.MTU != want.MTU {
		out = append(out, Change{Do: SetMTU, MTU: want.MTU})
	}
	if !have.Up {
		out = append(out, Change{Do: SetUp})
	}
	newAddresses, oldAddresses := differ(want.Addresses, have.Addresses)
	newForwards, oldForwards := differ(want.Forwards, have.Forwards)
	newNeighbours, oldNeighbours := differ(want.Neighbours, have.Neighbours)
	for _, a := range newAddresses {
		out = append(out, Change{Do: AddAddress, Address: a})
	}
	for _, f := range newForwards {
		out = append(out, Change{Do: PutForward, Forward: f})
	}
	for _, n := range newNeighbours {
		out = append(out, Change{Do: PutNeighbour, Neighbour: n})
	}
	taken, led := map[netip.Addr]bool{}, map[MAC]bool{}
	for _, n := range want.Neighbours {
		taken[n.Address] = true
	}
	for _, f := range want.Forwards {
		led[f.MAC] = true
	}
	for _, n := range oldNeighbours {
		if !taken[n.Address] { // else it was put over
			out = append(out, Change{Do: DropNeighbour, Neighbour: n})
		}
	}
	for _, f := range oldForwards {
		if !led[f.MAC] {
			out = append(out, Change{Do: DropForward, Forward: f})
		}
	}
	for _, a := range oldAddresses {
		out = append(out, Change{Do: DropAddress, Address: a})
	}
	return out
}

// Additions are the changes of Plan without those that only take something away.
func Additions(want, have *Link) []Change {
	return slices.DeleteFunc(Plan(want, have), func(c Change) bool {
		return c.Do == DropNeighbour || c.Do == DropForward || c.Do == DropAddress
	})
}

// differ tells what is new in want, and what of have is not in it. Both are in order.
func differ[T comparable](want, have []T) (added, gone []T) {
	is, was := map[T]bool{}, map[T]bool{}
	for _, w := range want {
		is[w] = true
	}
	for _, h := range have {
		was[h] = true
		if !is[h] {
			gone = append(gone, h)
		}
	}
	for _, w := range want {
		if !was[w] {
			added = append(added, w)
		}
	}
	return added, gone
}

// overhead is what a tunnel adds to a packet, in bytes: the headers of Ethernet, VXLAN, UDP and IP.
func overhead(over6 bool) int {
	if over6 {
		return 70
	}
	return 50
}

// least6 is the least MTU with which the kernel does IPv6 on a link.
const least6 = 1280
