// SPDX-License-Identifier: Apache-2.0

package steer_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/dataplane/steer"
)

var vip4, vip6 = netip.MustParseAddr("198.51.100.10"), netip.MustParseAddr("2001:db8:e1::10")

var switch4, switch6 = netip.MustParseAddr("192.0.2.254"), netip.MustParseAddr("2001:db8:a::254")

// wanted is a state of service addresses with the ports 80 and 81, and the usual configuration.
func wanted(addresses ...netip.Addr) steer.Wanted {
	w := steer.Wanted{Config: desired.Config{Switches: []netip.Addr{switch4, switch6}}}
	for _, a := range addresses {
		w.Addresses = append(w.Addresses, desired.Address{
			Prefix: netip.PrefixFrom(a, a.BitLen()), Ports: []desired.Port{{Protocol: 6, Number: 80}, {Protocol: 6, Number: 81}},
		})
	}
	return w
}

// many are n addresses of a family, the first of which is vip4 or vip6.
func many(first netip.Addr, n int) (out []netip.Addr) {
	for a := first; len(out) < n; a = a.Next() {
		out = append(out, a)
	}
	return out
}

// modelKernel is a model of a kernel, written without a look at the code under test: it refuses what a kernel refuses, and
// tells where a packet goes.
type modelKernel struct {
	*things
	idle  map[netip.Addr]uint32 // the marks of connections to addresses, of which no packet has come since they began
	order *[]steer.Rule         // as they were added
}

// things are what there is.
type things struct {
	Rules             map[steer.Rule]bool
	Routes            map[steer.Route]bool
	Filter            string
	Elements          map[steer.Element]bool
	Settings, Changed map[steer.Setting]string
}

func newModelKernel() modelKernel {
	return modelKernel{idle: map[netip.Addr]uint32{}, order: new([]steer.Rule), things: &things{
		Rules: map[steer.Rule]bool{}, Routes: map[steer.Route]bool{}, Elements: map[steer.Element]bool{},
		Settings: map[steer.Setting]string{}, Changed: map[steer.Setting]string{},
	}}
}

// view is what an agent finds.
func (w modelKernel) view() *steer.View {
	v := steer.NewView()
	v.Filter, v.Settings, v.Changed = w.Filter, maps.Clone(w.Settings), maps.Clone(w.Changed)
	for r := range w.Rules {
		v.Rules.Add(r)
	}
	for r := range w.Routes {
		v.Routes.Add(r)
	}
	for e := range w.Elements {
		v.Elements.Add(e)
	}
	return v
}

const ours = 83

// make carries a change out as a kernel would.
func (w modelKernel) make(c steer.Change) error {
	switch c := c.(type) {
	case steer.AddRule:
		for r := range w.Rules {
			r.Protocol = c.Rule.Protocol
			if r == c.Rule {
				return fmt.Errorf("%s: exists", c)
			}
		}
		w.Rules[c.Rule] = true
	case steer.DeleteRule:
		if !w.Rules[c.Rule] {
			return fmt.Errorf("%s: no such rule", c)
		}
		delete(w.Rules, c.Rule)
	case steer.PutRoute:
		return w.put(c.Route, c.Over)
	case steer.TakeDefault:
		return w.put(c.Route, c.Over)
	case steer.DeleteRoute:
		if !w.Routes[c.Route] {
			return fmt.Errorf("%s: no such route", c)
		}
		delete(w.Routes, c.Route)
	case steer.GiveDefault:
		delete(w.Routes, c.Route)
		if !c.Route.To.Addr().Is6() {
			w.Routes[nodeDefault] = true
		}
	case steer.EditFilter:
		return w.edit(c)
	case steer.Remark:
		for a, mark := range w.idle {
			if mark&c.From != 0 {
				w.idle[a] = mark&^c.From | c.To
			}
		}
	case steer.DropFilter:
		w.Filter = ""
		clear(w.Elements)
	case steer.SetSettings:
		for s, v := range c.Values {
			if _, changed := w.Changed[s]; !changed {
				w.Changed[s] = w.Settings[s]
			}
			w.Settings[s] = v
		}
	case steer.RestoreSettings:
		for _, s := range c.Settings {
			w.Settings[s] = w.Changed[s]
			delete(w.Changed, s)
		}
	default:
		return fmt.Errorf("unknown change %T", c)
	}
	return nil
}

func (w modelKernel) put(r, over steer.Route) error {
	there := false
	for o := range w.Routes {
		if o.Table == r.Table && o.To == r.To && o.Metric == r.Metric {
			if o != over {
				return fmt.Errorf("put %s: there is %s", r, o)
			}
			there = true
			delete(w.Routes, o)
		}
	}
	if !there && over != (steer.Route{}) {
		return fmt.Errorf("put %s: there is no %s", r, over)
	}
	w.Routes[r] = true
	return nil
}

