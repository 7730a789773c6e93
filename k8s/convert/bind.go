// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"slices"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/api/lbcf"
	v1 "fairlead.io/fairlead/k8s/api/lbcf/v1"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

// Bind converts a Bind. It may be used whatever its spec says: one that is going has to be seen to.
func Bind(o *v1.Bind) (world.Bind, []world.Problem) {
	meta, r := open(world.KindBind, &o.ObjectMeta, true)
	spec := &o.Spec
	b := world.Bind{
		Meta: meta, Finalizer: slices.Contains(o.Finalizers, lbcf.FinalizerLoadBalancer),
		Balancing: world.Balancing{
			Parameters: kvs(spec.Parameters, all), Ensure: r.ensureBind(spec.EnsurePolicy),
			Leave: r.leave(spec.DeregisterPolicy, spec.DeregisterWebhook, meta.Namespace),
			Pods:  r.podsOfBind(&spec.Pods),
		},
		Entries: r.entries(spec.LoadBalancers, meta.Namespace),
	}
	for _, s := range o.Status.LoadBalancerStatuses {
		b.Statuses = append(b.Statuses, world.BalancerStatus{
			Name: s.Name, DriverID: driverID(s.Driver, meta.Namespace), Info: kvs(s.LBInfo, all), Attributes: kvs(s.LastSyncedAttributes, all),
			Created: holds(s.Conditions, v1beta1.ConditionCreated), Synced: holds(s.Conditions, v1beta1.ConditionReady),
		})
	}
	return b, r.problems
}

// entries reads the load balancers of a Bind. The first of two with one name counts.
func (r *report) entries(list []v1.TargetLoadBalancer, namespace string) (out []world.BindEntry) {
	seen := map[string]bool{}
	for i, t := range list {
		field := fmt.Sprintf("spec.loadBalancers[%d]", i)
		switch {
		case t.Name == "":
			r.degrade(field+".name", "name it", "empty; it is left out")
			continue
		case seen[t.Name]:
			r.degrade(field+".name", "name each one differently", "%q is there twice; the first one counts", t.Name)
			continue
		case t.Driver == "":
			r.degrade(field+".driver", "name a LoadBalancerDriver", "empty")
		}
		seen[t.Name] = true
		out = append(out, world.BindEntry{
			Name: t.Name, Driver: t.Driver, DriverID: driverID(t.Driver, namespace), Spec: kvs(t.Spec, all), Attributes: kvs(t.Attributes, all),
		})
	}
	return out
}

func (r *report) podsOfBind(p *v1.PodBackends) *world.PodSelection {
	s := r.podSelection(p.ByLabel, p.ByName)
	for i, port := range p.Ports {
		if n := r.backendPort(fmt.Sprintf("spec.pods.ports[%d].port", i), port.Port); n != 0 {
			s.Ports = append(s.Ports, world.BackendPort{Port: n, Protocol: port.Protocol})
		}
	}
	return s
}
