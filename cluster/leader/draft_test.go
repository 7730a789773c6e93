// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"testing"

	"fairlead.io/fairlead/fsm/world"
)

// What only the API server knows of an object that is there already is not a change, though the manifest lacks it: who it
// is, how old, its families and node ports, and how a Node is.
func TestForecastKeepsWhatManifestsLeaveToOthers(t *testing.T) {
	s := routedScene(t)
	w := s.world.Services[0]
	w.UID, w.Version, w.Created, w.Families, w.FamilyPolicy, w.Ports[0].NodePort = "real", 7, 99, world.FamiliesOf(world.IPv4), world.SingleStack, 30080
	s.world.Nodes[0].UID, s.world.Nodes[0].Version = "node", 8
	s.group.settle(s.input())
	in := s.input()
	in.Record = s.group.state.Read()
	draft := drafted(t, "service web ip=203.0.113.10", "node n1 192.0.2.1")
	draft.Services[0].UID, draft.Nodes[0].UID = "", ""
	draft.Nodes[0].Addresses, draft.Nodes[0].Ready = nil, false
	f, err := Foresee(t.Context(), in, Draft{World: draft})
	if err != nil || len(f.Changes)+len(f.Waiting)+len(f.Pending) > 0 {
		t.Errorf("%v: %+v", err, f)
	}
	if draft.Services[0].UID != "" {
		t.Error("the draft was written to")
	}
	whole := in
	clusters := *in.Views[0].World
	clusters.WholeCluster = true
	whole.Views = []Admitted{{World: &clusters}}
	if _, err := Foresee(t.Context(), whole, Draft{World: draft, InPlaceOf: "script"}); err == nil {
		t.Error("files were taken for all of a cluster")
	}
}

// Where configuration is that is there already, and which object it is, is the API server's word, too.
func TestForecastKeepsTheNamespaceOfConfiguration(t *testing.T) {
	lines := []string{"pool front 203.0.113.10-203.0.113.20", "peer tor 192.0.2.254 asn=65001", "advertisement all", "l2 lan pools=front"}
	s := newScene(t)
	for _, line := range lines {
		s.line(line + " home=metallb-system")
	}
	s.group.settle(s.input())
	in := s.input()
	in.Record = s.group.state.Read()
	f, err := Foresee(t.Context(), in, Draft{World: drafted(t, lines...)})
	if err != nil || len(f.Changes)+len(f.Waiting)+len(f.Pending) > 0 {
		t.Errorf("%v: %+v", err, f)
	}
}
