// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"

	"fairlead.io/fairlead/internal/netns"
)

// New makes a NAT. It does not touch the kernel.
//
// Errors: no node, marks that share bits, metrics that are registered already, interfaces that cannot be listed.
func New(o Options) (*NAT, error) {
	if o.NodeAddresses == nil {
		var own []netip.Addr
		err := netns.Do(o.NetNS, func() (err error) {
			own, err = interfaceAddresses()
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("nat: list this node's addresses: %w", err)
		}
		o.NodeAddresses = own
	}
	o.WithoutSCTP = o.WithoutSCTP || !tracksSCTP()
	k := newKernel(o.NetNS, o.Table)
	k.nodePorts = o.NodePortAddresses
	return Over(o, k)
}

func interfaceAddresses() ([]netip.Addr, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	out := []netip.Addr{}
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			out = append(out, p.Addr().Unmap())
		}
	}
	return out, nil
}

// tracksSCTP tells whether the kernel knows SCTP's ports, without which translation would reach the wrong one.
func tracksSCTP() bool {
	_, err := os.Stat("/proc/sys/net/netfilter/nf_conntrack_sctp_timeout_established")
	return err == nil
}

// Cleanup removes a table from a network namespace (see Options.NetNS and Options.Table), and nothing else. Connections that were
// translated stay so until they end.
func Cleanup(ctx context.Context, netNS int, table string) error {
	k := newKernel(netNS, table)
	defer k.close()
	return k.drop(ctx)
}
