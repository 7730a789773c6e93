// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"fairlead.io/fairlead/cluster/leader/balancers"
	"fairlead.io/fairlead/e2e/kubetest"
	wishes "fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/takeover"
)

// lbcfController is LBCF's own Deployment (lbcf §9), and lbcfAdmission a part of what it asks to be asked.
const (
	lbcfController = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: lbcf-controller, namespace: kube-system, labels: {lbcf.tkestack.io/component: lbcf-controller}}
spec:
  replicas: 1
  selector: {matchLabels: {lbcf.tkestack.io/component: lbcf-controller}}
  template: {metadata: {labels: {lbcf.tkestack.io/component: lbcf-controller}}, spec: {containers: [{name: c, image: example.com/lbcf}]}}
`
	lbcfAdmission = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: lbcf-validate}
webhooks:
- name: bind.lbcf.tkestack.io
  clientConfig: {service: {namespace: kube-system, name: lbcf-controller, path: /validate-bind}}
  rules: [{apiGroups: [lbcf.tkestack.io], apiVersions: [v1], resources: [binds], operations: [CREATE, UPDATE]}]
  failurePolicy: Fail
  sideEffects: None
  timeoutSeconds: 10
  admissionReviewVersions: [v1beta1]
`
)

// lbcfKinds are LBCF's kinds with their plurals and versions.
var lbcfKinds = map[string][2]string{
	"LoadBalancerDriver": {"loadbalancerdrivers", "v1beta1"}, "LoadBalancer": {"loadbalancers", "v1beta1"},
	"BackendGroup": {"backendgroups", "v1beta1"}, "BackendRecord": {"backendrecords", "v1beta1"}, "Bind": {"binds", "v1"},
}

// lbcfDefinitions are those that LBCF has: without schema and printer columns.
func lbcfDefinitions() string {
	var b strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(lbcfKinds)) {
		plural, version := lbcfKinds[kind][0], lbcfKinds[kind][1]
		fmt.Fprintf(&b, `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %s.lbcf.tkestack.io}
spec:
  group: lbcf.tkestack.io
  scope: Namespaced
  names: {kind: %s, plural: %s, singular: %s}
  versions:
  - {name: %s, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`, plural, kind, plural, strings.ToLower(kind), version)
	}
	return b.String()
}

