// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"fairlead.io/fairlead/fsm/world"
)

// EndpointSlice converts a slice. One that belongs to no Service or lists no IP addresses is unusable.
func EndpointSlice(o *discoveryv1.EndpointSlice) (world.EndpointSlice, []world.Problem) {
	meta, r := open(world.KindEndpointSlice, &o.ObjectMeta, true)
	s := world.EndpointSlice{Meta: meta, ServiceName: o.Labels[discoveryv1.LabelServiceName]}
	if at, err := time.Parse(time.RFC3339Nano, o.Annotations[corev1.EndpointsLastChangeTriggerTime]); err == nil {
		s.ChangedUnixMilli = at.UnixMilli() // what is no time tells nothing
	}
	if s.ServiceName == "" {
		r.fail("metadata.labels", "label it "+discoveryv1.LabelServiceName+": NAME-OF-THE-SERVICE", "no label says which Service it belongs to")
	}
	family := world.Family(o.AddressType)
	if family != world.IPv4 && family != world.IPv6 {
		r.fail("addressType", "use IPv4 or IPv6", "%q is not supported", string(o.AddressType))
		return s, r.problems
	}
	s.Ports = slices.Grow(s.Ports, len(o.Ports))
	for i, p := range o.Ports {
		field := fmt.Sprintf("ports[%d]", i)
		if p.Port == nil {
			r.degrade(field+".port", "state the port", "a port without number, which is left out")
			continue
		}
		s.Ports = append(s.Ports, world.EndpointPort{
			Name:     value(p.Name),
			Protocol: oneOf(r, field+".protocol", value(p.Protocol), world.TCP, world.UDP, world.SCTP),
			Port:     r.port(field+".port", *p.Port, false),
		})
	}
	s.Endpoints = slices.Grow(s.Endpoints, len(o.Endpoints)) // and no more: it is kept for long
	for i, e := range o.Endpoints {
		r.endpoint(&s, family, fmt.Sprintf("endpoints[%d]", i), e)
	}
	return s, r.problems
}

// endpoint adds an endpoint. Kubernetes lets it list several addresses that are the same for every use and has
// consumers take the first.
func (r *report) endpoint(s *world.EndpointSlice, family world.Family, field string, e discoveryv1.Endpoint) {
	if len(e.Addresses) == 0 {
		r.fail(field+".addresses", "list its address", "empty")
		return
	}
	a, ok := r.dialled(field+".addresses[0]", e.Addresses[0])
	if !ok {
		return
	}
	if world.FamilyOf(a) != family {
		r.fail(field+".addresses[0]", "make one EndpointSlice for each family", "%s is not of addressType %s", a, family)
		return
	}
	out := world.Endpoint{
		Address: a, Place: &world.Place{Node: value(e.NodeName), Zone: value(e.Zone)}, Pod: podOf(e.TargetRef), Terminating: value(e.Conditions.Terminating),
	}
	out.Ready = e.Conditions.Ready == nil || *e.Conditions.Ready
	out.Serving = out.Ready
	if e.Conditions.Serving != nil {
		out.Serving = *e.Conditions.Serving
	}
	if e.Hints != nil {
		for _, node := range e.Hints.ForNodes {
			out.Place.Hints = append(out.Place.Hints, world.Hint{Node: node.Name})
		}
		for _, zone := range e.Hints.ForZones {
			out.Place.Hints = append(out.Place.Hints, world.Hint{Zone: zone.Name})
		}
	}
	s.Endpoints = append(s.Endpoints, out)
}

// Endpoints converts the legacy form of endpoints, of which files may still consist: one slice for each subset and
// family. Their names cannot be those of real slices.
func Endpoints(o *corev1.Endpoints) ([]*world.EndpointSlice, []world.Problem) {
	meta, r := open(world.KindEndpointSlice, &o.ObjectMeta, true)
	var out []*world.EndpointSlice
	for i, subset := range o.Subsets {
		field := fmt.Sprintf("subsets[%d]", i)
		var ports []world.EndpointPort
		for j, p := range subset.Ports {
			at := fmt.Sprintf("%s.ports[%d]", field, j)
			ports = append(ports, world.EndpointPort{
				Name:     p.Name,
				Protocol: oneOf(r, at+".protocol", p.Protocol, world.TCP, world.UDP, world.SCTP),
				Port:     r.port(at+".port", p.Port, false),
			})
		}
		all := r.subset(field+".addresses", subset.Addresses, true)
		all = append(all, r.subset(field+".notReadyAddresses", subset.NotReadyAddresses, false)...)
		for _, family := range []world.Family{world.IPv4, world.IPv6} {
			s := &world.EndpointSlice{Meta: meta, ServiceName: meta.Name, Ports: ports}
			s.Name = fmt.Sprintf("endpoints:%s:%d:%s", meta.Name, i, family)
			for _, e := range all {
				if world.FamilyOf(e.Address) == family {
					s.Endpoints = append(s.Endpoints, e)
				}
			}
			if len(s.Endpoints) > 0 {
				out = append(out, s)
			}
		}
	}
	return out, r.problems
}

func (r *report) subset(field string, list []corev1.EndpointAddress, ready bool) []world.Endpoint {
	var out []world.Endpoint
	for i, e := range list {
		var a netip.Addr
		var ok bool
		if a, ok = r.dialled(fmt.Sprintf("%s[%d].ip", field, i), e.IP); !ok {
			continue
		}
		out = append(out, world.Endpoint{Address: a, Place: &world.Place{Node: value(e.NodeName)}, Pod: podOf(e.TargetRef), Ready: ready, Serving: ready})
	}
	return out
}

// podOf is the name of the pod that an endpoint is, empty if it is none.
func podOf(target *corev1.ObjectReference) string {
	if target == nil || target.Kind != "Pod" {
		return ""
	}
	return target.Name
}
