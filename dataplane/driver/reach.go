// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
)

// ErrAddress is part of the errors of calls that would have gone to an address where drivers are not called.
var ErrAddress = errors.New("not an address of drivers")

// Reach says at which addresses drivers are called. A driver's URL is written by tenants, and whoever calls it is inside: what
// listens for this machine alone, for the group or for the API server must not hear of tenants by way of a member.
//
// It is asked of every address that a connection is about to be made to, after names were resolved. The zero value refuses
// loopback, link-local and other addresses that are no other machine's.
type Reach struct {
	// Allowed are places that are called whatever they are.
	Allowed []Place
	// Whose names who has an address that is not a tenant's to reach, such as "the API server's"; empty: nobody has. Optional.
	Whose func(ctx context.Context, a netip.Addr) string
}

// Place is a range of addresses, at one port or at all.
type Place struct {
	Prefix netip.Prefix
	Port   uint16 // 0: all
}

// ParsePlace reads an address, a range of addresses, or an address and a port: 192.0.2.1, 192.0.2.0/24, 127.0.0.1:7490, [::1]:7490.
func ParsePlace(text string) (Place, error) {
	if p, err := netip.ParsePrefix(text); err == nil {
		if p != p.Masked() || p.Addr().Is4In6() {
			return Place{}, fmt.Errorf("%q has bits beyond its range; write %s", text, p.Masked())
		}
		return Place{Prefix: p}, nil
	}
	if a, err := netip.ParseAddr(text); err == nil {
		return Place{Prefix: only(a)}, nil
	}
	to, err := netip.ParseAddrPort(text)
	if err != nil || to.Port() == 0 {
		return Place{}, fmt.Errorf("%q is no address: write 192.0.2.1, 192.0.2.0/24 or 127.0.0.1:7490", text)
	}
	return Place{Prefix: only(to.Addr()), Port: to.Port()}, nil
}

func only(a netip.Addr) netip.Prefix {
	a = plain(a)
	return netip.PrefixFrom(a, a.BitLen())
}

// plain is an address as ranges are compared with: without a zone, and IPv4 as such.
func plain(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

func (p Place) contains(a netip.Addr, port uint16) bool {
	return p.Prefix.Contains(a) && (p.Port == 0 || p.Port == port)
}

// Check tells why a driver is not called at an address; nil if it is. Errors: ErrAddress.
func (r Reach) Check(ctx context.Context, to netip.AddrPort) error {
	a := plain(to.Addr())
	if slices.ContainsFunc(r.Allowed, func(p Place) bool { return p.contains(a, to.Port()) }) {
		return nil
	}
	what := r.whose(ctx, a)
	if within, ok := embedded(a); ok && what == "" {
		what = r.whose(ctx, within)
	}
	if what == "" {
		return nil
	}
	here := netip.AddrPortFrom(a, to.Port())
	return fmt.Errorf("%w: %s is %s address, where drivers are not called; if one that you trust is there, list %s in drivers.allowed of controller.yaml, on all members",
		ErrAddress, a, what, here)
}

// whose says what an address is where drivers are not called; empty if they are.
func (r Reach) whose(ctx context.Context, a netip.Addr) string {
	what := nobodyElses(a)
	if what == "" && r.Whose != nil {
		what = r.Whose(ctx, a)
	}
	return what
}

// embedding are prefixes of IPv6 whose last 32 bits are an address of IPv4 that a gateway may send to: the well-known one of NAT64
// (RFC 6052, 2.1), and the one that is as good as a mapped address (RFC 4291, 2.5.5.1).
var embedding = []netip.Prefix{netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("::/96")}

// embedded is the address of IPv4 in one of IPv6.
func embedded(a netip.Addr) (netip.Addr, bool) {
	within := a.As16()
	return netip.AddrFrom4([4]byte(within[12:])), slices.ContainsFunc(embedding, func(p netip.Prefix) bool { return p.Contains(a) })
}

// nobodyElses says what an address is that never leads to another machine's unicast service; empty if it may.
func nobodyElses(a netip.Addr) string {
	switch {
	case a.IsLoopback():
		return "a loopback"
	case a.IsLinkLocalUnicast():
		return "a link-local"
	case a.IsMulticast(), a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "a multicast"
	case !a.IsValid(), a.IsUnspecified(), a.Is4() && a.As4()[0] == 0: // the kernel connects 0.0.0.0 to this machine
		return "an unspecified"
	}
	return ""
}

// LoopbackOnly lets calls through to this machine alone: what is shown to a driver without TLS is read by whoever is on the
// way. Errors: ErrAddress.
func LoopbackOnly(_ context.Context, to netip.AddrPort) error {
	if a := plain(to.Addr()); !a.IsLoopback() {
		return fmt.Errorf("%w: credentials are not shown to %s without TLS, where others read them on the way; write https:// in the driver's URL", ErrAddress, a)
	}
	return nil
}

// virtual are interfaces that hold addresses of Services, by which pods are reached: those of kube-proxy and kube-router with IPVS.
func virtual(name string) bool { return name == "kube-ipvs0" || name == "kube-dummy-if" }

// OwnAddress tells whether an address is of this machine, by its interfaces as they are now. Addresses of Services that
// kube-proxy or kube-router put on a dummy interface are not.
//
// Errors: the interfaces cannot be read.
func OwnAddress(a netip.Addr) (bool, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return false, fmt.Errorf("read this machine's addresses: %w", err)
	}
	for _, i := range interfaces {
		if virtual(i.Name) {
			continue
		}
		list, err := i.Addrs()
		if err != nil {
			continue // it went meanwhile
		}
		for _, has := range list {
			if p, err := netip.ParsePrefix(has.String()); err == nil && plain(p.Addr()) == plain(a) {
				return true, nil
			}
		}
	}
	return false, nil
}
