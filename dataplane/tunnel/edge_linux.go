// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	own "fairlead.io/fairlead/internal/netns"
)

// New makes a Tunnel over this host's kernel. It does not change it.
//
// Errors: as Over; netlink or nftables cannot be reached.
func New(o Options) (*Tunnel, error) {
	k, err := openEdge(o.Namespace)
	if err != nil {
		return nil, err
	}
	t, err := Over(o, k)
	if err != nil {
		k.Close()
		return nil, err
	}
	return t, nil
}

// Cleanup removes the interface and the table from a network namespace (see Options.Namespace), and nothing else: an interface of our
// name that is somebody else's stays.
func Cleanup(namespace int) error {
	k, err := openEdge(namespace)
	if err != nil {
		return err
	}
	defer k.Close()
	have, err := k.Read()
	if err != nil && !errors.Is(err, ErrForeign) {
		return fmt.Errorf("remove tunnel: %w", err)
	}
	for _, c := range Plan(nil, have) {
		if err := k.Do(c); err != nil {
			return fmt.Errorf("remove tunnel: %w", err)
		}
	}
	if _, err := k.Guard(nil); err != nil {
		return fmt.Errorf("remove tunnel: %w", err)
	}
	return nil
}

// linux is the edge on Linux.
type linux struct {
	namespace int
	netlink   *netlink.Handle
	guard     *guard
}

func openEdge(namespace int) (*linux, error) {
	k := &linux{namespace: namespace, guard: &guard{namespace: namespace}}
	if err := own.Do(namespace, func() (err error) {
		k.netlink, err = netlink.NewHandle(unix.NETLINK_ROUTE)
		return err
	}); err != nil {
		return nil, fmt.Errorf("tunnel: netlink: %w", err)
	}
	return k, nil
}

// Close implements Edge.
func (k *linux) Close() {
	k.netlink.Close()
	k.guard.close()
}

// remedy says what an operator can do about an error.
func remedy(err error) error {
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("%w; run the agent as root or give it CAP_NET_ADMIN", err)
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EPROTONOSUPPORT):
		return fmt.Errorf("%w; this kernel lacks VXLAN or nftables (modules vxlan, nf_tables, nft_nat, nft_masq, nft_rt)", err)
	}
	return err
}

// find gives the interface, nil for none. Errors: ErrForeign.
func (k *linux) find() (*netlink.Vxlan, error) {
	found, err := k.netlink.LinkByName(Interface)
	var none netlink.LinkNotFoundError
	switch {
	case errors.As(err, &none):
		return nil, nil
	case err != nil:
		return nil, remedy(fmt.Errorf("look at %s: %w", Interface, err))
	}
	link, ok := found.(*netlink.Vxlan)
	mac := found.Attrs().HardwareAddr
	if !ok || len(mac) != 6 || !MAC(mac).ours() {
		return nil, fmt.Errorf("%w: of type %s, with the hardware address %s; rename it, and the agent makes its own", ErrForeign, found.Type(), mac)
	}
	return link, nil
}

