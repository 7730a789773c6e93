// SPDX-License-Identifier: Apache-2.0

package group_test

import (
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/dataplane/bgp/birdtest"
	"fairlead.io/fairlead/e2e/lab"
)

// tor writes a BGPPeer of mode node for a switch.
func tor(l *lab.Lab, b *birdtest.Bird, spec string) {
	l.Manifests.Put("peer-tor.yaml", fmt.Sprintf(`apiVersion: metallb.io/v1beta2
kind: BGPPeer
metadata: {name: tor, annotations: {fairlead.io/mode: node}}
spec: {myASN: %d, peerASN: %d, peerAddress: %s, peerPort: %d, ebgpMultiHop: true%s}
`, lab.ASN, b.ASN(), b.Address(), b.Port(), spec))
}

// peered are the sessions of a switch, and since when.
func peered(b *birdtest.Bird, names ...string) string {
	var out []string
	for _, name := range names {
		s := b.Sessions()[name]
		out = append(out, fmt.Sprint(name, " ", s.Established, " ", s.Opened))
	}
	return strings.Join(out, ", ")
}

// withSpeakers is a group whose members peer with one switch, and whose nodes with another one, which knows no ADD-PATH.
func withSpeakers(t *testing.T, n int) (*lab.Lab, []*lab.Machine, *birdtest.Bird) {
	t.Helper()
	l, machines := withMachines(t, n)
	var nodes []int
	var names []string
	for i := range n {
		nodes, names = append(nodes, i+1), append(names, machines[i].Name)
	}
	b := l.Switch(birdtest.Config{NoAddPath: true, HoldTime: 30 * time.Second}, nodes...)
	tor(l, b, "")
	for _, m := range machines {
		m.Speak(fmt.Sprintf("bgp: {asn: %d}", lab.ASN))
	}
	b.WaitEstablished(names...)
	return l, machines, b
}

// A switch without ADD-PATH has a path of each node, from that node, beside members that speak to another switch. What changes
// on one node is withdrawn by that one alone, and what does not concern the switch costs not one UPDATE.
func TestNodesAnnounceThemselves(t *testing.T) {
	l, _, b := withSpeakers(t, 2)
	b.WaitNextHops(prefix(0), lab.NodeAddress(1), lab.NodeAddress(2))
	for _, r := range b.Routes() {
		if r.Prefix == prefix(0) && r.Protocol != "n1" && r.NextHop == lab.NodeAddress(1) {
			t.Errorf("the path via n1 is of %s", r.Protocol)
		}
	}
	l.Eventually("sessions of nodes", func() error {
		out, _, _ := l.CLI("get", "peers", "-o", "json")
		if strings.Count(out, `"node": "n1"`) != 1 || strings.Contains(out, "unknown") || strings.Count(out, "established") < 3 {
			return fmt.Errorf("get peers: %s", out)
		}
		return nil
	})
	l.Eventually("why", func() error {
		out, _, _ := l.CLI("why", lab.VIP(0).String())
		if !strings.Contains(out, "established with 2 of 2 nodes") {
			return fmt.Errorf("%s", out)
		}
		return nil
	})

	before, stop := peered(b, "n1", "n2"), b.Watch(prefix(0))
	l.Manifests.Service(1, 1)
	b.WaitNextHops(prefix(1), lab.NodeAddress(1))
	l.Manifests.Service(0, 2) // the pod of node 1 goes
	b.WaitNextHops(prefix(0), lab.NodeAddress(2))
	l.Bird.WaitNextHops(prefix(0), lab.NodeAddress(2))
	l.Eventually("end of the withdrawal", func() error {
		if out, _, _ := l.CLI("get", "routes", "-o", "json"); strings.Contains(out, "withdrawing") {
			return fmt.Errorf("get routes: %s", out)
		}
		return nil
	})
	quiet := l.UpdatesAt(b)
	l.Manifests.Peer("other", lab.ASN, 65009, netip.MustParseAddr("127.0.0.98"), 1) // concerns members alone
	l.Manifests.Put("pool.yaml", `apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata: {name: unused}
spec: {addresses: [203.0.113.0/28]}
`)
	l.Manifests.Service(2, 3) // on a node that is not there
	l.Eventually("the pool", func() error {
		if out, _, _ := l.CLI("get", "pools"); !strings.Contains(out, "unused") {
			return fmt.Errorf("get pools: %s", out)
		}
		return nil
	})
	l.Agreed()
	l.Manifests.Service(3, 1)
	b.WaitNextHops(prefix(3), lab.NodeAddress(1))
	if after := l.UpdatesAt(b); after != quiet+1 {
		t.Errorf("%d UPDATEs, one of them for what concerns the switch", after-quiet)
	}

	if n, total := birdtest.Gaps(stop()); n > 0 {
		t.Errorf("%d gaps, %s in all", n, total)
	}
	if after := peered(b, "n1", "n2"); after != before {
		t.Errorf("sessions were %s, are %s", before, after)
	}
}

