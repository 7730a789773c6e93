// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// How the controller of EndpointSlices works: it takes a while to notice, and puts so many endpoints into a slice.
const (
	sliceLag     = 50 * time.Millisecond // on average
	sliceSize    = 100
	sliceManager = "endpointslice-controller.k8s.io"
)

// slicer is the controller of EndpointSlices: it makes slices of the pods that Services select.
type slicer struct {
	server *Server
	asked  map[key]bool // Services that it is about to look at
}

func newSlicer(s *Server) *slicer { return &slicer{s, map[key]bool{}} }

// hear takes in a change that may concern a Service.
func (x *slicer) hear(c *change) {
	switch c.resource.kind {
	case "Service":
		if c.before == nil || c.after == nil || !equality.Semantic.DeepEqual(c.before.(*corev1.Service).Spec, c.after.(*corev1.Service).Spec) {
			x.ask(c.key)
		}
	case "EndpointSlice":
		if c.by != sliceManager && c.before != nil && c.before.GetLabels()[discoveryv1.LabelManagedBy] == sliceManager {
			x.ask(key{c.key.namespace, c.before.GetLabels()[discoveryv1.LabelServiceName]})
		}
	case "Pod":
		for _, o := range x.server.Services() {
			if o.Namespace == c.key.namespace && (selects(o, c.before) || selects(o, c.after)) {
				x.ask(keyOf(o))
			}
		}
	}
}

func selects(o *corev1.Service, pod Object) bool {
	return pod != nil && len(o.Spec.Selector) > 0 && labels.SelectorFromSet(o.Spec.Selector).Matches(labels.Set(pod.GetLabels()))
}

// ask has a Service looked at soon.
func (x *slicer) ask(k key) {
	if x.asked[k] {
		return
	}
	x.asked[k] = true
	w := x.server.w
	w.After(time.Duration(x.server.random("slices").ExpFloat64()*float64(sliceLag)), func() {
		delete(x.asked, k)
		x.sync(k)
	})
}

// sync brings the slices of a Service to what its pods are now.
func (x *slicer) sync(k key) {
	s := x.server
	var have []*discoveryv1.EndpointSlice
	for _, o := range s.List("EndpointSlice") {
		slice := o.(*discoveryv1.EndpointSlice)
		if slice.Namespace == k.namespace && slice.Labels[discoveryv1.LabelServiceName] == k.name && slice.Labels[discoveryv1.LabelManagedBy] == sliceManager {
			have = append(have, slice)
		}
	}
	o, _ := s.store.get(s.services, k).(*corev1.Service)
	if o != nil && len(o.Spec.Selector) == 0 {
		return
	}
	var want []*discoveryv1.EndpointSlice
	if o != nil && o.DeletionTimestamp == nil && o.Spec.Type != corev1.ServiceTypeExternalName {
		want = x.wanted(o)
	}
	for _, slice := range want {
		n := slices.IndexFunc(have, func(h *discoveryv1.EndpointSlice) bool { return alike(h, slice) })
		if n < 0 {
			x.must(s.Create(sliceManager, slice))
			continue
		}
		old := have[n]
		have = slices.Delete(have, n, n+1)
		if !equality.Semantic.DeepEqual(old.Endpoints, slice.Endpoints) {
			slice.ObjectMeta = old.ObjectMeta
			x.must(s.Update(sliceManager, slice))
		}
	}
	for _, slice := range have {
		x.must(nil, s.Delete(sliceManager, "EndpointSlice", slice.Namespace, slice.Name))
	}
}

// must ends the run if the server refuses its own controller.
func (x *slicer) must(_ Object, err error) {
	if err != nil {
		x.server.w.Fail(fmt.Errorf("write an EndpointSlice: %w", err))
	}
}

// alike tells whether one slice may take the place of another.
func alike(a, b *discoveryv1.EndpointSlice) bool {
	return a.AddressType == b.AddressType && slices.EqualFunc(a.Ports, b.Ports, func(x, y discoveryv1.EndpointPort) bool {
		return *x.Name == *y.Name && *x.Protocol == *y.Protocol && *x.Port == *y.Port
	})
}

// group is what the endpoints of a slice have in common.
type group struct {
	family corev1.IPFamily
	ports  string
}

