// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"fairlead.io/fairlead/e2e/kubetest"
)

// oldSystem is what the README of kube-loadbalancer-controller has its users apply.
const oldSystem = `
kind: ConfigMap
apiVersion: v1
metadata: {name: kube-gobgp-cfg, namespace: kube-system}
data:
  config_bgp.toml: |
    [global.config]
      as = 65000
      port = 1790
    [[neighbors]]
      [neighbors.config]
        neighbor-address = "192.0.2.1"
        peer-as = 65001
---
kind: ConfigMap
apiVersion: v1
metadata: {name: kube-iprule-cfg, namespace: kube-system}
data: {SWITCH: 192.0.2.1, DEPLOY_MODEL: barematel}
---
kind: StatefulSet
apiVersion: apps/v1
metadata: {name: loadbalancer-controller, namespace: kube-system, labels: {app: loadbalancer}}
spec:
  replicas: 2
  serviceName: loadbalancer
  selector: {matchLabels: {app: loadbalancer}}
  template:
    metadata: {labels: {app: loadbalancer}}
    spec: {hostNetwork: true, containers: [{name: controller, image: "example.com/loadbalancer-controller:v1"}]}
---
kind: DaemonSet
apiVersion: apps/v1
metadata: {name: loadbalancer-daemonset, namespace: kube-system}
spec:
  selector: {matchLabels: {app: loadbalancer-daemon}}
  template:
    metadata: {labels: {app: loadbalancer-daemon}}
    spec: {hostNetwork: true, containers: [{name: daemon, image: "example.com/loadbalancer-daemon:v1"}]}
---
kind: Service
apiVersion: v1
metadata: {name: loadbalancer, namespace: kube-system}
spec: {clusterIP: None, selector: {app: loadbalancer}, ports: [{port: 80}]}
---
kind: Service
apiVersion: v1
metadata: {name: web, namespace: default}
spec: {type: LoadBalancer, externalIPs: [203.0.113.10], selector: {app: web}, ports: [{port: 80}]}
`

// resources are where objects of a kind are.
var resources = map[string]schema.GroupVersionResource{
	"ConfigMap": {Version: "v1", Resource: "configmaps"}, "Service": {Version: "v1", Resource: "services"},
	"StatefulSet": {Group: "apps", Version: "v1", Resource: "statefulsets"}, "DaemonSet": {Group: "apps", Version: "v1", Resource: "daemonsets"},
}

func parse(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

// create makes an object and gives it as the server keeps it.
func create(t *testing.T, api dynamic.Interface, manifest string) *unstructured.Unstructured {
	t.Helper()
	o := parse(t, manifest)
	got, err := api.Resource(resources[o.GetKind()]).Namespace(o.GetNamespace()).Create(t.Context(), o, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// spec is what people gave an object: the same before and after the way back.
func spec(o *unstructured.Unstructured) any {
	return []any{o.GetLabels(), o.Object["spec"], o.Object["data"]}
}

func TestMigrationOfARealClusterIsPlannedAndCanBeUndone(t *testing.T) {
	isolate(t)
	cluster := kubetest.Start(t, kubetest.Options{NoControllers: true})
	api, err := dynamic.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	before := map[string]*unstructured.Unstructured{}
	for manifest := range strings.SplitSeq(oldSystem, "---\n") {
		o := create(t, api, manifest)
		before[o.GetKind()+"/"+o.GetName()] = o
	}
	for i, name := range []string{"cp-1", "cp-2", "cp-3"} {
		label := map[string]string{"node-role.kubernetes.io/control-plane": ""}
		if _, err := cluster.Node(t.Context(), name, label, netip.AddrFrom4([4]byte{192, 0, 2, byte(11 + i)})); err != nil {
			t.Fatal(err)
		}
	}
	for pod, node := range map[string]string{"loadbalancer-controller-0": "cp-1", "loadbalancer-controller-1": "cp-2"} {
		if _, err := cluster.Pod(t.Context(), kubetest.PodSpec{Namespace: "kube-system", Name: pod, Node: node, Labels: map[string]string{"app": "loadbalancer"}}); err != nil {
			t.Fatal(err)
		}
	}

	out := filepath.Join(t.TempDir(), "out")
	args := []string{"migrate", "kube-loadbalancer-controller", "--kubeconfig", cluster.Kubeconfig(), "--out", out}
	text := fairlead(t, append(args, "--dry-run")...).mustPrint(t)
	order := []string{
		"2 replicas of the old controller become 3 voters, in this order: cp-3 (192.0.2.13), cp-2 (192.0.2.12), cp-1 (192.0.2.11)",
		"1 addresses are announced as before, to 192.0.2.1",
		"kubectl apply -k " + out + "/first",
		"kubectl label node cp-3 fairlead.io/member=true",
		"scale statefulset loadbalancer-controller --replicas=1",
		"kubectl label node cp-2 fairlead.io/member=true",
		"scale statefulset loadbalancer-controller --replicas=0",
		"kubectl label node cp-1 fairlead.io/member=true",
		"delete daemonset loadbalancer-daemonset",
	}
	rest := text
	for _, step := range order {
		_, after, found := strings.Cut(rest, step)
		if !found {
			t.Fatalf("%q is missing or comes too early in\n%s", step, text)
		}
		rest = after
	}
	if _, err := os.Stat(out); !os.IsNotExist(err) {
		t.Errorf("a dry run wrote %s: %v", out, err)
	}
	var answer migration
	if err := json.Unmarshal([]byte(fairlead(t, append(args, "-o", "json")...).mustPrint(t)), &answer); err != nil {
		t.Fatal(err)
	}
	if answer.Out != out || len(answer.Members) != 3 || answer.Members[2].Frees != "loadbalancer-controller-0" || len(answer.Addresses) != 1 {
		t.Errorf("answer %+v", answer)
	}
	fairlead(t, args...).mustFail(t, exitFailed, out, "is not empty")

	undo(t, api, before, filepath.Join(out, "old"))
}

// undo removes the old system, which the last steps do, and applies what was kept of it.
func undo(t *testing.T, api dynamic.Interface, before map[string]*unstructured.Unstructured, folder string) {
	t.Helper()
	for id, o := range before {
		if id == "Service/web" {
			continue
		}
		if err := api.Resource(resources[o.GetKind()]).Namespace(o.GetNamespace()).Delete(t.Context(), o.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := fs.Glob(os.DirFS(folder), "*.yaml")
	if err != nil || len(entries) != len(before)-1 {
		t.Fatalf("kept %v, %v", entries, err)
	}
	for _, name := range entries {
		manifest, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		o := create(t, api, string(manifest))
		if was := before[o.GetKind()+"/"+o.GetName()]; was == nil || !reflect.DeepEqual(spec(o), spec(was)) {
			t.Errorf("%s comes back as\n%v\nand was\n%v", name, spec(o), spec(was))
		}
	}
}

func TestMigrateFailsInOneLine(t *testing.T) {
	isolate(t)
	fairlead(t, "migrate", "kube-loadbalancer-controller", "--kubeconfig", filepath.Join(t.TempDir(), "none")).mustFail(t, exitFailed, "none", "does not exist")
	fairlead(t, "migrate", "kube-loadbalancer-controller", "now").mustFail(t, exitUsage, "want no arguments")
	fairlead(t, "migrate", "traefik").mustFail(t, exitUsage, "traefik")
}
