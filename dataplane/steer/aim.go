// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"sync"

	"fairlead.io/fairlead/api/desired"
)

// Wanted is what a node is told.
type Wanted struct {
	Addresses []desired.Address
	Config    desired.Config
}

// Goal is what the kernel shall have.
type Goal struct {
	Rules    Lot[Rule]
	Routes   Lot[Route]
	Filter   string // empty: no nftables table
	Elements Lot[Element]
	Settings map[Setting]string
	// OldRules and OldRoutes are those of the old system for what is wanted, which ours replace.
	OldRules  []Rule
	OldRoutes []Route
	// Failed are the wanted addresses that cannot be steered, and why.
	Failed map[netip.Addr]string
	// Warnings are for the operator; they change nothing.
	Warnings []string
}

// mainTable is the kernel's table that everything uses which no rule sends elsewhere.
const mainTable = 254

// Aim says what the kernel shall have, given what it has.
func Aim(o Options, want Wanted, facts Facts, have *View) Goal {
	o = o.withDefaults()
	a := aimer{o: o, want: want, facts: facts, have: have, in: want.Config.InTable, out: want.Config.OutTable, goal: Goal{
		Settings: map[Setting]string{},
		Failed:   map[netip.Addr]string{},
	}}
	if a.in == 0 {
		a.in = o.InTable
	}
	if a.out == 0 {
		a.out = o.OutTable
	}
	for _, v6 := range []bool{false, true} {
		a.family(v6)
	}
	if len(want.Addresses) > 0 {
		a.goal.Filter = o.marks().filter()
		a.interfaces()
	}
	return a.goal
}

type aimer struct {
	o       Options
	want    Wanted
	facts   Facts
	have    *View
	in, out uint32
	goal    Goal
}

func (a *aimer) warnf(format string, args ...any) {
	a.goal.Warnings = append(a.goal.Warnings, fmt.Sprintf(format, args...))
}

// family aims at all of one family.
func (a *aimer) family(v6 bool) {
	var addresses []netip.Addr
	for _, w := range a.want.Addresses {
		if addr := w.Prefix.Addr(); addr.Is6() == v6 {
			addresses = append(addresses, addr)
		}
	}
	gateway, named := a.gateway(v6)
	way := a.facts.Ways[gateway]
	if a.want.Config.ReplaceDefault {
		a.nodeDefault(v6, gateway, named, way)
	}
	if len(addresses) == 0 {
		return
	}
	f := family{aimer: a, v6: v6, addresses: addresses, way: way, wanted: sync.OnceValue(func() map[netip.Addr]bool { return asSet(addresses) })}
	if !named {
		a.warnf("no SWITCH of family %s is named: answers from service addresses leave by the node's default route", familyName(v6))
	}
	if why := f.blocked(named); why != "" {
		f.keep(why)
		return
	}
	f.answers(gateway, named)
	f.rules()
	f.elements()
	f.conflicts()
	f.taken()
	f.forestalled()
}

func familyName(v6 bool) string {
	if v6 {
		return "IPv6"
	}
	return "IPv4"
}

// gateway is the switch of a family.
func (a *aimer) gateway(v6 bool) (gateway netip.Addr, named bool) {
	for _, s := range a.want.Config.Switches {
		if s.Is6() == v6 {
			return s, true
		}
	}
	return netip.Addr{}, false
}

func everything(v6 bool) netip.Prefix {
	if v6 {
		return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
	}
	return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
}

// metric is what the kernel gives routes that name none.
func metric(v6 bool) uint32 {
	if v6 {
		return 1024
	}
	return 0
}

// nodeDefault is the cloud trial: the node's default route leads to the switch.
func (a *aimer) nodeDefault(v6 bool, gateway netip.Addr, named bool, way Way) {
	switch {
	case !named:
	case way.OnLink:
		r := Route{Table: mainTable, To: everything(v6), Device: way.Device, Gateway: gateway, Protocol: Protocol}
		if v6 {
			r.Metric = 1 // in front of those that routers advertise
		}
		a.goal.Routes.Add(r)
	default:
		a.warnf("DEPLOY_MODEL test: refused, the node's default route stays: SWITCH %s is on no network of this node", gateway)
		for r := range a.have.Routes.All() {
			if r.ours() && r.Table == mainTable && r.v6() == v6 {
				a.goal.Routes.Add(r)
			}
		}
	}
}

// interfaces aims at the interfaces that face the switch: those are not to answer ARP for service addresses, and to
// take packets whose way back is another.
func (a *aimer) interfaces() {
	v4 := slices.ContainsFunc(a.want.Addresses, func(w desired.Address) bool { return w.Prefix.Addr().Is4() })
	for _, name := range a.o.facing(a.facts) {
		a.goal.Elements.Add(Element{Set: SetInterfaces, Interface: name})
		if v4 {
			a.atLeast(Setting{name, arpIgnore}, 1, 1)
			a.atLeast(Setting{name, srcValidMark}, 1, 1)
			if a.number(Setting{name, rpFilter}) == 1 || a.number(Setting{"all", rpFilter}) == 1 {
				a.atLeast(Setting{name, rpFilter}, 2, 2)
			} else {
				a.hold(Setting{name, rpFilter})
			}
		}
	}
}

func (a *aimer) number(s Setting) int {
	n, err := strconv.Atoi(a.have.Settings[s])
	if err != nil {
		return -1 // the interface has just gone
	}
	return n
}

// atLeast sets a setting unless it, or the one for all interfaces, does as well.
func (a *aimer) atLeast(s Setting, enough, value int) {
	n := a.number(s)
	if n < 0 {
		return
	}
	if n >= enough || a.number(Setting{"all", s.Name}) >= enough {
		a.hold(s)
		return
	}
	a.goal.Settings[s] = strconv.Itoa(value)
}

// hold leaves a setting as it is.
func (a *aimer) hold(s Setting) {
	if value, there := a.have.Settings[s]; there {
		a.goal.Settings[s] = value
	}
}

// facing lists the interfaces that face the switch or clients.
func (o Options) facing(facts Facts) []string {
	var out []string
	for _, l := range facts.Links {
		if l.ARP && o.faces(l) {
			out = append(out, l.Name)
		}
	}
	for _, w := range facts.Ways {
		if w.OnLink {
			out = append(out, w.Device)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (o Options) faces(l Link) bool {
	if len(o.Interfaces) == 0 {
		return slices.Contains([]string{"", "bond", "team", "vlan"}, l.Kind)
	}
	return slices.ContainsFunc(o.Interfaces, func(pattern string) bool {
		ok, _ := path.Match(pattern, l.Name) // validate tried them all
		return ok
	})
}
