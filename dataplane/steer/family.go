// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"fmt"
	"net/netip"
)

// family aims at the addresses of one family.
type family struct {
	*aimer
	v6        bool
	addresses []netip.Addr
	wanted    func() map[netip.Addr]bool // the addresses; few ask
	way       Way
	leaves    bool // answers have a route to the switch
}

func asSet(addresses []netip.Addr) map[netip.Addr]bool {
	out := make(map[netip.Addr]bool, len(addresses))
	for _, a := range addresses {
		out[a] = true
	}
	return out
}

// localDefault is the route of the table for packets to service addresses, while these have rules of their own.
func (f *family) localDefault() Route {
	r := Route{Table: f.in, To: everything(f.v6), Local: true, Device: "lo", Metric: metric(f.v6), Protocol: Protocol}
	if !f.v6 && f.way.OnLink {
		// Else this host's own packets to a service address would come from that address, and leave for the switch.
		r.Source = f.way.Source
	}
	return r
}

func (f *family) localRoute(a netip.Addr) Route {
	return Route{Table: f.in, To: netip.PrefixFrom(a, a.BitLen()), Local: true, Device: "lo", Metric: metric(f.v6), Protocol: Protocol}
}

// blocked tells why nothing can be changed for this family, if so: in a table that is ours stands a default route that
// is not, neither of us nor of the old system.
func (f *family) blocked(named bool) string {
	for r := range f.have.Routes.All() {
		if r.ours() || !r.isDefault() || r.v6() != f.v6 {
			continue
		}
		switch {
		case r.Table == f.in && !f.oldLocal(r):
			return fmt.Sprintf("a route that is not ours is in table %d: %s; delete it, or name another IN_ROUTING_TABLE", f.in, r)
		case r.Table == f.out && named && !f.oldAnswers(r):
			return fmt.Sprintf("a route that is not ours is in table %d: %s; delete it, or name another OUT_ROUTING_TABLE", f.out, r)
		}
	}
	return ""
}

// The old system's routes have no protocol number, or that of programs.
const (
	protocolNone = 0
	protocolBoot = 3
)

func old(protocol uint8) bool { return protocol == protocolNone || protocol == protocolBoot }

func (f *family) oldLocal(r Route) bool {
	return old(r.Protocol) && r.Local && r.Device == "lo" && !r.Gateway.IsValid() && r.Other == ""
}

func (f *family) oldAnswers(r Route) bool {
	gateway, _ := f.gateway(f.v6)
	return old(r.Protocol) && !r.Local && r.Gateway == gateway && r.Other == ""
}

// keep leaves what there is for addresses that are still wanted. Rules for marked packets follow the marks: the nftables
// table is of both families.
func (f *family) keep(why string) {
	wanted := f.wanted()
	for _, a := range f.addresses {
		f.goal.Failed[a] = why
	}
	for r := range f.have.Rules.All() {
		if a := r.address(); r.ours() && r.V6 == f.v6 && (!a.IsValid() || wanted[a]) {
			f.goal.Rules.Add(f.o.marks().follow(r, f.have.Filter))
		}
	}
	for r := range f.have.Routes.All() {
		if r.ours() && r.v6() == f.v6 && r.Table != mainTable && (r.isDefault() || wanted[r.To.Addr()]) {
			f.goal.Routes.Add(r)
		}
	}
	for e := range f.have.Elements.All() {
		if e.Address.IsValid() && wanted[e.Address] {
			f.goal.Elements.Add(e)
		}
	}
}

// answers aims at the route of answers. A switch that cannot be reached changes nothing: answers go on as before.
func (f *family) answers(gateway netip.Addr, named bool) {
	switch {
	case !named:
	case f.way.OnLink:
		f.goal.Routes.Add(Route{
			Table: f.out, To: everything(f.v6), Device: f.way.Device, Gateway: gateway, Metric: metric(f.v6), Protocol: Protocol,
		})
		f.leaves = true
	default:
		why := fmt.Sprintf("SWITCH %s is on no network of this node; give the node an address there, or mend SWITCH", gateway)
		for r := range f.have.Routes.All() {
			if r.ours() && r.isDefault() && r.Table == f.out && r.v6() == f.v6 {
				f.goal.Routes.Add(r)
				f.leaves = true
				f.warnf("%s; answers go to %s as before", why, r.Gateway)
				return
			}
		}
		for _, a := range f.addresses {
			f.goal.Failed[a] = why
		}
	}
	for r := range f.have.Routes.All() {
		if f.leaves && !r.ours() && r.isDefault() && r.Table == f.out && r.v6() == f.v6 {
			f.goal.OldRoutes = append(f.goal.OldRoutes, r)
		}
	}
}

// marked tells whether packets are steered by their mark, and not by a rule for each address.
func (f *family) marked() bool {
	n := len(f.addresses)
	return n > f.o.RulesMax || n > f.o.RulesMax*3/4 && f.have.Rules.Has(f.markedIn(f.in))
}

