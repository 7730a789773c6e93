// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"fairlead.io/fairlead/internal/netns"
)

// EndFlows implements Edge: it removes the flows from the connection tracking of the network namespace.
func (k *kernel) EndFlows(f Flows) (ended uint, err error) {
	if f, err = k.atNode(f); err != nil {
		return 0, err
	}
	for _, one := range []struct {
		family netlink.InetFamily
		is     family
	}{{unix.AF_INET, ipv4}, {unix.AF_INET6, ipv6}} {
		if !f.has(one.is) {
			continue
		}
		err := netns.Do(k.netns, func() error {
			n, err := netlink.ConntrackDeleteFilters(netlink.ConntrackTable, one.family, f)
			ended += n
			return err
		})
		if err != nil {
			return ended, fmt.Errorf("end UDP flows to endpoints that left: %w", err)
		}
	}
	return ended, nil
}

// atNode gives the flows with those of node ports at the addresses that this node has now: at one that it had, nobody waits
// for an answer.
func (k *kernel) atNode(f Flows) (Flows, error) {
	if len(k.nodePorts) == 0 {
		return f, nil
	}
	var own []netip.Addr
	if err := netns.Do(k.netns, func() (err error) {
		own, err = interfaceAddresses()
		return err
	}); err != nil {
		return nil, fmt.Errorf("end UDP flows to endpoints that left: list this node's addresses: %w", err)
	}
	return f.at(slices.DeleteFunc(own, func(a netip.Addr) bool { return !servesNodePortsAt(a, k.nodePorts) })), nil
}

func (f Flows) has(is family) bool {
	for front := range f {
		if familyOf(netip.AddrPort(front).Addr()) == is {
			return true
		}
	}
	return false
}

// MatchConntrackFlow tells whether a flow has to be ended.
func (f Flows) MatchConntrackFlow(flow *netlink.ConntrackFlow) bool {
	if flow.Forward.Protocol != protocolUDP {
		return false
	}
	dialled, ok := netip.AddrFromSlice(flow.Forward.DstIP)
	if !ok {
		return false
	}
	serving, ours := f[Frontend(netip.AddrPortFrom(dialled.Unmap(), flow.Forward.DstPort))]
	if !ours {
		return false
	}
	answers, ok := netip.AddrFromSlice(flow.Reverse.SrcIP)
	return !ok || !serving[netip.AddrPortFrom(answers.Unmap(), flow.Reverse.SrcPort)]
}
