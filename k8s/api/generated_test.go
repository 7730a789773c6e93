// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"fairlead.io/fairlead/dataplane/bgp/birdtest"
	"fairlead.io/fairlead/internal/testkit"
)

const crds = "../../deploy/crds"

func TestGeneratedDefinitionsAreCurrent(t *testing.T) {
	testkit.NotFast(t, "builds controller-gen")
	dir := t.TempDir()
	if out, err := exec.Command("./generate.sh", dir).CombinedOutput(); err != nil {
		if strings.Contains(string(out), "go: ") && os.Getenv(birdtest.RequireTools) != "1" { // it could not be built
			t.Skipf("no controller-gen: %s", out)
		}
		t.Fatalf("%v: %s", err, out)
	}
	made, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(made) == 0 {
		t.Fatalf("nothing was made: %v", err)
	}
	for _, path := range made {
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(crds, filepath.Base(path)))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what its types make: run make generate (%v)", filepath.Base(path), err)
		}
	}
}

// What a definition lacks or leaves open decides what users may write: policies are the cluster's, a status is anybody's, and
// specs that may say nothing may be left out.
func TestDefinitionsAllowWhatIsRead(t *testing.T) {
	for plural, want := range map[string]struct {
		scope    string
		required []string
	}{
		"ipaddresspools": {"Namespaced", []string{"spec"}}, "bgppeers": {"Namespaced", []string{"spec"}},
		"bgpadvertisements": {"Namespaced", nil}, "l2advertisements": {"Namespaced", nil}, "communities": {"Namespaced", nil},
		"bfdprofiles": {"Namespaced", nil}, "addresspolicies": {"Cluster", nil},
	} {
		t.Run(plural, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(crds, "fairlead.io_"+plural+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			var crd struct {
				Spec struct {
					Group, Scope string
					Versions     []struct {
						Name   string
						Schema struct {
							OpenAPIV3Schema struct {
								Required   []string
								Properties map[string]struct {
									Type     string
									Preserve bool `json:"x-kubernetes-preserve-unknown-fields"`
								}
							}
						}
					}
				}
			}
			if err := yaml.Unmarshal(text, &crd); err != nil {
				t.Fatal(err)
			}
			s := crd.Spec
			if s.Group != "fairlead.io" || s.Scope != want.scope || len(s.Versions) != 1 || s.Versions[0].Name != "v1alpha1" {
				t.Fatalf("%+v", s)
			}
			schema := s.Versions[0].Schema.OpenAPIV3Schema
			if strings.Join(schema.Required, ",") != strings.Join(want.required, ",") {
				t.Errorf("required: %v", schema.Required)
			}
			if status := schema.Properties["status"]; status.Type != "object" || !status.Preserve {
				t.Errorf("status: %+v", status)
			}
		})
	}
}

// API servers hold a number against the format that its definition names: AS numbers have 32 bits, and no sign (4200000000 and on are for
// private use).
func TestDefinitionsTakeNumbersOf32Bits(t *testing.T) {
	type number struct {
		Format           string
		Minimum, Maximum *int64
	}
	for plural, fields := range map[string][]string{"bgppeers": {"myASN", "peerASN", "localASN"}, "bgpadvertisements": {"localPref"}} {
		text, err := os.ReadFile(filepath.Join(crds, "fairlead.io_"+plural+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var crd struct {
			Spec struct {
				Versions []struct {
					Schema struct {
						OpenAPIV3Schema struct {
							Properties struct {
								Spec struct{ Properties map[string]number }
							}
						}
					}
				}
			}
		}
		if err := yaml.Unmarshal(text, &crd); err != nil {
			t.Fatal(err)
		}
		for _, field := range fields {
			n := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties.Spec.Properties[field]
			if n.Format != "int64" || n.Minimum == nil || *n.Minimum != 0 || n.Maximum == nil || *n.Maximum != 1<<32-1 {
				t.Errorf("%s of %s: %+v", field, plural, n)
			}
		}
	}
}
