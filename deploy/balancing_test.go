// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Nobody carries policies out yet, so nobody gets their kinds without asking; who asks gets definitions, judges and the rights that
// these need, and nothing that was there is another.
func TestTheComponentOfPoliciesHasThemJudgedAndIsInNoOverlay(t *testing.T) {
	for name := range overlays {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			text := fmt.Sprintf("resources: [%s]\ncomponents: [%s]\n", from(t, folder, "overlays/"+name), from(t, folder, "components/balancing"))
			if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			with, without := kustomize(t, folder), kustomize(t, "overlays/"+name)
			if strings.Contains(fmt.Sprint(without), "balancing.elf.io") {
				t.Error("the overlay has policies")
			}
			var more []string
			var role rbacv1.ClusterRole
			for _, o := range with {
				if slices.ContainsFunc(without, func(was *unstructured.Unstructured) bool { return reflect.DeepEqual(o, was) }) {
					continue
				}
				more = append(more, o.GetKind()+" "+o.GetName())
				if o.GetKind() != "CustomResourceDefinition" && o.GetLabels()["app.kubernetes.io/part-of"] != "fairlead" {
					t.Errorf("uninstalling leaves %s %s", o.GetKind(), o.GetName())
				}
				if o.GetKind() == "ClusterRole" {
					if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
						t.Fatal(err)
					}
				}
			}
			slices.Sort(more)
			want := []string{
				"ClusterRole fairlead-controller-balancing", "ClusterRoleBinding fairlead-controller-balancing",
				"CustomResourceDefinition balancingpolicies.balancing.elf.io", "CustomResourceDefinition localredirectpolicies.balancing.elf.io",
				"MutatingWebhookConfiguration fairlead-balancing-mutate", "ValidatingWebhookConfiguration fairlead-balancing-validate",
			}
			if !slices.Equal(more, want) || len(with) != len(without)+len(want) {
				t.Errorf("more: %q", more)
			}
			rules := []rbacv1.PolicyRule{
				{APIGroups: []string{"balancing.elf.io"}, Resources: []string{"balancingpolicies", "localredirectpolicies"}, Verbs: []string{"get", "list", "watch"}},
				{APIGroups: []string{"balancing.elf.io"}, Resources: []string{"balancingpolicies/status", "localredirectpolicies/status"}, Verbs: []string{"patch"}},
				{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"patch"}}, // their annotations
				{APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"validatingwebhookconfigurations"}, ResourceNames: []string{"fairlead-balancing-validate"}, Verbs: []string{"get", "patch"}},
				{APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"mutatingwebhookconfigurations"}, ResourceNames: []string{"fairlead-balancing-mutate"}, Verbs: []string{"get", "patch"}},
			}
			if !reflect.DeepEqual(role.Rules, rules) {
				t.Errorf("rules %+v", role.Rules)
			}
		})
	}
}

// Section 3: deletion is never refused, so nobody asks members about it, also not while all of them are away.
func TestNobodyAsksAboutDeletedPolicies(t *testing.T) {
	asked := 0
	for _, o := range manifests(t, "components/balancing/webhooks.yaml") {
		webhooks, _, err := unstructured.NestedSlice(o.Object, "webhooks")
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range webhooks {
			rules, _, _ := unstructured.NestedSlice(w.(map[string]any), "rules")
			for _, r := range rules {
				asked++
				if operations, _, _ := unstructured.NestedStringSlice(r.(map[string]any), "operations"); !slices.Equal(operations, []string{"CREATE", "UPDATE"}) {
					t.Errorf("%s asks about %v", o.GetName(), operations)
				}
			}
		}
	}
	if asked != 4 {
		t.Errorf("%d rules", asked)
	}
}
