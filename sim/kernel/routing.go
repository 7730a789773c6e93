// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/kernel/message"
)

// foreign publishes that an agent changed what is not ours.
func (k *Kernel) foreign(own, ours bool, what string) {
	if own && !ours {
		k.world.Publish(event.Foreign{Where: k.o.Node, By: k.o.Node, What: what})
	}
}

// setRule adds a rule or deletes the one that is exactly so. own says that a process of ours does it.
func (k *Kernel) setRule(r message.Rule, add, own bool) string {
	there := slices.ContainsFunc(k.rules, func(o message.Rule) bool {
		if add {
			o.Protocol = r.Protocol // the kernel takes no second rule that differs in its protocol alone
		}
		return o == r
	})
	switch {
	case add && there:
		return "EEXIST"
	case !add && !there:
		return "ENOENT"
	case add && r.Table == 0:
		return k.refuse(ruleText(r), "it leads to no table")
	case r.To.IsValid() && (r.To.Addr().Is6() != r.V6 || r.To != r.To.Masked()):
		return k.refuse(ruleText(r), "its destination is of another family, or has bits behind the mask")
	case r.From.IsValid() && (r.From.Addr().Is6() != r.V6 || r.From != r.From.Masked()):
		return k.refuse(ruleText(r), "its source is of another family, or has bits behind the mask")
	}
	k.foreign(own, r.Protocol == message.Protocol, fmt.Sprintf("rule %s, added %t", ruleText(r), add))
	if add {
		at, _ := slices.BinarySearchFunc(k.rules, r.Priority, func(o message.Rule, priority uint32) int {
			if o.Priority <= priority {
				return -1
			}
			return 1
		})
		k.rules = slices.Insert(k.rules, at, r)
	} else {
		k.rules = slices.DeleteFunc(k.rules, func(o message.Rule) bool { return o == r })
	}
	k.tell(message.Event{Rule: &r, Gone: !add, Own: own})
	k.publish()
	return ""
}

func ruleText(r message.Rule) string {
	return fmt.Sprintf("%d: from %s to %s fwmark %#x/%#x lookup %d proto %d", r.Priority, r.From, r.To, r.Mark, r.Mask, r.Table, r.Protocol)
}

// setRoute adds, replaces or deletes a route.
func (k *Kernel) setRoute(r message.Route, how message.Request, own bool) string {
	var at message.Route // what stands at its place
	for o := range k.routes {
		if compareRoutes(o, r) == 0 {
			at = o
		}
	}
	if how.Delete {
		if !k.routes[r] {
			return "ESRCH"
		}
		k.foreign(own, r.Protocol == message.Protocol, "route deleted: "+routeText(r))
		k.unroute(r, own)
		k.publish()
		return ""
	}
	if name := k.judgeRoute(r); name != "" {
		return name
	}
	taken := at != message.Route{}
	if taken && !how.Replace {
		return "EEXIST"
	}
	k.foreign(own, r.Protocol == message.Protocol, "route added: "+routeText(r))
	if taken {
		k.foreign(own, at.Protocol == message.Protocol, "route replaced: "+routeText(at))
		k.unroute(at, own)
	}
	k.routes[r] = true
	k.tell(message.Event{Route: &r, Own: own})
	k.publish()
	return ""
}

func (k *Kernel) unroute(r message.Route, own bool) {
	delete(k.routes, r)
	k.tell(message.Event{Route: &r, Gone: true, Own: own})
}

