// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"fairlead.io/fairlead/k8s/api/lbcf"
	v1 "fairlead.io/fairlead/k8s/api/lbcf/v1"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

// minResyncSeconds is the shortest period of a policy Always in a Bind.
const minResyncSeconds = 10

func createBind(b *v1.Bind, view View) (v verdict) {
	checkBind(&v, &v1.Bind{}, b)
	v.askBind(&v1.Bind{}, b, OperationCreate, view)
	return v
}

func updateBind(before, after *v1.Bind, view View) (v verdict) {
	if equality.Semantic.DeepEqual(before.Spec, after.Spec) { // B7
		return v
	}
	checkUnmoved(&v, before, after)
	checkBind(&v, before, after)
	v.askBind(before, after, OperationUpdate, view)
	return v
}

// checkUnmoved refuses that a load balancer that was created becomes another (lbcf §2.5).
func checkUnmoved(v *verdict, before, after *v1.Bind) {
	for i, is := range after.Spec.LoadBalancers {
		was, known := entry(before, is.Name)
		if !known || !isCreated(before, is.Name) {
			continue
		}
		path := spec().Child("loadBalancers").Index(i)
		if was.Driver != is.Driver {
			v.deny(field.Forbidden(path.Child("driver"), "cannot change, the load balancer was created: add one of another name, then remove this"))
		}
		if !maps.Equal(was.Spec, is.Spec) {
			v.deny(field.Forbidden(path.Child("spec"), "cannot change, the load balancer was created: add one of another name, then remove this"))
		}
	}
}

func entry(b *v1.Bind, name string) (v1.TargetLoadBalancer, bool) {
	for _, l := range b.Spec.LoadBalancers {
		if l.Name == name {
			return l, true
		}
	}
	return v1.TargetLoadBalancer{}, false
}

func isCreated(b *v1.Bind, name string) bool {
	for _, s := range b.Status.LoadBalancerStatuses {
		if s.Name == name {
			return len(s.LBInfo) > 0 || slices.ContainsFunc(s.Conditions, func(c v1beta1.Condition) bool {
				return c.Type == v1beta1.ConditionCreated && c.Status == "True"
			})
		}
	}
	return false
}

// checkBind checks what holds for every Bind. before is empty for a new one.
func checkBind(v *verdict, before, b *v1.Bind) {
	path := spec().Child("loadBalancers")
	if len(b.Spec.LoadBalancers) == 0 { // B1
		v.deny(field.Required(path, "name at least one load balancer"))
		return
	}
	for i, l := range b.Spec.LoadBalancers { // B2
		_, stored := entry(before, l.Name)
		at := path.Index(i)
		if why := validation.IsDNS1123Label(l.Name); len(why) > 0 && !stored {
			v.deny(field.Invalid(at.Child("name"), l.Name, strings.Join(why, "; ")))
		}
		if slices.ContainsFunc(b.Spec.LoadBalancers[:i], func(o v1.TargetLoadBalancer) bool { return o.Name == l.Name }) {
			v.deny(field.Duplicate(at.Child("name"), l.Name))
		}
		if strings.TrimSpace(l.Driver) == "" {
			v.deny(field.Required(at.Child("driver"), "name a LoadBalancerDriver"))
		}
		if len(l.Spec) == 0 {
			v.deny(field.Required(at.Child("spec"), "tell the driver which load balancer is meant"))
		}
	}
	checkBindPods(v, &before.Spec.Pods, &b.Spec.Pods)
	checkBindPolicies(v, &before.Spec, &b.Spec)
}

func checkBindPods(v *verdict, before, p *v1.PodBackends) { // B3
	path := spec().Child("pods")
	selector := path.Child("byLabel", "selector")
	switch {
	case p.ByLabel == nil && p.ByName == nil:
		v.deny(field.Required(path, "select pods with byLabel or byName"))
	case p.ByLabel == nil:
	case len(p.ByLabel.Selector) == 0:
		v.deny(field.Required(selector, "name at least one label"))
	case before.ByLabel == nil || !maps.Equal(before.ByLabel.Selector, p.ByLabel.Selector):
		checkLabels(v, selector, p.ByLabel.Selector)
	}
	if len(p.Ports) == 0 {
		v.deny(field.Required(path.Child("ports"), "name at least one port"))
	}
	for i, port := range p.Ports {
		at := path.Child("ports").Index(i)
		if port.Port == 0 || (port.Port < 1 || port.Port > 65535) && !slices.Contains(before.Ports, port) {
			v.deny(field.Invalid(at.Child("port"), port.Port, "must be 1 to 65535"))
		}
		if !strings.EqualFold(port.Protocol, "tcp") && !strings.EqualFold(port.Protocol, "udp") {
			v.deny(field.NotSupported(at.Child("protocol"), port.Protocol, []string{"TCP", "UDP"}))
		}
	}
}

func checkBindPolicies(v *verdict, before, b *v1.BindSpec) {
	policy := spec().Child("deregisterPolicy")
	if p := b.DeregisterPolicy; p != nil && *p != "" && !slices.Contains(deregisterPolicies(), *p) { // B4
		if before.DeregisterPolicy != nil && *before.DeregisterPolicy == *p {
			v.warn(policy, "unknown, and taken for IfNotReady: write one of "+strings.Join(deregisterPolicies(), ", "))
		} else {
			v.deny(field.NotSupported(policy, *p, deregisterPolicies()))
		}
	}
	switch { // B5
	case b.DeregisterWebhook != nil:
		checkDeregisterWebhook(v, b.DeregisterWebhook)
	case lbcf.DeregisterPolicy(b.DeregisterPolicy) == v1beta1.Webhook:
		v.deny(field.Required(spec().Child("deregisterWebhook"), "deregisterPolicy is Webhook: name the driver that judges"))
	}
	if p := b.EnsurePolicy; p != nil { // B6
		path := spec().Child("ensurePolicy")
		if known := []string{v1beta1.IfNotSucc, v1beta1.Always}; !slices.Contains(known, p.Policy) {
			v.deny(field.NotSupported(path.Child("policy"), p.Policy, known))
		}
		if p.ResyncPeriodInSeconds != nil && *p.ResyncPeriodInSeconds < minResyncSeconds {
			v.deny(field.Invalid(path.Child("resyncPeriodInSeconds"), *p.ResyncPeriodInSeconds, "must be at least 10"))
		}
	}
}

// askBind asks the driver of every load balancer about it, and about backends of it (B8).
func (v *verdict) askBind(before, b *v1.Bind, operation string, view View) {
	if len(v.errs) > 0 {
		return
	}
	for i, l := range b.Spec.LoadBalancers {
		path := spec().Child("loadBalancers").Index(i).Child("driver")
		d := checkDriverOf(v, path, l.Driver, b.Namespace, view)
		checkOpenToNew(v, path, d)
		was, _ := entry(before, l.Name)
		about := "load balancer " + l.Name
		v.calls = append(v.calls,
			Call{Driver: d, About: about, LoadBalancer: &LoadBalancerQuestion{Operation: operation,
				LBSpec: l.Spec, Attributes: l.Attributes, OldAttributes: was.Attributes}},
			Call{Driver: d, About: about, Backend: &BackendQuestion{Operation: operation, BackendType: lbcf.Pod,
				LBInfo: l.Spec, Parameters: b.Spec.Parameters, OldParameters: before.Spec.Parameters}})
	}
	if len(v.errs) > 0 {
		v.calls = nil
	}
}
