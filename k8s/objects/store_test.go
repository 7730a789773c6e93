// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/testkit"
)

func (s *Store) tell(kind world.Kind, o runtime.Object) {
	m := o.(metav1.Object)
	s.Set(kind, world.ID{Namespace: m.GetNamespace(), Name: m.GetName()}, s.Keep(kind, o))
}

func stored(namespace, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "lbcf.tkestack.io/v1beta1", "kind": "x", "spec": spec,
		"metadata": map[string]any{"namespace": namespace, "name": name, "uid": "u-" + name, "managedFields": []any{map[string]any{"manager": "kubectl"}}},
	}}
}

func TestViewIsAnErrorUntilEveryKindIsListed(t *testing.T) {
	s := New()
	for _, kind := range admitted() {
		if _, err := s.View(t.Context()); err == nil {
			t.Fatalf("a view before %s was listed", kind)
		}
		s.Listed(kind, true)
	}
	if _, err := s.View(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Listed(world.KindBind, false) // another cluster
	if _, err := s.View(t.Context()); err == nil {
		t.Fatal("a view after everything was forgotten")
	}
}

// Whatever is written after a view was taken, the view stays as it was; and the newest view is what was written.
func TestPropertyAViewStaysAsItWas(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		s := New()
		for _, kind := range admitted() {
			s.Listed(kind, true)
		}
		model := map[string]string{} // attribute by namespace and name
		type taken struct {
			list func(namespace string) []string
			want map[string]string
		}
		var views []taken
		words := rapid.SampledFrom([]string{"a", "b", "c"})
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			ns, name := words.Draw(t, "namespace"), words.Draw(t, "name")
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0, 1:
				v := fmt.Sprint(rapid.IntRange(0, 99).Draw(t, "value"))
				s.tell(world.KindLoadBalancer, stored(ns, name, map[string]any{"lbDriver": v}))
				model[ns+"/"+name] = v
			case 2:
				s.Delete(world.KindLoadBalancer, world.ID{Namespace: ns, Name: name})
				delete(model, ns+"/"+name)
			default:
				v, err := s.View(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				views = append(views, taken{want: maps.Clone(model), list: func(namespace string) (out []string) {
					for l := range v.LoadBalancers(namespace) {
						if v.LoadBalancer(l.Namespace, l.Name) != l {
							out = append(out, "found by name is another")
						}
						out = append(out, l.Namespace+"/"+l.Name+"="+l.Spec.LBDriver)
					}
					return out
				}})
			}
		}
		for i, v := range views {
			for _, ns := range []string{"", "a", "b"} {
				var want []string
				for _, key := range slices.Sorted(maps.Keys(v.want)) {
					if ns == "" || key[:1] == ns {
						want = append(want, key+"="+v.want[key])
					}
				}
				if got := v.list(ns); !slices.Equal(got, want) {
					t.Fatalf("view %d of %q: %v, want %v", i, ns, got, want)
				}
			}
		}
	})
}

// lbcf §3.9: a pod is given as a JSON object without kind and apiVersion; managedFields are nobody's business.
func TestPodsAreGivenAsDriversGetThem(t *testing.T) {
	s := New()
	p := &corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: "web-0", Namespace: "shop", UID: "p1", Annotations: map[string]string{"a": "b"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}},
		Spec:       corev1.PodSpec{NodeName: "n1"}, Status: corev1.PodStatus{PodIP: "10.244.1.17"}}
	s.tell(world.KindPod, p)
	if p.Kind != "Pod" || len(p.ManagedFields) != 1 {
		t.Error("the object was changed")
	}
	text, ok := s.Pod("shop", "web-0", "p1")
	var got map[string]any
	if err := json.Unmarshal(text, &got); !ok || err != nil {
		t.Fatalf("%s: %v, %v", text, ok, err)
	}
	meta, _ := got["metadata"].(map[string]any)
	if got["kind"] != nil || got["apiVersion"] != nil || meta["managedFields"] != nil || meta["name"] != "web-0" || meta["annotations"] == nil {
		t.Errorf("got %s", text)
	}
	if got["spec"].(map[string]any)["nodeName"] != "n1" || got["status"].(map[string]any)["podIP"] != "10.244.1.17" {
		t.Errorf("got %s", text)
	}
	if _, ok := s.Pod("shop", "web-0", "p0"); ok {
		t.Error("another life of the pod is taken for this one")
	}
	if _, ok := s.Pod("shop", "web-0", ""); !ok {
		t.Error("the pod is not found without its UID")
	}
	s.Delete(world.KindPod, world.ID{Namespace: "shop", Name: "web-0"})
	if _, ok := s.Pod("shop", "web-0", "p1"); ok {
		t.Error("a pod that went is still there")
	}
}

