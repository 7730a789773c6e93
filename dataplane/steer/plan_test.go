// SPDX-License-Identifier: Apache-2.0

package steer_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/dataplane/steer"
	"fairlead.io/fairlead/internal/testkit"
)

var nodeDefault = steer.Route{Table: 254, To: netip.MustParsePrefix("0.0.0.0/0"), Device: "eth1", Gateway: netip.MustParseAddr("10.9.0.1")}

// facts are those of a node with two switches in each family; unreachable is none.
func facts() steer.Facts {
	f := steer.Facts{Ways: map[netip.Addr]steer.Way{}}
	for _, name := range []string{"eth0", "eth1"} {
		f.Links = append(f.Links, steer.Link{Name: name, ARP: true})
	}
	for _, s := range []string{"192.0.2.253", "192.0.2.254", "2001:db8:a::253", "2001:db8:a::254"} {
		a := netip.MustParseAddr(s)
		f.Ways[a] = steer.Way{Device: "eth0", Source: of(a.Is6(), netip.MustParseAddr("192.0.2.11"), netip.MustParseAddr("2001:db8:a::11")), OnLink: true}
	}
	return f
}

func drawAddress(t *rapid.T, label string) netip.Addr {
	first := vip4
	if rapid.Bool().Draw(t, label+" is v6") {
		first = vip6
	}
	return many(first, 6)[rapid.IntRange(0, 5).Draw(t, label)]
}

func drawWanted(t *rapid.T) steer.Wanted {
	var w steer.Wanted
	addresses := map[netip.Addr]bool{}
	for range rapid.IntRange(0, 12).Draw(t, "addresses") {
		addresses[drawAddress(t, "wanted")] = true
	}
	for _, a := range slices.SortedFunc(maps.Keys(addresses), netip.Addr.Compare) {
		var ports []desired.Port
		for p := range rapid.IntRange(0, 2).Draw(t, "ports") {
			ports = append(ports, desired.Port{Protocol: 6, Number: uint16(80 + p)})
		}
		w.Addresses = append(w.Addresses, desired.Address{Prefix: netip.PrefixFrom(a, a.BitLen()), Ports: ports})
	}
	for _, choice := range [][]string{{"192.0.2.253", "192.0.2.254", "203.0.113.1", ""}, {"2001:db8:a::253", "2001:db8:a::254", "2001:db8:77::1", ""}} {
		if s := choice[min(rapid.IntRange(0, 7).Draw(t, "switch")%5, 3)]; s != "" {
			w.Config.Switches = append(w.Config.Switches, netip.MustParseAddr(s))
		}
	}
	if rapid.IntRange(0, 3).Draw(t, "tables") == 0 {
		w.Config.InTable, w.Config.OutTable = 201, 202
	}
	w.Config.ReplaceDefault = rapid.IntRange(0, 3).Draw(t, "test model") == 0
	return w
}

// drawOptions draws those that a node's configuration or an agent's may change.
func drawOptions(t *rapid.T) steer.Options {
	return steer.Options{
		RulesMax: 4,
		MarkIn:   rapid.SampledFrom([]uint32{0x1000, 0x1000, 0x1000, 0x800}).Draw(t, "mark in"),
		MarkOut:  rapid.SampledFrom([]uint32{0x2000, 0x2000, 0x40, 0x80, 0x2040}).Draw(t, "mark out"),
	}
}

