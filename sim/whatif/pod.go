// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/klog/v2"

	"fairlead.io/fairlead/sim/kube"
)

// pod is one at the beginning of a world.
type pod struct {
	namespace, name string
	labels          map[string]string
	node            string
	addresses       []netip.Addr
	containers      []corev1.Container // their ports
	ready           bool
}

func (x *pod) id() string { return x.namespace + "/" + x.name }

// object is the pod as its kubelet has reported it.
func (x *pod) object() *corev1.Pod {
	o := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: x.name, Labels: x.labels},
		Spec:       corev1.PodSpec{NodeName: x.node, Containers: x.containers},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, PodIP: x.addresses[0].String()},
	}
	for _, a := range x.addresses {
		o.Status.PodIPs = append(o.Status.PodIPs, corev1.PodIP{IP: a.String()})
	}
	o.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status(x.ready)}}
	return o
}

func status(yes bool) corev1.ConditionStatus {
	if yes {
		return corev1.ConditionTrue
	}
	return corev1.ConditionFalse
}

// placer spreads pods over nodes.
type placer struct {
	c     *Cluster
	p     *plan
	load  map[string]int // pods by node
	used  map[netip.Addr]bool
	last  map[string]int // the last address given on a node
	done  map[string]bool
	made  bool     // the nodes are
	alone []string // Services for which pods were made
}

// planPods finds or makes the pods behind the announced Services, and gives the EndpointSlices that stay as they are.
func (c *Cluster) planPods(p *plan) (late []kube.Object, err error) {
	x := &placer{c: c, p: p, load: map[string]int{}, used: map[netip.Addr]bool{}, last: map[string]int{}, done: map[string]bool{}, made: len(c.nodes) == 0}
	for _, o := range c.pods {
		for _, a := range addressesOf(o) {
			x.used[a] = true
		}
	}
	for _, w := range slices.SortedFunc(slices.Values(c.workloads), func(a, b *workload) int {
		return cmp.Or(strings.Compare(a.namespace, b.namespace), strings.Compare(a.name, b.name), strings.Compare(a.kind, b.kind))
	}) {
		if p.selected(w.namespace, w.template.Labels) {
			x.workload(w)
		}
	}
	for _, o := range c.pods {
		if p.selected(o.Namespace, o.Labels) {
			x.given(o)
		}
	}
	for _, s := range p.services {
		late = append(late, x.behind(s)...)
	}
	x.tellMade()
	if len(p.pods) > maxPods {
		return nil, fmt.Errorf("%s: %d pods behind the Services, of which a world takes %d; lower the replicas", c.dir, len(p.pods), maxPods)
	}
	return late, nil
}

// selects tells whether a Service selects pods with such labels.
func selects(s *corev1.Service, namespace string, of map[string]string) bool {
	return s.Namespace == namespace && len(s.Spec.Selector) > 0 && labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(of))
}

func (p *plan) selected(namespace string, of map[string]string) bool {
	return slices.ContainsFunc(p.services, func(s *corev1.Service) bool { return selects(s, namespace, of) })
}

// workload takes in the pods of a workload: those of the manifests, and then others.
func (x *placer) workload(w *workload) {
	selector, err := metav1.LabelSelectorAsSelector(w.selector)
	if err != nil {
		selector = labels.SelectorFromSet(w.template.Labels)
	}
	have := map[string]int{} // by node
	n := 0
	for _, o := range x.c.pods {
		if o.Namespace != w.namespace || !selector.Matches(labels.Set(o.Labels)) {
			continue
		}
		if node := x.given(o); node != "" {
			have[node]++
			n++
		}
	}
	want := w.replicas
	if w.everywhere {
		want = len(x.p.nodes)
	}
	for i := n; i < want; i++ {
		node := x.choose(&w.template.Spec, have, w.everywhere)
		if node == "" {
			if !w.everywhere {
				x.p.note("%s %s/%s: no node takes %d of its %d pods, for their nodeSelector or taints: they are left out", w.kind, w.namespace, w.name, want-i, want)
			}
			return
		}
		have[node]++
		number := i + 1
		if w.ordinal {
			number = i
		}
		x.put(&pod{
			namespace: w.namespace, name: fmt.Sprintf("%s-%d", w.name, number), labels: w.template.Labels, node: node,
			containers: ports(w.template.Spec.Containers), ready: true,
		})
	}
}

