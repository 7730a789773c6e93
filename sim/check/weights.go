// SPDX-License-Identifier: Apache-2.0

package check

import (
	"net/netip"
	"slices"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/weight"
)

// weighed judges who took a request, once the group had its time for the Service and its endpoints, and the node for the group: no pod
// that weighs nothing by what users say.
func (r *s8) weighed(e event.Stamped, x event.Flow) {
	id, one := r.serviceOf(x)
	if !x.Served || !one || r.kube.services[id].weights == "" || r.record.View().Group().Format == fsm.OldestFormat {
		return
	}
	if _, pending := r.flows.changed[id]; pending || !r.scene.freeFor(x.Node, r.bounds.L3) || !r.scene.soundFor(r.recordAt, r.bounds.L3) {
		return
	}
	if w, is := r.kube.weight(id, x.Pod); is {
		r.checked()
		if w == 0 {
			r.broken(id+" at "+x.Pod, "a request went to it from "+x.Node+", and it weighs nothing: "+r.kube.services[id].weights, e.Number, r.kube.services[id].number)
		}
	}
}

// serviceOf is the Service that a request was for; it is false if there may be several.
func (r *s8) serviceOf(x event.Flow) (id string, one bool) {
	ids := slices.DeleteFunc(r.ownersOf(x), func(id string) bool {
		s := r.kube.services[id]
		return s == nil || !slices.ContainsFunc(s.Ports, func(p portSpec) bool { return p.Port == x.Port })
	})
	if len(ids) != 1 {
		return "", false
	}
	return ids[0], true
}

// weight is what a pod weighs as an endpoint of a Service, the most that any says; it is false if it is none.
func (k *kube) weight(id, pod string) (most uint16, is bool) {
	for _, name := range sortedKeys(k.slices) {
		for _, e := range k.slices[name].endpoints {
			if k.slices[name].service == id && e.TargetRef.Namespace+"/"+e.TargetRef.Name == pod {
				most, is = max(most, k.weightOf(id, e)), true
			}
		}
	}
	return most, is
}

// weighs tells whether a node has an endpoint of a Service that weighs anything.
func (k *kube) weighs(id, node string) bool {
	s := k.services[id]
	if s == nil || s.weights == "" {
		return true
	}
	for _, slice := range k.slices {
		if slice.service == id && slices.ContainsFunc(slice.endpoints, func(e endpoint) bool { return e.NodeName == node && k.weightOf(id, e) > 0 }) {
			return true
		}
	}
	return false
}

func (k *kube) weightOf(id string, e endpoint) uint16 {
	of := weight.Endpoint{Pod: e.TargetRef.Name, Node: e.NodeName}
	if len(e.Addresses) > 0 {
		of.Address, _ = netip.ParseAddr(e.Addresses[0]) // the API server took nothing else
	}
	return weight.Of(k.services[id].weights, of)
}