// disturb has somebody else do something: take a thing of ours away, or add one of his own.
func (w modelKernel) disturb(t *rapid.T) {
	own := slices.DeleteFunc(slices.SortedFunc(maps.Keys(w.Rules), func(a, b steer.Rule) int { return cmpText(a, b) }), func(r steer.Rule) bool { return r.Protocol != ours })
	routes := slices.DeleteFunc(slices.SortedFunc(maps.Keys(w.Routes), func(a, b steer.Route) int { return cmpText(a, b) }), func(r steer.Route) bool { return r.Protocol != ours || r.Table == 254 })
	switch rapid.IntRange(0, 9).Draw(t, "disturbance") {
	case 0:
		if len(own) > 0 {
			delete(w.Rules, rapid.SampledFrom(own).Draw(t, "rule taken"))
		}
	case 1:
		if len(routes) > 0 {
			delete(w.Routes, rapid.SampledFrom(routes).Draw(t, "route taken"))
		}
	case 2:
		w.Filter = ""
		clear(w.Elements)
	case 3: // the old daemon
		a := drawAddress(t, "old")
		p := netip.PrefixFrom(a, a.BitLen())
		w.Rules[steer.Rule{V6: a.Is6(), Priority: 32700, To: p, Table: 101}] = true
		w.Rules[steer.Rule{V6: a.Is6(), Priority: 32699, From: p, Table: 102}] = true
		metric := uint32(0)
		if a.Is6() {
			metric = 1024
		}
		old := steer.Route{Table: 101, To: everywhere(a), Local: true, Device: "lo", Metric: metric, Protocol: 3}
		if w.lookup(101, of(a.Is6(), pod4, pod6)) == "" {
			w.Routes[old] = true
		}
	case 4: // somebody else
		a := drawAddress(t, "foreign")
		priority := rapid.SampledFrom([]uint32{100, 32701}).Draw(t, "priority")
		w.Rules[steer.Rule{V6: a.Is6(), Priority: priority, To: netip.PrefixFrom(a, a.BitLen()), Table: 77}] = true
		if rapid.Bool().Draw(t, "leads away") {
			w.Routes[steer.Route{Table: 77, To: everywhere(a), Device: "eth1", Gateway: of(a.Is6(), pod4, pod6)}] = true
		}
	case 5:
		a := drawAddress(t, "foreign at ours")
		r := steer.Rule{V6: a.Is6(), Priority: 30101, To: netip.PrefixFrom(a, a.BitLen()), Table: 101}
		like := r
		like.Protocol = ours
		if !w.Rules[like] {
			w.Rules[r] = true
		}
	case 6: // a route that takes an address's packets in our table
		a := drawAddress(t, "foreign route")
		r := steer.Route{Table: 101, To: netip.PrefixFrom(a, a.BitLen()), Device: "eth0", Metric: rapid.SampledFrom([]uint32{0, 1024}).Draw(t, "metric")}
		own := r
		own.Local, own.Device, own.Protocol = true, "lo", ours
		if !w.Routes[own] {
			w.Routes[r] = true
		}
	}
}

// everywhere is the prefix of all addresses of the family of one.
func everywhere(a netip.Addr) netip.Prefix {
	return netip.PrefixFrom(of(a.Is6(), netip.IPv4Unspecified(), netip.IPv6Unspecified()), 0)
}

// cmpText compares all that is in rules or routes: their String leaves some of it out.
func cmpText(a, b any) int {
	x, err := json.Marshal(a)
	y, also := json.Marshal(b)
	if err := errors.Join(err, also); err != nil {
		panic(err)
	}
	return bytes.Compare(x, y)
}

// foreign is what is not ours; the old daemon's for wanted addresses are left out, which may go.
func (w modelKernel) foreign() (out []string) {
	for r := range w.Rules {
		old := r.Priority == 32700 || r.Priority == 32699
		if r.Protocol != ours && !old {
			out = append(out, r.String())
		}
	}
	for r := range w.Routes {
		if r.Protocol != ours && r.To.Bits() > 0 {
			out = append(out, r.String())
		}
	}
	slices.Sort(out)
	return out
}

// kept is what must go on working of an address while changes are made.
type kept struct {
	addr      netip.Addr
	host, pod bool // answers go to a switch
	idle      bool // those of a connection that began before, too
	known     bool // the nftables table tells all bits of its mark
	ports     []desired.Port
}

