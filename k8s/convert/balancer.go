// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"slices"
	"time"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/api/lbcf"
	v1 "fairlead.io/fairlead/k8s/api/lbcf/v1"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

// OutsideBalancer converts a LoadBalancer. It may be used whatever its spec says: one that is going has to be seen to.
func OutsideBalancer(o *v1beta1.LoadBalancer) (world.OutsideBalancer, []world.Problem) {
	meta, r := open(world.KindLoadBalancer, &o.ObjectMeta, true)
	l := world.OutsideBalancer{
		Meta: meta, Driver: o.Spec.LBDriver, DriverID: driverID(o.Spec.LBDriver, meta.Namespace),
		Spec: kvs(o.Spec.LBSpec, all), Attributes: kvs(o.Spec.Attributes, all), Scope: slices.Clone(o.Spec.Scope),
		Ensure: r.ensure(o.Spec.EnsurePolicy), Finalizer: slices.Contains(o.Finalizers, lbcf.FinalizerLoadBalancer),
		Status: world.BalancerStatus{
			Info: kvs(o.Status.LBInfo, all), Created: holds(o.Status.Conditions, v1beta1.ConditionCreated),
			Synced: holds(o.Status.Conditions, v1beta1.ConditionAttributesSynced),
		},
	}
	if l.Driver == "" {
		r.degrade("spec.lbDriver", "name a LoadBalancerDriver", "empty")
	}
	return l, r.problems
}

// driverID is where a driver lives that an object of a namespace names (lbcf §1.4).
func driverID(name, namespace string) world.ID {
	return world.ID{Namespace: lbcf.DriverNamespace(name, namespace), Name: name}
}

// Least times between two calls that ensure something again, by admission (spec sections 2.2 and 2.5).
const (
	minPeriod     = 30 * time.Second
	minBindPeriod = 10 * time.Second
)

// ensure reads a policy as it is written. A policy of no known name counts as IfNotSucc.
func (r *report) ensure(p *v1beta1.EnsurePolicy) world.EnsurePolicy {
	out := written(p)
	r.policy(out.Policy)
	if out.Policy == v1beta1.Always {
		out.Period = r.period("spec.ensurePolicy.minPeriod", out.Period, minPeriod)
	}
	return out
}

// ensureBind reads the policy of a Bind.
func (r *report) ensureBind(p *v1.EnsurePolicy) world.EnsurePolicy {
	if p == nil {
		return world.EnsurePolicy{}
	}
	out := world.EnsurePolicy{Policy: p.Policy, Period: time.Duration(value(p.ResyncPeriodInSeconds)) * time.Second}
	r.policy(out.Policy)
	if out.Policy == v1beta1.Always {
		out.Period = r.period("spec.ensurePolicy.resyncPeriodInSeconds", out.Period, minBindPeriod)
	}
	return out
}

func (r *report) policy(name string) {
	if name != "" && name != v1beta1.Always && name != v1beta1.IfNotSucc {
		r.degrade("spec.ensurePolicy.policy", "use IfNotSucc or Always", "%q is unknown; it is %s", name, v1beta1.IfNotSucc)
	}
}

// period keeps a stored object that admission would refuse from having its driver called without a pause.
func (r *report) period(field string, d, least time.Duration) time.Duration {
	if d == 0 || d >= least {
		return d
	}
	r.degrade(field, "use at least "+least.String(), "%s is too short; it is %s", d, least)
	return least
}

// written is a policy without a word about it.
func written(p *v1beta1.EnsurePolicy) world.EnsurePolicy {
	if p == nil {
		return world.EnsurePolicy{}
	}
	out := world.EnsurePolicy{Policy: p.Policy}
	if p.MinPeriod != nil {
		out.Period = p.MinPeriod.Duration
	}
	return out
}