// choose finds the node for one more pod: of those that take it the one with the fewest of its kind, then of all.
func (x *placer) choose(spec *corev1.PodSpec, have map[string]int, once bool) string {
	var able []string
	for _, n := range x.p.nodes {
		if x.takes(n, spec) && !(once && have[n.Name] > 0) {
			able = append(able, n.Name)
		}
	}
	if len(able) == 0 {
		return ""
	}
	return slices.MinFunc(able, func(a, b string) int { return cmp.Or(cmp.Compare(have[a], have[b]), cmp.Compare(x.load[a], x.load[b])) })
}

// takes tells whether a node takes a pod. Nodes that were made up have no labels to ask for.
func (x *placer) takes(n *corev1.Node, spec *corev1.PodSpec) bool {
	if n.Spec.Unschedulable || !x.made && !labels.SelectorFromSet(spec.NodeSelector).Matches(labels.Set(n.Labels)) {
		return false
	}
	for _, t := range n.Spec.Taints {
		tolerated := slices.ContainsFunc(spec.Tolerations, func(o corev1.Toleration) bool { return o.ToleratesTaint(klog.Background(), &t, false) })
		if t.Effect != corev1.TaintEffectPreferNoSchedule && !tolerated {
			return false
		}
	}
	return true
}

// given takes in a pod of the manifests, and gives its node: none for one that does not run, or was taken in before.
func (x *placer) given(o *corev1.Pod) (node string) {
	id := o.Namespace + "/" + o.Name
	phase := o.Status.Phase
	if x.done[id] || phase != "" && phase != corev1.PodRunning {
		return ""
	}
	one := &pod{
		namespace: o.Namespace, name: o.Name, labels: o.Labels, node: o.Spec.NodeName, containers: ports(o.Spec.Containers),
		addresses: addressesOf(o), ready: true,
	}
	for _, c := range o.Status.Conditions {
		one.ready = one.ready && (c.Type != corev1.PodReady || c.Status == corev1.ConditionTrue)
	}
	if !slices.ContainsFunc(x.p.nodes, func(n *corev1.Node) bool { return n.Name == one.node }) {
		if one.node = x.choose(&o.Spec, map[string]int{}, false); one.node == "" {
			x.p.note("Pod %s: no node takes it: it is left out", id)
			return ""
		}
	}
	x.put(one)
	return one.node
}

// put takes in a pod.
func (x *placer) put(one *pod) {
	for x.done[one.id()] {
		one.name += "x"
	}
	x.done[one.id()] = true
	x.load[one.node]++
	if len(one.addresses) == 0 {
		one.addresses = x.addresses(one.node)
	}
	x.p.pods = append(x.p.pods, one)
}

// addresses are new ones on a node, of both families.
func (x *placer) addresses(node string) []netip.Addr {
	i := slices.IndexFunc(x.p.nodes, func(n *corev1.Node) bool { return n.Name == node })
	for {
		x.last[node]++
		if a := podAddresses(i, x.last[node]); !x.used[a[0]] && !x.used[a[1]] {
			return a
		}
	}
}

// podAddresses are the n-th addresses of pods on the i-th node.
func podAddresses(i, n int) []netip.Addr {
	return []netip.Addr{
		netip.AddrFrom4([4]byte{10, 244 + byte(n/250), byte(i), byte(n%250 + 1)}),
		netip.AddrFrom16([16]byte{0xfd, 0, 0, 0x10, 2, 0x44, 0, byte(i), 14: byte(n / 250), 15: byte(n%250 + 1)}),
	}
}