// Whatever is wanted, whatever somebody else did before and wherever the agent died the last time: what is wanted in
// the end is what there is; nothing foreign changes; and no step takes from an address that stays what it had.
func TestPropertyPlansLeadToTheGoalWithoutAGap(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		w := newModelKernel()
		w.Routes[nodeDefault] = true
		for _, i := range []string{"eth0", "eth1", "all"} {
			for _, name := range []string{"arp_ignore", "rp_filter", "src_valid_mark"} {
				w.Settings[steer.Setting{Interface: i, Name: name}] = rapid.SampledFrom([]string{"0", "1", "2"}).Draw(t, "setting")
			}
		}
		settings := maps.Clone(w.Settings)
		for range rapid.IntRange(1, 6).Draw(t, "states") {
			want := drawWanted(t)
			w.disturb(t)
			w.converge(t, drawOptions(t), want, rapid.IntRange(0, 5).Draw(t, "dies") == 0)
		}
		w.converge(t, drawOptions(t), steer.Wanted{}, false)
		for r := range w.Rules {
			if r.Protocol == ours {
				t.Fatalf("left: %s", r)
			}
		}
		for r := range w.Routes {
			if r.Protocol == ours {
				t.Fatalf("left: %s", r)
			}
		}
		if w.Filter != "" || !maps.Equal(w.Settings, settings) || !w.Routes[nodeDefault] {
			t.Fatalf("left: filter %q, settings %v, routes %v", w.Filter, w.Settings, w.Routes)
		}
	})
}

// converge carries a plan out, or a part of it, and checks every step. In the end connections begin that live until the
// next plan.
func (w modelKernel) converge(t *rapid.T, o steer.Options, want steer.Wanted, dies bool) {
	goal := steer.Aim(o, want, facts(), w.view())
	plan := slices.Collect(steer.Plan(w.view(), goal))
	stay := w.kept(want, goal)
	foreign := w.foreign()
	guarded := slices.DeleteFunc(append(many(vip4, 6), many(vip6, 6)...), func(a netip.Addr) bool { return !w.filtered(a) })
	for i, c := range plan {
		if dies && i == len(plan)/2 {
			return
		}
		if err := w.make(c); err != nil {
			t.Fatalf("step %d of %v: %v", i, plan, err)
		}
		w.check(t, fmt.Sprintf("after step %d (%s) of %v", i, c, plan), stay)
		for _, a := range guarded {
			if w.own().arrives(a) && !w.filtered(a) {
				t.Fatalf("after step %d (%s) of %v: %s is delivered here with all ports open", i, c, plan, a)
			}
		}
	}
	if got := w.foreign(); !slices.Equal(got, foreign) {
		t.Fatalf("foreign rules and routes were %v, are %v", foreign, got)
	}
	if again := slices.Collect(steer.Plan(w.view(), steer.Aim(o, want, facts(), w.view()))); len(again) > 0 {
		t.Fatalf("once more: %v", again)
	}
	w.reached(t, want, goal)
	for _, k := range stay {
		if mark := w.idle[k.addr]; k.idle && k.known && mark&^o.MarkOut != 0 {
			t.Fatalf("a connection of %s has the mark %#x, not only bits of %#x", k.addr, mark, o.MarkOut)
		}
	}
	clear(w.idle)
	for _, a := range want.Addresses {
		if _, failed := goal.Failed[a.Prefix.Addr()]; !failed {
			w.connect(a.Prefix.Addr())
		}
	}
}

// kept lists what works and stays wanted.
func (w modelKernel) kept(want steer.Wanted, goal steer.Goal) (out []kept) {
	for _, a := range want.Addresses {
		addr := a.Prefix.Addr()
		named := slices.ContainsFunc(want.Config.Switches, func(s netip.Addr) bool { return s.Is6() == addr.Is6() })
		if _, failed := goal.Failed[addr]; failed || !w.arrives(addr) || !w.filtered(addr) {
			continue
		}
		host, pod := w.leaves(addr)
		k := kept{addr: addr, host: named && host != "", pod: named && pod != ""}
		_, begun := w.idle[addr]
		k.idle = begun && named && w.idleLeaves(addr) != ""
		_, now, former := w.marks()
		k.known = w.idle[addr]&^(now|former) == 0
		for _, p := range a.Ports {
			if w.Elements[steer.PortElement(addr, p)] {
				k.ports = append(k.ports, p)
			}
		}
		out = append(out, k)
	}
	return out
}

