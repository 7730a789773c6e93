// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// The library forgets what it does not know of a rule or route. Here everything that ours never have is noted, so that
// nobody else's is taken for one of ours.

// parseRule reads a rule as the kernel tells it, in a list or an event.
func parseRule(m []byte) (Rule, error) {
	msg := nl.DeserializeRtMsg(m)
	attrs, err := nl.ParseRouteAttr(m[msg.Len():])
	if err != nil {
		return Rule{}, fmt.Errorf("parse rule: %w", err)
	}
	r := Rule{V6: msg.Family == unix.AF_INET6, Table: uint32(msg.Table)}
	var other []string
	if msg.Type != nl.FR_ACT_TO_TBL {
		other = append(other, fmt.Sprintf("action %d", msg.Type))
	}
	if msg.Tos != 0 {
		other = append(other, fmt.Sprintf("tos %#x", msg.Tos))
	}
	if msg.Flags&netlink.FibRuleInvert != 0 {
		other = append(other, "not")
	}
	for _, a := range attrs {
		switch a.Attr.Type {
		case nl.FRA_DST:
			r.To = prefix(a.Value, msg.Dst_len)
		case nl.FRA_SRC:
			r.From = prefix(a.Value, msg.Src_len)
		case nl.FRA_PRIORITY:
			r.Priority = nl.NativeEndian().Uint32(a.Value)
		case nl.FRA_FWMARK:
			r.Mark = nl.NativeEndian().Uint32(a.Value)
		case nl.FRA_FWMASK:
			r.Mask = nl.NativeEndian().Uint32(a.Value)
		case nl.FRA_TABLE:
			r.Table = nl.NativeEndian().Uint32(a.Value)
		case nl.FRA_PROTOCOL:
			r.Protocol = a.Value[0]
		case nl.FRA_IIFNAME:
			other = append(other, "iif "+text(a.Value))
		case nl.FRA_OIFNAME:
			other = append(other, "oif "+text(a.Value))
		case nl.FRA_SUPPRESS_PREFIXLEN:
			if n := int32(nl.NativeEndian().Uint32(a.Value)); n >= 0 {
				other = append(other, fmt.Sprintf("suppress_prefixlength %d", n))
			}
		case fraPad:
		default:
			other = append(other, fmt.Sprintf("attribute %d", a.Attr.Type))
		}
	}
	slices.Sort(other)
	r.Other = strings.Join(other, " ")
	return r, nil
}

// fraPad aligns other attributes (linux/fib_rules.h).
const fraPad = 18

func text(b []byte) string { return strings.TrimRight(string(b), "\x00") }

func prefix(address []byte, bits uint8) netip.Prefix {
	a, ok := netip.AddrFromSlice(address)
	if !ok {
		return netip.Prefix{}
	}
	return netip.PrefixFrom(a, int(bits))
}

// parseRoute reads a route as the kernel tells it.
func (k *linux) parseRoute(m []byte) (Route, error) {
	msg := nl.DeserializeRtMsg(m)
	attrs, err := nl.ParseRouteAttr(m[msg.Len():])
	if err != nil {
		return Route{}, fmt.Errorf("parse route: %w", err)
	}
	r := Route{
		Table: uint32(msg.Table), To: everything(msg.Family == unix.AF_INET6), Local: msg.Type == unix.RTN_LOCAL, Protocol: msg.Protocol,
	}
	var other []string
	if msg.Type != unix.RTN_LOCAL && msg.Type != unix.RTN_UNICAST {
		other = append(other, fmt.Sprintf("type %d", msg.Type))
	}
	if msg.Tos != 0 {
		other = append(other, fmt.Sprintf("tos %#x", msg.Tos))
	}
	if msg.Flags&unix.RTNH_F_ONLINK != 0 {
		other = append(other, "onlink")
	}
	for _, a := range attrs {
		switch a.Attr.Type {
		case unix.RTA_DST:
			r.To = prefix(a.Value, msg.Dst_len)
		case unix.RTA_OIF:
			r.Device = k.nameOf(int(nl.NativeEndian().Uint32(a.Value)))
		case unix.RTA_GATEWAY:
			r.Gateway, _ = netip.AddrFromSlice(a.Value)
		case unix.RTA_PREFSRC:
			r.Source, _ = netip.AddrFromSlice(a.Value)
		case unix.RTA_PRIORITY:
			r.Metric = nl.NativeEndian().Uint32(a.Value)
		case unix.RTA_TABLE:
			r.Table = nl.NativeEndian().Uint32(a.Value)
		case unix.RTA_CACHEINFO, unix.RTA_PREF, unix.RTA_PAD:
		default:
			other = append(other, fmt.Sprintf("attribute %d", a.Attr.Type))
		}
	}
	if r.Gateway.Is6() && r.Gateway.IsLinkLocalUnicast() {
		r.Gateway = r.Gateway.WithZone(r.Device)
	}
	r.Other = strings.Join(other, " ")
	return r, nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	if !p.IsValid() {
		return nil
	}
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

func familyOf(v6 bool) int {
	if v6 {
		return unix.AF_INET6
	}
	return unix.AF_INET
}

func toRule(r Rule) *netlink.Rule {
	out := netlink.NewRule()
	out.Family, out.Priority, out.Dst, out.Src = familyOf(r.V6), int(r.Priority), ipNet(r.To), ipNet(r.From)
	out.Table, out.Protocol = int(r.Table), r.Protocol
	if r.Mask != 0 {
		out.Mark, out.Mask = r.Mark, &r.Mask
	}
	return out
}

func (k *linux) toRoute(r Route) *netlink.Route {
	out := &netlink.Route{
		Family: familyOf(r.v6()), Table: int(r.Table), Dst: ipNet(r.To), LinkIndex: k.indexes[r.Device], Priority: int(r.Metric),
		Protocol: netlink.RouteProtocol(r.Protocol), Type: unix.RTN_UNICAST, Scope: netlink.SCOPE_UNIVERSE,
	}
	if r.Local {
		out.Type, out.Scope = unix.RTN_LOCAL, netlink.SCOPE_HOST
	}
	if r.Gateway.IsValid() {
		out.Gw = r.Gateway.AsSlice()
	}
	if r.Source.IsValid() {
		out.Src = r.Source.AsSlice()
	}
	return out
}
