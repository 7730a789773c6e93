// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"fmt"
	"net/netip"
	"strings"

	"fairlead.io/fairlead/api/desired"
)

// Rule is a routing rule of one family.
type Rule struct {
	V6         bool
	Priority   uint32
	To, From   netip.Prefix // zero: all
	Mark, Mask uint32
	Table      uint32
	Protocol   uint8
	Other      string // what else it says; ours say nothing else
}

func (r Rule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d:", r.Priority)
	if r.From.IsValid() {
		fmt.Fprintf(&b, " from %s", r.From)
	}
	if r.To.IsValid() {
		fmt.Fprintf(&b, " to %s", r.To)
	}
	if r.Mask != 0 {
		fmt.Fprintf(&b, " fwmark %#x/%#x", r.Mark, r.Mask)
	}
	if r.Other != "" {
		fmt.Fprintf(&b, " %s", r.Other)
	}
	fmt.Fprintf(&b, " lookup %d", r.Table)
	return b.String()
}

// ours tells whether we made it.
func (r Rule) ours() bool { return r.Protocol == Protocol }

// address is the service address that the rule is for, if it is for one.
func (r Rule) address() netip.Addr {
	switch {
	case r.To.IsValid() && r.To.IsSingleIP():
		return r.To.Addr()
	case r.From.IsValid() && r.From.IsSingleIP():
		return r.From.Addr()
	}
	return netip.Addr{}
}

// split implements piece.
func (r Rule) split() (shape Rule, a netip.Addr, ok bool) {
	switch a = r.address(); {
	case !a.IsValid():
		return r, a, false
	case r.To.IsValid() && r.To.IsSingleIP():
		r.To = single(nobody(a))
	default:
		r.From = single(nobody(a))
	}
	return r, a, true
}

// of implements piece.
func (r Rule) of(a netip.Addr) Rule {
	if r.To.IsValid() && r.To.IsSingleIP() {
		r.To = single(a)
	} else {
		r.From = single(a)
	}
	return r
}

func single(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// Route is a route.
type Route struct {
	Table    uint32
	To       netip.Prefix // 0.0.0.0/0 or ::/0 for a default
	Local    bool         // deliver here
	Device   string
	Gateway  netip.Addr // zero: on the device's link
	Source   netip.Addr // that this host's own packets get; zero: the kernel's choice
	Metric   uint32
	Protocol uint8
	Other    string // what else it says; ours say nothing else
}

func (r Route) String() string {
	var b strings.Builder
	if r.Local {
		b.WriteString("local ")
	}
	if r.isDefault() {
		b.WriteString("default")
	} else {
		b.WriteString(r.To.String())
	}
	if r.Gateway.IsValid() {
		fmt.Fprintf(&b, " via %s", r.Gateway)
	}
	fmt.Fprintf(&b, " dev %s table %d", r.Device, r.Table)
	if r.Other != "" {
		fmt.Fprintf(&b, " %s", r.Other)
	}
	return b.String()
}

func (r Route) ours() bool      { return r.Protocol == Protocol }
func (r Route) v6() bool        { return r.To.Addr().Is6() }
func (r Route) isDefault() bool { return r.To.Bits() == 0 }

// split implements piece.
func (r Route) split() (shape Route, a netip.Addr, ok bool) {
	if !r.To.IsSingleIP() {
		return r, a, false
	}
	a = r.To.Addr()
	r.To = single(nobody(a))
	return r, a, true
}

// of implements piece.
func (r Route) of(a netip.Addr) Route {
	r.To = single(a)
	return r
}

// place is what the kernel has at most one of our routes of: a route put there replaces the one that is there.
type place struct {
	table  uint32
	to     netip.Prefix
	metric uint32
}

func (r Route) place() place { return place{r.Table, r.To, r.Metric} }

// Set is a set of our nftables table.
type Set string

// The sets: service addresses, what they answer on, and the interfaces that face the switch.
const (
	SetAddresses4 Set = "addresses4"
	SetAddresses6 Set = "addresses6"
	SetPorts4     Set = "ports4"
	SetPorts6     Set = "ports6"
	SetInterfaces Set = "interfaces"
)

// Element is an element of a set.
type Element struct {
	Set       Set
	Address   netip.Addr   // of all but interfaces
	Port      desired.Port // of ports
	Interface string       // of interfaces
}

// split implements piece.
func (e Element) split() (shape Element, a netip.Addr, ok bool) {
	if !e.Address.IsValid() || e.Address.Zone() != "" {
		return e, a, false
	}
	a = e.Address
	e.Address = nobody(a)
	return e, a, true
}

// of implements piece.
func (e Element) of(a netip.Addr) Element {
	e.Address = a
	return e
}

// AddressElement says that an address is one of a service.
func AddressElement(a netip.Addr) Element {
	if a.Is6() {
		return Element{Set: SetAddresses6, Address: a}
	}
	return Element{Set: SetAddresses4, Address: a}
}

// PortElement says that a service address answers on a port.
func PortElement(a netip.Addr, p desired.Port) Element {
	if a.Is6() {
		return Element{Set: SetPorts6, Address: a, Port: p}
	}
	return Element{Set: SetPorts4, Address: a, Port: p}
}

// Setting is one of an interface's settings, below /proc/sys/net.
type Setting struct {
	Interface string
	Name      string // arp_ignore, rp_filter or src_valid_mark
}

// Path is where it is, below /proc/sys/net.
func (s Setting) Path() string { return "ipv4/conf/" + s.Interface + "/" + s.Name }

// The settings that matter.
const (
	arpIgnore    = "arp_ignore"
	rpFilter     = "rp_filter"
	srcValidMark = "src_valid_mark"
)

// View is what the kernel has of what concerns us. It owns its maps.
type View struct {
	Rules    Lot[Rule]  // all
	Routes   Lot[Route] // those that concern us: Query.Concerns
	Filter   string     // which rules our nftables table has; empty for no table
	Elements Lot[Element]
	Settings map[Setting]string // of interfaces that face the switch, and of "all"
	// Changed is what settings were before we changed them.
	Changed map[Setting]string
}

// has tells whether there is a rule, whoever made it: the kernel takes no second one.
func (v *View) has(r Rule) bool {
	for there := range v.Rules.All() {
		there.Protocol = r.Protocol
		if there == r {
			return true
		}
	}
	return false
}

// NewView is that of an untouched node.
func NewView() *View {
	return &View{Settings: map[Setting]string{}, Changed: map[Setting]string{}}
}

// Link is a network interface.
type Link struct {
	Name string
	Kind string // as `ip -d link` tells; empty for a card
	ARP  bool   // it is a link with neighbours
}

// Way is how a switch is reached.
type Way struct {
	Device string
	Source netip.Addr
	OnLink bool // without another gateway
}

// Facts is what a node is like.
type Facts struct {
	Links []Link
	Ways  map[netip.Addr]Way // by switch; none for one that cannot be reached
}
