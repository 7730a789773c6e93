// SPDX-License-Identifier: Apache-2.0

package outside_test

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"fairlead.io/fairlead/dataplane/driver/webhook"
	"fairlead.io/fairlead/e2e/kubetest"
	"fairlead.io/fairlead/e2e/outside/balancer"
	"fairlead.io/fairlead/internal/testkit"
)

var (
	backendRecords = schema.GroupVersionResource{Group: "lbcf.tkestack.io", Version: "v1beta1", Resource: "backendrecords"}
	backendGroups  = schema.GroupVersionResource{Group: "lbcf.tkestack.io", Version: "v1beta1", Resource: "backendgroups"}
)

// recordOf is the name that lbcf §2.4.1 gives the BackendRecord of a pod in the group web.
func (s *stage) recordOf(number int) string {
	sum := md5.Sum([]byte(strings.Join([]string{edge, "web", string(s.pods[number].UID), "8080", "TCP"}, "_")))
	return hex.EncodeToString(sum[:])
}

func (s *stage) record(number int) (*unstructured.Unstructured, error) {
	return s.objects(backendRecords).Get(s.t.Context(), s.recordOf(number), metav1.GetOptions{})
}

func at(o *unstructured.Unstructured, path ...string) string {
	v, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...)
	return fmt.Sprint(v)
}

// lbcf §2.4, §7: what is bound is shown under LBCF's names, and nothing is written while nothing changes.
func TestWhatIsBoundIsShownAsLBCFShowsIt(t *testing.T) {
	s := newStage(t, kubetest.Options{NoControllers: true})
	s.run(0)
	s.balance("10s")
	s.bound(0)
	var shown *unstructured.Unstructured
	s.Eventually("a registered record", func() (err error) {
		if shown, err = s.record(0); err != nil {
			return err
		}
		if condition(shown.Object, "Registered") != "True" {
			return fmt.Errorf("status %v", shown.Object["status"])
		}
		return nil
	})
	for want, have := range map[string]string{
		"backendAddr=" + backend(0):                        "backendAddr=" + at(shown, "status", "backendAddr"),
		"injectedInfo=map[server:s-" + backend(0) + "]":    "injectedInfo=" + at(shown, "status", "injectedInfo"),
		"lbInfo=map[id:edge]":                              "lbInfo=" + at(shown, "spec", "lbInfo"),
		"parameters=map[weight:100]":                       "parameters=" + at(shown, "spec", "parameters"),
		"finalizers=[lbcf.tkestack.io/deregister-backend]": "finalizers=" + fmt.Sprint(shown.GetFinalizers()),
		"owner=BackendGroup web":                           "owner=" + owner(shown),
		"label=" + s.pods[0].Name:                          "label=" + shown.GetLabels()["lbcf.tkestack.io/backend-pod"],
		"labels=theatre edge web":                          "labels=" + shown.GetLabels()["lbcf.tkestack.io/lb-driver"] + " " + shown.GetLabels()["lbcf.tkestack.io/lb-name"] + " " + shown.GetLabels()["lbcf.tkestack.io/backend-group"],
		"podBackend=" + s.pods[0].Name:                     "podBackend=" + at(shown, "spec", "podBackend", "name"),
	} {
		if want != have {
			t.Errorf("%s, not %s", have, want)
		}
	}
	s.Eventually("counts of the group", func() error {
		g, err := s.objects(backendGroups).Get(t.Context(), "web", metav1.GetOptions{})
		if err == nil && (at(g, "status", "backends") != "1" || at(g, "status", "registeredBackends") != "1") {
			err = fmt.Errorf("status %v", g.Object["status"])
		}
		return err
	})
	s.event("BackendRecord", "SuccEnsureBackend")
	s.event("LoadBalancer", "SuccCreateLoadBalancer")
	version := shown.GetResourceVersion()
	s.killAll()
	s.startAll()
	s.run(1)
	s.bound(0, 1)
	if now, err := s.record(0); err != nil || now.GetResourceVersion() != version {
		t.Errorf("a restart wrote the record anew: %v %v", now, err)
	}
	s.lawful()
}

