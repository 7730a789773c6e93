// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/k8s/api/lbcf"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

// The life of a pod on a load balancer, from the record's point of view and from that of the API server (lbcf §1.3, §2.4).
func TestABoundPodCostsTwoWritesAndOneThatLeavesTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s := newBook(t), newServer()
		b.edgeReady(t)
		defer lead(t, config(b, s))()
		pass(time.Second)
		b.do(t, pod(1, "weight", "80"))
		b.addressed(t, 1)
		b.ensured(t, 1, "welcome")
		pass(time.Second)
		if got := s.verbs(Record); got != "Create UpdateStatus" {
			t.Fatalf("wrote %s", got)
		}
		o := s.record(1)
		spec, err := json.Marshal(o.Spec)
		if err != nil {
			t.Fatal(err)
		}
		want := `{"lbName":"edge","lbDriver":"clb","lbInfo":{"vip":"192.0.2.1"},"lbAttributes":{"algo":"rr"},"parameters":{"weight":"80"},"podBackend":{"name":"web-1","port":{"port":8080,"protocol":"TCP"}}}`
		if string(spec) != want {
			t.Errorf("spec\n%s, want\n%s", spec, want)
		}
		status, err := json.Marshal(o.Status)
		if err != nil {
			t.Fatal(err)
		}
		want = `{"backendAddr":"10.0.0.1:8080","injectedInfo":{"memberID":"1"},"conditions":[{"type":"Registered","status":"True","lastTransitionTime":"2000-01-01T00:00:01Z","message":"welcome"}]}`
		if string(status) != want {
			t.Errorf("status\n%s, want\n%s", status, want)
		}
		if ref := metav1.GetControllerOf(o); ref == nil || ref.Name != "web" || ref.UID != "g-uid" || ref.APIVersion != "lbcf.tkestack.io/v1beta1" || !*ref.BlockOwnerDeletion {
			t.Errorf("owner %+v", ref)
		}
		if !has(o, lbcf.FinalizerBackendRecord) || o.Labels[lbcf.LabelBackendPod] != "web-1" || o.Labels[lbcf.LabelBackendGroup] != "web" {
			t.Errorf("finalizers %v, labels %v", o.Finalizers, o.Labels)
		}
		pass(time.Hour)
		b.do(t, &fsm.RemoveBinding{ID: name(1)})
		pass(time.Second)
		if got := s.record(1); !deleting(got) || !has(got, lbcf.FinalizerBackendRecord) {
			t.Fatalf("before the driver confirmed: %+v", got)
		}
		b.deregistered(t, 1)
		pass(time.Second)
		if got := s.record(1); got != nil {
			t.Fatalf("still there: %+v", got)
		}
		if got := s.verbs(Record); got != "Create UpdateStatus Delete Patch" {
			t.Errorf("wrote %s", got)
		}
		if got := s.reasons(Record); got != "SuccGenerateAddr SuccEnsureBackend" {
			t.Errorf("told %s", got)
		}
	})
}

// lbcf §2.2
func TestALoadBalancerShowsItsLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s := newBook(t), newServer()
		k := Key{LoadBalancer, "shop", "edge"}
		s.put(k, &v1beta1.LoadBalancer{ObjectMeta: metav1.ObjectMeta{UID: "lb-uid"}})
		defer lead(t, config(b, s))()
		pass(time.Second)
		if got := s.verbs(LoadBalancer); got != "Patch" || !has(s.get(k), lbcf.FinalizerLoadBalancer) {
			t.Fatalf("made while admission was away: %s", got)
		}
		conditions := func() string {
			o := s.get(k).(*v1beta1.LoadBalancer)
			var out []string
			for _, c := range o.Status.Conditions {
				out = append(out, c.Type+"="+string(c.Status)+" "+c.Reason+" "+c.Message)
			}
			return strings.Join(out, ", ")
		}
		wants := func(want string) {
			t.Helper()
			pass(15 * time.Second)
			if got := conditions(); got != want {
				t.Errorf("conditions %s, want %s", got, want)
			}
		}
		b.do(t, &fsm.PutLoadBalancer{ID: edge, Driver: "shop/clb", Spec: kv("vip", "192.0.2.1"), UID: "lb-uid"})
		create := fsm.BeginOperation{Action: fsm.ActionCreateBalancer, Balancer: edge}
		b.must(t, create, running("soon"))
		wants("")
		b.must(t, create, refusedWith("no address is left"))
		wants("Created=False OperationFailed no address is left")
		b.must(t, create, succeeded("made", kv("vip", "192.0.2.1")...))
		wants("Created=True  made, AttributesSynced=True  made")
		b.do(t, &fsm.PutLoadBalancer{ID: edge, Driver: "shop/clb", Spec: kv("vip", "192.0.2.1"), Attributes: kv("a", "b"), UID: "lb-uid"})
		ensure := fsm.BeginOperation{Action: fsm.ActionEnsureBalancer, Balancer: edge}
		b.must(t, ensure, refusedWith("unknown attribute"))
		wants("Created=True  made, AttributesSynced=False OperationFailed unknown attribute")
		b.must(t, ensure, succeeded("set"))
		wants("Created=True  made, AttributesSynced=True  set")
		s.remove(k)
		b.do(t, &fsm.DeleteLoadBalancer{ID: edge})
		pass(time.Minute)
		if s.get(k) == nil {
			t.Fatal("gone before its driver deleted it")
		}
		b.must(t, fsm.BeginOperation{Action: fsm.ActionDeleteBalancer, Balancer: edge}, succeeded(""))
		pass(time.Second)
		if o := s.get(k); o != nil {
			t.Errorf("still there: %+v", o)
		}
		want := "RunningCreateLoadBalancer FailedCreateLoadBalancer SuccCreateLoadBalancer FailedEnsureLoadBalancer SuccEnsureLoadBalancer"
		if got := s.reasons(LoadBalancer); got != want {
			t.Errorf("told %s, want %s", got, want)
		}
	})
}