func addressesOf(o *corev1.Pod) (out []netip.Addr) {
	for _, ip := range append([]corev1.PodIP{{IP: o.Status.PodIP}}, o.Status.PodIPs...) {
		if a, err := netip.ParseAddr(ip.IP); err == nil && !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}

// ports keeps of containers what Services may name.
func ports(of []corev1.Container) (out []corev1.Container) {
	for _, c := range of {
		out = append(out, corev1.Container{Name: c.Name, Ports: c.Ports})
	}
	return out
}

// behind finds what is behind a Service if no pod is yet: endpoints of the manifests become pods, and if there are none
// two pods are made. It gives the slices that stay as they are.
func (x *placer) behind(s *corev1.Service) (late []kube.Object) {
	served := slices.ContainsFunc(x.p.pods, func(o *pod) bool { return selects(s, o.namespace, o.labels) })
	found := false
	for _, o := range x.c.slices {
		if o.Namespace != s.Namespace || o.Labels[discoveryv1.LabelServiceName] != s.Name {
			continue
		}
		switch {
		case len(s.Spec.Selector) == 0:
			o = o.DeepCopy()
			o.OwnerReferences = nil
			late = append(late, o)
		case !served:
			found = x.endpoints(s, o) || found
		}
	}
	switch {
	case served || found || len(late) > 0:
	case slices.ContainsFunc(x.c.workloads, func(w *workload) bool { return selects(s, w.namespace, w.template.Labels) }):
		x.p.note("Service %s/%s selects a workload without any pods: nothing is behind it", s.Namespace, s.Name)
	case len(s.Spec.Selector) == 0:
		x.p.note("Service %s/%s has neither a selector nor an EndpointSlice: nothing is behind it", s.Namespace, s.Name)
	default:
		x.make(s)
	}
	return late
}

// endpoints makes pods of the endpoints of a slice. It is false if there are none.
func (x *placer) endpoints(s *corev1.Service, o *discoveryv1.EndpointSlice) bool {
	for _, e := range o.Endpoints {
		one := &pod{
			namespace: s.Namespace, labels: s.Spec.Selector, ready: e.Conditions.Ready == nil || *e.Conditions.Ready,
			containers: []corev1.Container{{Name: "main", Ports: namedPorts(s, o)}},
		}
		for _, text := range e.Addresses {
			if a, err := netip.ParseAddr(text); err == nil {
				one.addresses = append(one.addresses, a)
			}
		}
		if e.NodeName != nil {
			one.node = *e.NodeName
		}
		if !slices.ContainsFunc(x.p.nodes, func(n *corev1.Node) bool { return n.Name == one.node }) {
			if one.node = x.choose(&corev1.PodSpec{}, map[string]int{}, false); one.node == "" {
				continue
			}
		}
		if one.name = fmt.Sprintf("%s-%d", s.Name, len(x.done)+1); e.TargetRef != nil && e.TargetRef.Name != "" {
			one.name = e.TargetRef.Name
		}
		x.put(one)
	}
	return len(o.Endpoints) > 0
}

// namedPorts are the ports that a Service calls by name, as a slice has their numbers.
func namedPorts(s *corev1.Service, o *discoveryv1.EndpointSlice) (out []corev1.ContainerPort) {
	for _, p := range s.Spec.Ports {
		if p.TargetPort.Type != intstr.String {
			continue
		}
		for _, q := range o.Ports {
			if q.Port != nil && (q.Name == nil && p.Name == "" || q.Name != nil && *q.Name == p.Name) {
				out = append(out, corev1.ContainerPort{Name: p.TargetPort.StrVal, ContainerPort: *q.Port, Protocol: p.Protocol})
			}
		}
	}
	return out
}

// make makes two pods for a Service.
func (x *placer) make(s *corev1.Service) {
	named := map[string]corev1.ContainerPort{}
	for i, p := range s.Spec.Ports {
		if p.TargetPort.Type == intstr.String {
			named[p.TargetPort.StrVal] = corev1.ContainerPort{Name: p.TargetPort.StrVal, ContainerPort: int32(8000 + i), Protocol: p.Protocol}
		}
	}
	var all []corev1.ContainerPort
	for _, name := range slices.Sorted(maps.Keys(named)) {
		all = append(all, named[name])
	}
	have := map[string]int{}
	for i := range 2 {
		node := x.choose(&corev1.PodSpec{Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}}, have, false)
		if node == "" {
			x.p.note("Service %s/%s selects no pods, and no node takes any", s.Namespace, s.Name)
			return
		}
		have[node]++
		x.put(&pod{
			namespace: s.Namespace, name: fmt.Sprintf("%s-made-%d", s.Name, i+1), labels: s.Spec.Selector, node: node, ready: true,
			containers: []corev1.Container{{Name: "main", Ports: all}},
		})
	}
	x.alone = append(x.alone, s.Namespace+"/"+s.Name)
}

// tellMade says for which Services pods were made, in one line.
func (x *placer) tellMade() {
	switch n := len(x.alone); {
	case n == 1:
		x.p.add("Service %s selects no pods of the manifests: two were made", x.alone[0])
	case n > 1:
		x.p.add("%d Services select no pods of the manifests: two were made for each of %s", n, some(x.alone))
	}
}
