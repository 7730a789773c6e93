// SPDX-License-Identifier: Apache-2.0

package derive

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// give has a Service of its own, on some nodes, have an address for itself, ready there.
func (g group) give(service int, address netip.Addr, nodes ...int) {
	id := fsm.ServiceID(fmt.Sprint("a/", service))
	route := &fsm.SetRoute{Prefix: fsm.HostPrefix(address)}
	for _, n := range nodes {
		route.Hops = append(route.Hops, fsm.HopSpec{Node: fsm.NodeID(fmt.Sprint("n", n)), Address: host(n)})
	}
	g.apply(&fsm.PutService{Service: fsm.Service{ID: id, UID: fmt.Sprint("u", service)}}, &fsm.Allocate{Address: address, Service: id, Pool: "p"}, route)
	for n := 1; n <= 4; n++ {
		g.apply(&fsm.Acknowledge{Marks: []fsm.AppliedMark{{Node: fsm.NodeID(fmt.Sprint("n", n)), Boot: "b", Upto: g.Read().Revision()}}})
	}
}

// restoredTo is the record of another group, in the quarantine that follows a restore.
func (g group) restoredTo(t *rapid.T, backup group) {
	var buf bytes.Buffer
	if err := backup.Freeze().Write(&buf); err != nil {
		t.Fatal(err)
	}
	if err := g.Restore(&buf); err != nil {
		t.Fatal(err)
	}
	g.apply(&fsm.NewEpoch{Group: "g1", Epoch: 2, Cause: "restore"})
}

// withNodes is a group with four nodes that announce themselves, too.
func withNodes() group {
	g := newGroup()
	for n := 1; n <= 4; n++ {
		node := fsm.NodeID(fmt.Sprint("n", n))
		g.apply(&fsm.PutNode{ID: node, Eligible: true}, &fsm.RegisterBoot{Node: node, Boot: "b"})
	}
	g.apply(&fsm.PutPeer{Peer: fsm.Peer{Name: "tor", Address: host(254), ASN: 65001, IPv4: true, Nodes: fsm.PeerNodes{Speak: true}}})
	return g
}

// After a restore no address leads to nodes of two Services: what is announced of one goes on, on those nodes that its Service
// was announced by, also where the restored record gives it to another one. Members and nodes that announce themselves agree.
func TestPropertyARestoredAddressLeadsToOneServicesNodes(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		backup, now := withNodes(), withNodes()
		owner := map[string]map[int]int{"backup": {}, "now": {}}
		at := map[string]map[int][]int{"backup": {}, "now": {}}
		for i := 1; i <= 3; i++ {
			for when, g := range map[string]group{"backup": backup, "now": now} {
				service := rapid.SampledFrom([]int{0, i, i + 10}).Draw(t, fmt.Sprint("owner of ", i, " ", when))
				nodes := rapid.SliceOfNDistinct(rapid.IntRange(1, 4), 1, 3, rapid.ID[int]).Draw(t, fmt.Sprint("nodes of ", i, " ", when))
				if owner[when][i] = service; service > 0 {
					g.give(service, vip(i), nodes...)
					at[when][i] = nodes
				}
			}
		}
		var shares Shares
		var all Follower
		paths, _, _ := all.Follow(now.Read())
		settled := Settled{View: now.Read(), Paths: paths}
		shares.Follow(now.Read())
		before := map[int]bgp.Routes{}
		for n := 1; n <= 4; n++ {
			before[n] = shares.Of(fsm.NodeID(fmt.Sprint("n", n))).Routes(bgp.Routes{})
		}
		now.restoredTo(t, backup)
		paths, _, _ = all.Follow(now.Read())
		kept := Keep(now.Read(), paths, settled)
		shares.Follow(now.Read())
		for i := 1; i <= 3; i++ {
			var want, own []netip.Addr
			for n := 1; n <= 4; n++ {
				had, has := slices.Contains(at["now"][i], n), slices.Contains(at["backup"][i], n)
				if had || has && (owner["now"][i] == owner["backup"][i] || owner["now"][i] == 0) {
					want = append(want, host(n))
				}
				if shares.Of(fsm.NodeID(fmt.Sprint("n", n))).Routes(before[n]).Paths.Has(fsm.HostPrefix(vip(i))) {
					own = append(own, host(n))
				}
			}
			var have []netip.Addr
			for _, p := range kept.Of(fsm.HostPrefix(vip(i))) {
				have = append(have, p.NextHop)
			}
			if !slices.Equal(have, want) || !slices.Equal(own, want) {
				t.Errorf("address %d of a/%d, by the backup of a/%d: members announce %v, nodes %v; want %v", i, owner["now"][i], owner["backup"][i], have, own, want)
			}
		}
	})
}