func (w modelKernel) check(t *rapid.T, when string, stay []kept) {
	for _, k := range stay {
		if !w.arrives(k.addr) || !w.filtered(k.addr) {
			t.Fatalf("%s: %s does not arrive any more: rules %v, routes %v", when, k.addr, w.Rules, w.Routes)
		}
		host, pod := w.leaves(k.addr)
		if k.host && (host == "" || host == "here") || k.pod && (pod == "" || pod == "here") {
			t.Fatalf("%s: answers of %s leave by %q and %q", when, k.addr, host, pod)
		}
		if way := w.idleLeaves(k.addr); k.idle && (way == "" || way == "here") {
			t.Fatalf("%s: answers of %s leave by %q if its connection is idle: mark %#x, filter %q", when, k.addr, way, w.idle[k.addr], w.Filter)
		}
		for _, p := range k.ports {
			if !w.Elements[steer.PortElement(k.addr, p)] {
				t.Fatalf("%s: port %d of %s is closed", when, p.Number, k.addr)
			}
		}
	}
}

// reached checks the end by a simple reckoning of what there should be.
func (w modelKernel) reached(t *rapid.T, want steer.Wanted, goal steer.Goal) {
	wantedOf := map[netip.Addr]bool{}
	for _, a := range want.Addresses {
		wantedOf[a.Prefix.Addr()] = true
		addr := a.Prefix.Addr()
		if _, failed := goal.Failed[addr]; failed {
			continue
		}
		if !w.arrives(addr) {
			t.Fatalf("%s does not arrive: rules %v, routes %v", addr, w.Rules, w.Routes)
		}
		host, pod := w.leaves(addr)
		for _, s := range want.Config.Switches {
			if _, reachable := facts().Ways[s]; s.Is6() == addr.Is6() && reachable && (host != s.String() || pod != s.String()) {
				t.Fatalf("answers of %s leave by %q and %q, not by %s", addr, host, pod, s)
			}
		}
		named := slices.ContainsFunc(want.Config.Switches, func(s netip.Addr) bool { _, on := facts().Ways[s]; return on && !s.Is6() })
		if way := w.returns(addr); named && !addr.Is6() && !want.Config.ReplaceDefault && way != nodeDefault.Gateway.String() {
			t.Fatalf("refusals of %s to who did not come through the switch leave by %q, not by the main table: rules %v", addr, way, w.Rules)
		}
		for n := range 3 {
			p := desired.Port{Protocol: 6, Number: uint16(80 + n)}
			if open := w.Elements[steer.PortElement(addr, p)]; open != slices.Contains(a.Ports, p) {
				t.Fatalf("port %d of %s open: %v", p.Number, addr, open)
			}
		}
	}
	for _, a := range append(many(vip4, 6), many(vip6, 6)...) {
		if !wantedOf[a] && (w.filtered(a) || slices.ContainsFunc(slices.Collect(maps.Keys(w.Rules)), func(r steer.Rule) bool {
			return r.Protocol == ours && (r.To.IsValid() && r.To.Addr() == a || r.From.IsValid() && r.From.Addr() == a)
		})) {
			t.Fatalf("%s is not wanted, and still there", a)
		}
	}
	rules := 0
	for r := range w.Rules {
		if r.Protocol == ours {
			rules++
		}
	}
	if rules > 2*(2*4+2) {
		t.Fatalf("%d rules for at most 4 addresses of a family with their own: %v", rules, w.Rules)
	}
}
