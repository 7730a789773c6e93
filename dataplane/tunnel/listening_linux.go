// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/internal/netns"
)

// Listening gives those of the ports of Services at which a program of this host listens itself, on all addresses or on one of theirs, in
// order. Clients get to the Services there and not to the program. The namespace is as in Options.
func Listening(namespace int, services []*desired.Service) (out []desired.Port, err error) {
	for _, of := range []struct {
		protocol uint8
		state    uint8 // of a socket that anybody may send to
		list     func(family uint8) ([]*netlink.Socket, error)
	}{
		{unix.IPPROTO_TCP, netlink.TCP_LISTEN, netlink.SocketDiagTCP},
		{unix.IPPROTO_UDP, netlink.TCP_CLOSE, netlink.SocketDiagUDP},
	} {
		wanted := map[uint16][]netip.Addr{}
		for _, s := range services {
			for _, f := range s.Frontends {
				if f.Port.Protocol == of.protocol {
					wanted[f.Port.Number] = append(wanted[f.Port.Number], s.Addresses...)
				}
			}
		}
		if len(wanted) == 0 {
			continue
		}
		for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
			var sockets []*netlink.Socket
			if err := netns.Do(namespace, func() (err error) { sockets, err = of.list(family); return err }); err != nil {
				return nil, fmt.Errorf("list sockets (CONFIG_INET_DIAG): %w", err)
			}
			for _, s := range sockets {
				at, ok := netip.AddrFromSlice(s.ID.Source)
				if addresses, is := wanted[s.ID.SourcePort]; is && ok && s.State == of.state && (at.IsUnspecified() || slices.Contains(addresses, at.Unmap())) {
					out = append(out, desired.Port{Protocol: of.protocol, Number: s.ID.SourcePort})
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b desired.Port) int {
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Number, b.Number))
	})
	return slices.Compact(out), nil
}
