// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"fmt"
	"net/netip"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/k8s/api"
	"fairlead.io/fairlead/sim/segment"
)

// MostSegments is how many there can be in a world.
const MostSegments = 2

// SegmentName is the name of the i-th segment, counted from 0, of its pool, and of the links of nodes to it.
func SegmentName(i int) string { return fmt.Sprint("lan", i+1) }

// SegmentNetwork is the network of those who are in the i-th segment, SegmentPool the part of it that Services get.
func SegmentNetwork(i int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{172, byte(16 + i), 0, 0}), 16)
}

// SegmentPool is the part of the network of the i-th segment that Services get.
func SegmentPool(i int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{172, byte(16 + i), 255, 0}), 24)
}

// hostAddress is the address of the host in the i-th segment.
func hostAddress(i int) netip.Addr { return netip.AddrFrom4([4]byte{172, byte(16 + i), 254, 1}) }

// SegmentsOf are the segments, of so many, that the i-th node is in, counted from 0: most are in both, some in one.
func SegmentsOf(node, segments int) (all []int) {
	for i := range segments {
		if segments == 1 || i == 0 && node%4 != 3 || i == 1 && node%4 != 0 {
			all = append(all, i)
		}
	}
	return all
}

// LinkAddress is the address of the i-th node in a segment, with its network.
func LinkAddress(node, in int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{172, byte(16 + in), byte(node / 250), byte(node%250 + 1)}), 16)
}

// furnishSegments brings in segments with all who are in them, and what has addresses be answered for there.
func (s *Stage) furnishSegments() {
	var all []*segment.Segment
	for i := range s.options.Segments {
		one := segment.New(s.World, SegmentName(i), SegmentNetwork(i))
		all = append(all, one)
		s.hosts = append(s.hosts, segment.NewHost(one, hostAddress(i), s.asked(i)))
		s.create("user", Custom(&api.IPAddressPool{
			TypeMeta:   metav1.TypeMeta{APIVersion: api.MetalLBV1Beta1, Kind: "IPAddressPool"},
			ObjectMeta: metav1.ObjectMeta{Namespace: System, Name: SegmentName(i)},
			Spec:       api.IPAddressPoolSpec{Addresses: []string{SegmentPool(i).String()}, AutoAssign: new(bool)},
		}))
	}
	if len(all) == 0 {
		return
	}
	s.create("user", Custom(&api.L2Advertisement{
		TypeMeta:   metav1.TypeMeta{APIVersion: api.MetalLBV1Beta1, Kind: "L2Advertisement"},
		ObjectMeta: metav1.ObjectMeta{Namespace: System, Name: "all"},
	}))
	for i, name := range s.nodes {
		m := segment.NewMachine(s.Network, name)
		s.machines[name].segments = m
		for _, in := range SegmentsOf(i, len(all)) {
			m.Join(all[in], LinkAddress(i, in))
		}
	}
}

// Links are a node's, each named like its segment.
func (s *Stage) Links(node string) []*segment.Link {
	if m := s.machine(node).segments; m != nil {
		return m.Links()
	}
	return nil
}

// Segments are the names of the segments.
func (s *Stage) Segments() (names []string) {
	for i := range s.options.Segments {
		names = append(names, SegmentName(i))
	}
	return names
}

// asked gives what the host in a segment asks for.
func (s *Stage) asked(segment int) func() []netip.Addr {
	return func() []netip.Addr {
		if s.options.Asked == nil {
			return nil
		}
		return s.options.Asked(segment)
	}
}

// ask has hosts in segments begin to ask.
func (s *Stage) ask() {
	for _, h := range s.hosts {
		h.Start()
	}
}