// What nodes announce themselves counts as announced only where a session takes it: not where the only peer that is to be sent it has none.
func TestNodesWithoutASessionAnnounceToNobody(t *testing.T) {
	l, _, b := withSpeakers(t, 2)
	b.WaitNextHops(prefix(0), lab.NodeAddress(1), lab.NodeAddress(2))
	l.Manifests.Put("peer-dead.yaml", fmt.Sprintf(`apiVersion: metallb.io/v1beta2
kind: BGPPeer
metadata: {name: dead, annotations: {fairlead.io/mode: node}}
spec: {myASN: %d, peerASN: 65009, peerAddress: 127.0.0.98, peerPort: 1, ebgpMultiHop: true}
`, lab.ASN))
	l.Manifests.Put("to-dead.yaml", `apiVersion: metallb.io/v1beta1
kind: BGPAdvertisement
metadata: {name: to-dead}
spec: {peers: [dead]}
`)
	l.Eventually("why nobody is sent it", func() error {
		out, _, _ := l.CLI("why", lab.VIP(0).String())
		if !strings.Contains(out, "no session that takes IPv4 is open with whom it is to be sent to: BGPPeer dead") {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
	l.Manifests.Put("to-dead.yaml", `apiVersion: metallb.io/v1beta1
kind: BGPAdvertisement
metadata: {name: to-dead}
spec: {peers: [dead, tor]}
`)
	l.Eventually("it is announced again", func() error {
		if out, _, _ := l.CLI("get", "routes", "-o", "json"); strings.Contains(out, `"acknowledged"`) || !strings.Contains(out, `"announced"`) {
			return fmt.Errorf("get routes: %s", out)
		}
		return nil
	})
}

// paths are those of a prefix at a switch, by neighbour: MED, and whether they are kept from one that was lost.
func paths(b *birdtest.Bird, p netip.Prefix) map[string]string {
	out := map[string]string{}
	for _, r := range b.Routes() {
		if r.Prefix == p {
			out[r.Protocol] = fmt.Sprintf("%d %t", r.MED, r.LongLived)
		}
	}
	return out
}

func waitPaths(b *birdtest.Bird, p netip.Prefix, want map[string]string) {
	b.Wait(fmt.Sprintf("paths of %s: %v", p, want), func() bool { return maps.Equal(paths(b, p), want) })
}

// An agent that is killed leaves its paths at the switch, ranked last, until it is back. One that is cut off from the group goes
// on announcing what it knew, behind the others, and a node that is drained withdraws, if it is not the last one.
func TestNodesThatAreAloneRankLast(t *testing.T) {
	l, machines, b := withSpeakers(t, 2)
	l.Manifests.Service(1, 1)
	waitPaths(b, prefix(0), map[string]string{"n1": "0 false", "n2": "0 false"})
	waitPaths(b, prefix(1), map[string]string{"n1": "0 false"})
	stop, stopLast := b.Watch(prefix(0)), b.Watch(prefix(1))

	machines[0].StopAgent()
	waitPaths(b, prefix(0), map[string]string{"n1": "0 true", "n2": "0 false"})
	waitPaths(b, prefix(1), map[string]string{"n1": "0 true"})
	machines[0].StartAgent()
	waitPaths(b, prefix(0), map[string]string{"n1": "0 false", "n2": "0 false"})

	const demoted = "1000000000 false"
	for _, m := range l.Members {
		machines[0].RemoveRoute(netip.MustParseAddr(m.Address))
	}
	waitPaths(b, prefix(1), map[string]string{"n1": demoted}) // the other address may be taken off it: the node is silent
	for _, m := range l.Members {
		machines[0].AddRoute(netip.MustParseAddr(m.Address))
	}
	waitPaths(b, prefix(1), map[string]string{"n1": "0 false"})
	waitPaths(b, prefix(0), map[string]string{"n1": "0 false", "n2": "0 false"})

	if out, stderr, code := l.CLI("drain", "node", "n1"); code != 0 {
		t.Fatalf("drain: %d %s%s", code, out, stderr)
	}
	waitPaths(b, prefix(0), map[string]string{"n2": "0 false"})
	waitPaths(b, prefix(1), map[string]string{"n1": "0 false"}) // nobody else serves it
	for _, s := range []func() []birdtest.Seen{stop, stopLast} {
		if n, total := birdtest.Gaps(s()); n > 0 {
			t.Errorf("%d gaps, %s in all", n, total)
		}
	}
}
