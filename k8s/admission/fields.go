// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"fairlead.io/fairlead/k8s/api/lbcf"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

// minPeriod is the shortest period of a policy Always in v1beta1.
const minPeriod = 30 * time.Second

func spec() *field.Path { return field.NewPath("spec") }

// checkUnprotected refuses the deletion of an object that is labelled so (L9, G10).
func checkUnprotected(v *verdict, labels map[string]string) {
	if lbcf.IsProtected(labels) {
		v.deny(field.Forbidden(field.NewPath("metadata", "labels").Key(lbcf.LabelDoNotDelete), "protects it from deletion: remove the label first"))
	}
}

// checkDriverOf finds the driver that a field names.
func checkDriverOf(v *verdict, path *field.Path, driver, namespace string, view View) *v1beta1.LoadBalancerDriver {
	if driver == "" { // L1
		v.deny(field.Required(path, "name a LoadBalancerDriver"))
		return nil
	}
	d := driverOf(view, driver, namespace)
	if d == nil {
		v.deny(field.NotFound(path, lbcf.DriverNamespace(driver, namespace)+"/"+driver+": create this LoadBalancerDriver first"))
	}
	return d
}

// checkOpenToNew refuses drivers that take no new objects.
func checkOpenToNew(v *verdict, path *field.Path, d *v1beta1.LoadBalancerDriver) {
	switch {
	case d == nil:
	case d.DeletionTimestamp != nil:
		v.deny(field.Forbidden(path, "LoadBalancerDriver "+d.Name+" is being deleted: name another"))
	case lbcf.IsDraining(d.Labels):
		v.deny(field.Forbidden(path, "LoadBalancerDriver "+d.Name+" is draining and takes nothing new: name another, or remove its label "+lbcf.LabelDraining))
	}
}

// checkEnsurePolicy checks a policy of v1beta1 (L4, G2).
func checkEnsurePolicy(v *verdict, p *v1beta1.EnsurePolicy) {
	if p == nil {
		return
	}
	path := spec().Child("ensurePolicy")
	switch p.Policy {
	case v1beta1.IfNotSucc:
		if p.MinPeriod != nil {
			v.deny(field.Forbidden(path.Child("minPeriod"), "has no meaning with IfNotSucc: remove it, or set policy to Always"))
		}
	case v1beta1.Always:
		if p.MinPeriod != nil && p.MinPeriod.Duration < minPeriod {
			v.deny(field.Invalid(path.Child("minPeriod"), p.MinPeriod.Duration.String(), "must be at least 30s"))
		}
	default: // LBCF lets it through
		v.warn(path.Child("policy"), "unknown, and taken for IfNotSucc: write IfNotSucc or Always")
	}
}

// checkDeregisterWebhook checks the webhook of a policy Webhook.
func checkDeregisterWebhook(v *verdict, w *v1beta1.DeregisterWebhook) {
	path := spec().Child("deregisterWebhook")
	if w.DriverName == "" {
		v.deny(field.Required(path.Child("driverName"), "name the LoadBalancerDriver that judges"))
	}
	known := []string{v1beta1.DoNothing, v1beta1.IfNotReady, v1beta1.IfNotRunning}
	if w.FailurePolicy != nil && !slices.Contains(known, *w.FailurePolicy) {
		v.deny(field.NotSupported(path.Child("failurePolicy"), *w.FailurePolicy, known))
	}
}

// checkLabels refuses labels that select nothing, or everything, because they are none.
func checkLabels(v *verdict, path *field.Path, labels map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		for _, why := range validation.IsQualifiedName(key) {
			v.deny(field.Invalid(path, key, "key: "+why))
		}
		for _, why := range validation.IsValidLabelValue(labels[key]) {
			v.deny(field.Invalid(path.Key(key), labels[key], why))
		}
	}
}

// deregisterPolicies are the values of deregisterPolicy.
func deregisterPolicies() []string {
	return []string{v1beta1.IfNotReady, v1beta1.IfNotRunning, v1beta1.Webhook}
}
