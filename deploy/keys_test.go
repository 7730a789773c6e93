// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// memberName is a member of a controller.yaml.
var memberName = regexp.MustCompile(`(?m)^- \{name: ([^,]+),`)

// Each member's key is in a Secret of its own, what signs in another one, and the CA's key in none.
func TestEachKeyHasASecretOfItsOwn(t *testing.T) {
	t.Parallel()
	for name := range overlays {
		config, err := os.ReadFile(filepath.Join("overlays", name, "controller.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if text := string(config); !strings.Contains(text, "caKey: /etc/fairlead-signer/signer.key") || strings.Contains(text, "ca.key") {
			t.Errorf("%s: controller.yaml does not sign with the signer's key alone", name)
		}
		want := []string{}
		for _, m := range memberName.FindAllStringSubmatch(string(config), -1) {
			want = append(want, "fairlead-member-"+m[1])
		}
		volumes := map[string]corev1.Volume{}
		for _, o := range kustomize(t, "overlays/"+name) {
			if o.GetKind() != "DaemonSet" || o.GetName() != "fairlead-controller" {
				continue
			}
			var set appsv1.DaemonSet
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &set); err != nil {
				t.Fatal(err)
			}
			for _, v := range set.Spec.Template.Spec.Volumes {
				volumes[v.Name] = v
			}
		}
		var secrets []string
		if p := volumes["tls"].Projected; p != nil {
			for _, s := range p.Sources {
				if s.Secret != nil {
					secrets = append(secrets, s.Secret.Name)
				}
			}
			if p.DefaultMode == nil || *p.DefaultMode != 0o400 {
				t.Errorf("%s: keys of members are mounted with mode %v", name, p.DefaultMode)
			}
		}
		if !slices.Equal(secrets, want) {
			t.Errorf("%s: members' keys are in %q, want %q", name, secrets, want)
		}
		if s := volumes["signer"].Secret; s == nil || s.SecretName != "fairlead-signer" || *s.DefaultMode != 0o400 {
			t.Errorf("%s: the signer is in %+v", name, s)
		}
	}
}