// lbcf §3.9, §5.4: nodeAddresses are exactly status.addresses, and backends are Services of type NodePort.
func TestServicesAndAddressesOfNodesAreKept(t *testing.T) {
	s := New()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort}}
	s.tell(world.KindService, service)
	if text, ok := s.Service("shop", "web"); !ok || !json.Valid(text) {
		t.Errorf("got %s", text)
	}
	other := service.DeepCopy()
	other.Spec.Type = corev1.ServiceTypeClusterIP
	s.tell(world.KindService, other)
	if _, ok := s.Service("shop", "web"); ok {
		t.Error("a Service is kept that cannot have backends")
	}
	s.tell(world.KindNode, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
		{Type: "InternalIP", Address: "192.0.2.11"}, {Type: "Hostname", Address: "node-1"}, {Type: "ExternalDNS", Address: "n1.example"}}}})
	want := `[{"type":"InternalIP","address":"192.0.2.11"},{"type":"Hostname","address":"node-1"},{"type":"ExternalDNS","address":"n1.example"}]`
	if text, _ := s.NodeAddresses("n1"); string(text) != want {
		t.Errorf("got %s", text)
	}
	s.tell(world.KindNode, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	if text, ok := s.NodeAddresses("n1"); !ok || string(text) != "[]" {
		t.Errorf("got %s", text)
	}
}

// An object that was stored without a schema and does not fit is there with what can be read of it.
func TestObjectsThatDoNotFitAreThereAsFarAsTheyDo(t *testing.T) {
	s := New()
	for _, kind := range admitted() {
		s.Listed(kind, true)
	}
	s.tell(world.KindLoadBalancer, stored("shop", "edge", map[string]any{"attributes": []any{1}, "ensurePolicy": map[string]any{"minPeriod": 30}, "lbDriver": "f5"}))
	v, err := s.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if l := v.LoadBalancer("shop", "edge"); l == nil || l.Name != "edge" || l.UID != "u-edge" || l.ManagedFields != nil {
		t.Errorf("got %+v", l)
	}
	s.Set(world.KindLoadBalancer, world.ID{Namespace: "shop", Name: "edge"}, nil)
	if v, _ = s.View(t.Context()); v.LoadBalancer("shop", "edge") != nil {
		t.Error("an object of which nothing was kept is still there")
	}
}

// lbcf §5.2, INV-12: a pod has an address for drivers while it is ready, has an IP and stays.
func TestPodsAreAvailableWhileTheyAreReady(t *testing.T) {
	for want, change := range map[string]func(*corev1.Pod){
		"":                 func(*corev1.Pod) {},
		"is not ready":     func(p *corev1.Pod) { p.Status.Conditions[1].Status = corev1.ConditionUnknown },
		"is being deleted": func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} },
		"has no IP":        func(p *corev1.Pod) { p.Status.PodIP = "" },
	} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-0", Namespace: "shop", UID: "p1"}, Status: corev1.PodStatus{PodIP: "10.244.1.17",
			Conditions: []corev1.PodCondition{{Type: corev1.ContainersReady, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
		change(p)
		s := New()
		s.tell(world.KindPod, p)
		if got := s.Unavailable("shop", "web-0"); got != want {
			t.Errorf("it %q, want %q", got, want)
		}
	}
	if why := New().Unavailable("shop", "web-0"); why != "" {
		t.Errorf("a pod that is not there %q", why)
	}
}
