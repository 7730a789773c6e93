// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/cluster/leader"
	"fairlead.io/fairlead/fsm"
	sources "fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/k8s/convert"
)

// planned has the record hold what follows from shop/web as an API server shows it, with these endpoints, all of one port, where the group does kube-proxy's work.
func planned(t *testing.T, group *grouptest.Group, o *corev1.Service, endpoints ...netip.AddrPort) {
	t.Helper()
	o.ObjectMeta = metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u", Annotations: o.Annotations}
	o.Spec.Ports = []corev1.ServicePort{{Name: "http", Port: 80, NodePort: 30080, Protocol: corev1.ProtocolTCP}}
	s, problems := convert.Service(o)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	slice := sources.EndpointSlice{
		Meta: sources.Meta{ID: sources.ID{Namespace: "shop", Name: "web-1"}, UID: "e"}, ServiceName: s.Name,
		Ports: []sources.EndpointPort{{Name: "http", Protocol: sources.TCP, Port: endpoints[0].Port()}},
	}
	for _, at := range endpoints {
		slice.Endpoints = append(slice.Endpoints, sources.Endpoint{Address: at.Addr(), Place: &sources.Place{Node: "n2"}, Ready: true, Serving: true})
	}
	w := sources.World{Services: []*sources.Service{&s}, EndpointSlices: []*sources.EndpointSlice{&slice}}
	w.Sort()
	all := func(sources.Kind, sources.ID) bool { return true }
	for range 5 {
		out := leader.Plan(leader.Input{
			Views: []leader.Admitted{{World: &w, Complete: true, MayRemove: all}}, Record: group.Read(),
			Options: leader.Options{NodePorts: true, ClusterIPs: true},
		})
		for _, p := range append(out.Urgent, out.Bulk...) {
			switch p.Command.(type) {
			case *fsm.PutService, *fsm.DeleteService: // the rest is about nodes and views
				group.Apply(t, p.Command)
			}
		}
	}
}

// shownAt is a status that another controller wrote.
func shownAt(mode corev1.LoadBalancerIPMode, addresses ...string) (out corev1.ServiceStatus) {
	for _, a := range addresses {
		out.LoadBalancer.Ingress = append(out.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: a, IPMode: &mode})
	}
	return out
}

// beyond has the balancer send packets to a range to the node, which has it at hand and refuses what nobody listens for.
func (l *checkLab) beyond(network string) {
	l.balancer.Run("ip", "route", "add", network, "via", "198.51.100.1")
	l.node.Run("ip", "route", "add", "local", network, "dev", "lo")
}

// K32: what another controller wrote into a status is translated on a node in kube-proxy's place, from the object to the packet, and no
// more when it says Proxy.
// Rule: K32.
func TestAddressesOfOthersAreTranslated(t *testing.T) {
	t.Parallel()
	l := newCheckLab(t)
	l.node.SetSysctl("ipv4/ip_forward", "1")
	l.beyond("203.0.113.0/24")
	listener := l.endpoint(8080)
	defer func() { _ = listener.Close() }()
	class := "example.com/other"
	o := &corev1.Service{
		Spec:   corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: &class},
		Status: shownAt(corev1.LoadBalancerIPModeVIP, "203.0.113.77"),
	}
	sees := func(what string, is func(string) bool) {
		t.Helper()
		testkit.Until(t, what, func() bool { return is(seen(l.balancer, "203.0.113.77:80")) })
	}
	planned(t, l.group, o, netip.MustParseAddrPort("198.51.100.254:8080"))
	sees("it is translated", func(got string) bool { return got == "198.51.100.1" })
	if s, _ := fsm.Get[*fsm.Service](l.group.Read(), fsm.TableServices, "shop/web"); fmt.Sprint(s.ByOthers()) != "[203.0.113.77]" {
		t.Errorf("the record has %v", s.ByOthers())
	}
	if list := fsm.List[*fsm.Allocation](l.group.Read(), fsm.TableAllocations); len(list) > 0 {
		t.Errorf("it is allocated: %v", list[0])
	}
	o.Status = shownAt(corev1.LoadBalancerIPModeProxy, "203.0.113.77")
	planned(t, l.group, o, netip.MustParseAddrPort("198.51.100.254:8080"))
	sees("it is left alone", func(got string) bool { return got == "refused" })
}

// Balancing §10 row 2, K32: and resolved at the client, of a Service of whatever type.
// Rule: balancing §10, K32.
func TestAddressesOfOthersAreResolvedAtTheClient(t *testing.T) {
	t.Parallel()
	l := newSockLab(t)
	first := l.says("first")
	o := &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort}, Status: shownAt(corev1.LoadBalancerIPModeVIP, "192.0.2.1")}
	planned(t, l.group, o, first)
	start(t, l.config)
	l.eventually("first")
	o.Status = shownAt(corev1.LoadBalancerIPModeProxy, "192.0.2.1")
	planned(t, l.group, o, first)
	testkit.Until(t, "it is resolved no more", func() bool { return !strings.Contains(l.hears(), "first") })
}

// K6: a Service that becomes headless leaves nothing in the record, on a node that translates, and at sockets; and while it is one
// nothing comes, whatever else it names.
// Rule: balancing §10, K6.
func TestHeadlessServicesLeaveNothing(t *testing.T) {
	t.Parallel()
	served := func() *corev1.Service {
		return &corev1.Service{
			Spec:   corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, ClusterIP: "192.0.2.1"},
			Status: shownAt(corev1.LoadBalancerIPModeVIP, "203.0.113.77"),
		}
	}
	headless := served()
	headless.Spec.ClusterIP = corev1.ClusterIPNone
	empty := func(group *grouptest.Group) {
		t.Helper()
		if list := fsm.List[*fsm.Service](group.Read(), fsm.TableServices); len(list) > 0 {
			t.Errorf("the record has %s", list[0].ID)
		}
	}

	l := newSockLab(t)
	first := l.says("first")
	planned(t, l.group, headless.DeepCopy(), first)
	empty(l.group)
	planned(t, l.group, served(), first)
	start(t, l.config)
	l.eventually("first")
	planned(t, l.group, headless.DeepCopy(), first)
	empty(l.group)
	testkit.Until(t, "nothing is resolved", func() bool { return !strings.Contains(l.hears(), "first") })

	n := newCheckLab(t)
	n.node.SetSysctl("ipv4/ip_forward", "1")
	n.beyond("203.0.113.0/24")
	listener := n.endpoint(8080)
	defer func() { _ = listener.Close() }()
	at := netip.MustParseAddrPort("198.51.100.254:8080")
	planned(t, n.group, served(), at)
	for _, to := range []string{"198.51.100.1:30080", "203.0.113.77:80"} {
		testkit.Until(t, to+" is served", func() bool { return seen(n.balancer, to) == "198.51.100.1" })
	}
	planned(t, n.group, headless.DeepCopy(), at)
	empty(n.group)
	for _, to := range []string{"198.51.100.1:30080", "203.0.113.77:80"} {
		testkit.Until(t, to+" is served no more", func() bool { return seen(n.balancer, to) == "refused" })
	}
	if table := n.node.Run("nft", "list", "table", "inet", "fairlead-nat"); strings.Contains(table, "198.51.100.254 . 8080") {
		t.Errorf("the table still leads to the endpoint:\n%s", table)
	}
}
