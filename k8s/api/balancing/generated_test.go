// SPDX-License-Identifier: Apache-2.0

package balancing_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"fairlead.io/fairlead/dataplane/bgp/birdtest"
	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/k8s/api/balancing/v1beta1"
)

const crds = "../../../deploy/components/balancing/crds"

func TestGeneratedFilesAreCurrent(t *testing.T) {
	testkit.NotFast(t, "builds controller-gen")
	dir := t.TempDir()
	for _, sub := range []string{"v1beta1", "crds"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("./generate.sh", dir).CombinedOutput(); err != nil {
		if strings.Contains(string(out), "go: ") && os.Getenv(birdtest.RequireTools) != "1" { // it could not be built
			t.Skipf("no controller-gen: %s", out)
		}
		t.Fatalf("%v: %s", err, out)
	}
	for folder, want := range map[string]int{"v1beta1": 1, "crds": 2} {
		committed := folder
		if folder == "crds" {
			committed = crds
		}
		made, err := filepath.Glob(filepath.Join(dir, folder, "*"))
		if err != nil || len(made) != want {
			t.Fatalf("made in %s: %v, %v", folder, made, err)
		}
		for _, path := range made {
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(filepath.Join(committed, filepath.Base(path)))
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s/%s is not what its types make: run make generate (%v)", committed, filepath.Base(path), err)
			}
		}
	}
}

// crd is what of a definition is asked here.
type crd struct {
	Spec struct {
		Group, Scope string
		Names        struct {
			Kind, Plural, Singular string
			ShortNames, Categories []string
		}
		Versions []struct {
			Name                     string
			Served, Storage          bool
			Subresources             map[string]any
			AdditionalPrinterColumns []struct{ Name, JSONPath string }
			Schema                   struct{ OpenAPIV3Schema map[string]any }
		}
	}
}

// Section 2.1: what the kinds are called, and what kubectl shows of them, in this order.
func TestDefinitionsHaveTheNamesAndColumnsThatScriptsKnow(t *testing.T) {
	service := []string{"serviceName .spec.frontend.serviceMatcher.serviceName", "namespace .spec.frontend.serviceMatcher.namespace",
		"addressMatcher .spec.frontend.addressMatcher.ip"}
	for _, want := range []struct {
		kind, plural, short string
		columns             []string
	}{
		{"BalancingPolicy", "balancingpolicies", "bl",
			append(slices.Clone(service), "serviceEndpointRedirect .spec.backend.serviceEndpoint.redirectMode", "enabled .spec.enabled")},
		{"LocalRedirectPolicy", "localredirectpolicies", "lr", append(slices.Clone(service), "enabled .spec.enabled")},
	} {
		t.Run(want.kind, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(crds, "balancing.elf.io_"+want.plural+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			var d crd
			if err := yaml.Unmarshal(text, &d); err != nil {
				t.Fatal(err)
			}
			names := d.Spec.Names
			if d.Spec.Group != "balancing.elf.io" || d.Spec.Scope != "Cluster" || names.Kind != want.kind || names.Plural != want.plural ||
				names.Singular != strings.ToLower(want.kind) || !slices.Equal(names.ShortNames, []string{want.short}) || !slices.Equal(names.Categories, []string{"elf"}) {
				t.Errorf("%+v", d.Spec)
			}
			v := d.Spec.Versions[0]
			if _, status := v.Subresources["status"]; len(d.Spec.Versions) != 1 || v.Name != "v1beta1" || !v.Served || !v.Storage || !status {
				t.Errorf("version: %+v", v)
			}
			var columns []string
			for _, c := range v.AdditionalPrinterColumns {
				columns = append(columns, c.Name+" "+c.JSONPath)
			}
			if !slices.Equal(columns, want.columns) {
				t.Errorf("columns %q", columns)
			}
		})
	}
}

func TestEveryKindIsKnownToASchemeAndCopiesDeeply(t *testing.T) {
	s := runtime.NewScheme()
	if err := v1beta1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, o := range v1beta1.Kinds() {
		known, _, err := s.ObjectKinds(o)
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, known[0].String())
		if c := o.DeepCopyObject(); reflect.TypeOf(c) != reflect.TypeOf(o) {
			t.Errorf("a copy of %T is a %T", o, c)
		}
	}
	if len(kinds) != 4 || kinds[0] != "balancing.elf.io/v1beta1, Kind=BalancingPolicy" {
		t.Errorf("kinds: %q", kinds)
	}
	p := &v1beta1.BalancingPolicy{Spec: v1beta1.BalancingPolicySpec{Backend: v1beta1.BalancingBackend{
		AddressEndpoint: &v1beta1.AddressEndpoint{Addresses: []string{"192.0.2.1"}},
	}}}
	p.DeepCopy().Spec.Backend.AddressEndpoint.Addresses[0] = "changed"
	if p.Spec.Backend.AddressEndpoint.Addresses[0] != "192.0.2.1" {
		t.Error("a copy shares its lists")
	}
}