func owner(o *unstructured.Unstructured) string {
	for _, r := range o.GetOwnerReferences() {
		if r.Controller != nil && *r.Controller {
			return r.Kind + " " + r.Name
		}
	}
	return ""
}

// event waits for an Event about an object of a kind.
func (s *stage) event(kind, reason string) {
	s.t.Helper()
	s.eventAbout(kind, "", reason)
}

// eventAbout is event about the object with a name; "": any.
func (s *stage) eventAbout(kind, name, reason string) {
	s.t.Helper()
	s.Eventually("Event "+reason, func() error {
		events, err := s.kube.Client().CoreV1().Events(namespace).List(s.t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		var seen []string
		for _, e := range events.Items {
			if e.InvolvedObject.Kind == kind && e.Reason == reason && (name == "" || e.InvolvedObject.Name == name) {
				return nil
			}
			seen = append(seen, e.InvolvedObject.Kind+" "+e.Reason)
		}
		return fmt.Errorf("there are %v", seen)
	})
}

// lbcf §1.2, §5.7: whoever deletes a record by hand has its backend deregistered, and registered anew since it is still wanted;
// whoever takes its finalizer away as well has it forgotten without a call.
func TestRecordsDeletedByHand(t *testing.T) {
	s := newStage(t, kubetest.Options{NoControllers: true})
	s.run(0)
	s.balance("10s")
	s.bound(0)
	s.Eventually("the record", func() error { _, err := s.record(0); return err })
	s.must(s.objects(backendRecords).Delete(t.Context(), s.recordOf(0), metav1.DeleteOptions{}))
	s.Eventually("a deregistration", func() error { return atLeast(s.driver.Calls(deregister), 1) })
	s.Eventually("an ensure after it", func() error { return atLeast(s.driver.Calls(ensure), 2) })
	s.bound(0)
	s.Eventually("the record of its new life", func() error {
		r, err := s.record(0)
		if err == nil && (r.GetDeletionTimestamp() != nil || condition(r.Object, "Registered") != "True") {
			err = fmt.Errorf("it is %v", r.Object)
		}
		return err
	})

	s.driver.Faults(failing(deregister))
	s.remove(0)
	s.Eventually("a deregistration that fails", func() error { return atLeast(s.driver.Calls(deregister), 2) })
	s.Eventually("the end of its finalizer", func() error {
		_, err := s.objects(backendRecords).Patch(t.Context(), s.recordOf(0), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		return fmt.Errorf("it is there")
	})
	s.Eventually("no binding", func() error {
		out, _, _ := s.CLI("get", "bindings", "-o", "json")
		if strings.Contains(out, s.recordOf(0)) {
			return fmt.Errorf("the record has %s", out)
		}
		return nil
	})
	s.bound(0) // it is somebody else's business now
	s.lawful()
}

// lbcf §3.1, design §8: whatever a driver answers, it is said on the object that it is about, and nothing else is affected.
func TestDriversThatAnswerNonsenseAreSaidSo(t *testing.T) {
	shared := testkit.Share(t)
	s := newStage(shared, kubetest.Options{NoControllers: true})
	s.driver.Late(0)
	s.balance("1s")
	for i, c := range []struct {
		name  string
		fault balancer.Fault
	}{{"garbage", balancer.Garbage}, {"broken", balancer.Broken}, {"fail", balancer.Fail}, {"hang", balancer.Hang}} {
		shared.Part(c.name, func(*testing.T) {
			first, second, third := 10*i, 10*i+1, 10*i+2 // pods of its own, and so records and Events
			bad := backend(second)
			s.driver.Faults(func(call balancer.Call) balancer.Fault {
				if call.Webhook == webhook.EnsureBackend && call.Address == bad {
					return c.fault
				}
				return balancer.None
			})
			s.run(first, second, third)
			s.Eventually("the others", func() error {
				for _, i := range []int{first, third} {
					if _, on := s.driver.Entry(edge, backend(i)); !on {
						return fmt.Errorf("%s is missing", backend(i))
					}
				}
				return nil
			})
			s.eventAbout("BackendRecord", s.recordOf(second), "FailedEnsureBackend")
			s.driver.Faults(nil)
			s.bound(first, second, third)
			s.lawful()
			s.remove(first, second, third)
			s.bound()
		})
	}
}
