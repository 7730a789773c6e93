// SPDX-License-Identifier: Apache-2.0

package haproxy_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"os"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	strict "sigs.k8s.io/yaml"

	"fairlead.io/fairlead/dataplane/driver"
	"fairlead.io/fairlead/dataplane/driver/webhook"
	"fairlead.io/fairlead/k8s/admission"
	v1 "fairlead.io/fairlead/k8s/api/lbcf/v1"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

const example = "../../deploy/examples/haproxy-driver.yaml"

// manifests are the objects of the example, and an admission.View of them.
type manifests struct {
	driver v1beta1.LoadBalancerDriver
	lb     v1beta1.LoadBalancer
	group  v1beta1.BackendGroup
}

func (m *manifests) Driver(namespace, name string) *v1beta1.LoadBalancerDriver {
	if m.driver.Namespace != namespace || m.driver.Name != name {
		return nil
	}
	return &m.driver
}

func (m *manifests) LoadBalancer(namespace, name string) *v1beta1.LoadBalancer {
	if m.lb.Namespace != namespace || m.lb.Name != name {
		return nil
	}
	return &m.lb
}

func (m *manifests) LoadBalancers(string) iter.Seq[*v1beta1.LoadBalancer] {
	return none[v1beta1.LoadBalancer]
}
func (m *manifests) BackendGroups(string) iter.Seq[*v1beta1.BackendGroup] {
	return none[v1beta1.BackendGroup]
}
func (m *manifests) BackendRecords(string) iter.Seq[*v1beta1.BackendRecord] {
	return none[v1beta1.BackendRecord]
}
func (m *manifests) Binds(string) iter.Seq[*v1.Bind] { return none[v1.Bind] }

func none[T any](func(*T) bool) {}

// The manifests that users are given to apply are admitted, and the driver takes what they ask it for.
func TestTheExampleManifestsAreTaken(t *testing.T) {
	text, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	p := startProxy(t, startPod(t, "static"))
	d := startDriver(t, p)
	var m manifests
	into := map[admission.Kind]any{admission.Driver: &m.driver, admission.LoadBalancer: &m.lb, admission.BackendGroup: &m.group}
	for decoder := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		document, err := decoder.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		var head struct{ Kind admission.Kind }
		object, err := strict.YAMLToJSON(document)
		if err := errors.Join(err, json.Unmarshal(object, &head)); err != nil {
			t.Fatal(err)
		}
		if err := strict.UnmarshalStrict(document, into[head.Kind]); err != nil {
			t.Fatalf("%s: %v", head.Kind, err)
		}
		judge(t, d, &m, admission.Request{Kind: head.Kind, Operation: admissionv1.Create, Namespace: "default", Object: object})
		delete(into, head.Kind)
	}
	for kind := range into {
		t.Errorf("there is no %s", kind)
	}
}

// mutate is the object as it is after the mutating webhook.
func mutate(t *testing.T, r admission.Request) []byte {
	t.Helper()
	d := admission.Mutate(r)
	if d.Denied != "" {
		t.Fatalf("%s: %s", r.Kind, d.Denied)
	}
	text, err := json.Marshal(d.Patch)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(text)
	if err != nil {
		t.Fatal(err)
	}
	object, err := patch.Apply(r.Object)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// judge asks admission, and the driver what admission would ask it.
func judge(t *testing.T, d *process, m *manifests, r admission.Request) {
	t.Helper()
	r.Object = mutate(t, r)
	decision := admission.Validate(r, m, admission.Rules{})
	if decision.Denied != "" {
		t.Errorf("%s: %s", r.Kind, decision.Denied)
	}
	if asked := len(decision.Calls) > 0; asked != (r.Kind != admission.Driver) {
		t.Errorf("%s: the driver is asked: %v", r.Kind, asked)
	}
	for _, c := range decision.Calls {
		var verdict webhook.Verdict
		var err error
		if q := c.LoadBalancer; q != nil {
			verdict, err = d.client.ValidateLoadBalancer(t.Context(), driver.Call{}, webhook.ValidateLoadBalancerRequest{
				Operation: webhook.Operation(q.Operation), LBSpec: q.LBSpec, Attributes: q.Attributes,
			})
		} else {
			verdict, err = d.client.ValidateBackend(t.Context(), driver.Call{}, webhook.ValidateBackendRequest{
				BackendType: webhook.Pod, Operation: webhook.Create, LBInfo: c.Backend.LBInfo, Parameters: c.Backend.Parameters,
			})
		}
		if err != nil || !verdict.Succ {
			t.Errorf("%s: the driver says %+v, %v", r.Kind, verdict, err)
		}
	}
}