// lbcfInstallation stores testdata of k8s/takeover in a cluster as LBCF would have: owners, and names of records, follow the
// UIDs that the server gives.
func lbcfInstallation(t *testing.T, c *kubetest.Cluster, api dynamic.Interface) (stored []*unstructured.Unstructured) {
	t.Helper()
	if err := c.Apply(t.Context(), lbcfDefinitions()); err != nil {
		t.Fatal(err)
	}
	pod, err := c.Pod(t.Context(), kubetest.PodSpec{
		Namespace: "shop", Name: "web-0", Labels: map[string]string{"app": "web"}, Addresses: []netip.Addr{netip.MustParseAddr("10.244.1.17")},
	})
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile("../../k8s/takeover/testdata/installation.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(file), "8e37c738700571d3078073269cf4474d",
		balancers.PodRecord("edge-web", "web-bg", string(pod.UID), wishes.BackendPort{Port: 8080, Protocol: "TCP"}))
	for text != "" {
		var manifest string
		manifest, text, _ = strings.Cut(text, "\n---\n")
		o := parse(t, manifest)
		status, planned := o.Object["status"], string(o.GetUID())
		o = store(t, api, o)
		if o.Object["status"] = status; status != nil {
			if o, err = resourceOf(api, o).UpdateStatus(t.Context(), o, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if planned != "" {
			text = strings.ReplaceAll(text, "uid: "+planned+",", "uid: "+string(o.GetUID())+",")
		}
		stored = append(stored, o)
	}
	return stored
}

func resourceOf(api dynamic.Interface, o *unstructured.Unstructured) dynamic.ResourceInterface {
	plural, version := lbcfKinds[o.GetKind()][0], lbcfKinds[o.GetKind()][1]
	return api.Resource(schema.GroupVersionResource{Group: "lbcf.tkestack.io", Version: version, Resource: plural}).Namespace(o.GetNamespace())
}

func store(t *testing.T, api dynamic.Interface, o *unstructured.Unstructured) (stored *unstructured.Unstructured) {
	t.Helper()
	o.SetAPIVersion("lbcf.tkestack.io/" + lbcfKinds[o.GetKind()][1])
	kubetest.Eventually(t, "kind "+o.GetKind(), func(ctx context.Context) (err error) {
		stored, err = resourceOf(api, o).Create(ctx, o, metav1.CreateOptions{})
		return err
	})
	return stored
}

// ready sets how many replicas LBCF's Deployment has ready, as the kubelet and its controllers would.
func ready(t *testing.T, c *kubetest.Cluster, n int32) {
	t.Helper()
	deployments := c.Client().AppsV1().Deployments("kube-system")
	d, err := deployments.Get(t.Context(), "lbcf-controller", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d.Status.Replicas, d.Status.ReadyReplicas = n, n
	if _, err := deployments.UpdateStatus(t.Context(), d, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// lbcf §13: only one of LBCF and Fairlead acts; the report says what is adopted; steps are repeatable and leave objects as they are.
func TestMigrationOfARealLBCFInstallation(t *testing.T) {
	isolate(t)
	c := kubetest.Start(t, kubetest.Options{NoControllers: true})
	api, err := dynamic.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"migrate", "lbcf", "--kubeconfig", c.Kubeconfig()}
	fairlead(t, append(args, "--dry-run")...).mustFail(t, exitFailed, "no kind of lbcf.tkestack.io is installed", "kubectl apply")

	stored := lbcfInstallation(t, c, api)
	if err := c.Apply(t.Context(), lbcfController+"---"+lbcfAdmission); err != nil {
		t.Fatal(err)
	}
	ready(t, c, 1)

	table := fairlead(t, append(args, "--dry-run")...).mustPrint(t)
	for _, want := range []string{
		"deployment kube-system/lbcf-controller wants 1 replicas and has 1 ready", "4: 4 adopted", "2: 2 created",
		"kube-system/lbcf-clb", "healthz", "ValidatingWebhookConfiguration lbcf-validate", "lacks v1", "schema, additionalPrinterColumns",
		"Nothing was changed.", "scale deployment lbcf-controller --replicas=1",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("%q is not in\n%s", want, table)
		}
	}
	fairlead(t, args...).mustFail(t, exitFailed, "an LBCF controller acts on the same objects", "kubectl -n kube-system scale deployment lbcf-controller --replicas=0", "nothing was changed")
	if again := fairlead(t, append(args, "--dry-run")...).mustPrint(t); again != table {
		t.Errorf("a refusal changed\n%s\ninto\n%s", table, again)
	}

	// It is scaled down, and what acts still is waited for.
	for within := time.Second; ; within *= 4 { // a busy machine does not get to look in a second
		ran := fairlead(t, append(args, "--stop-old", "--within="+within.String())...)
		if strings.Contains(ran.stderr, "has 1 ready") || within > 20*time.Second {
			ran.mustFail(t, exitFailed, "wait for LBCF to end", "has 1 ready")
			break
		}
	}
	ready(t, c, 0)
	first := answerOf(t, args)
	if first.Running != "" || len(first.Done) != 2 || first.HandedOver != "" || first.Count()[takeover.Adopted] != 4 {
		t.Errorf("first %+v", first)
	}
	versions := definitionsOf(t, api)
	second := answerOf(t, args)
	if second.HandedOver == "" || slices.ContainsFunc(second.Definitions, func(d takeover.Difference) bool { return len(d.Changes) > 0 }) {
		t.Errorf("second %+v", second)
	}
	if again := definitionsOf(t, api); !maps.Equal(again, versions) {
		t.Errorf("definitions changed again: %v, then %v", versions, again)
	}
	for _, was := range stored {
		is, err := resourceOf(api, was).Get(t.Context(), was.GetName(), metav1.GetOptions{})
		if err != nil || is.GetResourceVersion() != was.GetResourceVersion() {
			t.Errorf("%s %s was written: %v", was.GetKind(), was.GetName(), err)
		}
	}
	admission(t, c, args)
}

// admission applies configurations, and only those of LBCF.
func admission(t *testing.T, c *kubetest.Cluster, args []string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "other.yaml")
	if err := os.WriteFile(path, []byte(lbcfController), 0o600); err != nil {
		t.Fatal(err)
	}
	fairlead(t, append(args, "--webhook-configurations", path)...).mustFail(t, exitFailed, path, "Deployment lbcf-controller: is no admission configuration")
	got := answerOf(t, append(args, "--webhook-configurations", "../../deploy/components/admission/webhooks.yaml"))
	if len(got.Done) != 3 {
		t.Errorf("done %v", got.Done)
	}
	for _, d := range answerOf(t, args).Configurations {
		if len(d.Changes) > 0 {
			t.Errorf("%+v after ours were applied", d)
		}
	}
}

func answerOf(t *testing.T, args []string) (answer takenOver) {
	t.Helper()
	if err := json.Unmarshal([]byte(fairlead(t, append(args, "-o", "json")...).mustPrint(t)), &answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

// definitionsOf gives the versions of all definitions.
func definitionsOf(t *testing.T, api dynamic.Interface) map[string]string {
	t.Helper()
	kind := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	list, err := api.Resource(kind).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, o := range list.Items {
		out[o.GetName()] = fmt.Sprint(o.GetGeneration(), o.GetAnnotations())
	}
	return out
}

// lbcf §13: the group has every adopted backend as it was, and called no driver about it.
func TestVerificationNamesWhatTheGroupHasNot(t *testing.T) {
	report := takeover.Report{Records: []takeover.Record{
		{Name: "shop/a", Address: "192.0.2.1:80", Verdict: takeover.Adopted},
		{Name: "shop/b", Address: "192.0.2.2:80", Verdict: takeover.Adopted, Why: "ensured every 1m0s as before"},
		{Name: "shop/c", Verdict: takeover.Ensured},
		{Name: "shop/d", Address: "192.0.2.4:80", Verdict: takeover.Adopted, Ours: true},
	}}
	d := `{"name":"shop/d","address":"192.0.2.4:80","state":"bound"}`
	a, b := `{"name":"shop/a","address":"192.0.2.1:80","state":"bound"}`, `{"name":"shop/b","address":"192.0.2.2:80","state":"bound"}`
	for name, c := range map[string]struct {
		bindings, operations []string
		want                 string
	}{
		"all":             {[]string{a, b}, nil, "[]"},
		"periodic":        {[]string{a, b}, []string{`{"binding":"shop/b","action":"ensure"}`}, "[]"},
		"ours":            {[]string{a, b}, []string{`{"binding":"shop/d","action":"ensure"}`}, "[]"},
		"missing":         {[]string{b}, nil, "[shop/a]"},
		"called":          {[]string{a, b}, []string{`{"binding":"shop/a","action":"ensure"}`}, "[shop/a (its driver was called: ensure)]"},
		"other-address":   {[]string{strings.Replace(a, ".1:", ".9:", 1), b}, nil, `[shop/a (address "192.0.2.9:80", not "192.0.2.1:80")]`},
		"being-ensured":   {[]string{strings.Replace(a, "bound", "ensuring", 1), b}, nil, "[shop/a (ensuring)]"},
		"others-are-well": {[]string{a, b, `{"name":"shop/x","state":"draining"}`}, []string{`{"binding":"shop/x"}`}, "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := unadopted(report, raw(append(c.bindings, d)), raw(c.operations))
			if err != nil || fmt.Sprint(got) != c.want {
				t.Errorf("%v, %v; want %s", got, err, c.want)
			}
		})
	}
}

func raw(documents []string) (out []json.RawMessage) {
	for _, d := range documents {
		out = append(out, json.RawMessage(d))
	}
	return out
}
