// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"fmt"
	"net/netip"

	"fairlead.io/fairlead/sim/fabric"
	"fairlead.io/fairlead/sim/kernel"
	"fairlead.io/fairlead/sim/kernel/message"
	"fairlead.io/fairlead/sim/kube"
)

// Cluster is one that somebody brought along, in the place of the usual one.
type Cluster struct {
	Nodes    []ClusterNode
	Switches []ClusterSwitch
	// ASN is the AS of members where a neighbour has none of its own for them; 0: OurASN.
	ASN uint32
	// MemberAddress is the address of the i-th member's machine, counted from 0; nil: MemberAddress.
	MemberAddress func(i int) netip.Addr
	// Definitions are the custom resources that are installed, as kube.Options has them, and Objects all that is in the
	// API server at the beginning, those of nodes and switches among them, in an order in which it takes them.
	Definitions []string
	Objects     []kube.Object
}

// ClusterNode is a node's machine, which has a name of its own among all machines.
type ClusterNode struct {
	Name string
	// Addresses are with the networks that they are in, the one that names the machine first. Gateways are of its default
	// routes, at most one of a family.
	Addresses []netip.Prefix
	Gateways  []netip.Addr
}

// ClusterSwitch is a switch and the address that members find it at. Options without neighbours know all members, in
// the AS MemberASN.
type ClusterSwitch struct {
	fabric.Options
	Address   netip.Addr
	MemberASN uint32
	Key       string // digest of the password, empty without one
}

// addNode adds a machine with a kernel that packets come to.
func (s *Stage) addNode(n ClusterNode) {
	s.nodes = append(s.nodes, n.Name)
	s.add(n.Name, n.Addresses[0].Addr(), s.agent)
	for _, a := range n.Addresses {
		s.Network.Alias(a.Addr().String(), n.Name)
	}
	s.machines[n.Name].kernel = kernel.New(s.World, s.Network, kernel.Options{
		Node: n.Name, Addresses: n.Addresses, Gateways: n.Gateways, NAT: true, Room: message.RoomFor(s.options.Sockets.Room),
	})
}

// named are the nodes whose names say nothing of what they are.
func (s *Stage) named() []string {
	if s.options.Cluster == nil {
		return nil
	}
	return s.nodes
}

// asn is the members' own AS.
func (s *Stage) asn() uint32 {
	if c := s.options.Cluster; c != nil && c.ASN != 0 {
		return c.ASN
	}
	return OurASN
}

// usualNode is the i-th node of the usual cluster, counted from 0.
func usualNode(i int) ClusterNode {
	return ClusterNode{
		Name: NodeName(i), Addresses: []netip.Prefix{netip.PrefixFrom(NodeAddress(i), 16)}, Gateways: []netip.Addr{nodesGateway},
	}
}

// nodesGateway is where nodes send what is not for their own network.
var nodesGateway = netip.AddrFrom4([4]byte{10, 1, 255, 254})

// bring brings in a cluster that somebody brought along. It refuses what the API server does.
func (s *Stage) bring(c *Cluster) error {
	for _, w := range c.Switches {
		for _, m := range s.members {
			w.Neighbours = append(w.Neighbours, fabric.Neighbour{Member: m, ASN: w.MemberASN, Key: w.Key})
		}
		s.Network.Alias(w.Address.String(), w.Name)
		s.switches = append(s.switches, fabric.New(s.World, s.Network, w.Options))
	}
	for _, o := range c.Objects {
		if _, err := s.Kube.Create("user", o); err != nil {
			return fmt.Errorf("bring in %T %s/%s: %w", o, o.GetNamespace(), o.GetName(), err)
		}
	}
	return nil
}