func (f *family) markedIn(table uint32) Rule {
	return Rule{V6: f.v6, Priority: f.o.PriorityIn, Mark: f.o.MarkIn, Mask: f.o.MarkIn, Table: table, Protocol: Protocol}
}

// back is the rule for answers to who did not come through the switch, in front of those that would send them there.
func (f *family) back() Rule {
	back := f.o.marks().back()
	return Rule{V6: f.v6, Priority: f.o.PriorityIn - 1, Mark: back, Mask: back, Table: mainTable, Protocol: Protocol}
}

// rules aims at the rules and at the routes that deliver here.
func (f *family) rules() {
	marked := f.marked()
	if marked {
		f.goal.Rules.Add(f.markedIn(f.in))
	} else {
		f.goal.Routes.Add(f.localDefault())
	}
	for _, a := range f.addresses {
		p := netip.PrefixFrom(a, a.BitLen())
		to := Rule{V6: f.v6, Priority: f.o.PriorityIn, To: p, Table: f.in, Protocol: Protocol}
		from := Rule{V6: f.v6, Priority: f.o.PriorityOut, From: p, Table: f.out, Protocol: Protocol}
		if marked {
			f.goal.Routes.Add(f.localRoute(a))
			continue
		}
		f.goal.Rules.Add(to)
		if f.leaves {
			f.goal.Rules.Add(from)
		}
	}
	if f.leaves {
		if r := f.back(); f.have.Rules.Has(r) || !f.have.has(r) { // somebody else's does the same
			f.goal.Rules.Add(r)
		}
		f.goal.Rules.Add(Rule{
			V6: f.v6, Priority: f.o.PriorityMark, Mark: f.o.MarkOut, Mask: f.o.MarkOut, Table: f.out, Protocol: Protocol,
		})
	}
	for r := range f.have.Routes.All() {
		if !r.ours() && r.isDefault() && r.Table == f.in && r.v6() == f.v6 { // blocked saw that it is the old system's
			f.goal.OldRoutes = append(f.goal.OldRoutes, r)
		}
	}
}

// elements aims at the sets of the nftables table.
func (f *family) elements() {
	for _, w := range f.want.Addresses {
		a := w.Prefix.Addr()
		if a.Is6() != f.v6 {
			continue
		}
		f.goal.Elements.Add(AddressElement(a))
		for _, p := range w.Ports {
			f.goal.Elements.Add(PortElement(a, p))
		}
	}
}

// conflicts looks at rules that are not ours: those of the old system are replaced, those at our priorities stay, and
// the addresses that they concern fail.
func (f *family) conflicts() {
	for r := range f.have.Rules.All() {
		if r.ours() || r.V6 != f.v6 {
			continue
		}
		if f.atOurs(r.Priority) {
			f.conflict(r)
			continue
		}
		if f.isOld(r) && f.wanted()[r.address()] {
			f.goal.OldRules = append(f.goal.OldRules, r)
		}
	}
}

// taken fails the addresses whose packets a route that is not ours takes, in the table where they are to be delivered.
// It stays: what stands in its place is not replaced.
func (f *family) taken() {
	marked := f.marked()
	for r := range f.have.Routes.All() {
		if r.ours() || r.isDefault() || r.Table != f.in || r.v6() != f.v6 {
			continue
		}
		for _, a := range f.addresses {
			own := f.localRoute(a)
			if !r.To.Contains(a) || marked && (r.To != own.To || r.Metric > own.Metric) {
				continue
			}
			f.goal.Failed[a] = fmt.Sprintf("a route that is not ours takes its packets: %s; delete it, or name another IN_ROUTING_TABLE", r)
			if r.place() == own.place() {
				f.goal.Routes.Remove(own)
			}
		}
	}
}

func (f *family) atOurs(priority uint32) bool {
	return priority == f.o.PriorityIn || priority == f.o.PriorityOut || priority == f.o.PriorityMark
}

// isOld tells whether a rule is exactly what the old system makes for an address.
func (f *family) isOld(r Rule) bool {
	if !old(r.Protocol) || r.Other != "" || r.Mask != 0 || r.Priority >= priorityMain || !r.address().IsValid() {
		return false
	}
	return r.To.IsValid() && !r.From.IsValid() && r.Table == f.in ||
		r.From.IsValid() && !r.To.IsValid() && r.Table == f.out && f.leaves
}

// conflict fails the addresses whose packets a rule takes that is not ours but stands where ours do.
func (f *family) conflict(r Rule) {
	why := fmt.Sprintf("a rule that is not ours has a priority of ours: %s; delete it, or give ours other priorities", r)
	for _, a := range f.addresses {
		concerned := r.To.IsValid() && r.To.Contains(a) || r.From.IsValid() && r.From.Contains(a) ||
			!r.To.IsValid() && !r.From.IsValid() && (r.Mask == 0 || r.Mask&(f.o.MarkIn|f.o.MarkOut) != 0)
		if concerned {
			f.goal.Failed[a] = why
		}
	}
	// The kernel takes no second rule that differs in its protocol alone.
	like := r
	like.Protocol = Protocol
	if !f.have.Rules.Has(like) {
		f.goal.Rules.Remove(like)
	}
}