// Read implements Edge.
func (k *linux) Read() (*Link, error) {
	link, err := k.find()
	if err != nil || link == nil {
		return nil, err
	}
	out := &Link{MAC: MAC(link.HardwareAddr), MTU: link.Attrs().MTU, Up: link.Attrs().Flags&net.FlagUp != 0}
	local, _ := netip.AddrFromSlice(link.SrcAddr)
	out.Settings = Settings{
		VNI: uint32(link.VxlanId), Port: uint16(link.Port), Local: local.Unmap(),
		Plain: !link.Learning && link.Group == nil && !link.FlowBased && !link.Proxy && link.VtepDevIndex == 0,
	}
	addresses, err := k.netlink.AddrList(link, netlink.FAMILY_ALL)
	if err != nil {
		return nil, fmt.Errorf("list addresses of %s: %w", Interface, err)
	}
	for _, a := range addresses {
		ip, _ := netip.AddrFromSlice(a.IP)
		if ip = ip.Unmap(); !ip.IsLinkLocalUnicast() { // that is the kernel's
			bits, _ := a.Mask.Size()
			out.Addresses = append(out.Addresses, netip.PrefixFrom(ip, bits))
		}
	}
	for _, family := range []int{unix.AF_INET, unix.AF_INET6, unix.AF_BRIDGE} {
		list, err := k.netlink.NeighList(link.Index, family)
		if err != nil {
			return nil, fmt.Errorf("list neighbours on %s: %w", Interface, err)
		}
		for _, n := range list {
			ip, ok := netip.AddrFromSlice(n.IP)
			if !ok || len(n.HardwareAddr) != 6 || n.State&unix.NUD_PERMANENT == 0 || ip.Unmap().IsMulticast() {
				continue // what the kernel found out itself goes by itself
			}
			if family == unix.AF_BRIDGE {
				out.Forwards = append(out.Forwards, Forward{MAC(n.HardwareAddr), ip.Unmap()})
			} else {
				out.Neighbours = append(out.Neighbours, Neighbour{ip.Unmap(), MAC(n.HardwareAddr)})
			}
		}
	}
	out.sort()
	return out, nil
}

// Way implements Edge.
func (k *linux) Way(to []netip.Addr) (mtu int, err error) {
	links, err := k.netlink.LinkList()
	if err != nil {
		return 0, fmt.Errorf("list interfaces: %w", err)
	}
	of := map[int]int{} // MTUs
	for _, l := range links {
		of[l.Attrs().Index] = l.Attrs().MTU
	}
	at := map[netip.Addr]int{} // interfaces by their addresses
	addresses, err := k.netlink.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return 0, fmt.Errorf("list addresses: %w", err)
	}
	for _, a := range addresses {
		ip, _ := netip.AddrFromSlice(a.IP)
		at[ip.Unmap()] = a.LinkIndex
	}
	take := func(n int) {
		if n > 0 && (mtu == 0 || n < mtu) {
			mtu = n
		}
	}
	for _, a := range to {
		if index, own := at[a]; own {
			take(of[index])
			continue
		}
		routes, err := k.netlink.RouteGet(a.AsSlice())
		if err != nil || len(routes) == 0 || routes[0].Type != unix.RTN_UNICAST {
			continue // no way there now
		}
		if r := routes[0]; r.MTU > 0 {
			take(r.MTU)
		} else {
			take(of[r.LinkIndex])
		}
	}
	return mtu, nil
}

// Do implements Edge.
func (k *linux) Do(c Change) error {
	if err := k.change(c); err != nil {
		return remedy(fmt.Errorf("tunnel: %s: %w", c, err))
	}
	return nil
}

func (c Change) String() string {
	switch c.Do {
	case Create:
		return fmt.Sprintf("%s %s (VXLAN %d from %s, UDP port %d)", c.Do, Interface, c.Link.VNI, c.Link.Local, c.Link.Port)
	case SetMAC:
		return fmt.Sprintf("%s: %s", c.Do, c.MAC)
	case SetMTU:
		return fmt.Sprintf("%s: %d", c.Do, c.MTU)
	case AddAddress, DropAddress:
		return fmt.Sprintf("%s: %s", c.Do, c.Address)
	case PutForward, DropForward:
		return fmt.Sprintf("%s: %s at %s", c.Do, c.Forward.MAC, c.Forward.Remote)
	case PutNeighbour, DropNeighbour:
		return fmt.Sprintf("%s: %s at %s", c.Do, c.Neighbour.Address, c.Neighbour.MAC)
	}
	return string(c.Do)
}

