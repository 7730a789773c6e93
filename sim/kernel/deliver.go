// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"fairlead.io/fairlead/sim/kernel/message"
)

// outside is where packets come from when it does not matter where.
func outside(a netip.Addr) netip.Addr {
	if a.Is4() {
		return netip.MustParseAddr("203.0.113.250")
	}
	return netip.MustParseAddr("2001:db8:ffff::250")
}

// marks are those that our filter gives packets to a service address and answers from it, zero without the filter.
func (k *Kernel) marks(a netip.Addr) (in, out uint32) {
	t := k.tables[message.SteerTable]
	if t == nil {
		return 0, 0
	}
	if _, there := t.Elements[name("addresses", a)][hex.EncodeToString(a.AsSlice())]; !there {
		return 0, 0
	}
	var version string
	if _, err := fmt.Sscanf(t.Comment, "%s %v %v", &version, &in, &out); err != nil {
		return 0, 0
	}
	return in, out
}

// name is that of a set of the family of an address.
func name(base string, a netip.Addr) string {
	if a.Is4() {
		return base + "4"
	}
	return base + "6"
}

// whole tells what is missing for an address to be steered, nothing if it is.
func (k *Kernel) whole(a netip.Addr) string {
	in, out := k.marks(a)
	if in == 0 {
		return "the filter does not know the address"
	}
	if why := k.arrives(a, in); why != "" {
		return why
	}
	if len(k.o.Switches) > 0 {
		r, ok := k.route(a, outside(a), out)
		if !ok || r.Local || !slices.Contains(k.o.Switches, r.Gateway) {
			return fmt.Sprintf("answers leave by %s", routeText(r))
		}
	}
	if !k.o.NAT {
		return ""
	}
	ports := k.ports(a)
	if len(ports) == 0 {
		return "no port is open"
	}
	for _, p := range ports {
		if !k.translated(p) {
			return fmt.Sprintf("port %d of protocol %d is not translated", p.Port, p.Protocol)
		}
	}
	return ""
}

// arrives tells why packets to an address are not delivered here.
func (k *Kernel) arrives(a netip.Addr, mark uint32) string {
	r, ok := k.route(outside(a), a, mark)
	switch {
	case !ok:
		return "there is no route"
	case !r.Local:
		return fmt.Sprintf("it is sent on by %s", routeText(r))
	}
	return ""
}

// ports are the service ports of an address that the filter lets in, as packets to them.
func (k *Kernel) ports(a netip.Addr) (out []Packet) {
	t := k.tables[message.SteerTable]
	prefix := hex.EncodeToString(a.AsSlice())
	for _, key := range slices.Sorted(maps.Keys(t.Elements[name("ports", a)])) {
		rest, ours := strings.CutPrefix(key, prefix)
		b, err := hex.DecodeString(rest)
		if ours && err == nil && len(b) == 8 {
			out = append(out, Packet{Source: outside(a), Destination: a, Protocol: b[0], Port: binary.BigEndian.Uint16(b[4:])})
		}
	}
	return out
}

// translated tells whether our translation decides about a service port: that it has no endpoint, or that this client
// may not come, is a decision as well.
func (k *Kernel) translated(p Packet) bool {
	t := k.tables[message.NATTable]
	if t == nil {
		return false
	}
	verdict, _ := k.translate(t, p, memory{})
	return verdict != "passed"
}

// Deliver tells what becomes of a packet that a switch sent to this node: the endpoint that gets it, or why none does.
// Without translation of ours (Options.NAT) it is ok with no endpoint: kube-proxy would choose one.
func (k *Kernel) Deliver(p Packet) (endpoint netip.AddrPort, ok bool, why string) {
	if !k.up {
		return endpoint, false, "the node has no power"
	}
	in, _ := k.marks(p.Destination)
	atNode := k.o.NAT && k.own(p.Destination) // delivered here without steering, as by Linux' table local
	if why := k.arrives(p.Destination, in); why != "" && !atNode {
		return endpoint, false, "not steered: " + why
	}
	if why := k.whole(p.Destination); why != "" && in != 0 && strings.HasPrefix(why, "answers") {
		return endpoint, false, why
	}
	open := slices.ContainsFunc(k.openPorts(p.Destination), func(o Packet) bool { return o.Protocol == p.Protocol && o.Port == p.Port })
	if in != 0 && !open {
		return endpoint, false, "the filter refuses the port"
	}
	if !k.o.NAT {
		return endpoint, true, ""
	}
	t := k.tables[message.NATTable]
	if t == nil {
		return endpoint, false, "not translated: there is no table"
	}
	verdict, endpoint := k.translate(t, p, k.known)
	if verdict != "translated" {
		return endpoint, false, "not translated: " + verdict
	}
	return endpoint, true, ""
}

// own tells whether an address is one of the node's interfaces.
func (k *Kernel) own(a netip.Addr) bool {
	return slices.Contains(k.tunnelAddresses(), a) || slices.ContainsFunc(k.o.Addresses, func(p netip.Prefix) bool { return p.Addr() == a })
}

func (k *Kernel) openPorts(a netip.Addr) []Packet {
	if k.tables[message.SteerTable] == nil {
		return nil
	}
	return k.ports(a)
}
