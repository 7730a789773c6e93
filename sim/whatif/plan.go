// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/k8s/api"
	"fairlead.io/fairlead/sim/engine"
	"fairlead.io/fairlead/sim/fault"
	"fairlead.io/fairlead/sim/guest/start"
	"fairlead.io/fairlead/sim/kube"
	"fairlead.io/fairlead/sim/stage"
)

// plan is a cluster made ready to be played any number of times. Nothing in it changes.
type plan struct {
	stage *stage.Cluster
	cast  fault.Cast
	nodes []*corev1.Node
	pods  []*pod
	// services are those that are announced, as they are brought in.
	services []*corev1.Service
	families map[string][]bgp.Family // by switch, where they are not both
	audience audience
	unusable map[string]string // as of the Cluster
	objects  []kube.Object     // that were made up
	made     []string          // what was added to the manifests
	notes    []string          // what people should know besides
	unused   []string
}

func (p *plan) add(format string, args ...any) { p.made = append(p.made, fmt.Sprintf(format, args...)) }
func (p *plan) note(format string, args ...any) {
	p.notes = append(p.notes, fmt.Sprintf(format, args...))
}

// plan turns manifests into a cluster with so many members, and with so many nodes if the manifests have none.
func (c *Cluster) plan(members, nodes int) (*plan, error) {
	p := &plan{stage: &stage.Cluster{Definitions: c.definitions()}, notes: slices.Clone(c.notes), unused: slices.Clone(c.unused), families: map[string][]bgp.Family{}, unusable: c.unusable,
		audience: audience{pools: c.pools, advertisements: c.advertisements}}
	for i := range members {
		p.cast.Members = append(p.cast.Members, stage.MemberName(i))
	}
	var late []kube.Object
	for _, step := range []func() error{
		func() error { return c.planNodes(p, nodes) },
		func() error { return c.planSwitches(p) },
		func() error { return c.planServices(p) },
		func() (err error) { late, err = c.planPods(p); return err },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	p.members()
	return p, p.bring(c, late)
}

// definitions are the custom resources of the cluster: MetalLB's, and ours if the manifests use them, or a pool is made.
func (c *Cluster) definitions() []string {
	out := []string{
		api.MetalLBV1Beta1 + "/ipaddresspools", api.MetalLBV1Beta2 + "/bgppeers", api.MetalLBV1Beta1 + "/bgpadvertisements",
		api.MetalLBV1Beta1 + "/communities",
	}
	if c.own || len(c.pools) == 0 {
		for _, name := range []string{"ipaddresspools", "bgppeers", "bgpadvertisements", "communities"} {
			out = append(out, api.GroupVersion+"/"+name)
		}
	}
	for _, o := range c.custom { // those that few clusters use
		version, kind := o.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
		if resource := rare(kind); resource != "" && !slices.Contains(out, version+"/"+resource) {
			out = append(out, version+"/"+resource)
		}
	}
	return out
}

// rare is the resource of a kind that is installed only where manifests use it; empty for the others.
func rare(kind string) string {
	switch kind {
	case "L2Advertisement":
		return "l2advertisements"
	case "BFDProfile":
		return "bfdprofiles"
	case "AddressPolicy":
		return "addresspolicies"
	}
	return ""
}

// exchanges tells whether a switch and members are configured to exchange routes of an address's family.
func (p *plan) exchanges(at string, a netip.Addr) bool {
	return len(p.families[at]) == 0 || slices.Contains(p.families[at], bgp.FamilyOf(a))
}

// learns tells whether a switch may learn of an address: no advertisement leaves it out.
func (p *plan) learns(at string, a netip.Addr) bool {
	return p.exchanges(at, a) && p.audience.has(at, a)
}

// reachable tells whether any switch may learn of an address.
func (p *plan) reachable(a netip.Addr) bool {
	return slices.ContainsFunc(p.cast.Switches, func(at string) bool { return p.learns(at, a) })
}

// taken tells whether a machine has the name.
func (p *plan) taken(name string) bool {
	return slices.Contains(p.cast.All(), name) || strings.HasPrefix(name, start.Driver(""))
}

func (c *Cluster) planNodes(p *plan, some int) error {
	known := map[netip.Addr]string{}
	for i, n := range c.nodes {
		n = n.DeepCopy()
		if p.taken(n.Name) {
			return fmt.Errorf("Node %s: a machine of the world has this name already (members are m1, m2 and so on, the API server is kubernetes); rename the Node", n.Name)
		}
		addresses := internal(n)
		if len(addresses) == 0 {
			addresses = []netip.Addr{stage.NodeAddress(i)}
			n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: addresses[0].String()})
			p.add("Node %s has no InternalIP: it is given %s", n.Name, addresses[0])
		}
		for _, a := range addresses {
			if other := known[a]; other != "" {
				return fmt.Errorf("Node %s: status.addresses: %s is that of Node %s as well; give each node its own", n.Name, a, other)
			}
			known[a] = n.Name
		}
		setReady(n)
		p.node(n, addresses)
	}
	if len(c.nodes) == 0 {
		for i := range some {
			n := stage.Node(stage.NodeName(i), stage.NodeAddress(i))
			if c.wantsIPv6() {
				a := netip.AddrFrom16([16]byte{0xfd, 0, 0, 0x10, 1, 15: byte(i + 1)})
				n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a.String()})
			}
			p.node(n, internal(n))
		}
		p.add("no Node is in the manifests: %d were made, %s to %s; --nodes changes how many", some, stage.NodeName(0), stage.NodeName(some-1))
	}
	return nil
}

