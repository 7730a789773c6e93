// SPDX-License-Identifier: Apache-2.0

package lbcf_test

import (
	"bytes"
	"encoding/json"
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
	v1 "fairlead.io/fairlead/k8s/api/lbcf/v1"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

const crds = "../../../deploy/crds"

func TestGeneratedFilesAreCurrent(t *testing.T) {
	testkit.NotFast(t, "builds controller-gen")
	dir := t.TempDir()
	for _, sub := range []string{"v1", "v1beta1", "crds"} {
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
	for folder, committed := range map[string]string{"v1": "v1", "v1beta1": "v1beta1", "crds": crds} {
		made, err := filepath.Glob(filepath.Join(dir, folder, "*"))
		if err != nil || len(made) == 0 {
			t.Fatalf("nothing was made in %s: %v", folder, err)
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

// schema is what of a schema is asked here.
type schema struct {
	Type                 string
	Nullable             bool
	Preserve             bool `json:"x-kubernetes-preserve-unknown-fields"`
	Required             []string
	Minimum, Maximum     *float64
	Default              any
	Properties           map[string]schema
	AdditionalProperties *schema
	Items                *schema
}

type crd struct {
	Metadata struct{ Name string }
	Spec     struct {
		Group, Scope string
		Names        struct {
			Kind, ListKind, Plural, Singular string
			ShortNames                       []string
		}
		PreserveUnknownFields bool
		Versions              []struct {
			Name                     string
			Served, Storage          bool
			Subresources             map[string]any
			AdditionalPrinterColumns []struct{ Name, JSONPath string }
			Schema                   struct{ OpenAPIV3Schema schema }
		}
	}
}

// lbcf §2: what each kind is called, and that its schema lets everything through that LBCF stored.
func TestCRDsAreThoseOfLBCF(t *testing.T) {
	for _, c := range []struct {
		kind, plural, short, version string
		goType                       any
	}{
		{"LoadBalancerDriver", "loadbalancerdrivers", "driver", "v1beta1", v1beta1.LoadBalancerDriver{}},
		{"LoadBalancer", "loadbalancers", "lb", "v1beta1", v1beta1.LoadBalancer{}},
		{"BackendGroup", "backendgroups", "bg", "v1beta1", v1beta1.BackendGroup{}},
		{"BackendRecord", "backendrecords", "br", "v1beta1", v1beta1.BackendRecord{}},
		{"Bind", "binds", "", "v1", v1.Bind{}},
	} {
		t.Run(c.kind, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(crds, "lbcf.tkestack.io_"+c.plural+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			var d crd
			if err := yaml.Unmarshal(text, &d); err != nil {
				t.Fatal(err)
			}
			names := d.Spec.Names
			if d.Metadata.Name != c.plural+".lbcf.tkestack.io" || d.Spec.Group != "lbcf.tkestack.io" || d.Spec.Scope != "Namespaced" ||
				names.Kind != c.kind || names.ListKind != c.kind+"List" || names.Plural != c.plural || names.Singular != strings.ToLower(c.kind) ||
				strings.Join(names.ShortNames, ",") != c.short {
				t.Errorf("names: %+v", d)
			}
			if len(d.Spec.Versions) != 1 {
				t.Fatalf("%d versions", len(d.Spec.Versions))
			}
			v := d.Spec.Versions[0]
			if _, status := v.Subresources["status"]; v.Name != c.version || !v.Served || !v.Storage || !status {
				t.Errorf("version: %+v", v)
			}
			if len(v.AdditionalPrinterColumns) < 2 {
				t.Errorf("printer columns: %v", v.AdditionalPrinterColumns)
			}
			root := v.Schema.OpenAPIV3Schema
			if !root.Preserve {
				t.Error("unknown fields beside spec and status are pruned")
			}
			for _, part := range []string{"spec", "status"} {
				lets(t, part, root.Properties[part], true)
				field, _ := reflect.TypeOf(c.goType).FieldByName(strings.ToUpper(part[:1]) + part[1:])
				has(t, part, root.Properties[part], field.Type)
			}
		})
	}
}

// lets walks a schema: null and unknown fields are let through, nothing is required, bounded or defaulted. The API server
// prunes what a node does not know if it lists properties and does not say otherwise itself.
func lets(t *testing.T, path string, s schema, field bool) {
	t.Helper()
	if field && !s.Nullable {
		t.Errorf("%s: may not be null", path)
	}
	if s.Type == "object" && s.AdditionalProperties == nil && !s.Preserve {
		t.Errorf("%s: unknown fields are pruned", path)
	}
	if len(s.Required) > 0 || s.Minimum != nil || s.Maximum != nil || s.Default != nil {
		t.Errorf("%s: restricts what LBCF stored: %+v", path, s)
	}
	for name, p := range s.Properties {
		lets(t, path+"."+name, p, true)
	}
	if s.Items != nil {
		lets(t, path+"[]", *s.Items, false)
	}
}

// has compares the fields of a schema with those of a Go type, by their JSON names.
func has(t *testing.T, path string, s schema, of reflect.Type) {
	t.Helper()
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		if of.Kind() == reflect.Slice {
			s = *s.Items
		}
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || s.Type != "object" {
		return // a word, a number, a map, a time
	}
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		p, ok := s.Properties[name]
		if !ok {
			t.Errorf("%s has no %s", path, name)
			continue
		}
		has(t, path+"."+name, p, of.Field(i).Type)
	}
	if len(s.Properties) != of.NumField() {
		t.Errorf("%s has %d fields, its type %d", path, len(s.Properties), of.NumField())
	}
}

// lbcf §2: LBCF's clients send null, 0 or "" for what is unset, and the watch brings it back.
func TestObjectsOfLBCFDecodeWithTheirNulls(t *testing.T) {
	for text, into := range map[string]runtime.Object{
		`{"spec":{"driverType":"Webhook","url":"http://d","webhooks":[{"name":"healthz","timeout":"0s"},{"name":"ensureBackend","timeout":null}]},"status":{"conditions":null}}`:                                                                            &v1beta1.LoadBalancerDriver{},
		`{"spec":{"lbDriver":"d","lbSpec":null,"attributes":null,"scope":null,"ensurePolicy":null},"status":{"lbInfo":null,"conditions":[{"type":"Created","status":"True","lastTransitionTime":null}]}}`:                                                   &v1beta1.LoadBalancer{},
		`{"spec":{"lbName":null,"loadBalancers":["a"],"pods":{"port":null,"ports":[{"portNumber":80,"port":0}],"byName":null},"parameters":null,"deregisterPolicy":null,"deregisterWebhook":null}}`:                                                         &v1beta1.BackendGroup{},
		`{"spec":{"lbName":"a","lbDriver":"d","lbInfo":null,"lbAttributes":null,"parameters":null,"staticAddr":null},"status":{"backendAddr":"x","injectedInfo":null,"conditions":null}}`:                                                                   &v1beta1.BackendRecord{},
		`{"spec":{"loadBalancers":null,"pods":{"ports":null},"parameters":null,"deregisterPolicy":null,"deregisterWebhook":null},"status":{"loadBalancerStatuses":[{"name":"a","driver":"d","deletionTimestamp":null,"retryAfter":null,"conditions":[]}]}}`: &v1.Bind{},
	} {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			t.Errorf("%T: %v", into, err)
		}
	}
}

// lbcf §2: LBCF's own objects have these fields whether they are set or not; its drivers and clients may look for them.
func TestUnsetFieldsAreSentAsLBCFSendsThem(t *testing.T) {
	for want, o := range map[string]any{
		`"spec":{"lbDriver":"","lbSpec":null,"attributes":null,"scope":null},"status":{"lbInfo":null,"conditions":null}`:                                                v1beta1.LoadBalancer{},
		`"spec":{"lbName":null,"loadBalancers":null,"parameters":null,"deregisterPolicy":null,"deregisterWebhook":null},"status":{"backends":0,"registeredBackends":0}`: v1beta1.BackendGroup{},
		`"spec":{"lbName":"","lbDriver":"","lbInfo":null,"lbAttributes":null,"parameters":null},"status":{"backendAddr":"","injectedInfo":null,"conditions":null}`:      v1beta1.BackendRecord{},
		`"spec":{"loadBalancers":null,"pods":{"ports":null},"parameters":null,"deregisterPolicy":null,"deregisterWebhook":null},"status":{"loadBalancerStatuses":null}`: v1.Bind{},
		`{"name":"a","driver":"","deletionTimestamp":null,"retryAfter":null,"conditions":null}`:                                                                         v1.TargetLoadBalancerStatus{Name: "a"},
		`{"portNumber":80,"port":0}`:                                     v1beta1.PortSelector{PortNumber: new(int32(80))},
		`{"type":"","status":"","lastTransitionTime":null,"message":""}`: v1beta1.Condition{},
	} {
		got, err := json.Marshal(o)
		if err != nil || !strings.Contains(string(got), want) {
			t.Errorf("%T: %s, not %s (%v)", o, got, want, err)
		}
	}
}

func TestEveryKindIsKnownToASchemeAndCopiesDeeply(t *testing.T) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1.AddToScheme, v1beta1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	var kinds []string
	for _, o := range slices.Concat(v1.Kinds(), v1beta1.Kinds()) {
		known, _, err := s.ObjectKinds(o)
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, known[0].GroupVersion().String()+" "+known[0].Kind)
		if c := o.DeepCopyObject(); reflect.TypeOf(c) != reflect.TypeOf(o) {
			t.Errorf("a copy of %T is a %T", o, c)
		}
	}
	if len(kinds) != 10 || kinds[0] != "lbcf.tkestack.io/v1 Bind" || kinds[2] != "lbcf.tkestack.io/v1beta1 LoadBalancerDriver" {
		t.Errorf("kinds: %q", kinds)
	}
	lb := &v1beta1.LoadBalancer{Spec: v1beta1.LoadBalancerSpec{LBSpec: map[string]string{"vip": "192.0.2.1"}}}
	lb.DeepCopy().Spec.LBSpec["vip"] = "changed"
	if lb.Spec.LBSpec["vip"] != "192.0.2.1" {
		t.Error("a copy shares its maps")
	}
}
