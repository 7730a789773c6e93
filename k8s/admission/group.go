// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"fairlead.io/fairlead/k8s/api/lbcf"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

func createGroup(g *v1beta1.BackendGroup, view View) (v verdict) {
	checkGroup(&v, nil, g)
	drivers := checkLoadBalancersOf(&v, g, view)
	for _, d := range drivers { // G8
		checkOpenToNew(&v, d.path, d.driver)
	}
	v.ask(drivers, BackendQuestion{Operation: OperationCreate, BackendType: lbcf.TypeOf(&g.Spec), Parameters: g.Spec.Parameters}, false)
	return v
}

func updateGroup(before, after *v1beta1.BackendGroup, view View) (v verdict) {
	if was, is := lbcf.TypeOf(&before.Spec), lbcf.TypeOf(&after.Spec); was != is { // G6
		v.deny(field.Forbidden(spec(), "the backends cannot change from "+string(was)+" to "+string(is)+": make a BackendGroup of another name"))
		return v
	}
	checkGroup(&v, before, after)
	same := equality.Semantic.DeepEqual(effective(&before.Spec), effective(&after.Spec))
	v.ask(checkLoadBalancersOf(&v, after, view), BackendQuestion{Operation: OperationUpdate, BackendType: lbcf.TypeOf(&after.Spec),
		Parameters: after.Spec.Parameters, OldParameters: before.Spec.Parameters}, same)
	return v
}

func deleteGroup(g metav1.Object, _ View) (v verdict) {
	checkUnprotected(&v, g.GetLabels()) // G10
	return v
}

func findGroup(view View, namespace, name string) *v1beta1.BackendGroup {
	for g := range view.BackendGroups(namespace) {
		if g.Name == name && g.Namespace == namespace {
			return g
		}
	}
	return nil
}

// effective is a spec as it is meant, so that one that was filled in equals the one that it was.
func effective(given *v1beta1.BackendGroupSpec) *v1beta1.BackendGroupSpec {
	g := given.DeepCopy()
	g.LoadBalancers, g.LBName = lbcf.LoadBalancers(g), nil
	policy := lbcf.DeregisterPolicy(g.DeregisterPolicy)
	g.DeregisterPolicy = &policy
	if g.Pods != nil {
		g.Pods.Ports, g.Pods.Port = lbcf.PodPorts(g.Pods), nil
	}
	if g.Service != nil {
		g.Service.Port = lbcf.EffectivePort(g.Service.Port)
	}
	return g
}

// checkGroup checks what holds for every group. before is nil for a new one.
func checkGroup(v *verdict, before, g *v1beta1.BackendGroup) {
	if len(lbcf.LoadBalancers(&g.Spec)) == 0 { // G1
		v.deny(field.Required(spec().Child("loadBalancers"), "name at least one LoadBalancer"))
	}
	checkEnsurePolicy(v, g.Spec.EnsurePolicy)   // G2
	if p := g.Spec.DeregisterPolicy; p != nil { // G3
		switch {
		case !slices.Contains(deregisterPolicies(), *p):
			v.deny(field.NotSupported(spec().Child("deregisterPolicy"), *p, deregisterPolicies()))
		case *p == v1beta1.Webhook && g.Spec.DeregisterWebhook == nil:
			v.deny(field.Required(spec().Child("deregisterWebhook"), "deregisterPolicy is Webhook: name the driver that judges"))
		case *p == v1beta1.Webhook:
			checkDeregisterWebhook(v, g.Spec.DeregisterWebhook)
		}
	}
	if one(g.Spec.Pods != nil)+one(g.Spec.Service != nil)+one(g.Spec.Static != nil) > 1 { // G4
		v.deny(field.Forbidden(spec(), "only one of pods, service and static: make a BackendGroup for each"))
		return
	}
	if g.Spec.Pods != nil { // G5
		checkPods(v, g.Spec.Pods)
	}
	if g.Spec.Service != nil {
		named := before != nil && before.Spec.Service != nil && before.Spec.Service.Name == g.Spec.Service.Name
		if g.Spec.Service.Name == "" && !named {
			v.deny(field.Required(spec().Child("service", "name"), "name a Service of type NodePort"))
		}
		checkPort(v, spec().Child("service", "port"), g.Spec.Service.Port)
		checkLabels(v, spec().Child("service", "nodeSelector"), g.Spec.Service.NodeSelector)
	}
}

