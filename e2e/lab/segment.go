// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/internal/netnstest"
	"fairlead.io/fairlead/internal/testkit"
)

// Segment is an Ethernet segment of two switches with a client at each, and nodes whose agents, processes of the shipped
// binary, answer there for the addresses of a pool (docs/l2.md). A steered lab may have one (Options.Steered).
//
//	lab's namespace                    node n's namespace                           pod's
//	members 198.51.100.11…   seg-n ─────── mgmt 192.0.2.(100+n)
//	                                       cni0 10.244.n.1, 2001:db8:f:n::1 ─────── eth0 10.244.n.2, 2001:db8:f:n::2
//	  near, of odd n:  bridge nN ───────── data 203.0.113.n, 2001:db8:5::n
//	       │              client ───────── data 203.0.113.254, 2001:db8:5::fe       (Near's namespace)
//	     trunk
//	       │
//	  far, of even n:  bridge nN ───────── data 203.0.113.n, 2001:db8:5::n
//	                      client ───────── data 203.0.113.253, 2001:db8:5::fd       (Far's namespace)
type Segment struct {
	Near, Far *Neighbour
	Nodes     []*Node
	Wire      *Wire // of the near switch: what its own ports say, and what comes over the trunk

	lab       *Lab
	farWire   *Wire
	near, far *netnstest.Namespace // the switches
}

// Node is a node on a segment. Its Process is the agent.
type Node struct {
	*Process
	In  *netnstest.Namespace
	MAC string // of its card on the segment

	segment *Segment
	at      *netnstest.Namespace // its switch
	n       int
}

// SegmentVIPs are the addresses that are answered for on a segment.
var SegmentVIPs = []netip.Addr{netip.MustParseAddr("203.0.113.200"), netip.MustParseAddr("2001:db8:5::200")}

// Segment makes a segment with so many nodes, and a Service with a pod on each of them. The annotations of its pool are
// given as lines of YAML.
func (l *Lab) Segment(nodes int, annotations ...string) *Segment {
	l.t.Helper()
	s := &Segment{lab: l, near: bridge(l.t, "near"), far: bridge(l.t, "far")}
	netnstest.Join(netnstest.Link{In: s.near, Name: "trunk"}, netnstest.Link{In: s.far, Name: "trunk"})
	for _, at := range []*netnstest.Namespace{s.near, s.far} {
		at.Run("ip", "link", "set", "trunk", "master", "br0")
	}
	s.Near = s.neighbour(s.near, netip.MustParseAddr("203.0.113.254"), netip.MustParseAddr("2001:db8:5::fe"))
	s.Far = s.neighbour(s.far, netip.MustParseAddr("203.0.113.253"), netip.MustParseAddr("2001:db8:5::fd"))
	s.Wire, s.farWire = tap(l.t, s.near, SegmentVIPs), tap(l.t, s.far, SegmentVIPs)
	l.Manifests.Put("segment.yaml", segmentManifest(nodes, annotations))
	s.Advertise()
	for n := 1; n <= nodes; n++ {
		l.Manifests.Put(fmt.Sprintf("node-%d.yaml", n), fmt.Sprintf(segmentNode, n, NodeAddress(n), n))
		s.Nodes = append(s.Nodes, s.node(n))
	}
	return s
}

// segmentNode is the manifest of a node, which has addresses of both families.
const segmentNode = `apiVersion: v1
kind: Node
metadata: {name: n%d}
status:
  addresses: [{type: InternalIP, address: %s}, {type: InternalIP, address: "2001:db8:5::%d"}]
  conditions: [{type: Ready, status: "True"}]
`

// segmentAdvertisement has the pool's addresses answered for.
const segmentAdvertisement = `apiVersion: metallb.io/v1beta1
kind: L2Advertisement
metadata: {name: lan, namespace: metallb-system}
spec: {ipAddressPools: [lan]}
`

// Advertise has the addresses answered for, as from the beginning, and Hush no more.
func (s *Segment) Advertise() { s.lab.Manifests.Put(segmentAdvertised, segmentAdvertisement) }

// Hush takes the L2Advertisement away.
func (s *Segment) Hush() { s.lab.Manifests.Remove(segmentAdvertised) }

// segmentAdvertised is the file of the L2Advertisement.
const segmentAdvertised = "l2.yaml"

// bridge makes a switch in a namespace of its own.
func bridge(t testing.TB, name string) *netnstest.Namespace {
	in := netnstest.New(t, name)
	in.Run("ip", "link", "add", "br0", "type", "bridge")
	in.Run("ip", "link", "set", "br0", "up")
	return in
}

