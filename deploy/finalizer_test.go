// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// K33: the component gives members the right to patch Services, and nothing else to nobody else, in overlays of every size.
// Rule: K33.
func TestTheComponentOfFinalizersLetsMembersPatchServices(t *testing.T) {
	for name := range overlays {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			text := fmt.Sprintf("resources: [%s]\ncomponents: [%s]\n", from(t, folder, "overlays/"+name), from(t, folder, "components/finalizer"))
			if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			with, without := kustomize(t, folder), kustomize(t, "overlays/"+name)
			var more []*unstructured.Unstructured
			for _, o := range with {
				known := false
				for _, was := range without {
					known = known || reflect.DeepEqual(o, was)
				}
				if !known {
					more = append(more, o)
				}
			}
			if len(more) != 2 || len(with) != len(without)+2 {
				t.Fatalf("%d objects are others: %v", len(more), more)
			}
			var role rbacv1.ClusterRole
			var binding rbacv1.ClusterRoleBinding
			for _, o := range more {
				into := map[string]any{"ClusterRole": &role, "ClusterRoleBinding": &binding}[o.GetKind()]
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into); err != nil {
					t.Fatal(err)
				}
				if o.GetLabels()["app.kubernetes.io/part-of"] != "fairlead" {
					t.Errorf("uninstalling leaves %s %s", o.GetKind(), o.GetName())
				}
			}
			want := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"patch"}}}
			if !reflect.DeepEqual(role.Rules, want) || binding.RoleRef.Name != role.Name {
				t.Errorf("rules %+v, bound %+v", role.Rules, binding.RoleRef)
			}
			if s := binding.Subjects; len(s) != 1 || s[0].Kind != "ServiceAccount" || s[0].Name != "fairlead-controller" || s[0].Namespace != "kube-system" {
				t.Errorf("bound to %+v", s)
			}
		})
	}
}