// wanted makes the slices that a Service shall have: the endpoints of each family and set of ports, some at a time.
func (x *slicer) wanted(o *corev1.Service) (out []*discoveryv1.EndpointSlice) {
	ports := map[group][]discoveryv1.EndpointPort{}
	endpoints := map[group][]discoveryv1.Endpoint{}
	for _, p := range x.server.List("Pod") {
		pod := p.(*corev1.Pod)
		if pod.Namespace != o.Namespace || !selects(o, pod) || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
			continue
		}
		of := portsOf(o, pod)
		for _, family := range o.Spec.IPFamilies {
			if a := addressOf(pod, family); a != "" {
				g := group{family, fmt.Sprint(describe(of))}
				ports[g] = of
				endpoints[g] = append(endpoints[g], endpointOf(o, pod, a))
			}
		}
	}
	groups := slices.SortedFunc(maps.Keys(endpoints), func(a, b group) int {
		return cmp.Or(cmp.Compare(a.family, b.family), cmp.Compare(a.ports, b.ports))
	})
	if len(groups) == 0 { // a Service without endpoints has an empty slice
		groups = []group{{family: o.Spec.IPFamilies[0]}}
		endpoints[groups[0]] = []discoveryv1.Endpoint{}
	}
	yes := true
	for _, g := range groups {
		for rest := endpoints[g]; ; rest = rest[sliceSize:] {
			out = append(out, &discoveryv1.EndpointSlice{
				ObjectMeta: metav1.ObjectMeta{GenerateName: o.Name + "-", Namespace: o.Namespace,
					Labels: map[string]string{discoveryv1.LabelServiceName: o.Name, discoveryv1.LabelManagedBy: sliceManager},
					OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: o.Name, UID: o.UID,
						Controller: &yes, BlockOwnerDeletion: &yes}}},
				AddressType: discoveryv1.AddressType(g.family), Ports: ports[g], Endpoints: rest[:min(len(rest), sliceSize)],
			})
			if len(rest) <= sliceSize {
				break
			}
		}
	}
	return out
}

func describe(ports []discoveryv1.EndpointPort) (out []string) {
	for _, p := range ports {
		out = append(out, fmt.Sprintf("%s=%d/%s", *p.Name, *p.Port, *p.Protocol))
	}
	return out
}

// portsOf finds the ports of a Service in a pod.
func portsOf(o *corev1.Service, pod *corev1.Pod) (out []discoveryv1.EndpointPort) {
	for _, p := range o.Spec.Ports {
		number := p.TargetPort.IntVal
		if p.TargetPort.Type == intstr.String {
			number = namedPort(pod, p.TargetPort.StrVal, p.Protocol)
		}
		if number != 0 {
			out = append(out, discoveryv1.EndpointPort{Name: &p.Name, Protocol: &p.Protocol, Port: &number, AppProtocol: p.AppProtocol})
		}
	}
	return out
}

func namedPort(pod *corev1.Pod, name string, protocol corev1.Protocol) int32 {
	for _, c := range pod.Spec.Containers {
		for _, p := range c.Ports {
			if p.Name == name && (p.Protocol == protocol || p.Protocol == "" && protocol == corev1.ProtocolTCP) {
				return p.ContainerPort
			}
		}
	}
	return 0
}

func addressOf(pod *corev1.Pod, family corev1.IPFamily) string {
	for _, ip := range append([]corev1.PodIP{{IP: pod.Status.PodIP}}, pod.Status.PodIPs...) {
		if a, err := netip.ParseAddr(ip.IP); err == nil && a.Is4() == (family == corev1.IPv4Protocol) {
			return ip.IP
		}
	}
	return ""
}

func endpointOf(o *corev1.Service, pod *corev1.Pod, address string) discoveryv1.Endpoint {
	serving := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
	terminating := pod.DeletionTimestamp != nil
	ready := o.Spec.PublishNotReadyAddresses || serving && !terminating
	e := discoveryv1.Endpoint{Addresses: []string{address},
		Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating},
		TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}}
	if pod.Spec.NodeName != "" {
		node := pod.Spec.NodeName
		e.NodeName = &node
	}
	return e
}
