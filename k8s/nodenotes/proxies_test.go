// SPDX-License-Identifier: Apache-2.0

package nodenotes

import (
	"maps"
	"net/netip"
	"testing"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/fsmtest"
)

// withTunnel is a record in which n1 has a tunnel, n2 gave its up, and n3 has none.
func withTunnel(t *testing.T) *fsm.State {
	t.Helper()
	s := fsmtest.NewOf(t, "g1", 2)
	fsmtest.Tell(t, s,
		&fsm.SetTunnels{Settings: fsm.TunnelSettings{
			Range4: netip.MustParsePrefix("10.250.0.0/24"), Range6: netip.MustParsePrefix("fd00:250::/64"), Port: 7446, VNI: 7446,
		}},
		&fsm.PutNode{ID: "n1", Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1")}},
		&fsm.PutTunnel{Host: "n1", Underlay: netip.MustParseAddr("192.0.2.1")},
		&fsm.PutTunnel{Host: "n2", Underlay: netip.MustParseAddr("192.0.2.2")}, &fsm.ReleaseTunnel{Host: "n2"})
	return s
}

// Balancing §2.3 and §13.3: the tunnel's addresses are written as ours; an administrator's value is never written over, and wins.
// Rule: balancing §2.
func TestProxyAddressesFollowTheTunnelAndLeaveAdministrators(t *testing.T) {
	const v4, v6, managed = "balancing.elf.io/nodeProxyIpv4", "balancing.elf.io/nodeProxyIpv6", "balancing.elf.io/nodeProxyManaged"
	ours := map[string]string{v4: "10.250.0.1", v6: "fd00:250::1", managed: "true"}
	for name, c := range map[string]struct {
		node string
		has  map[string]string
		owns []string
		want map[string]string
	}{
		"new":                    {"n1", nil, nil, ours},
		"as it is":               {"n1", ours, []string{v4, v6, managed}, ours},
		"another range before":   {"n1", map[string]string{v4: "10.9.0.1", managed: "true"}, []string{v4, managed}, ours},
		"given up":               {"n2", ours, []string{v4, v6, managed}, nil},
		"no tunnel":              {"n3", nil, nil, nil},
		"an administrator's":     {"n1", map[string]string{v4: "203.0.113.1"}, nil, nil},
		"of the other family":    {"n1", map[string]string{v6: "2001:db8::1"}, nil, nil},
		"changed by hand":        {"n1", map[string]string{v4: "203.0.113.1", v6: "fd00:250::1", managed: "true"}, []string{v6, managed}, nil},
		"unreadable":             {"n1", map[string]string{v4: "soon"}, nil, nil},
		"an agent's of elf-io's": {"n1", map[string]string{v4: "192.0.2.1"}, nil, ours},
		"given to us":            {"n1", map[string]string{v4: "203.0.113.1", managed: "true"}, nil, ours},
	} {
		t.Run(name, func(t *testing.T) {
			seen := &Seen{Name: c.node, Annotations: c.has, Owned: map[string]bool{}}
			for _, key := range c.owns {
				seen.Owned[key] = true
			}
			if got := Proxies(withTunnel(t))(seen); !maps.Equal(got, c.want) {
				t.Errorf("%v, not %v", got, c.want)
			}
		})
	}
}