// node takes in a node.
func (p *plan) node(n *corev1.Node, addresses []netip.Addr) {
	m := stage.ClusterNode{Name: n.Name}
	for _, a := range addresses {
		bits := 64
		if a.Is4() {
			bits = 16
		}
		in := netip.PrefixFrom(a, bits)
		m.Addresses = append(m.Addresses, in)
		m.Gateways = append(m.Gateways, gateway(in))
	}
	p.nodes = append(p.nodes, n)
	p.cast.Nodes = append(p.cast.Nodes, n.Name)
	p.stage.Nodes = append(p.stage.Nodes, m)
}

// gateway is an address in a node's network where its router is taken to be.
func gateway(in netip.Prefix) netip.Addr {
	b := in.Masked().Addr().AsSlice()
	b[len(b)-2], b[len(b)-1] = 255, 254
	a, _ := netip.AddrFromSlice(b)
	if a == in.Addr() {
		a = a.Prev()
	}
	return a
}

// internal lists the addresses that a node's path leads to: the first InternalIP of each family, IPv4 first.
func internal(n *corev1.Node) []netip.Addr {
	var v4, v6 []netip.Addr
	for _, x := range n.Status.Addresses {
		a, err := netip.ParseAddr(x.Address)
		switch {
		case err != nil || x.Type != corev1.NodeInternalIP:
		case a.Is4():
			v4 = append(v4, a)
		default:
			v6 = append(v6, a)
		}
	}
	return slices.Concat(v4[:min(1, len(v4))], v6[:min(1, len(v6))])
}

// setReady has a node that says nothing be ready: a manifest has no kubelet.
func setReady(n *corev1.Node) {
	for _, x := range n.Status.Conditions {
		if x.Type == corev1.NodeReady {
			return
		}
	}
	n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue})
}

// members finds addresses for the members that nobody has.
func (p *plan) members() {
	used := map[netip.Addr]bool{}
	for _, n := range p.stage.Nodes {
		for _, a := range n.Addresses {
			used[a.Addr()] = true
		}
	}
	for _, s := range p.stage.Switches {
		used[s.Address], used[s.RouterID] = true, true
	}
	var free []netip.Addr
	for a := netip.MustParseAddr("100.127.255.1"); len(free) < len(p.cast.Members); a = a.Next() {
		if !used[a] {
			free = append(free, a)
		}
	}
	p.stage.MemberAddress = func(i int) netip.Addr { return free[i] }
}

// bring puts everything into an API server, to be sure that it takes it, and notes the order.
func (p *plan) bring(c *Cluster, late []kube.Object) error {
	server := kube.New(engine.New(0), kube.Options{Definitions: p.stage.Definitions})
	create := func(o kube.Object) error {
		if _, err := server.Create("user", o); err != nil {
			why, _, _ := strings.Cut(err.Error(), "\n")
			return fmt.Errorf("%s: an API server refuses it: %s; mend the manifest", c.dir, why)
		}
		p.stage.Objects = append(p.stage.Objects, o)
		return nil
	}
	var all []kube.Object
	for _, n := range p.nodes {
		all = append(all, n)
	}
	all = append(all, c.custom...)
	for _, o := range c.configMaps {
		all = append(all, withoutPassword(o))
	}
	for _, o := range p.services {
		all = append(all, o)
	}
	for _, x := range p.pods {
		all = append(all, x.object())
	}
	for _, o := range append(append(all, p.objects...), late...) {
		if space := o.GetNamespace(); space != "" && server.Get("Namespace", "", space) == nil {
			if err := create(c.namespace(space)); err != nil {
				return err
			}
		}
		if err := create(o); err != nil {
			return err
		}
	}
	return nil
}

// namespace is the one of the manifests, or a plain one.
func (c *Cluster) namespace(name string) kube.Object {
	for _, n := range c.namespaces {
		if n.Name == name {
			return n
		}
	}
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}
