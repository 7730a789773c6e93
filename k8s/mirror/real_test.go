// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"fairlead.io/fairlead/e2e/kubetest"
	"fairlead.io/fairlead/k8s/api/lbcf"
	v1 "fairlead.io/fairlead/k8s/api/lbcf/v1"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
	"fairlead.io/fairlead/k8s/client"
)

// installKinds gives a real API server LBCF's kinds.
func installKinds(t *testing.T, d dynamic.Interface) {
	t.Helper()
	files, err := filepath.Glob("../../deploy/crds/lbcf.*.yaml")
	if err != nil || len(files) != 5 {
		t.Fatal(files, err)
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &o.Object); err != nil {
			t.Fatal(err)
		}
		kinds := d.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
		if _, err := kinds.Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// A real API server does with writes what the model of the other tests does.
func TestARealAPIServerTakesEveryWrite(t *testing.T) {
	c := kubetest.Start(t, kubetest.Options{NoControllers: true})
	d, err := dynamic.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	installKinds(t, d)
	a, err := client.New(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	api, err := NewKubernetes(a)
	if err != nil {
		t.Fatal(err)
	}
	do := func(verb Verb, k Key, o Object) Object {
		t.Helper()
		got, err := api.Do(t.Context(), &Write{Verb: verb, Key: k, Object: o})
		if err != nil {
			t.Fatalf("%s: %v", verb, err)
		}
		return got
	}
	refuses := func(why func(error) bool, verb Verb, k Key, o Object) {
		t.Helper()
		if _, err := api.Do(t.Context(), &Write{Verb: verb, Key: k, Object: o}); !why(err) {
			t.Errorf("%s: %v", verb, err)
		}
	}

	k := Key{Record, "default", "8e37c738700571d3078073269cf4474d"}
	b := newBook(t)
	b.edgeReady(t)
	b.do(t, pod(1))
	o := created(b.Read(), k, b.Read().BindingsOf(edge)[0]).Object.(*v1beta1.BackendRecord)
	o.Status.BackendAddr = "not taken with the rest"
	var record *v1beta1.BackendRecord
	kubetest.Eventually(t, "the kinds are served", func(ctx context.Context) error {
		got, err := api.Do(ctx, &Write{Verb: Create, Key: k, Object: o})
		record, _ = got.(*v1beta1.BackendRecord)
		return err
	})
	if record.Status.BackendAddr != "" || record.UID == "" || !has(record, lbcf.FinalizerBackendRecord) {
		t.Errorf("created %+v", record)
	}
	refuses(apierrors.IsAlreadyExists, Create, k, o)
	stale := record.DeepCopy()
	record.Status = v1beta1.BackendRecordStatus{BackendAddr: "192.0.2.1:80", Conditions: []v1beta1.Condition{{Type: "Registered", Status: "True", LastTransitionTime: metav1.NewTime(time.Now())}}}
	record = do(UpdateStatus, k, record).(*v1beta1.BackendRecord)
	refuses(apierrors.IsConflict, UpdateStatus, k, stale)
	refuses(apierrors.IsConflict, Update, k, stale)
	refuses(apierrors.IsConflict, Patch, k, stale)
	record.Spec.Parameters = map[string]string{"weight": "1"}
	record = do(Update, k, record).(*v1beta1.BackendRecord)
	if record.Status.BackendAddr != "192.0.2.1:80" || record.Spec.Parameters["weight"] != "1" {
		t.Errorf("updated %+v", record)
	}
	other := record.DeepCopy()
	other.UID = "another"
	refuses(apierrors.IsConflict, Delete, k, other)
	do(Delete, k, record)
	going := objectIn(t, d, "v1beta1", "backendrecords", k)
	if going.GetDeletionTimestamp() == nil {
		t.Fatal("not going")
	}
	record.ResourceVersion, record.Finalizers = going.GetResourceVersion(), nil
	if last := do(Patch, k, record); !deleting(last) || len(last.GetFinalizers()) != 0 {
		t.Errorf("the last answer: %+v", last)
	}
	refuses(apierrors.IsNotFound, Patch, k, record)
	refuses(apierrors.IsNotFound, Delete, k, record)

	others(t, d, do)
	events(t, a, api)
}

// others are the kinds that users make.
func others(t *testing.T, d dynamic.Interface, do func(Verb, Key, Object) Object) {
	conditions := []v1beta1.Condition{{Type: "Created", Status: "True", LastTransitionTime: metav1.NewTime(time.Now())}}
	make := func(version, resource, text string) {
		t.Helper()
		o := &unstructured.Unstructured{}
		if err := json.Unmarshal([]byte(text), &o.Object); err != nil {
			t.Fatal(err)
		}
		o.SetAPIVersion("lbcf.tkestack.io/" + version)
		o.SetName("a")
		to := d.Resource(schema.GroupVersionResource{Group: "lbcf.tkestack.io", Version: version, Resource: resource}).Namespace("default")
		kubetest.Eventually(t, resource, func(ctx context.Context) error {
			_, err := to.Create(ctx, o, metav1.CreateOptions{})
			return err
		})
	}
	make("v1beta1", "loadbalancers", `{"kind":"LoadBalancer","metadata":{"annotations":{"a":"b"},"finalizers":["example.com/theirs"]},"spec":{"lbDriver":"d","lbSpec":null,"attributes":null,"scope":null,"future":[1]}}`)
	k := Key{LoadBalancer, "default", "a"}
	lb := &v1beta1.LoadBalancer{}
	into(t, d, "v1beta1", "loadbalancers", k, lb)
	lb = do(Patch, k, finalized(k, lb, true).Object).(*v1beta1.LoadBalancer)
	if raw := objectIn(t, d, "v1beta1", "loadbalancers", k); raw.Object["spec"].(map[string]any)["future"] == nil || len(raw.GetFinalizers()) != 2 || raw.GetAnnotations()["a"] != "b" {
		t.Errorf("something was lost: %+v", raw)
	}
	lb.Status = v1beta1.LoadBalancerStatus{LBInfo: map[string]string{"vip": "192.0.2.1"}, Conditions: conditions}
	if got := do(UpdateStatus, k, lb).(*v1beta1.LoadBalancer); got.Status.LBInfo["vip"] != "192.0.2.1" {
		t.Errorf("status %+v", got.Status)
	}

	make("v1beta1", "backendgroups", `{"kind":"BackendGroup","spec":{"lbName":null,"loadBalancers":["a"],"parameters":null,"deregisterPolicy":null,"deregisterWebhook":null}}`)
	k = Key{Group, "default", "a"}
	g := &v1beta1.BackendGroup{}
	into(t, d, "v1beta1", "backendgroups", k, g)
	g.Status = v1beta1.BackendGroupStatus{Backends: 3, RegisteredBackends: 2}
	if got := do(UpdateStatus, k, g).(*v1beta1.BackendGroup); got.Status != g.Status {
		t.Errorf("status %+v", got.Status)
	}

	make("v1beta1", "loadbalancerdrivers", `{"kind":"LoadBalancerDriver","spec":{"driverType":"Webhook","url":"http://d","webhooks":[]}}`)
	k = Key{Driver, "default", "a"}
	driver := &v1beta1.LoadBalancerDriver{}
	into(t, d, "v1beta1", "loadbalancerdrivers", k, driver)
	driver.Status.Conditions = conditions
	if got := do(UpdateStatus, k, driver).(*v1beta1.LoadBalancerDriver); len(got.Status.Conditions) != 1 {
		t.Errorf("status %+v", got.Status)
	}

	make("v1", "binds", `{"kind":"Bind","spec":{"loadBalancers":[{"name":"a","driver":"d","spec":null,"attributes":null}],"pods":{"ports":null},"parameters":null,"deregisterPolicy":null,"deregisterWebhook":null}}`)
	k = Key{Bind, "default", "a"}
	bind := &v1.Bind{}
	into(t, d, "v1", "binds", k, bind)
	bind.Status.LoadBalancerStatuses = []v1.TargetLoadBalancerStatus{{Name: "a", Driver: "d", Conditions: conditions}, {Name: "b", Driver: "d"}}
	if got := do(UpdateStatus, k, bind).(*v1.Bind); len(got.Status.LoadBalancerStatuses) != 2 {
		t.Errorf("status %+v", got.Status)
	}
}

// events are told once and then counted.
func events(t *testing.T, a *client.API, api *Kubernetes) {
	at := time.Now().Truncate(time.Second)
	tell := Telling{About: Key{Record, "default", "r"}, Warning: true, Reason: "FailedEnsureBackend", Note: "msg: full"}
	old := &tale{first: at, last: at, count: 1, name: "r.1", object: referenceTo(Key{Record, "default", "r"}, "uid")}
	if err := api.Tell(t.Context(), tell.event(old)); err != nil {
		t.Fatal(err)
	}
	if err := api.Tell(t.Context(), tell.event(old)); !apierrors.IsAlreadyExists(err) {
		t.Errorf("told twice: %v", err)
	}
	old.count, old.last = 5, at.Add(time.Minute)
	if err := api.Count(t.Context(), tell.event(old)); err != nil {
		t.Fatal(err)
	}
	got, err := a.Client.CoreV1().Events("default").Get(t.Context(), "r.1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Count != 5 || !got.LastTimestamp.Time.Equal(at.Add(time.Minute)) || got.Source.Component != "lbcf-controller" || got.Type != corev1.EventTypeWarning ||
		got.Reason != "FailedEnsureBackend" || got.Message != "msg: full" || got.InvolvedObject.Kind != "BackendRecord" || got.InvolvedObject.UID != "uid" {
		t.Errorf("event %+v", got)
	}
}

func objectIn(t *testing.T, d dynamic.Interface, version, resource string, k Key) *unstructured.Unstructured {
	t.Helper()
	o, err := d.Resource(schema.GroupVersionResource{Group: "lbcf.tkestack.io", Version: version, Resource: resource}).Namespace(k.Namespace).Get(t.Context(), k.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func into(t *testing.T, d dynamic.Interface, version, resource string, k Key, o Object) {
	t.Helper()
	raw, err := objectIn(t, d, version, resource, k).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, o); err != nil {
		t.Fatal(err)
	}
}