func (w modelKernel) edit(c steer.EditFilter) error {
	if c.Reset {
		clear(w.Elements)
	} else if w.Filter == "" {
		return fmt.Errorf("%s: no such table", c)
	}
	w.Filter = c.Filter
	for e := range c.Remove.All() {
		if !w.Elements[e] {
			return fmt.Errorf("%s: no such element %v", c, e)
		}
		delete(w.Elements, e)
	}
	for e := range c.Add.All() {
		w.Elements[e] = true
	}
	return nil
}

// route tells where a packet goes: "here", a gateway, or "" for what the main table knows of.
func (w modelKernel) route(from, to netip.Addr, mark uint32) string {
	for _, r := range w.inOrder() {
		if r.V6 != to.Is6() || r.Other != "" || r.To.IsValid() && !r.To.Contains(to) || r.From.IsValid() && !r.From.Contains(from) || mark&r.Mask != r.Mark {
			continue
		}
		if way := w.lookup(r.Table, to); way != "" {
			return way
		}
	}
	return ""
}

// inOrder lists the rules as packets meet them: of equal priorities, those first that were added first.
func (w modelKernel) inOrder() []steer.Rule {
	known := map[steer.Rule]bool{}
	*w.order = slices.DeleteFunc(*w.order, func(r steer.Rule) bool {
		known[r] = w.Rules[r]
		return !known[r]
	})
	var added []steer.Rule
	for r := range w.Rules {
		if !known[r] {
			added = append(added, r)
		}
	}
	slices.SortFunc(added, func(a, b steer.Rule) int { return cmpText(a, b) })
	*w.order = append(*w.order, added...)
	slices.SortStableFunc(*w.order, func(a, b steer.Rule) int { return int(a.Priority) - int(b.Priority) })
	return *w.order
}

// lookup finds the route with the longest prefix, of these the one with the least metric.
func (w modelKernel) lookup(table uint32, to netip.Addr) (way string) {
	longest, least := -1, uint32(0)
	for r := range w.Routes {
		if r.Table != table || !r.To.Contains(to) || r.To.Bits() < longest || r.To.Bits() == longest && r.Metric > least {
			continue
		}
		longest, least = r.To.Bits(), r.Metric
		if way = r.Gateway.String(); r.Local {
			way = "here"
		}
	}
	return way
}

var (
	outside4, outside6 = netip.MustParseAddr("203.0.113.2"), netip.MustParseAddr("2001:db8:c::2")
	pod4, pod6         = netip.MustParseAddr("10.244.0.2"), netip.MustParseAddr("2001:db8:f::2")
)

func of(v6 bool, four, six netip.Addr) netip.Addr {
	if v6 {
		return six
	}
	return four
}

// filtered tells whether nftables takes an address for one of a service.
func (w modelKernel) filtered(a netip.Addr) bool { return w.Elements[steer.AddressElement(a)] }

// marks reads the marks of the nftables table: those of packets to service addresses and of answers, and those of which
// it exchanges whichever a connection has for the mark of answers.
func (w modelKernel) marks() (in, out, former uint32) {
	var version int
	if _, err := fmt.Sscanf(w.Filter, "v%d %v %v after %v", &version, &in, &out, &former); err != nil {
		former = 0 // an end before "after"
	}
	return in, out, former
}

// arrives tells whether a packet to an address is delivered here.
func (w modelKernel) arrives(a netip.Addr) bool {
	mark := uint32(0)
	if w.filtered(a) {
		mark, _, _ = w.marks()
	}
	return w.route(of(a.Is6(), outside4, outside6), a, mark) == "here"
}

// own is the kernel without what is not ours.
func (w modelKernel) own() modelKernel {
	v := *w.things
	v.Rules, v.Routes = maps.Clone(w.Rules), maps.Clone(w.Routes)
	maps.DeleteFunc(v.Rules, func(r steer.Rule, _ bool) bool { return r.Protocol != ours })
	maps.DeleteFunc(v.Routes, func(r steer.Route, _ bool) bool { return r.Protocol != ours })
	order := slices.Clone(w.inOrder())
	return modelKernel{things: &v, order: &order}
}

// leaves tells where this host's packets from an address go, and those of a pod that answers for it.
func (w modelKernel) leaves(a netip.Addr) (host, pod string) {
	client, mark := of(a.Is6(), outside4, outside6), uint32(0)
	if w.filtered(a) {
		_, mark, _ = w.marks()
	}
	return w.route(a, client, mark), w.route(of(a.Is6(), pod4, pod6), client, mark)
}

// returns tells where this host's packets from an address go that answer somebody who did not come through the switch.
func (w modelKernel) returns(a netip.Addr) string {
	in, out, _ := w.marks()
	return w.route(a, of(a.Is6(), pod4, pod6), in|out)
}

// connect begins a connection to an address.
func (w modelKernel) connect(a netip.Addr) {
	_, w.idle[a], _ = w.marks()
}

// idleLeaves tells where a pod's next packet of such a connection goes.
func (w modelKernel) idleLeaves(a netip.Addr) string {
	_, out, former := w.marks()
	mark := uint32(0)
	if w.Filter != "" && w.idle[a]&(out|former) != 0 {
		mark = out
	}
	return w.route(of(a.Is6(), pod4, pod6), of(a.Is6(), outside4, outside6), mark)
}