// judgeRoute gives the errno of a route that no kernel takes.
func (k *Kernel) judgeRoute(r message.Route) string {
	switch {
	case !r.To.IsValid() || r.To != r.To.Masked() || r.Table == 0:
		return k.refuse("route "+routeText(r), "it has no table or no destination, or bits behind the mask")
	case r.Gateway.IsValid() && r.Gateway.Is6() != r.To.Addr().Is6():
		return k.refuse("route "+routeText(r), "its gateway is of another family")
	case !slices.ContainsFunc(k.links(), func(l message.Link) bool { return l.Name == r.Device }):
		return "ENODEV"
	case r.Gateway.IsValid() && !k.onLink(r.Gateway):
		return "ENETUNREACH"
	case r.Source.IsValid() && !slices.ContainsFunc(k.o.Addresses, func(p netip.Prefix) bool { return p.Addr() == r.Source }):
		return invalid
	}
	return ""
}

func routeText(r message.Route) string {
	return fmt.Sprintf("%s via %s dev %s local %t table %d metric %d proto %d", r.To, r.Gateway, r.Device, r.Local, r.Table, r.Metric, r.Protocol)
}

// compareRoutes orders routes by their place, of which each has its own.
func compareRoutes(a, b message.Route) int {
	return cmp.Or(cmp.Compare(a.Table, b.Table), comparePrefixes(a.To, b.To), cmp.Compare(a.Metric, b.Metric))
}

func (k *Kernel) links() []message.Link {
	return []message.Link{{Name: "lo"}, {Name: k.o.Device, ARP: true}}
}

// onLink tells whether an address is on a network of this node.
func (k *Kernel) onLink(a netip.Addr) bool {
	return slices.ContainsFunc(k.o.Addresses, func(p netip.Prefix) bool { return p.Contains(a) && p.Addr() != a })
}

// dump lists what is there.
func (k *Kernel) dump(d message.Dump) message.Answer {
	a := message.Answer{
		Boot: k.boot, Links: k.links(), Ways: map[netip.Addr]message.Way{},
		Rules:  slices.Clone(k.rules),
		Routes: slices.SortedFunc(maps.Keys(k.routes), compareRoutes),
	}
	for _, to := range d.Ways {
		if way, ok := k.way(to); ok {
			a.Ways[to] = way
		}
	}
	if t := k.tables[d.Table]; t != nil {
		c := *t
		c.Elements = map[string]map[string]string{}
		for _, set := range slices.Sorted(maps.Keys(t.Elements)) {
			if !t.Sets[set].Dynamic {
				c.Elements[set] = t.Elements[set]
			}
		}
		a.Table = &c
	}
	return a
}

// way tells how this node's own packets reach an address.
func (k *Kernel) way(to netip.Addr) (message.Way, bool) {
	r, ok := k.route(netip.Addr{}, to, 0)
	if !ok || r.Local {
		return message.Way{}, false
	}
	w := message.Way{Device: r.Device, OnLink: !r.Gateway.IsValid() || r.Gateway == to}
	for _, p := range k.o.Addresses {
		if p.Addr().Is6() == to.Is6() && !w.Source.IsValid() {
			w.Source = p.Addr()
		}
	}
	return w, true
}

// route is the route that a packet takes.
func (k *Kernel) route(from, to netip.Addr, mark uint32) (found message.Route, ok bool) {
	for _, r := range k.rules {
		applies := r.V6 == to.Is6() && r.Other == "" && mark&r.Mask == r.Mark && (!r.To.IsValid() || r.To.Contains(to)) &&
			(!r.From.IsValid() || r.From.Contains(from))
		if !applies {
			continue
		}
		if found, ok := k.lookup(r.Table, to); ok {
			return found, true
		}
	}
	return message.Route{}, false
}

func comparePrefixes(a, b netip.Prefix) int {
	return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
}

// lookup finds the route of a table with the longest prefix, of these the one with the least metric: no two have both
// in common.
func (k *Kernel) lookup(table uint32, to netip.Addr) (found message.Route, ok bool) {
	for r := range k.routes {
		if r.Table != table || !r.To.Contains(to) {
			continue
		}
		if !ok || r.To.Bits() > found.To.Bits() || r.To.Bits() == found.To.Bits() && r.Metric < found.Metric {
			found, ok = r, true
		}
	}
	return found, ok
}
