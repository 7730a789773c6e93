// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"fmt"
	"net/netip"
	"testing"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/internal/netnstest"
)

// Addresses that another controller gave: such as a balancer outside has, and the node's own, as klipper writes them.
var (
	given4 = netip.MustParseAddr("198.51.100.77")
	given6 = netip.MustParseAddr("2001:db8:77::1")
)

// givenByOthers is web at no address of the group.
func givenByOthers(pods ...int) *desired.Service {
	s := published(pods...)
	s.Addresses, s.ByOthers = nil, []netip.Addr{given4, given6, node4}
	return s
}

// K32: where the node is in kube-proxy's place, addresses that other controllers wrote into the status lead to every endpoint, from
// outside, from the node and from pods, as addresses of the group do; also an address of the node itself.
// Rule: K32.
func TestAddressesOfOthersLeadToEndpoints(t *testing.T) {
	l := newNodePortLab(t)
	l.node.Run("ip", "-6", "route", "add", "default", "via", "2001:db8:c::2")
	l.apply(givenByOthers(1, 3))
	for _, c := range []struct {
		from, network string
		to            netip.AddrPort
		want          map[string]string
	}{
		{"client", "tcp", at(given4, 80), map[string]string{"pod1": "203.0.113.2", "pod3": "10.0.3.1"}},
		{"client", "udp", at(given6, 53), map[string]string{"pod1": "2001:db8:c::2", "pod3": "fd00:0:0:3::1"}},
		{"client", "tcp", at(node4, 80), map[string]string{"pod1": "203.0.113.2", "pod3": "10.0.3.1"}},
		{"node", "tcp", at(given6, 80), map[string]string{"pod1": "fd00:0:0:1::1", "pod3": "fd00:0:0:3::1"}},
		{"pod1", "tcp", at(given4, 80), map[string]string{"pod1": "10.0.1.1", "pod3": "10.0.1.2"}},
	} {
		wantSources(t, fmt.Sprintf("%s, %s to %s", c.from, c.network, c.to), l.sources(c.from, c.network, c.to, "pod1", "pod3"), c.want)
	}
	l.apply(givenByOthers())
	l.want("no endpoint", l.client, "tcp", at(given4, 80), "refused")
	l.apply()
	l.want("gone", l.client, "tcp", at(node4, 80), "refused")
	for set, elements := range l.nat.planner.Ruleset().Elements {
		if (set == ipv4.name(setOthers) || set == ipv6.name(setOthers)) && len(elements) > 0 {
			t.Errorf("set %s keeps %d", set, len(elements))
		}
	}
}

// K32: a port that is no Service's at such an address is whoever has it, in this case the node's programs; node ports are served beside it.
// Rule: K32.
func TestOtherPortsOfAddressesOfOthersAreLeftAlone(t *testing.T) {
	l := newNodePortLab(t)
	l.node.Serve("203.0.113.1:22", netnstest.Say("node itself"))
	s := givenByOthers(1)
	s.NodePortsIPv4 = true
	l.apply(s)
	if who, _ := l.must(l.client, "tcp", at(node4, 22)); who != "node" {
		t.Errorf("%s answers at the node's own port", who)
	}
	if who, _ := l.must(l.client, "tcp", at(node4, 30080)); who != "pod1" {
		t.Errorf("%s answers at a node port", who)
	}
	l.want("a port of nobody's", l.client, "tcp", at(node4, 81), "refused")
}

// K22, K29, K32, K36: what a Service says of clients from outside holds at such addresses, too.
// Rule: K32.
func TestAddressesOfOthersHeedTheService(t *testing.T) {
	l := newNodePortLab(t)
	s := givenByOthers(2, 3)
	s.Local = true
	l.apply(s)
	for range 10 {
		if pod, saw := l.must(l.client, "tcp", at(given4, 80)); pod != "pod2" || saw != "203.0.113.2" {
			t.Fatalf("Local: %s answered and saw %s", pod, saw)
		}
	}
	l.sources("pod1", "tcp", at(given4, 80), "pod2", "pod3")
	s = givenByOthers(3)
	s.Local = true
	l.apply(s)
	l.want("Local, none here", l.client, "tcp", at(given4, 80), "silence")
	s = givenByOthers(1, 2)
	s.SourceRanges = prefixes("10.0.0.0/8")
	l.apply(s)
	l.want("out of range", l.client, "tcp", at(given4, 80), "silence")
	l.sources("pod1", "tcp", at(given4, 80), "pod1", "pod2")
	s = givenByOthers(1, 2)
	s.Affinity = 3600e9
	l.apply(s)
	first, _ := l.must(l.client, "tcp", at(given4, 80))
	for range 10 {
		if pod, _ := l.must(l.client, "tcp", at(node4, 80)); pod != first {
			t.Fatalf("the client has %s, and then %s", first, pod)
		}
	}
}

// K32: beside kube-proxy that intercepts them, and nothing is written for them.
// Rule: K32.
func TestAddressesOfOthersAreLeftToKubeProxy(t *testing.T) {
	l := newLab(t) // without nodePortAddresses
	l.apply(givenByOthers(1))
	l.want("kube-proxy's", l.client, "tcp", at(node4, 80), "refused")
	for set, elements := range l.nat.planner.Ruleset().Elements {
		if len(elements) > 0 && set != ipv4.name(setCluster) && set != ipv6.name(setCluster) {
			t.Errorf("set %s has %d elements", set, len(elements))
		}
	}
}
