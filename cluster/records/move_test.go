// SPDX-License-Identifier: Apache-2.0

package records_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	apirecords "fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/records"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/fsmtest"
)

// moveTo asks for a move, and gives what, why and remedy of a refusal.
func moveTo(t *testing.T, s *records.Service, service, node string) string {
	t.Helper()
	_, err := s.Move(t.Context(), &fairleadv1.MoveRequest{Service: service, Node: node, Undo: node == "", Reason: "line card"})
	var refusal *admin.Refusal
	switch {
	case err == nil:
		return ""
	case !errors.As(err, &refusal) || refusal.Why == "" || refusal.Remedy == "":
		t.Errorf("%s to %s: refused without why and remedy: %v", service, node, err)
	}
	return err.Error()
}

// A move is over once the node has the rules and no switch leads elsewhere. Who moved it and why is told.
func TestMoveIsOverOnceOnlyTheNodeIsLeft(t *testing.T) {
	t.Parallel()
	g, _ := furnished(t)
	s := records.New(records.Options{Member: "m1", Record: g, Leader: g, Proposer: g})
	expect := func(want string) {
		t.Helper()
		var m apirecords.Move
		if err := json.Unmarshal([]byte(get(t, s, &fairleadv1.GetRequest{Kind: "moves", Name: "shop/web"}).GetDocuments()[0]), &m); err != nil {
			t.Fatal(err)
		}
		words := []string{fmt.Sprintf("done=%t", m.Done)}
		for _, l := range m.Left {
			words = append(words, fmt.Sprintf("%s via %q %s %v", l.Prefix, l.Node, l.State, l.WaitsFor))
		}
		if got := strings.Join(words, ", "); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if m.Node != "n2" || m.Reason != "line card" || m.Time == "" {
			t.Errorf("told of %+v", m)
		}
	}
	if why := moveTo(t, s, "shop/web", "n2"); !strings.Contains(why, "not eligible: cordoned") || !strings.Contains(why, "choose a node that is eligible") {
		t.Errorf("refused by %q", why)
	}
	g.Apply(t, &fsm.PutNode{ID: "n2", UID: "u-n2", Addresses: []netip.Addr{addr("198.51.100.2")}, Eligible: true}, &fsm.RegisterBoot{Node: "n2", Boot: "b"})
	if why := moveTo(t, s, "shop/web", "n2"); why != "" {
		t.Fatal(why)
	}
	prefix := netip.MustParsePrefix("192.0.2.10/32")
	expect(`done=false, 192.0.2.10/32 via "n1" announced [], 192.0.2.10/32 via "n2" wanted []`)
	g.Apply(t, &fsm.Acknowledge{Marks: []fsm.AppliedMark{{Node: "n2", Boot: "b", Upto: g.Read().Revision()}}},
		&fsm.SetRoute{Prefix: prefix, Hops: []fsm.HopSpec{{Node: "n2", Address: addr("198.51.100.2")}}})
	since := g.Read().Revision()
	expect(`done=false, 192.0.2.10/32 via "n1" withdrawing [m1]`)
	lease, _ := fsm.Get[*fsm.Lease](g.Read(), fsm.TableLeases, "192.0.2.10")
	g.Apply(t, &fsm.ReportAnnounced{Marks: []fsm.AnnouncedMark{{Server: "m1-a1b2", Run: "r1", Upto: since, Withdrawn: since}}},
		&fsm.EndLease{VIP: lease.VIP, Fence: lease.Fence},
		&fsm.FinishWithdrawal{Prefix: prefix, Node: "n1", Address: addr("198.51.100.1"), Since: since})
	expect("done=true")
	g.Apply(t, &fsm.SetRoute{Prefix: prefix})
	expect(`done=false, 192.0.2.10/32 via "n2" none []`)

	// At layer 2 the lease says who has the traffic.
	g.Apply(t, &fsm.PutL2Advertisement{Advertisement: fsm.L2Advertisement{Name: "lan", Pools: []fsm.PoolName{"edge"}, EveryNode: true}})
	expect(`done=false, 192.0.2.10/32 via "" lease []`)
	g.Apply(t, &fsm.GrantLease{VIP: lease.VIP, Holder: "n1", Term: lease.Term})
	expect(`done=false, 192.0.2.10/32 via "n1" lease []`)
	if why := moveTo(t, s, "shop/web", ""); why != "" {
		t.Fatal(why)
	}
	if _, err := s.Get(t.Context(), &fairleadv1.GetRequest{Kind: "moves", Name: "shop/web"}); err == nil {
		t.Error("the move is there after its end")
	}
}

