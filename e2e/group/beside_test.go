// SPDX-License-Identifier: Apache-2.0

package group_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"fairlead.io/fairlead/dataplane/bgp/birdtest"
	"fairlead.io/fairlead/dataplane/bgp/frrtest"
	"fairlead.io/fairlead/e2e/lab"
)

// besideBird has each node run BIRD as Calico does: it has port 179 and the session with the switch. The agent peers with it inside
// the node, and BIRD passes on what it is told.
func besideBird(t *testing.T, n int, agent birdtest.Neighbor, lines string) (l *lab.Lab, birds []*birdtest.Bird, b *birdtest.Bird) {
	t.Helper()
	l, machines := withMachines(t, n)
	var nodes []int
	var names []string
	for i := range n {
		nodes, names = append(nodes, i+1), append(names, machines[i].Name)
	}
	b = l.Switch(birdtest.Config{NoAddPath: true, HoldTime: 30 * time.Second}, nodes...)
	for i, m := range machines {
		birds = append(birds, m.Bird(birdtest.Config{
			Port: 179, ASN: lab.ASN, RouterID: m.Address.String(), NoAddPath: true, Neighbors: []birdtest.Neighbor{agent},
			Extra: fmt.Sprintf(`protocol bgp tor {
  local %s as %d;
  neighbor %s port %d as %d;
  multihop 2;
  connect delay time 1; connect retry time 1; error wait time 1,2;
  ipv4 { import none; export all; next hop self; };
}
`, m.Address, lab.ASN, b.Address(), b.Port(), b.ASN()),
		}))
		m.Speak(fmt.Sprintf("bgp: {asn: %d, routerID: 10.0.0.%d, %s}", lab.ASN, i+1, lines))
	}
	b.WaitEstablished(names...)
	return l, birds, b
}

// passedOn shows that the switch has from BIRD what the agents of nodes announce, and loses what they withdraw.
func passedOn(t *testing.T, l *lab.Lab, birds []*birdtest.Bird, b *birdtest.Bird) {
	t.Helper()
	for _, own := range birds {
		own.WaitEstablished("agent", "tor")
	}
	b.WaitNextHops(prefix(0), lab.NodeAddress(1), lab.NodeAddress(2))
	before, stop := peered(b, "n1", "n2"), b.Watch(prefix(0))
	l.Manifests.Service(1, 1)
	b.WaitNextHops(prefix(1), lab.NodeAddress(1))
	l.Manifests.Service(0, 2)
	b.WaitNextHops(prefix(0), lab.NodeAddress(2))
	l.Manifests.Service(0, 1, 2)
	b.WaitNextHops(prefix(0), lab.NodeAddress(1), lab.NodeAddress(2))
	if n, total := birdtest.Gaps(stop()); n > 0 {
		t.Errorf("%d gaps, %s in all", n, total)
	}
	if after := peered(b, "n1", "n2"); after != before {
		t.Errorf("sessions were %s, are %s", before, after)
	}
}

func loopbackPeer(l *lab.Lab, port int, spec string) {
	l.Manifests.Put("peer-node.yaml", fmt.Sprintf(`apiVersion: metallb.io/v1beta2
kind: BGPPeer
metadata: {name: node, annotations: {fairlead.io/mode: node%s}}
spec: {myASN: %d, peerASN: %d, peerAddress: 127.0.0.1, peerPort: %d}
`, spec, lab.ASN, lab.ASN, port))
}

// The agent and BIRD peer on the node's loopback, by iBGP, whoever dials: the switch has one session with the node.
func TestNodeSpeaksBesideBird(t *testing.T) {
	agent := birdtest.Neighbor{Name: "agent", Address: netip.MustParseAddr("127.0.0.2"), ASN: lab.ASN}
	listens := agent
	listens.Port = 1179
	for name, c := range map[string]struct {
		agent       birdtest.Neighbor
		lines, spec string
	}{
		"agent-dials": {agent, "localAddress: 127.0.0.2", ""},
		"bird-dials":  {listens, "localAddress: 127.0.0.2, listen: [127.0.0.2], port: 1179", `, fairlead.io/passive: "true"`},
	} {
		t.Run(name, func(t *testing.T) {
			l, birds, b := besideBird(t, 2, c.agent, c.lines)
			loopbackPeer(l, 179, c.spec)
			passedOn(t, l, birds, b)
		})
	}
}

// FRR is the switch of nodes that peer themselves: it has a path of each, loses what is withdrawn, and keeps those of an agent that
// is killed.
func TestNodesAnnounceThemselvesToFRR(t *testing.T) {
	l, machines := withMachines(t, 2)
	var nodes []birdtest.Neighbor
	for _, m := range machines {
		nodes = append(nodes, birdtest.Neighbor{Address: m.Address, ASN: lab.ASN})
	}
	frr := frrtest.StartAt(t, l.SwitchAddress(), nodes...)
	l.Manifests.Put("peer-tor.yaml", fmt.Sprintf(`apiVersion: metallb.io/v1beta2
kind: BGPPeer
metadata: {name: tor, annotations: {fairlead.io/mode: node}}
spec: {myASN: %d, peerASN: %d, peerAddress: %s, peerPort: %d, ebgpMultiHop: true}
`, lab.ASN, frrtest.ASN, frr.Address(), frr.Port()))
	for _, m := range machines {
		m.Speak(fmt.Sprintf("bgp: {asn: %d}", lab.ASN))
	}
	frr.WaitNextHops(prefix(0), lab.NodeAddress(1), lab.NodeAddress(2))
	l.Manifests.Service(0, 2)
	frr.WaitNextHops(prefix(0), lab.NodeAddress(2))
	l.Manifests.Service(1, 1)
	frr.WaitNextHops(prefix(1), lab.NodeAddress(1))
	l.Manifests.Service(0, 1, 2)
	frr.WaitNextHops(prefix(0), lab.NodeAddress(1), lab.NodeAddress(2))

	machines[0].StopAgent()
	frr.WaitNextHops(prefix(0), lab.NodeAddress(2)) // those of node 1 rank last
	frr.WaitNextHops(prefix(1), lab.NodeAddress(1)) // and serve where there are no others
	machines[0].StartAgent()
	frr.WaitNextHops(prefix(0), lab.NodeAddress(1), lab.NodeAddress(2))
}
