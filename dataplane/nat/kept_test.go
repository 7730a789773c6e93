// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/dataplane/flows"
	"fairlead.io/fairlead/internal/testkit"
)

// cache is what IPVS has of one destination: its servers by name, one with lblc, and when that changed.
type cache struct {
	servers  map[string]bool
	modified int
}

// dest is a server as IPVS has it.
type dest struct {
	name           string
	active, weight int
}

// schedule is ip_vs_lblc_schedule and ip_vs_lblcr_schedule, for one connection at a second; servers that are not available are not in all.
func (c *cache) schedule(replicated bool, all []dest, now int) {
	leastOf := func(from []dest) (least *dest) {
		for i, d := range from {
			if least == nil || least.active*d.weight > d.active*least.weight {
				least = &from[i]
			}
		}
		return least
	}
	var mine []dest
	for _, d := range all {
		if c.servers[d.name] {
			mine = append(mine, d)
		}
	}
	c.servers = map[string]bool{}
	for _, d := range mine {
		c.servers[d.name] = true
	}
	at := leastOf(mine)
	if replicated && len(mine) > 1 && now > c.modified+24*3600 {
		most := mine[0]
		for _, d := range mine[1:] {
			if most.active*d.weight < d.active*most.weight {
				most = d
			}
		}
		delete(c.servers, most.name)
		c.modified = now
	}
	if at != nil && (at.active <= at.weight || !slices.ContainsFunc(all, func(d dest) bool { return d.active*2 < d.weight })) {
		return
	}
	next := leastOf(all)
	if !replicated {
		c.servers = map[string]bool{}
	}
	if !c.servers[next.name] {
		c.servers[next.name], c.modified = true, now
	}
}

// K39: of lblc and lblcr, what is dialled has at each count the endpoints that IPVS would keep for it if one connection came just then, and
// of several each gets as with wlc. Addresses that came at other times have others.
// Rule: K39.
func TestPropertyDestinationsKeepTheEndpointsOfIPVS(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		scheduler := rapid.SampledFrom([]string{"lblc", "lblcr", "lblcr"}).Draw(t, "scheduler")
		local := rapid.Bool().Draw(t, "local")
		planner, now := NewPlanner(Config{Node: "n1", NodePortAddresses: prefixes("0.0.0.0/0")}), 0
		caches := map[string]*cache{} // by what is dialled
		have := planner.Ruleset()
		weighted := rapid.Bool().Draw(t, "weighted")
		var weights [4]uint16
		ready, addresses := [4]bool{true, true, true, true}, 1
		for i := range weights {
			weights[i] = 1
			if weighted {
				weights[i] = rapid.SampledFrom([]uint16{1, 2, 10, 20}).Draw(t, "weight")
			}
		}
		service := func() *desired.Service {
			s := &desired.Service{Name: "a/x", Addresses: vips[:addresses], Scheduler: scheduler, NodePortsIPv4: true, Local: local}
			s.Frontends = []desired.Frontend{{Port: desired.Port{Protocol: 6, Number: 80}, NodePort: 30080}}
			for i := range weights {
				s.Endpoints = append(s.Endpoints, desired.Endpoint{Address: member(i).Addr(), Node: []string{"n1", "n2", "n1", "n1"}[i], Ready: ready[i], Weight: weights[i],
					Ports: []desired.EndpointPort{{Port: desired.Port{Protocol: 6, Number: 8080}}}})
			}
			return s
		}
		loads := map[flows.Endpoint]flows.Load{}
		for range rapid.IntRange(2, 8).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				i := rapid.IntRange(0, 3).Draw(t, "whose")
				ready[i] = !ready[i]
				change, _ := planner.Step([]*desired.Service{service()})
				applyTo(t, have, change)
			case 1:
				addresses = rapid.IntRange(1, 2).Draw(t, "addresses")
				change, _ := planner.Step([]*desired.Service{service()})
				applyTo(t, have, change)
			default:
				now += rapid.SampledFrom([]int{1, 3600, 86399, 86400, 86401}).Draw(t, "seconds")
				loads = map[flows.Endpoint]flows.Load{}
				for i := range weights {
					loads[flows.Endpoint{Protocol: 6, At: member(i)}] = flows.Load{Open: rapid.SampledFrom([]int{0, 0, 1, 2, 4, 9, 21}).Draw(t, "open"), Fresh: rapid.IntRange(0, 40).Draw(t, "fresh")}
				}
				applyTo(t, have, planner.Rebalance(loads, second(now)))
			}
			if planner.loads == nil || len(planner.services) == 0 {
				continue
			}
			dialled := map[string]bool{}
			for i, a := range []netip.Addr{netip.IPv4Unspecified(), vips[0], vips[1]} {
				for _, inside := range []bool{false, true} {
					if i > addresses || inside && !local {
						continue
					}
					name := fmt.Sprintf("%s %t", a, inside)
					dialled[name] = true
					var all []dest
					for i := range weights {
						if ready[i] && (!local || inside || i != 1) {
							all = append(all, dest{member(i).String(), loads[flows.Endpoint{Protocol: 6, At: member(i)}].Open, int(weights[i])})
						}
					}
					if caches[name] == nil || len(all) < 2 {
						caches[name] = &cache{}
					}
					if len(all) < 2 {
						continue
					}
					caches[name].schedule(scheduler == "lblcr", all, now)
					sameShares(t, name, slotsOf(have, a, inside), caches[name], all, loads)
				}
			}
			for name := range caches {
				if !dialled[name] {
					delete(caches, name)
				}
			}
		}
	})
}

func member(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(1 + i)}), 8080)
}

// slotsOf are the slots of each endpoint of port 80 of an address, or of the node port.
func slotsOf(r Ruleset, a netip.Addr, inside bool) map[string]int {
	set, key := mapSlots, dialled{a, desired.Port{Protocol: 6, Number: 80}}
	by := byAddress
	if inside {
		set = mapInSlots
	}
	if a.IsUnspecified() {
		key.port.Number, by = 30080, byNodePort
	}
	out := map[string]int{}
	for at, data := range r.Elements[ipv4.name(by.name(set))] {
		for i := range 4 {
			if strings.HasPrefix(at, key.key()) && data == endpointBytes(member(i)) {
				out[member(i).String()]++
			}
		}
	}
	return out
}

// sameShares compares slots with what IPVS would give those that a destination keeps.
func sameShares(t *rapid.T, name string, slots map[string]int, kept *cache, all []dest, loads map[flows.Endpoint]flows.Load) {
	var mine []dest
	total, fresh := 0, 0
	for _, d := range all {
		if kept.servers[d.name] {
			mine = append(mine, d)
			fresh += loads[flows.Endpoint{Protocol: 6, At: netip.MustParseAddrPort(d.name)}].Fresh
		}
		total += slots[d.name]
	}
	var active, weights []int
	for _, d := range mine {
		active, weights = append(active, d.active), append(weights, d.weight)
	}
	next := max(2*fresh, len(mine))
	want := ipvs("wlc", active, weights, next)
	for _, d := range all {
		wants := 0.0
		if i := slices.IndexFunc(mine, func(m dest) bool { return m == d }); i >= 0 {
			wants = float64(want[i]) / crumbs
		}
		got := float64(slots[d.name]) / float64(total) * float64(next)
		if !kept.servers[d.name] && slots[d.name] > 0 || math.Abs(got-wants) > float64(len(all))/crumbs+float64(next)/float64(total)+1e-6 {
			t.Fatalf("%s: %s gets %f of the next %d connections, want %f; kept are %v of %v", name, d.name, got, next, wants, kept.servers, all)
		}
	}
}
