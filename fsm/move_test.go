// SPDX-License-Identifier: Apache-2.0

package fsm_test

import (
	"net/netip"
	"strings"
	"testing"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/fsmtest"
)

// An address follows a move only while all who have it were moved to the same node. Drawn histories come here seldom.
func TestAnAddressMovesWithAllWhoHaveIt(t *testing.T) {
	s := formed(t)
	address := netip.MustParseAddr("192.0.2.1")
	to := func(when string, want fsm.NodeID) {
		t.Helper()
		if got := s.Read().MovedTo(address.String()); got != want {
			t.Errorf("%s: moved to %q, not %q", when, got, want)
		}
	}
	own := func(id fsm.ServiceID, port uint16) {
		tell(t, s, &fsm.PutService{Service: fsm.Service{ID: id, UID: "u", Version: 1}})
		tell(t, s, &fsm.Allocate{Address: address, Service: id, Pool: "public", SharingKey: "k", Ports: []fsm.Port{{Protocol: fsm.TCP, Number: port}}})
	}
	tell(t, s, &fsm.PutPool{Pool: fsm.Pool{Name: "public", Ranges: []fsm.Range{{From: address, To: address}}}})
	tell(t, s, &fsm.PutNode{ID: "n1", UID: "n1", Eligible: true})
	tell(t, s, &fsm.PutNode{ID: "n2", UID: "n2", Eligible: true})
	own("shop/a", 80)
	tell(t, s, &fsm.PutService{Service: fsm.Service{ID: "shop/b", UID: "u", Version: 1}})
	to("before", "")
	tell(t, s, &fsm.BeginMove{Service: "shop/a", Node: "n1"})
	to("one owner", "n1")
	tell(t, s, &fsm.BeginMove{Service: "shop/b", Node: "n2"})
	own("shop/b", 81)
	to("owners moved to several nodes", "")
	tell(t, s, &fsm.EndMove{Service: "shop/b"})
	to("one of two owners moved", "")
	tell(t, s, &fsm.ReleaseAllocation{Address: address, Service: "shop/b"})
	to("the other one gave it up", "n1")
	tell(t, s, &fsm.PutService{Service: fsm.Service{ID: "shop/a", UID: "u", Version: 2, AllNodes: true}})
	to("all nodes are asked for", "")
}

// What would be without effect is refused, and the refusal says why.
func TestMovesWithoutEffectAreRefused(t *testing.T) {
	s := formed(t)
	put := func(id fsm.NodeID, eligible bool, why string) {
		tell(t, s, &fsm.PutNode{ID: id, UID: "u", Eligible: eligible, Why: why})
	}
	put("n1", true, "")
	put("out", false, "not ready")
	put("down", true, "")
	put("drained", true, "")
	tell(t, s, &fsm.SetLiveness{Node: "down", Liveness: fsm.NodeDown})
	tell(t, s, &fsm.BeginDrain{Of: fsm.DrainNode, Name: "drained"})
	tell(t, s, &fsm.PutService{Service: fsm.Service{ID: "shop/a", UID: "u"}})
	tell(t, s, &fsm.PutService{Service: fsm.Service{ID: "shop/all", UID: "u", AllNodes: true}})
	for want, c := range map[string]fsm.Command{
		"service shop/x: not-found":                      &fsm.BeginMove{Service: "shop/x", Node: "n1"},
		"node n9: not-found":                             &fsm.BeginMove{Service: "shop/a", Node: "n9"},
		"have not eligible: not ready":                   &fsm.BeginMove{Service: "shop/a", Node: "out"},
		"have down":                                      &fsm.BeginMove{Service: "shop/a", Node: "down"},
		"have being drained":                             &fsm.BeginMove{Service: "shop/a", Node: "drained"},
		"service shop/all: wrong-state (have every node": &fsm.BeginMove{Service: "shop/all", Node: "n1"},
		"service shop/y: not-found":                      &fsm.EndMove{Service: "shop/y"},
	} {
		err := fsmtest.Try(t, s, c).Err()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, which does not say %q", c, err, want)
		}
	}
}
