// SPDX-License-Identifier: Apache-2.0

package outside_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"fairlead.io/fairlead/e2e/kubetest"
	"fairlead.io/fairlead/e2e/lab"
	"fairlead.io/fairlead/e2e/outside/balancer"
)

// lbcf §13: what LBCF registered is taken over: not one backend is registered anew or dropped, and the driver hears the record
// ids and the injected info that it knows.
func TestAnInstallationOfLBCFIsTakenOver(t *testing.T) {
	const n = 20
	s := &stage{t: t, kube: kubetest.Start(t, kubetest.Options{NoControllers: true}), pods: map[int]*kubetest.Pod{}}
	s.must(s.kube.ApplyFiles(t.Context(), "../../deploy/crds/lbcf.*.yaml"))
	s.must(s.kube.EnsureNamespace(t.Context(), namespace))
	_, err := s.kube.Node(t.Context(), "n1", nil, lab.NodeAddress(1))
	s.must(err)
	s.driver = balancer.Start(t)
	s.run(upTo(n)...)
	s.balance("10s")
	s.wasCreated(edge)
	uids := map[int]string{}
	for i := range n {
		uids[i] = s.registersAsLBCF(i)
	}
	s.driver.Guard(func(string) bool { return true })
	s.apply(oldController)

	s.Lab = lab.New(t, lab.Options{Kubeconfig: s.kube.Kubeconfig(), Extra: dryRun})
	s.Eventually("a leader", func() error {
		if s.Leader() == nil {
			return errors.New("there is none")
		}
		return nil
	})
	s.migrate(exitFailed, "an LBCF controller acts on the same objects", "--verify")
	s.migrate(exitFailed, "has not adopted 20 of 20 backends, such as "+namespace+"/", "--stop-old", "--verify", "--within", "12s") // nor does it in a dry run
	if err := s.bindings(0); err != nil {
		t.Errorf("while LBCF runs, and in a dry run: %v", err)
	}
	for _, m := range s.Members {
		m.Stop()
		s.must(replace(m.Config, dryRun, ""))
		m.Start()
	}
	s.migrate(exitDone, "the group has all 20 adopted backends", "--verify", "--within", "2m")
	s.run(n) // one more: once it is bound, everything has been looked at
	s.bound(upTo(n + 1)...)
	if created, ensured := s.driver.Calls("createLoadBalancer"), s.driver.Calls(ensure); created != 0 || ensured != 1 {
		t.Errorf("%d calls of createLoadBalancer, %d of ensureBackend: what is there was registered anew", created, ensured)
	}
	s.Eventually("all records", func() error { return atLeast(s.recorded(), n+1) })
	s.migrate(exitDone, "the group has all 21 adopted backends", "--verify", "--within", "2m") // one of which it made
	s.driver.Guard(nil)
	s.remove(0)
	s.bound(upTo(n + 1)[1:]...)
	if want := fmt.Sprintf("deregisterBackend(%s) map[server:old]", uids[0]); !s.driver.Heard(want) {
		t.Errorf("the driver did not hear %s", want)
	}
	s.lawful()
}

// How commands end.
const (
	exitDone   = 0
	exitFailed = 1
)

// migrate runs `fairlead migrate lbcf`, which must end in a way, and say something.
func (s *stage) migrate(code int, says string, args ...string) {
	s.t.Helper()
	out, stderr, got := s.CLI(append([]string{"migrate", "lbcf", "--kubeconfig", s.kube.Kubeconfig()}, args...)...)
	if got != code || !strings.Contains(out+stderr, says) {
		s.t.Errorf("migrate lbcf %v: exit %d, want %d and %q:\n%s%s", args, got, code, says, out, stderr)
	}
}

// dryRun is in the configuration of members that change nothing.
const dryRun = "lbcf: {dryRun: true}\n"

// replace changes a text in a file.
func replace(path, from, to string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(strings.Replace(string(text), from, to, 1)), 0o600)
}

// oldController is LBCF's, as far as anybody looks at it.
const oldController = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: lbcf-controller, namespace: kube-system, labels: {lbcf.tkestack.io/component: lbcf-controller}}
spec:
  replicas: 1
  selector: {matchLabels: {lbcf.tkestack.io/component: lbcf-controller}}
  template:
    metadata: {labels: {lbcf.tkestack.io/component: lbcf-controller}}
    spec: {containers: [{name: c, image: lbcf}]}
