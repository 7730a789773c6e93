// SPDX-License-Identifier: Apache-2.0

package lbcf_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"fairlead.io/fairlead/e2e/kubetest"
)

// lbcf §2, §13: a real API server takes what LBCF's clients send, nulls, zeros and all, and keeps fields that nobody knows.
func TestAnAPIServerStoresWhatLBCFSends(t *testing.T) {
	c := kubetest.Start(t, kubetest.Options{NoControllers: true})
	client, err := dynamic.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	kinds := client.Resource(apischema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	files, err := filepath.Glob(filepath.Join(crds, "lbcf.*.yaml"))
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
		if _, err := kinds.Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range []struct{ version, resource, text string }{
		{"v1beta1", "loadbalancerdrivers", `{"kind":"LoadBalancerDriver","future":{"a":1},"spec":{"driverType":"Webhook","url":"http://d","webhooks":[{"name":"healthz","timeout":null,"future":1}]},"status":{"conditions":null}}`},
		{"v1beta1", "loadbalancers", `{"kind":"LoadBalancer","spec":{"lbDriver":"d","lbSpec":null,"attributes":null,"scope":null,"ensurePolicy":{"policy":"","minPeriod":"0s"},"future":[1]}}`},
		{"v1beta1", "backendgroups", `{"kind":"BackendGroup","spec":{"lbName":"a","loadBalancers":null,"pods":{"port":{"portNumber":80,"port":0},"ports":null,"byName":null,"future":{"a":"b"}},"parameters":null,"deregisterPolicy":null,"deregisterWebhook":null}}`},
		{"v1beta1", "backendrecords", `{"kind":"BackendRecord","spec":{"lbName":"a","lbDriver":"d","lbInfo":null,"lbAttributes":null,"parameters":null,"podBackend":{"name":"p","port":{"portNumber":80,"port":80}},"future":1}}`},
		{"v1", "binds", `{"kind":"Bind","spec":{"loadBalancers":[{"name":"a","driver":"d","spec":null,"attributes":null,"future":1}],"pods":{"ports":null},"parameters":null,"deregisterPolicy":null,"deregisterWebhook":null}}`},
	} {
		given := &unstructured.Unstructured{}
		if err := json.Unmarshal([]byte(o.text), &given.Object); err != nil {
			t.Fatal(err)
		}
		given.SetAPIVersion("lbcf.tkestack.io/" + o.version)
		given.SetName("a")
		resource := client.Resource(apischema.GroupVersionResource{Group: "lbcf.tkestack.io", Version: o.version, Resource: o.resource}).Namespace("default")
		var stored *unstructured.Unstructured
		kubetest.Eventually(t, o.resource, func(ctx context.Context) (err error) {
			stored, err = resource.Create(ctx, given, metav1.CreateOptions{})
			return err
		})
		want, _ := json.Marshal(given.Object["spec"])
		got, _ := json.Marshal(stored.Object["spec"])
		future, _ := json.Marshal(given.Object["future"])
		kept, _ := json.Marshal(stored.Object["future"])
		if string(got) != string(want) || string(kept) != string(future) {
			t.Errorf("%s: %s %s, not %s %s", o.resource, got, kept, want, future)
		}
		stored.Object["status"] = map[string]any{"conditions": nil, "lbInfo": nil, "injectedInfo": nil, "loadBalancerStatuses": nil, "observed": int64(7)}
		if stored, err = resource.UpdateStatus(t.Context(), stored, metav1.UpdateOptions{}); err != nil {
			t.Errorf("%s: status: %v", o.resource, err)
		} else if n, _, _ := unstructured.NestedInt64(stored.Object, "status", "observed"); n != 7 {
			t.Errorf("%s: status: %v", o.resource, stored.Object["status"])
		}
	}
}
