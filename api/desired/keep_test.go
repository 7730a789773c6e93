// SPDX-License-Identifier: Apache-2.0

package desired_test

import (
	"net/netip"
	"testing"

	"fairlead.io/fairlead/api/desired"
	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/fsm"
)

// stateOf is a state with a Service, which may be nil.
func stateOf(t *testing.T, s *desired.Service) desired.State {
	t.Helper()
	m := model{}
	if s != nil {
		value, err := desired.ServiceValue(*s)
		must(t, err)
		m[desired.ServiceKey(s.Name)] = value
		for _, a := range s.Addresses {
			value, err := desired.AddressValue([]desired.Port{{Protocol: 6, Number: 80}})
			must(t, err)
			m[desired.AddressKey(a)] = value
		}
	}
	var p desired.Pieces
	for k, v := range m {
		must(t, p.Put(k, v))
	}
	changes, err := p.Bytes()
	must(t, err)
	var steps desired.Steps
	_, err = steps.Add(&fairleadv1.SyncResponse{
		Revision: desired.RevisionMessage(fsm.Revision{Epoch: 1, Index: 1}), Full: true, Changes: changes, Digest: m.digest(), Node: desired.NodeMessage("g", nil, nil),
	})
	must(t, err)
	return steps.State
}

// Balancing §9, §10: whoever was away while a Service went keeps its address for packets that still come, and neither its ClusterIPs nor
// its node ports, nor what other controllers gave it: another one may have those. A Service that only gave its address up keeps them.
func TestKeepingLeavesOutWhatTheAPIServerMayGiveToAnother(t *testing.T) {
	vip, inside, byOthers := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("10.96.0.10"), netip.MustParseAddr("198.51.100.1")
	s := desired.Service{
		Name: "a/web", Addresses: []netip.Addr{vip}, ClusterIPs: []netip.Addr{inside}, InternalLocal: true, NodePortsIPv4: true, NodePortsIPv6: true,
		ByOthers: []netip.Addr{byOthers}, HealthCheckNodePort: 30999,
		Frontends: []desired.Frontend{{Name: "web", Port: desired.Port{Protocol: 6, Number: 80}, NodePort: 30080}},
	}
	before := stateOf(t, &s)
	kept, err := stateOf(t, nil).Keeping(before, map[netip.Addr]bool{vip: true})
	must(t, err)
	if n := len(kept.Services()); n != 1 {
		t.Fatalf("%d Services are kept", n)
	}
	if k := kept.Services()[0]; len(k.Addresses) != 1 || len(k.ClusterIPs) > 0 || k.InternalLocal || k.NodePortsIPv4 || k.NodePortsIPv6 || k.Frontends[0].NodePort != 0 || len(k.ByOthers) > 0 || k.HealthCheckNodePort != 0 {
		t.Errorf("of one that is gone is kept %+v", k)
	}
	given := s
	given.Addresses = nil
	kept, err = stateOf(t, &given).Keeping(before, map[netip.Addr]bool{vip: true})
	must(t, err)
	if k := kept.Services()[0]; len(k.Addresses) != 1 || len(k.ClusterIPs) != 1 || !k.InternalLocal || !k.NodePortsIPv4 || k.Frontends[0].NodePort != 30080 || len(k.ByOthers) != 1 || k.HealthCheckNodePort != 30999 {
		t.Errorf("of one that gave its address up is kept %+v", k)
	}
	if was := before.Services()[0]; was.Frontends[0].NodePort != 30080 {
		t.Error("what was before is changed")
	}
}