// plug lays a cable from a namespace's data to a port of a switch.
func plug(in, at *netnstest.Namespace, port string, addresses ...string) {
	netnstest.Join(netnstest.Link{In: in, Name: "data", Addresses: addresses}, netnstest.Link{In: at, Name: port})
	at.Run("ip", "link", "set", port, "master", "br0")
}

func segmentManifest(nodes int, annotations []string) string {
	var four, six strings.Builder
	for n := 1; n <= nodes; n++ {
		fmt.Fprintf(&four, "- {addresses: [10.244.%d.2], nodeName: n%d, conditions: {ready: true}}\n", n, n)
		fmt.Fprintf(&six, "- {addresses: [\"2001:db8:f:%d::2\"], nodeName: n%d, conditions: {ready: true}}\n", n, n)
	}
	slice := `---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-%[3]d, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: %[1]s
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints:
%[2]s`
	return fmt.Sprintf(`apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata: {name: lan, namespace: metallb-system, annotations: {%s}}
spec: {addresses: [%s/32, "%s/128"]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  type: LoadBalancer
  externalTrafficPolicy: Local
  ipFamilyPolicy: RequireDualStack
  ipFamilies: [IPv4, IPv6]
  ports: [{name: http, port: 80, protocol: TCP, targetPort: 8080}]
  selector: {app: web}
`, strings.Join(annotations, ", "), SegmentVIPs[0], SegmentVIPs[1]) +
		fmt.Sprintf(slice, "IPv4", four.String(), 4) + fmt.Sprintf(slice, "IPv6", six.String(), 6)
}

// node makes a node with its pod, and starts its agent.
func (s *Segment) node(n int) *Node {
	l := s.lab
	name := fmt.Sprintf("n%d", n)
	node := &Node{segment: s, n: n, In: netnstest.New(l.t, name), at: s.near}
	if n%2 == 0 {
		node.at = s.far
	}
	l.Link(node.In, n)
	plug(node.In, node.at, name, fmt.Sprintf("203.0.113.%d/24", n), fmt.Sprintf("2001:db8:5::%d/64", n))
	node.MAC = cardOf(l.t, node.In)
	s.pod(node.In, n)
	node.Process = l.agent(node.In, n, "steer: true\nnat: nftables\nl2: true\ninterfaces: [data]\nhealth: \"\"\nlog: debug\n")
	l.t.Cleanup(node.finish)
	node.Start()
	return node
}

