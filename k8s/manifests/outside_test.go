// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/fsm/world"
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
