// SPDX-License-Identifier: Apache-2.0

package handover_test

import (
	"slices"
	"testing"

	"fairlead.io/fairlead/e2e/kubetest"
	"fairlead.io/fairlead/k8s/client"
	"fairlead.io/fairlead/k8s/handover"
)

// deployments are LBCF's under its own name and another one, ours in its place, and somebody else's.
const deployments = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: lbcf-controller, namespace: kube-system}
spec:
  selector: {matchLabels: {app: a}}
  template: {metadata: {labels: {app: a}}, spec: {containers: [{name: c, image: example.com/lbcf}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: renamed, namespace: kube-system, labels: {lbcf.tkestack.io/component: lbcf-controller}}
spec:
  replicas: 0
  selector: {matchLabels: {app: b}}
  template: {metadata: {labels: {app: b}}, spec: {containers: [{name: c, image: example.com/lbcf}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: unlabelled, namespace: kube-system}
spec:
  replicas: 2
  selector: {matchLabels: {lbcf.tkestack.io/component: lbcf-controller}}
  template: {metadata: {labels: {lbcf.tkestack.io/component: lbcf-controller}}, spec: {containers: [{name: c, image: example.com/lbcf}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: ours, namespace: kube-system, labels: {lbcf.tkestack.io/component: lbcf-controller, app.kubernetes.io/part-of: fairlead}}
spec:
  selector: {matchLabels: {app: d}}
  template: {metadata: {labels: {app: d}}, spec: {containers: [{name: c, image: example.com/fairlead}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: coredns, namespace: kube-system}
spec:
  selector: {matchLabels: {app: e}}
  template: {metadata: {labels: {app: e}}, spec: {containers: [{name: c, image: example.com/dns}]}}
`

// lbcf §9, §13: LBCF is found by its name and its label, whatever it is called, and what is ours is not LBCF.
func TestLBCFIsFoundByNameAndLabel(t *testing.T) {
	c := kubetest.Start(t, kubetest.Options{NoControllers: true})
	if err := c.Apply(t.Context(), deployments); err != nil {
		t.Fatal(err)
	}
	lbcf := map[string]string{"lbcf.tkestack.io/component": "lbcf-controller"}
	ours := map[string]string{"lbcf.tkestack.io/component": "lbcf-controller", "app.kubernetes.io/part-of": "fairlead"}
	for name, labels := range map[string]map[string]string{"by-hand": lbcf, "ours": ours, "other": nil} {
		if _, err := c.Pod(t.Context(), kubetest.PodSpec{Namespace: "kube-system", Name: name, Labels: labels}); err != nil {
			t.Fatal(err)
		}
	}
	api, err := client.New(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := handover.In(api)
	if err != nil {
		t.Fatal(err)
	}
	seen, err := cluster.Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []handover.Deployment{{Name: "lbcf-controller", Wanted: 1}, {Name: "renamed"}, {Name: "unlabelled", Wanted: 2}}
	if !slices.Equal(seen.Deployments, want) || !slices.Equal(seen.Pods, []handover.Pod{{Name: "by-hand"}}) {
		t.Errorf("seen %+v, want deployments %+v and the pod by-hand", seen, want)
	}
}
