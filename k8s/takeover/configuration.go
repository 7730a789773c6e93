// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"fairlead.io/fairlead/k8s/handover"
)

// The names of LBCF's admission configurations (lbcf §6.1). Ours have the same, so that they take their place.
const (
	validating = "lbcf-validate"
	mutating   = "lbcf-mutate"
)

// admissionTimeoutSeconds is what a configuration should allow: drivers have up to ten seconds by themselves (lbcf §6.1).
const admissionTimeoutSeconds = 30

// compareConfigurations tells what is the matter with LBCF's admission configurations.
func compareConfigurations(have []unstructured.Unstructured) []Difference {
	out := []Difference{}
	for i := range have {
		o := &have[i]
		d := Difference{Name: o.GetKind() + " " + o.GetName(), Changes: []string{}}
		webhooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
		for _, w := range webhooks {
			if webhook, ok := w.(map[string]any); ok {
				for _, change := range changesOfWebhook(webhook) {
					if !slices.Contains(d.Changes, change) {
						d.Changes = append(d.Changes, change)
					}
				}
			}
		}
		slices.Sort(d.Changes)
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b Difference) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func changesOfWebhook(webhook map[string]any) (out []string) {
	versions, _, _ := unstructured.NestedStringSlice(webhook, "admissionReviewVersions")
	if !slices.Contains(versions, "v1") {
		out = append(out, "admissionReviewVersions lacks v1")
	}
	if seconds, _, _ := unstructured.NestedInt64(webhook, "timeoutSeconds"); seconds < admissionTimeoutSeconds {
		out = append(out, fmt.Sprintf("timeoutSeconds is less than %d", admissionTimeoutSeconds))
	}
	namespace, _, _ := unstructured.NestedString(webhook, "clientConfig", "service", "namespace")
	name, _, _ := unstructured.NestedString(webhook, "clientConfig", "service", "name")
	policy, _, _ := unstructured.NestedString(webhook, "failurePolicy")
	if namespace == handover.Namespace && name == handover.DeploymentName && policy == "Fail" {
		out = append(out, fmt.Sprintf("asks Service %s/%s: once LBCF is stopped, objects cannot be changed until Fairlead answers there", namespace, name))
	}
	return out
}
