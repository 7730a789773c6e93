// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"slices"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/alike"
)

// A folder may hold what outside load balancers are made of; what goes from it was seen to go.
func TestFolderHoldsOutsideLoadBalancersAndPods(t *testing.T) {
	t.Parallel()
	b := newBench()
	kinds := map[world.Kind]string{
		world.KindDriver: "lbcf.tkestack.io/v1beta1", world.KindLoadBalancer: "lbcf.tkestack.io/v1beta1", world.KindBackendGroup: "lbcf.tkestack.io/v1beta1",
		world.KindBackendRecord: "lbcf.tkestack.io/v1beta1", world.KindBind: "lbcf.tkestack.io/v1", world.KindPod: "v1",
	}
	for kind, version := range kinds {
		b.write(strings.ToLower(string(kind))+".yaml", "apiVersion: "+version+"\nkind: "+string(kind)+"\nmetadata: {name: a, namespace: shop}\nspec: {url: \"http://f5.example\"}\n")
	}
	b.pass(5 * time.Second)
	w := b.source.World()
	for kind, n := range map[world.Kind]int{
		world.KindDriver: len(w.Drivers), world.KindLoadBalancer: len(w.LoadBalancers), world.KindBackendGroup: len(w.BackendGroups),
		world.KindBackendRecord: len(w.BackendRecords), world.KindBind: len(w.Binds), world.KindPod: len(w.Pods),
	} {
		if n != 1 {
			t.Errorf("%d of %s; problems %v", n, kind, w.Problems)
		}
	}
	for kind := range kinds {
		delete(b.disk.files, strings.ToLower(string(kind))+".yaml")
	}
	b.write("web.yaml", service("web"))
	b.pass(5 * time.Second)
	w = b.source.World()
	gone := map[world.Kind]bool{}
	for _, d := range w.Deleted {
		gone[d.Kind] = d.ID == world.ID{Namespace: "shop", Name: "a"} && d.How == world.ByScan
	}
	for kind := range kinds {
		if !gone[kind] {
			t.Errorf("%s was not seen to go: %v", kind, w.Deleted)
		}
	}
	if len(w.Drivers)+len(w.LoadBalancers)+len(w.BackendGroups)+len(w.BackendRecords)+len(w.Binds)+len(w.Pods) > 0 {
		t.Errorf("got %+v", w)
	}
}

// Where no API server is read, a folder's BackendGroups of pods and of Services, and Binds, are told of: no driver can be called for them. Those of
// addresses are not, and none is where an API server is read as well.
func TestBackendsThatNoDriverIsCalledForAreToldOf(t *testing.T) {
	t.Parallel()
	const group = "apiVersion: lbcf.tkestack.io/v1beta1\nkind: BackendGroup\nmetadata: {name: a, namespace: shop}\nspec:\n  loadBalancers: [lb]\n  "
	for text, told := range map[string]bool{
		group + "pods: {port: {portNumber: 8080}, byLabel: {selector: {app: web}}}":                                          true,
		group + "service: {name: np, port: {portNumber: 80}}":                                                                true,
		group + `static: ["192.0.2.8:80"]`:                                                                                   false,
		"apiVersion: lbcf.tkestack.io/v1\nkind: Bind\nmetadata: {name: a, namespace: shop}\nspec: {pods: {byName: [web-0]}}": true,
	} {
		for _, alone := range []bool{true, false} {
			c := decode("file", []byte(text), new(alike.Table), rules{noCluster: alone})
			if len(c.objects) != 1 || !c.objects[0].usable() {
				t.Fatalf("%s: %+v", text, c)
			}
			said := slices.ContainsFunc(c.objects[0].problems(), func(p world.Problem) bool {
				return p.Severity == world.Degraded && p.Line > 0 && strings.Contains(p.Why, "registered nowhere") && strings.Contains(p.Remedy, "spec.static")
			})
			if said != (told && alone) {
				t.Errorf("%s\nalone %v: told %v: %v", text, alone, said, c.objects[0].problems())
			}
		}
	}
}
