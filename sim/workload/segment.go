// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"fairlead.io/fairlead/k8s/convert"
	"fairlead.io/fairlead/sim/kube"
	"fairlead.io/fairlead/sim/scenario/dice"
	"fairlead.io/fairlead/sim/scenario/parameter"
	"fairlead.io/fairlead/sim/stage"
)

// segmentVerbs are about addresses that are answered for on segments.
func segmentVerbs() []Verb {
	able := func(p Plan) bool { return p.Segments > 0 }
	return []Verb{
		{
			Name: "readdress", Text: "ask for another address for a Service", Weight: 4, Able: able,
			Parameters: []parameter.Parameter{name(), parameter.Text("address", "the one", addressed).Must()},
			Do: func(c *Cluster, s Step) {
				c.changeService(s.With["name"], func(o *corev1.Service) { o.Spec.LoadBalancerIP = s.With["address"] })
			},
			Draw: func(d dice.Dice, p Plan, s *Step) {
				s.With.Set("name", p.anyName(d))
				s.With.Set("address", inSegment(d.Below("segment", p.Segments), d.From("place", 100, 103)))
			},
		},
		{
			Name: "when-cut-off", Text: "say what nodes do that answer for addresses of a pool and are cut off from the group", Weight: 2, Able: able,
			Parameters: []parameter.Parameter{
				parameter.OneOf("pool", "pool without it", "pool", stage.SegmentName(0), stage.SegmentName(1)),
				parameter.OneOf("then", "silent without it", "silent", "answer"),
			},
			Do: func(c *Cluster, s Step) {
				_, err := c.kube.Change("user", "IPAddressPool", stage.System, cmp.Or(s.With["pool"], "pool"), func(o kube.Object) {
					o.SetAnnotations(with(o.GetAnnotations(), convert.AnnotationCutOff, cmp.Or(s.With["then"], "silent")))
				})
				c.may(err)
			},
			Draw: func(d dice.Dice, p Plan, s *Step) {
				s.With.Set("pool", dice.Pick(d, "pool", []string{"pool", stage.SegmentName(d.Below("segment", p.Segments))}))
				s.With.Set("then", dice.Pick(d, "then", []string{"silent", "answer", "answer"}))
			},
		},
		{
			Name: "flip-policy", Text: "change the externalTrafficPolicy of a Service to the other one", Weight: 6, Able: able,
			Parameters: []parameter.Parameter{name()}, Draw: drawName,
			Do: func(c *Cluster, s Step) {
				c.changeService(s.With["name"], func(o *corev1.Service) {
					if o.Spec.Type != corev1.ServiceTypeLoadBalancer {
						return
					}
					other := corev1.ServiceExternalTrafficPolicyLocal
					if o.Spec.ExternalTrafficPolicy == other {
						other = corev1.ServiceExternalTrafficPolicyCluster
					}
					o.Spec.ExternalTrafficPolicy = other
				})
			},
		},
		{
			Name: "lose-slices", Text: "delete the EndpointSlices of a Service; its controller makes them anew after a while", Weight: 3, Able: able,
			Parameters: []parameter.Parameter{name()}, Draw: drawName,
			Do: func(c *Cluster, s Step) {
				for _, o := range c.kube.List("EndpointSlice") {
					if o.GetLabels()["kubernetes.io/service-name"] == s.With["name"] {
						c.may(c.kube.Delete("user", "EndpointSlice", o.GetNamespace(), o.GetName()))
					}
				}
			},
		},
	}
}

func (c *Cluster) changeService(name string, change func(*corev1.Service)) {
	_, err := c.kube.Change("user", "Service", Namespace, name, func(o kube.Object) { change(o.(*corev1.Service)) })
	c.may(err)
}

// inSegment is the i-th address of those that Services get in a segment.
func inSegment(segment, i int) netip.Addr {
	a := stage.SegmentPool(segment).Addr().As4()
	a[3] += byte(i % 250)
	return netip.AddrFrom4(a)
}
