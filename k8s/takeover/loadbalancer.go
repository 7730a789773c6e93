// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"fairlead.io/fairlead/k8s/api/lbcf"
	"fairlead.io/fairlead/k8s/api/lbcf/v1"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

const (
	nothing     = "nothing is called"
	ensuredAttr = "ensureLoadBalancer, with attributes that it was not given yet"
	created     = "createLoadBalancer"
	deleted     = "deleteLoadBalancer, after its backends"
	dropped     = "goes without a call: it was never created"
)

func loadBalancerOf(lb *v1beta1.LoadBalancer) LoadBalancer {
	out := LoadBalancer{Name: nameOf(lb), Driver: lb.Spec.LBDriver}
	isCreated := holds(lb.Status.Conditions, v1beta1.ConditionCreated)
	switch {
	case lb.DeletionTimestamp != nil:
		out.State, out.Then = Deleting, deleted
	case !isCreated:
		out.State, out.Then = NotCreated, created
	case !holds(lb.Status.Conditions, v1beta1.ConditionAttributesSynced):
		out.State, out.Then = Created, ensuredAttr
	default:
		out.State, out.Then = Created, nothing
	}
	return out
}

// loadBalancersOf gives the load balancers of a Bind: those of its spec, and those that its status still knows.
func loadBalancersOf(b *v1.Bind) (out []LoadBalancer) {
	known := map[string]bool{}
	for i := range b.Spec.LoadBalancers {
		entry := &b.Spec.LoadBalancers[i]
		known[entry.Name] = true
		out = append(out, entryOf(b, entry))
	}
	for i := range b.Status.LoadBalancerStatuses {
		s := &b.Status.LoadBalancerStatuses[i]
		if known[s.Name] {
			continue
		}
		lb := LoadBalancer{Name: nameOf(b) + "/" + s.Name, Driver: s.Driver, State: Deleting, Then: dropped}
		if holds(s.Conditions, v1beta1.ConditionCreated) {
			// lbcf §5.8 [FIX]: LBCF kept it until the whole Bind was deleted.
			lb.Then = "left the Bind: " + deleted
		}
		out = append(out, lb)
	}
	return out
}

func entryOf(b *v1.Bind, entry *v1.TargetLoadBalancer) LoadBalancer {
	out := LoadBalancer{Name: nameOf(b) + "/" + entry.Name, Driver: entry.Driver, State: NotCreated, Then: created}
	s := statusOf(b, entry.Name)
	isCreated := s != nil && holds(s.Conditions, v1beta1.ConditionCreated)
	switch {
	case b.DeletionTimestamp != nil && !isCreated:
		out.State, out.Then = Deleting, dropped
	case b.DeletionTimestamp != nil:
		out.State, out.Then = Deleting, deleted
	case !isCreated:
	case !maps.Equal(s.LastSyncedAttributes, entry.Attributes):
		out.State, out.Then = Created, ensuredAttr
	default:
		out.State, out.Then = Created, nothing
	}
	return out
}

func statusOf(b *v1.Bind, entry string) *v1.TargetLoadBalancerStatus {
	i := slices.IndexFunc(b.Status.LoadBalancerStatuses, func(s v1.TargetLoadBalancerStatus) bool { return s.Name == entry })
	if i < 0 {
		return nil
	}
	return &b.Status.LoadBalancerStatuses[i]
}

// target is the load balancer that a record's backend should be registered at, as it is now.
type target struct {
	driver           string
	info, attributes map[string]string
}

// targetOfGroup finds a LoadBalancer as a group does (lbcf §1.4), or tells why the group has no use of it.
func (j *judge) targetOfGroup(g *v1beta1.BackendGroup, name string) (target, string) {
	if !slices.Contains(lbcf.LoadBalancers(&g.Spec), name) {
		return target{}, "its group does not name the LoadBalancer any more"
	}
	for _, namespace := range lbcf.LoadBalancerNamespaces(name, g.Namespace) {
		lb := j.lbs[types.NamespacedName{Namespace: namespace, Name: name}]
		switch {
		case lb == nil:
			continue
		case lb.DeletionTimestamp != nil:
			return target{}, "its LoadBalancer is being deleted"
		case !holds(lb.Status.Conditions, v1beta1.ConditionCreated):
			return target{}, "its LoadBalancer was made anew and is not created"
		case !lbcf.MayUse(lb, g.Namespace):
			return target{}, "its LoadBalancer is not for its namespace (scope)"
		}
		return target{lb.Spec.LBDriver, identity(lb.Status.LBInfo, lb.Spec.LBSpec), lb.Spec.Attributes}, ""
	}
	return target{}, "its LoadBalancer is gone"
}

// targetOfBind finds an entry of a Bind, or tells why there is none.
func targetOfBind(b *v1.Bind, name string) (target, string) {
	i := slices.IndexFunc(b.Spec.LoadBalancers, func(lb v1.TargetLoadBalancer) bool { return lb.Name == name })
	if i < 0 {
		return target{}, "its Bind does not list the load balancer any more"
	}
	s := statusOf(b, name)
	if s == nil || !holds(s.Conditions, v1beta1.ConditionCreated) {
		return target{}, "its load balancer is not created"
	}
	entry := b.Spec.LoadBalancers[i]
	driver := s.Driver // lbcf §5.8: that which created it stays in charge
	if driver == "" {
		driver = entry.Driver
	}
	return target{driver, identity(s.LBInfo, entry.Spec), s.LastSyncedAttributes}, ""
}

// identity is what a driver named the load balancer, or its spec where it named nothing (lbcf §2.2).
func identity(info, spec map[string]string) map[string]string {
	if len(info) == 0 {
		return spec
	}
	return info
}
