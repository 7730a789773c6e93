// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"fairlead.io/fairlead/k8s/api/lbcf"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

func createLoadBalancer(lb *v1beta1.LoadBalancer, view View) (v verdict) {
	if lbcf.IsShared(lb.Name) && lb.Namespace != lbcf.SharedNamespace { // L2
		v.deny(field.Invalid(field.NewPath("metadata", "name"), lb.Name, "must not begin with lbcf-, which is for LoadBalancers in kube-system: rename it or move it"))
	}
	checkLoadBalancer(&v, lb)
	path := spec().Child("lbDriver")
	d := checkDriverOf(&v, path, lb.Spec.LBDriver, lb.Namespace, view) // L5
	checkOpenToNew(&v, path, d)
	if len(v.errs) == 0 { // L8
		v.calls = []Call{{Driver: d, About: "load balancer " + lb.Name, LoadBalancer: &LoadBalancerQuestion{
			Operation: OperationCreate, LBSpec: lb.Spec.LBSpec, Attributes: lb.Spec.Attributes}}}
	}
	return v
}

func updateLoadBalancer(before, after *v1beta1.LoadBalancer, view View) (v verdict) {
	if before.Spec.LBDriver != after.Spec.LBDriver { // L6
		v.deny(field.Forbidden(spec().Child("lbDriver"), "cannot change: make a LoadBalancer of another name"))
	}
	if !maps.Equal(before.Spec.LBSpec, after.Spec.LBSpec) {
		v.deny(field.Forbidden(spec().Child("lbSpec"), "cannot change: make a LoadBalancer of another name"))
	}
	if len(v.errs) > 0 {
		return v
	}
	checkLoadBalancer(&v, after)
	d := checkDriverOf(&v, spec().Child("lbDriver"), after.Spec.LBDriver, after.Namespace, view) // L7
	if len(v.errs) == 0 {                                                                        // L8
		v.calls = []Call{{Driver: d, About: "load balancer " + after.Name, Lenient: equality.Semantic.DeepEqual(before.Spec, after.Spec),
			LoadBalancer: &LoadBalancerQuestion{Operation: OperationUpdate,
				LBSpec: after.Spec.LBSpec, Attributes: after.Spec.Attributes, OldAttributes: before.Spec.Attributes}}}
	}
	return v
}

// checkLoadBalancer checks what holds for every LoadBalancer.
func checkLoadBalancer(v *verdict, lb *v1beta1.LoadBalancer) {
	if len(lb.Spec.Scope) > 0 && !(lbcf.IsShared(lb.Name) && lb.Namespace == lbcf.SharedNamespace) { // L3
		v.deny(field.Forbidden(spec().Child("scope"), "only LoadBalancers in kube-system whose name begins with lbcf- are shared: remove scope, or rename and move it"))
	}
	checkEnsurePolicy(v, lb.Spec.EnsurePolicy)
}

func deleteLoadBalancer(lb metav1.Object, _ View) (v verdict) {
	checkUnprotected(&v, lb.GetLabels()) // L9
	return v
}