`

// wasCreated has a LoadBalancer be one that LBCF created.
func (s *stage) wasCreated(name string) {
	s.t.Helper()
	lb, err := s.objects(loadBalancers).Get(s.t.Context(), name, metav1.GetOptions{})
	s.must(err)
	lb.Object["status"] = map[string]any{"lbInfo": map[string]any{"id": name}, "conditions": []any{
		map[string]any{"type": "Created", "status": "True", "lastTransitionTime": "2021-10-12T00:00:00Z", "reason": "", "message": ""},
		map[string]any{"type": "AttributesSynced", "status": "True", "lastTransitionTime": "2021-10-12T00:00:00Z", "reason": "", "message": ""},
	}}
	_, err = s.objects(loadBalancers).UpdateStatus(s.t.Context(), lb, metav1.UpdateOptions{})
	s.must(err)
}

// registersAsLBCF has LBCF register a pod's backend, and make its BackendRecord.
func (s *stage) registersAsLBCF(i int) (uid string) {
	s.t.Helper()
	group, err := s.objects(backendGroups).Get(s.t.Context(), "web", metav1.GetOptions{})
	s.must(err)
	s.apply(`
apiVersion: lbcf.tkestack.io/v1beta1
kind: BackendRecord
metadata:
  name: %[2]s
  namespace: %[1]s
  finalizers: [lbcf.tkestack.io/deregister-backend]
  labels: {lbcf.tkestack.io/lb-driver: theatre, lbcf.tkestack.io/lb-name: edge, lbcf.tkestack.io/backend-group: web, lbcf.tkestack.io/backend-pod: %[3]s}
  ownerReferences: [{apiVersion: lbcf.tkestack.io/v1beta1, kind: BackendGroup, name: web, uid: %[4]s, controller: true, blockOwnerDeletion: true}]
spec:
  lbName: edge
  lbDriver: theatre
  lbInfo: {id: edge}
  lbAttributes: null
  parameters: {weight: "100"}
  podBackend: {name: %[3]s, port: {port: 8080, protocol: TCP}}
`, namespace, s.recordOf(i), s.pods[i].Name, group.GetUID())
	s.driver.Put(edge, backend(i))
	return s.wasRegistered(s.recordOf(i), backend(i))
}

// deregistersAsLBCF has LBCF take a pod's backend off, and let its BackendRecord go.
func (s *stage) deregistersAsLBCF(i int) {
	s.t.Helper()
	s.driver.Remove(edge, backend(i))
	s.must(s.objects(backendRecords).Delete(s.t.Context(), s.recordOf(i), metav1.DeleteOptions{}))
	none := []byte(`{"metadata":{"finalizers":null}}`)
	_, err := s.objects(backendRecords).Patch(s.t.Context(), s.recordOf(i), types.MergePatchType, none, metav1.PatchOptions{})
	s.must(err)
}

// wasRegistered has a BackendRecord be one that LBCF registered.
func (s *stage) wasRegistered(name, address string) (uid string) {
	s.t.Helper()
	record, err := s.objects(backendRecords).Get(s.t.Context(), name, metav1.GetOptions{})
	s.must(err)
	record.Object["status"] = map[string]any{"backendAddr": address, "injectedInfo": map[string]any{"server": "old"}, "conditions": []any{
		map[string]any{"type": "Registered", "status": "True", "lastTransitionTime": "2021-10-12T00:00:00Z", "message": ""},
	}}
	_, err = s.objects(backendRecords).UpdateStatus(s.t.Context(), record, metav1.UpdateOptions{})
	s.must(err)
	return string(record.GetUID())
}

// recorded counts the BackendRecords that say that they are registered.
func (s *stage) recorded() (n int) {
	list, err := s.objects(backendRecords).List(s.t.Context(), metav1.ListOptions{})
	s.must(err)
	for _, r := range list.Items {
		if text, _ := r.MarshalJSON(); strings.Contains(string(text), `"backendAddr":`) && strings.Contains(string(text), `"status":"True"`) {
			n++
		}
	}
	return n
}