// cardOf is the address of a namespace's card on the segment.
func cardOf(t testing.TB, in *netnstest.Namespace) (mac string) {
	t.Helper()
	if err := in.Do(func() error {
		card, err := net.InterfaceByName("data")
		if err == nil {
			mac = card.HardwareAddr.String()
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return mac
}

// pod runs a server that says its node's name to whoever connects.
func (s *Segment) pod(in *netnstest.Namespace, n int) {
	pod := netnstest.New(s.lab.t, fmt.Sprintf("pod%d", n))
	netnstest.Join(
		netnstest.Link{In: in, Name: "cni0", Addresses: []string{fmt.Sprintf("10.244.%d.1/24", n), fmt.Sprintf("2001:db8:f:%d::1/64", n)}},
		netnstest.Link{In: pod, Name: "eth0", Addresses: []string{fmt.Sprintf("10.244.%d.2/24", n), fmt.Sprintf("2001:db8:f:%d::2/64", n)}},
	)
	pod.Run("ip", "route", "add", "default", "via", fmt.Sprintf("10.244.%d.1", n))
	pod.Run("ip", "route", "add", "default", "via", fmt.Sprintf("2001:db8:f:%d::1", n))
	in.SetSysctl("ipv4/ip_forward", "1")
	in.SetSysctl("ipv6/conf/all/forwarding", "1")
	pod.Serve(":8080", netnstest.Say(fmt.Sprintf("n%d\n", n)))
}

// finish ends a node with its test.
func (n *Node) finish() {
	if n.Runs() {
		n.Kill()
	}
	if n.t.Failed() {
		log := n.Log()
		n.t.Logf("log of %s:\n%s", n.Name, log[max(0, len(log)-8_000):])
	}
}

// Unplug pulls the node's cable to the segment; Plug puts it in again.
func (n *Node) Unplug() { n.at.Run("ip", "link", "set", n.Name, "down") }

// Plug ends an Unplug.
func (n *Node) Plug() { n.at.Run("ip", "link", "set", n.Name, "up") }

// CutOff has the node reach no member any more; Reconnect ends that.
func (n *Node) CutOff() { n.segment.lab.ip("link", "set", fmt.Sprintf("seg-%d", n.n), "down") }

// Reconnect ends a CutOff.
func (n *Node) Reconnect() {
	link := fmt.Sprintf("seg-%d", n.n)
	n.segment.lab.ip("link", "set", link, "up")
	n.segment.lab.ip("route", "replace", NodeAddress(n.n).String(), "dev", link)
}

// Owner waits until a node answers for an address, and gives it. Somebody must ask meanwhile (KeepAsking).
func (s *Segment) Owner(of netip.Addr) *Node {
	s.lab.t.Helper()
	return s.Another(of, nil, time.Now())
}

// Another waits until a node other than one claimed an address since a time, and gives it.
func (s *Segment) Another(of netip.Addr, than *Node, since time.Time) *Node {
	s.lab.t.Helper()
	var found *Node
	testkit.Until(s.lab.t, "another owner of "+of.String(), func() bool {
		for _, c := range s.Wire.Claims(of, since) {
			if n := s.at(c.MAC); n != than {
				found = n
				return true
			}
		}
		return false
	})
	return found
}

// Said are the claims of a node about an address since a time, as its own switch had them: each at the moment at which the node put it
// out, where one that goes on to another switch may be on its way for as long as the machine has other things to do.
func (s *Segment) Said(n *Node, of netip.Addr, since time.Time) []Claim {
	wire := s.Wire
	if n.at == s.far {
		wire = s.farWire
	}
	return slices.DeleteFunc(wire.Claims(of, since), func(c Claim) bool { return c.MAC != n.MAC })
}

// InTurn waits until those who claimed an address on the segment since a time are those to whom the group leased it, by the members'
// logs, in this order and in no other: its owner, whom it had been given to before, and whoever was given it since. Somebody may have been given it
// and not have come to claim it, but for the last one. A machine that is so busy that agents renew in vain has more of them.
//
// heard gives those who claimed it, each once for every time that the card changed.
func (s *Segment) InTurn(of netip.Addr, owner *Node, since time.Time, heard func() []string) {
	s.lab.t.Helper()
	s.lab.Eventually(of.String()+" is at those who were given it, in turn", func() error {
		given, claimed := s.given(of, owner, since), heard()
		rest := given
		for _, mac := range claimed {
			i := slices.Index(rest, mac)
			if i < 0 {
				return fmt.Errorf("it was claimed by %v, and given to %v", claimed[:min(len(claimed), 8)], given)
			}
			rest = rest[i:]
		}
		if len(claimed) == 0 || claimed[len(claimed)-1] != given[len(given)-1] {
			return fmt.Errorf("it was given to %v, and claimed by %v only", given, claimed)
		}
		return nil
	})
}

// given are the cards of those to whom the group leased an address: its owner, and, by the members' logs, others since a time.
func (s *Segment) given(of netip.Addr, owner *Node, since time.Time) []string {
	type grant struct {
		Time      time.Time
		Msg       string
		VIP, Node string
	}
	var grants []grant
	for _, m := range s.lab.Members {
		for line := range strings.Lines(m.Log()) {
			var g grant
			if json.Unmarshal([]byte(line), &g) == nil && g.Msg == "lease granted" && g.VIP == of.String() && !g.Time.Before(since) {
				grants = append(grants, g)
			}
		}
	}
	slices.SortStableFunc(grants, func(a, b grant) int { return a.Time.Compare(b.Time) })
	cards := []string{owner.MAC}
	for _, g := range grants {
		for _, n := range s.Nodes {
			if n.Name == g.Node {
				cards = append(cards, n.MAC)
			}
		}
	}
	return slices.Compact(cards)
}

// at is the node with a card.
func (s *Segment) at(mac string) *Node {
	s.lab.t.Helper()
	for _, n := range s.Nodes {
		if n.MAC == mac {
			return n
		}
	}
	s.lab.t.Fatalf("%s is nobody's card", mac)
	return nil
}

// AllUp waits until all nodes could answer: their agents are heard, and no hold-down is left of earlier failures.
func (s *Segment) AllUp() {
	s.lab.t.Helper()
	s.lab.Eventually("nodes up", func() error {
		out, _, _ := s.lab.CLI("get", "nodes", "-o", "json")
		if got := strings.Count(out, `"liveness": "up"`); got != len(s.Nodes) {
			return fmt.Errorf("%d are: %s", got, out)
		}
		return nil
	})
}
