// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"net/netip"
	"slices"

	"fairlead.io/fairlead/api/desired"
)

// Node ports are served at this node's own addresses (K2), as far as Config.NodePortAddresses has them. The kernel says
// which addresses are its own, with every packet. Node ports have maps of their own, without an address, so that a packet
// costs the same lookups whatever the number of Services and of addresses.

// Sets and chains of node ports, of each family that has them.
const (
	setNodes         = "nodes"             // ranges of this node's addresses where node ports are served
	chainPorts       = "node-ports"        // packets to one of them from outside this node
	chainPortsInside = "node-ports-inside" // of a client inside the cluster
	chainPortsLeave  = "node-ports-leave"  // packets of connections by them on their way out
)

// localAddress is the type of this node's own addresses: RTN_LOCAL.
const localAddress = 2

// dialling is what of a packet tells its service port.
type dialling uint8

const (
	byAddress  dialling = iota // address, protocol and port
	byNodePort                 // protocol and port, at whatever address of this node
)

// name makes the name of a chain or map that differs by it.
func (d dialling) name(base string) string {
	if d == byNodePort {
		return "node-" + base
	}
	return base
}

// beyond are addresses that no node port is served at: those that answers do not find their way back from, if an endpoint's
// source is kept or rewritten.
var beyond = []netip.Prefix{
	netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"), netip.MustParsePrefix("fe80::/10"),
}

// WithoutNodePorts tells whether node ports are served at no address of a range, whatever Config says: at loopback and
// link-local ones.
func WithoutNodePorts(r netip.Prefix) bool {
	return slices.ContainsFunc(beyond, func(b netip.Prefix) bool { return b.Overlaps(r) && b.Bits() <= r.Bits() })
}

// nodePortMark is the bit that packets to node ports have beside the other: clients inside the cluster may be pods of another
// node then, to which endpoints would answer by another way.
func (c Config) nodePortMark() uint32 {
	if c.NodePortMark == 0 {
		return DefaultNodePortMark
	}
	return c.NodePortMark
}

// servesNodePorts tells whether node ports are answered in a family.
func (c Config) servesNodePorts(f family) bool {
	return slices.ContainsFunc(c.NodePortAddresses, func(p netip.Prefix) bool { return familyOf(p.Addr()) == f })
}

// servesNodePortsAt tells whether they are at an address, if it is this node's.
func servesNodePortsAt(a netip.Addr, ranges []netip.Prefix) bool {
	in := func(p netip.Prefix) bool { return p.Contains(a) }
	return slices.ContainsFunc(ranges, in) && !slices.ContainsFunc(beyond, in)
}

// nodePort is what clients dial at this node's addresses for a frontend, without those that skip names; nothing if this
// node does not serve it.
func (c Config) nodePort(s *desired.Service, front desired.Frontend, f family, skip map[dialled]bool) []dialled {
	d := dialled{f.unspecified, desired.Port{Protocol: front.Port.Protocol, Number: front.NodePort}}
	if front.NodePort == 0 || !c.servesNodePortsOf(s, f) || skip[d] {
		return nil
	}
	return []dialled{d}
}

// servesNodePortsOf tells whether this node answers at a Service's node ports in a family: in those of its addresses, and where it
// is said without regard to them.
func (c Config) servesNodePortsOf(s *desired.Service, f family) bool {
	return c.servesNodePorts(f) && s.HasNodePorts(f == ipv6)
}

// addNodePorts adds what of the layout serves node ports. A port that is no Service's is somebody else's: the packet goes on
// as it came. Source ranges are not asked for (K29).
func (c Config) addNodePorts(r Ruleset, f family) {
	for _, s := range f.nodePortSets() {
		r.Sets[s.Name] = s
	}
	ranges := spans(f, c.NodePortAddresses)
	for _, b := range beyond {
		if familyOf(b.Addr()) == f {
			ranges = without(ranges, b)
		}
	}
	r.put(ends(f.name(setNodes), ranges))
	marks := c.mark() | c.nodePortMark()
	marked := func(rule Rule) Rule { return append(Rule{SetMark{marks, marks, 0}}, rule...) }
	unmark := Rule{SetMark{marks, 0, 0}}
	services := f.choose(mapServices, byNodePort)
	r.add(newChain(f.name(chainPorts), f.fromCluster(chainPortsInside), marked(services), unmark))
	r.add(newChain(f.name(chainPortsInside), marked(f.choose(mapInside, byNodePort)), services, unmark))
	r.add(newChain(f.name(chainPortsLeave), c.leave(f, false)...))
}

func (f family) nodePortSets() []Set {
	front := []Type{ProtocolNumber, PortNumber}
	slot := append(slices.Clone(front), Word)
	endpoint := []Type{f.addressType, PortNumber}
	own := func(base string) string { return f.name(byNodePort.name(base)) }
	return []Set{
		{Name: f.name(setNodes), Key: []Type{f.addressType}, Interval: true},
		{Name: own(mapServices), Key: front, Verdict: true},
		{Name: own(mapSlots), Key: slot, Data: endpoint},
		{Name: own(mapInside), Key: front, Verdict: true},
		{Name: own(mapInSlots), Key: slot, Data: endpoint},
	}
}

// enterNode sends packets to this node's own addresses to a chain.
func (f family) enterNode(chain string) Rule {
	return Rule{
		Load{Family, 0}, Match{Register: 0, Value: string([]byte{f.netfilter})},
		Load{f.destination, 0}, Member{f.name(setNodes), 0},
		Load{DestinationType, 0}, Match{Register: 0, Value: word(localAddress)},
		Verdict{goTo(f.name(chain))},
	}
}
