// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/testkit"
)

// drawnEntry is one address in one slice: of an old pod or of a new one, at a node or nowhere, on a port of its own.
func drawnEntry(t *rapid.T, i int) *world.EndpointSlice {
	e := world.Endpoint{
		Address: netip.AddrFrom4([4]byte{10, 0, 0, rapid.ByteRange(1, 2).Draw(t, "address")}),
		Ready:   rapid.Bool().Draw(t, "ready"), Serving: rapid.Bool().Draw(t, "serving"), Terminating: rapid.Bool().Draw(t, "terminating"),
	}
	if node := one(t, "node", "n1", "n2", "n3", ""); node != "" {
		e.Place = &world.Place{Node: node}
	}
	return &world.EndpointSlice{
		Meta:        world.Meta{ID: world.ID{Namespace: "default", Name: fmt.Sprint("web-", i)}, UID: fmt.Sprint(i), Version: 1},
		ServiceName: "web", Endpoints: []world.Endpoint{e},
		Ports: []world.EndpointPort{{Name: "p80", Protocol: world.TCP, Port: uint16(rapid.IntRange(8080, 8082).Draw(t, "port"))}},
	}
}

// forWhat says what an entry is good for, as Kubernetes has it: the better ones come first.
var forWhat = []func(e *world.Endpoint) bool{
	func(e *world.Endpoint) bool { return e.Ready },
	func(e *world.Endpoint) bool { return e.Serving && e.Terminating },
	func(e *world.Endpoint) bool { return e.Serving },
	func(*world.Endpoint) bool { return true },
}

// counting lists the entries of an address that count: of the best ones those at the first node, and at none.
func counting(entries []*world.EndpointSlice, a netip.Addr) (out []*world.EndpointSlice, node string) {
	for _, good := range forWhat {
		for _, s := range entries {
			if e := &s.Endpoints[0]; e.Address == a && good(e) {
				out = append(out, s)
				if at := e.At().Node; at != "" && (node == "" || at < node) {
					node = at
				}
			}
		}
		if len(out) > 0 {
			break
		}
	}
	return slices.DeleteFunc(out, func(s *world.EndpointSlice) bool { at := s.Endpoints[0].At().Node; return at != "" && at != node }), node
}

// K13: an address that slices list several times is one endpoint. What takes connections counts with its own node and ports, and what is
// worse adds nothing, in whatever order the slices come and whatever their nodes are called.
func TestPropertyAnAddressListedTwiceIsTheOneThatTakesConnections(t *testing.T) {
	twoNodes := 0
	missing := func() string {
		if twoNodes < 20 {
			return fmt.Sprint("only ", twoNodes, " addresses at two nodes")
		}
		return ""
	}
	testkit.CheckUntil(t, missing, func(t *rapid.T) {
		var entries []*world.EndpointSlice
		for i := range rapid.IntRange(1, 6).Draw(t, "entries") {
			entries = append(entries, drawnEntry(t, i))
		}
		p := &planner{format: fsm.NewestFormat}
		w := &world.Service{Meta: world.Meta{ID: world.ID{Namespace: "default", Name: "web"}}}
		var listed []fsm.Endpoint
		for _, s := range rapid.Permutation(entries).Draw(t, "order") {
			listed = p.appendEndpoints(listed, w, s)
		}
		got := mergeEndpoints(listed)
		addresses := map[netip.Addr]bool{}
		for _, s := range entries {
			addresses[s.Endpoints[0].Address] = true
		}
		if len(got) != len(addresses) || !slices.IsSortedFunc(got, func(a, b fsm.Endpoint) int { return a.Address.Compare(b.Address) }) {
			t.Fatalf("%d endpoints of %d addresses: %+v", len(got), len(addresses), got)
		}
		for _, e := range got {
			those, node := counting(entries, e.Address)
			ports, nodes := []uint16{}, map[string]bool{}
			for _, s := range entries {
				if s.Endpoints[0].Address == e.Address {
					nodes[s.Endpoints[0].At().Node] = true
				}
			}
			ready, serving, terminating := false, false, true
			for _, s := range those {
				ports = append(ports, s.Ports[0].Port)
				ready, serving, terminating = ready || s.Endpoints[0].Ready, serving || s.Endpoints[0].Serving, terminating && s.Endpoints[0].Terminating
			}
			slices.SortFunc(ports, cmp.Compare)
			var have []uint16
			for _, port := range e.Ports() {
				have = append(have, port.Port.Number)
			}
			if string(e.Node) != node || !slices.Equal(have, slices.Compact(ports)) || e.Ready != ready || e.Serving != serving || e.Terminating != terminating {
				t.Fatalf("%s is %+v with ports %v, want node %q, ports %v, ready %t, serving %t, terminating %t", e.Address, e, have, node, ports, ready, serving, terminating)
			}
			if len(nodes) > 1 {
				twoNodes++
			}
		}
	})
}