func (k *linux) change(c Change) error {
	if c.Do == Create {
		return k.create(c)
	}
	link, err := k.find() // which may have gone, or been replaced, since it was read
	if err != nil {
		return err
	}
	if link == nil {
		return errors.New("it is gone")
	}
	switch c.Do {
	case Delete:
		return k.netlink.LinkDel(link)
	case SetMAC:
		return k.netlink.LinkSetHardwareAddr(link, c.MAC[:])
	case SetMTU:
		return k.netlink.LinkSetMTU(link, c.MTU)
	case SetUp:
		return k.netlink.LinkSetUp(link)
	case AddAddress:
		err := k.netlink.AddrAdd(link, addressOf(c.Address))
		if errors.Is(err, unix.EEXIST) {
			return nil
		}
		return err
	case DropAddress:
		return gone(k.netlink.AddrDel(link, addressOf(c.Address)))
	case PutNeighbour:
		return k.netlink.NeighSet(neighbour(link, c.Neighbour))
	case DropNeighbour:
		return gone(k.netlink.NeighDel(neighbour(link, c.Neighbour)))
	case PutForward:
		return k.netlink.NeighSet(forward(link, c.Forward))
	case DropForward:
		return gone(k.netlink.NeighDel(forward(link, c.Forward)))
	}
	return fmt.Errorf("unknown change %q", c.Do)
}

func (k *linux) create(c Change) error {
	attributes := netlink.NewLinkAttrs()
	attributes.Name, attributes.HardwareAddr, attributes.MTU = Interface, c.MAC[:], c.MTU
	link := &netlink.Vxlan{LinkAttrs: attributes, VxlanId: int(c.Link.VNI), Port: int(c.Link.Port), SrcAddr: c.Link.Local.AsSlice(), UDPCSum: c.Link.Local.Is6()}
	err := k.netlink.LinkAdd(link)
	if errors.Is(err, unix.EEXIST) || errors.Is(err, unix.EADDRINUSE) {
		return fmt.Errorf("%w; another program of this host has that UDP port, or a VXLAN interface of that number there: choose another tunnels.port or tunnels.vni in controller.yaml", err)
	}
	return err
}

// gone forgives that what is to be deleted is not there.
func gone(err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EADDRNOTAVAIL) {
		return nil
	}
	return err
}

func addressOf(p netip.Prefix) *netlink.Addr {
	return &netlink.Addr{
		IPNet: &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}, Flags: unix.IFA_F_NODAD,
	}
}

func neighbour(link netlink.Link, n Neighbour) *netlink.Neigh {
	family := unix.AF_INET
	if n.Address.Is6() {
		family = unix.AF_INET6
	}
	return &netlink.Neigh{LinkIndex: link.Attrs().Index, Family: family, State: unix.NUD_PERMANENT, IP: n.Address.AsSlice(), HardwareAddr: n.MAC[:]}
}

func forward(link netlink.Link, f Forward) *netlink.Neigh {
	return &netlink.Neigh{
		LinkIndex: link.Attrs().Index, Family: unix.AF_BRIDGE, State: unix.NUD_PERMANENT, Flags: unix.NTF_SELF, IP: f.Remote.AsSlice(), HardwareAddr: f.MAC[:],
	}
}

// Guard implements Edge.
func (k *linux) Guard(r *Rules) (changed bool, err error) {
	if changed, err = k.guard.put(r); err != nil {
		return changed, remedy(fmt.Errorf("tunnel: table inet %s: %w", TableName, err))
	}
	return changed, nil
}

// Watch implements Edge.
func (k *linux) Watch(ctx context.Context, changed func()) error {
	updates, done := make(chan netlink.LinkUpdate, 64), make(chan struct{})
	lost := make(chan error, 1)
	options := netlink.LinkSubscribeOptions{ErrorCallback: func(err error) {
		select {
		case lost <- err:
		default: // one is enough
		}
	}}
	if k.namespace != 0 {
		in := netns.NsHandle(k.namespace)
		options.Namespace = &in
	}
	if err := netlink.LinkSubscribeWithOptions(updates, done, options); err != nil {
		return fmt.Errorf("watch interfaces: %w", err)
	}
	defer func() {
		close(done)
		for range updates { // so that its goroutine ends
		}
	}()
	changed() // of what happened before we listened
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-lost:
			return fmt.Errorf("watch interfaces: %w", err)
		case u, ok := <-updates:
			if !ok {
				return errors.New("watch interfaces: the kernel tells no more")
			}
			if u.Attrs().Name == Interface {
				changed()
			}
		}
	}
}