func checkPods(v *verdict, p *v1beta1.PodBackends) {
	path := spec().Child("pods")
	if len(p.Ports) == 0 && p.Port == nil {
		v.deny(field.Required(path.Child("ports"), "name at least one port"))
	}
	if p.Port != nil {
		checkPort(v, path.Child("port"), *p.Port)
	}
	for i, port := range p.Ports {
		checkPort(v, path.Child("ports").Index(i), port)
	}
	switch {
	case p.ByLabel == nil && p.ByName == nil:
		v.deny(field.Required(path, "select pods with byLabel or byName"))
	case p.ByLabel == nil:
	case len(p.ByName) > 0:
		v.deny(field.Forbidden(path.Child("byName"), "only without byLabel: remove one of them"))
	case len(p.ByLabel.Selector) == 0:
		v.deny(field.Required(path.Child("byLabel", "selector"), "name at least one label"))
	default:
		checkLabels(v, path.Child("byLabel", "selector"), p.ByLabel.Selector)
	}
}

func checkPort(v *verdict, path *field.Path, p v1beta1.PortSelector) {
	if n := lbcf.EffectivePort(p).Port; n < 1 || n > 65535 {
		v.deny(field.Invalid(path.Child("port"), n, "must be 1 to 65535"))
	}
	if p.Protocol != "TCP" && p.Protocol != "UDP" {
		v.deny(field.NotSupported(path.Child("protocol"), p.Protocol, []string{"TCP", "UDP"}))
	}
}

// target is a LoadBalancer of a group, and its driver.
type target struct {
	path   *field.Path
	lb     *v1beta1.LoadBalancer
	driver *v1beta1.LoadBalancerDriver
}

// checkLoadBalancersOf finds the LoadBalancers of a group and their drivers, up to the first that cannot be used (G7, G8).
func checkLoadBalancersOf(v *verdict, g *v1beta1.BackendGroup, view View) (all []target) {
	optional := g.Annotations[lbcf.AnnotationValidationPolicy] == lbcf.ValidationOptional
	for i, name := range lbcf.LoadBalancers(&g.Spec) {
		path := spec().Child("loadBalancers").Index(i)
		var lb *v1beta1.LoadBalancer
		for _, namespace := range lbcf.LoadBalancerNamespaces(name, g.Namespace) {
			if lb = view.LoadBalancer(namespace, name); lb != nil {
				break
			}
		}
		switch {
		case lb == nil && optional: // lbcf §2.3.2
			continue
		case lb == nil:
			v.deny(field.NotFound(path, name+": create this LoadBalancer first, or annotate the group with "+lbcf.AnnotationValidationPolicy+": "+lbcf.ValidationOptional))
			return all
		case lb.DeletionTimestamp != nil:
			v.deny(field.Forbidden(path, "LoadBalancer "+name+" is being deleted: remove it from the group"))
			return all
		case !lbcf.MayUse(lb, g.Namespace):
			v.deny(field.Forbidden(path, "LoadBalancer "+name+" is not for namespace "+g.Namespace+": add the namespace to its scope"))
			return all
		}
		d := checkDriverOf(v, path, lb.Spec.LBDriver, lb.Namespace, view)
		if d == nil {
			return all
		}
		all = append(all, target{path, lb, d})
	}
	return all
}

// ask asks every driver the same about its LoadBalancer (G9), unless there is something wrong already.
func (v *verdict) ask(targets []target, q BackendQuestion, lenient bool) {
	if len(v.errs) > 0 {
		return
	}
	for _, t := range targets {
		about := q
		about.LBInfo = t.lb.Status.LBInfo
		v.calls = append(v.calls, Call{Driver: t.driver, About: "load balancer " + t.lb.Name, Lenient: lenient, Backend: &about})
	}
}