// What would be without effect is refused, and what helps is told.
func TestMovesThatCannotBeAreRefused(t *testing.T) {
	t.Parallel()
	g, _ := furnished(t)
	s := records.New(records.Options{Member: "m1", Record: g, Leader: g, Proposer: g})
	local := fsm.Service{ID: "shop/local", UID: "u", Local: true, Endpoints: []fsm.Endpoint{{Address: addr("10.0.1.9"), Node: "n1"}}}
	everywhere := fsm.Service{ID: "shop/all", UID: "u", AllNodes: true}
	g.Apply(t, &fsm.PutService{Service: local}, &fsm.PutService{Service: everywhere}, &fsm.PutBinding{
		ID: "shop/b2", Balancer: "LoadBalancer/shop/edge/u-lb", Owner: "BackendGroup/shop/nodes/u2", Address: "198.51.100.1:30080",
		Backend: fsm.Backend{Kind: "Service", Name: "outside", UID: "u", Port: 80, Protocol: "TCP", NodePort: 30080, Node: "n1", Target: "198.51.100.1"},
	})
	for service, want := range map[string][2]string{
		"shop/x":       {"service shop/x: not-found", "fairlead get services"},
		"shop/local":   {"no ready endpoint", "have a pod of it there first"},
		"shop/all":     {"every node as a next hop", "fairlead.io/nextHops"},
		"shop/outside": {"outside load balancers, by binding shop/b2", "their driver"},
	} {
		if why := moveTo(t, s, service, "n1"); !strings.Contains(why, want[0]) || !strings.Contains(why, want[1]) {
			t.Errorf("%s: refused by %q", service, why)
		}
	}
	if why := moveTo(t, s, "shop/web", "n9"); !strings.Contains(why, "node n9: not-found") || !strings.Contains(why, "fairlead get nodes") {
		t.Errorf("unknown node: refused by %q", why)
	}
	g.Apply(t, &fsm.Allocate{Address: addr("192.0.2.10"), Service: "shop/all", Pool: "edge", Ports: []fsm.Port{{Protocol: fsm.TCP, Number: 8443}}, SharingKey: "edge"})
	if why := moveTo(t, s, "shop/web", "n1"); !strings.Contains(why, "192.0.2.10 shared with shop/all") || !strings.Contains(why, "an address of its own") {
		t.Errorf("shared address: refused by %q", why)
	}
	old := fsmtest.NewOf(t, "g1", fsm.FormatMoves-1)
	for _, node := range []string{"n1", ""} { // without a proposer: nothing may be proposed
		if why := moveTo(t, records.New(records.Options{Record: old}), "shop/web", node); !strings.Contains(why, "fairlead raft finalize") {
			t.Errorf("format 1: refused by %q", why)
		}
	}
}

// A node that advertisements leave out for all addresses of a Service would never get one, so that the move is refused.
func TestMoveToANodeThatNoAdvertisementChoosesIsRefused(t *testing.T) {
	t.Parallel()
	only := func(pools []fsm.PoolName, nodes ...fsm.NodeID) *fsm.PutAdvertisement {
		return &fsm.PutAdvertisement{Advertisement: fsm.Advertisement{Name: "default", Pools: pools, Terms: fsm.AdvertisementTerms{OnlyNodes: true, Nodes: nodes}}}
	}
	edge := []fsm.PoolName{"edge"}
	second := &fsm.Allocate{Address: addr("2001:db8:1::1"), Service: "shop/web", Pool: "six", Ports: []fsm.Port{{Protocol: fsm.TCP, Number: 80}}, SharingKey: "edge"}
	for name, c := range map[string]struct {
		commands []fsm.Command
		want     string // the kind of the advertisements; empty: it is taken
	}{
		"others-chosen": {[]fsm.Command{only(edge, "n1")}, "BGPAdvertisement"},
		"nobody-chosen": {[]fsm.Command{only(nil)}, "BGPAdvertisement"},
		"chosen":        {[]fsm.Command{only(edge, "n1", "n2")}, ""},
		"by-another": {[]fsm.Command{only(edge, "n1"),
			&fsm.PutAdvertisement{Advertisement: fsm.Advertisement{Name: "more", Pools: edge}}}, ""},
		"another-pool":  {[]fsm.Command{only([]fsm.PoolName{"six"}, "n1")}, ""},
		"one-of-two":    {[]fsm.Command{only(edge, "n1"), second}, ""},
		"both-families": {[]fsm.Command{only(nil, "n1"), second}, "BGPAdvertisement"},
		"other-service": {[]fsm.Command{&fsm.PutAdvertisement{Advertisement: fsm.Advertisement{Name: "default", Pools: edge,
			Terms: fsm.AdvertisementTerms{OnlyNodes: true, Nodes: []fsm.NodeID{"n1"}, OnlyServices: true}}}}, ""},
		"layer-2":        {[]fsm.Command{&fsm.PutL2Advertisement{Advertisement: fsm.L2Advertisement{Name: "lan", Pools: edge, Nodes: []fsm.NodeID{"n1"}}}}, "L2Advertisement"},
		"layer-2-chosen": {[]fsm.Command{&fsm.PutL2Advertisement{Advertisement: fsm.L2Advertisement{Name: "lan", Pools: edge, Nodes: []fsm.NodeID{"n2"}}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g, _ := furnished(t)
			s := records.New(records.Options{Member: "m1", Record: g, Leader: g, Proposer: g})
			g.Apply(t, &fsm.PutNode{ID: "n2", UID: "u-n2", Addresses: []netip.Addr{addr("198.51.100.2")}, Eligible: true}, &fsm.RegisterBoot{Node: "n2", Boot: "b"})
			g.Apply(t, c.commands...)
			why := moveTo(t, s, "shop/web", "n2")
			if (why == "") != (c.want == "") || !strings.Contains(why, c.want) || why != "" && !strings.Contains(why, "nodeSelectors") {
				t.Errorf("refused by %q", why)
			}
			if _, moved := fsm.Get[*fsm.Move](g.Read(), fsm.TableMoves, "shop/web"); moved != (c.want == "") {
				t.Errorf("moved: %t", moved)
			}
		})
	}
}
