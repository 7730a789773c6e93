// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/internal/testkit"
)

// servingOf says directly which UDP endpoints a frontend has, nil if nobody has that frontend.
func servingOf(services []*desired.Service, at netip.AddrPort) map[netip.AddrPort]bool {
	var owner *desired.Service
	var front desired.Frontend
	for _, s := range services {
		for _, f := range s.Frontends {
			byNode := at.Addr().IsUnspecified() && inFamily(s, at.Addr().Is4()) && f.Port.Protocol == 17 && f.NodePort == at.Port()
			if byNode && (owner == nil || s.Name < owner.Name) {
				owner, front = s, f
			}
		}
		for _, a := range s.Addresses {
			for _, f := range s.Frontends {
				if a == at.Addr() && !slices.Contains(f.NotOn, a) && f.Port == (desired.Port{Protocol: 17, Number: at.Port()}) && (owner == nil || s.Name < owner.Name) {
					owner, front = s, f
				}
			}
		}
	}
	if owner == nil { // nobody has it as an address of the group
		for _, s := range services {
			for _, f := range s.Frontends {
				given := slices.Contains(s.ByOthers, at.Addr()) && !slices.Contains(s.Addresses, at.Addr())
				if given && f.Port == (desired.Port{Protocol: 17, Number: at.Port()}) && (owner == nil || s.Name < owner.Name) {
					owner, front = s, f
				}
			}
		}
	}
	if owner == nil {
		return nil
	}
	out := map[netip.AddrPort]bool{}
	for _, e := range owner.Endpoints {
		for _, p := range e.Ports {
			if (e.Ready || e.Serving) && e.Address.Is4() == at.Addr().Is4() && p.Name == front.Name && p.Port.Protocol == 17 {
				out[netip.AddrPortFrom(e.Address, p.Port.Number)] = true
			}
		}
	}
	return out
}

// K12, K18: every flow to an endpoint that left is named by the step, no flow that may go on is.
// Rule: K18.
func TestPropertyStepNamesFlowsToEndpointsThatLeft(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		planner := NewPlanner(Config{Node: "n1", NodePortAddresses: prefixes("0.0.0.0/0", "::/0")})
		var before []*desired.Service
		for range rapid.IntRange(1, 4).Draw(t, "steps") {
			next := genServices().Draw(t, "next")
			if len(before) > 0 && rapid.Bool().Draw(t, "successors") {
				next = drawSuccessors(t, before)
			}
			_, flows := planner.Step(next)
			fronts := []netip.AddrPort{}
			for _, a := range slices.Concat(addrs("0.0.0.0", "::"), vips, givenOf) {
				for _, port := range []uint16{53, 30053, 30054} {
					fronts = append(fronts, netip.AddrPortFrom(a, port))
				}
			}
			for _, at := range fronts {
				was, now := servingOf(before, at), servingOf(next, at)
				may, looked := flows[Frontend(at)]
				for endpoint := range was {
					if ends := looked && !may[endpoint]; ends == now[endpoint] {
						t.Fatalf("flow from %s to %s: ended %v, serves %v", at, endpoint, ends, now[endpoint])
					}
				}
				for endpoint := range now {
					if looked && !may[endpoint] {
						t.Fatalf("flow from %s to %s, which serves, is ended", at, endpoint)
					}
				}
				if fresh := was == nil && now != nil; fresh && !looked {
					t.Fatalf("%s is new, and flows that nobody translated are not looked for", at)
				}
			}
			before = next
		}
	})
}
