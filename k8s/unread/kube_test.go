// SPDX-License-Identifier: Apache-2.0

package unread

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/e2e/kubetest"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/client"
)

// An API server takes the Events, with the longest names and many namespaces, too, and has them where people look.
func TestAnAPIServerTakesTheEvents(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t, kubetest.Options{NoControllers: true})
	if err := c.EnsureNamespace(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	api, err := client.New(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	many := []string{"kube-system"}
	for range 40 {
		many = append(many, strings.Repeat("n", 63))
	}
	for _, name := range []string{"tor", strings.Repeat("x", 253)} {
		k := Key{Group: "metallb.io", Kind: world.KindPeer, ID: world.ID{Namespace: "shop", Name: name}}
		if err := (Kubernetes{API: api}).Tell(t.Context(), event(k, form("u1", 1), many, "m1", time.Now())); err != nil {
			t.Error(err)
		}
		all, err := c.Client().CoreV1().Events("shop").List(t.Context(), metav1.ListOptions{
			FieldSelector: "involvedObject.kind=BGPPeer,involvedObject.namespace=shop,involvedObject.uid=u1,involvedObject.name=" + name,
		})
		if err != nil || len(all.Items) != 1 || all.Items[0].Reason != Reason {
			t.Errorf("%s: people see %+v, %v", name, all, err)
		}
	}
}
