// SPDX-License-Identifier: Apache-2.0

package informers_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"fairlead.io/fairlead/e2e/kubetest"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/k8s/client"
	"fairlead.io/fairlead/k8s/informers"
)

// lively are times for a real API server; the rest as users have it.
var lively = informers.Timing{Absent: time.Second, Retry: 50 * time.Millisecond, RetryCap: 500 * time.Millisecond}

// readReal runs a source until stop is called.
func readReal(t *testing.T, c *rest.Config) (r *reading, stop func()) {
	t.Helper()
	a, err := client.New(c)
	if err != nil {
		t.Fatal(err)
	}
	r = &reading{log: &testkit.Log{}}
	if r.Source, err = informers.New(informers.Options{API: a, Logger: slog.New(slog.NewTextHandler(r.log, nil)), Timing: lively}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = r.Run(ctx) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return r, stop
}

func loadBalancer(name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, ExternalIPs: []string{"203.0.113.7"}, Ports: []corev1.ServicePort{{Port: 80}}}}
}

// A real API server, through what it and its permissions go through in a life.
func TestARealAPIServer(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t, kubetest.Options{NoControllers: true})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	inDefault := c.Client().CoreV1().Services("default")
	add := func(name string) string {
		t.Helper()
		s, err := inDefault.Create(ctx, loadBalancer(name), metav1.CreateOptions{})
		check(err)
		return string(s.UID)
	}
	remove := func(name string) {
		t.Helper()
		check(inDefault.Delete(ctx, name, metav1.DeleteOptions{}))
	}
	_, err := c.Node(ctx, "n1", nil, netip.MustParseAddr("192.0.2.1"))
	check(err)
	kubeSystem, err := c.Client().CoreV1().Namespaces().Get(ctx, "kube-system", metav1.GetOptions{})
	check(err)
	r, stop := readReal(t, c.Config())

	outer := t
	t.Run("everything-is-listed-and-watched", func(t *testing.T) {
		w := r.until(t, "complete", func(w world.World) bool { return w.Complete && len(w.Nodes) == 1 })
		if w.Cluster != string(kubeSystem.UID) || !w.WholeCluster || find(w, "kubernetes") == nil || len(w.Problems) != 0 {
			t.Errorf("got %+v", w)
		}
		uid := add("web")
		r.until(t, "there", hasService("web"))
		remove("web")
		w = r.until(t, "gone", func(w world.World) bool { return find(w, "web") == nil })
		if len(w.Deleted) != 1 || w.Deleted[0].UID != uid || w.Deleted[0].Version == 0 {
			t.Errorf("evidence %+v", w.Deleted)
		}
	})

	t.Run("the-config-maps-of-the-old-system-are-read", func(t *testing.T) {
		for name, key := range map[string]string{"kube-gobgp-cfg": "config_bgp.toml", "kube-iprule-cfg": "SWITCH", "unrelated": "x"} {
			_, err := c.Client().CoreV1().ConfigMaps("kube-system").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name},
				Data: map[string]string{key: "value"}}, metav1.CreateOptions{})
			check(err)
		}
		r.until(t, "there", func(w world.World) bool { return len(w.ConfigMaps) == 2 })
	})

	t.Run("a-list-beside-the-watch-has-its-own-version", func(t *testing.T) {
		before := view(t, r.World(), world.KindNode)
		add("other") // raises the server's version, not that of any Node
		r.Relist(world.KindNode)
		r.until(t, "listed", func(w world.World) bool {
			v := view(t, w, world.KindNode)
			return v.Lists > before.Lists && v.Version > before.Version && v.ListAge < before.ListAge+time.Second
		})
	})

	t.Run("a-server-that-is-away-removes-nothing", func(t *testing.T) {
		add("stays")
		r.until(t, "there", hasService("stays"))
		c.Kill()
		w := r.until(t, "told", func(w world.World) bool { return problem(w, "cannot be reached", "connection refused") })
		if w.Complete || find(w, "stays") == nil || len(w.Nodes) != 1 {
			t.Errorf("got %+v", w)
		}
		check(c.Start(ctx))
		w = r.until(t, "back", complete)
		if find(w, "stays") == nil || len(w.Problems) != 0 {
			t.Errorf("services %v, problems %v", w.Services, w.Problems)
		}
		add("after")
		r.until(t, "going on", hasService("after"))
	})

	t.Run("what-went-while-we-were-down-is-absent-and-nothing-more", func(t *testing.T) {
		stop()
		remove("stays")
		r, stop = readReal(outer, c.Config())
		w := r.until(t, "complete", complete)
		if find(w, "stays") != nil || find(w, "after") == nil || len(w.Deleted) != 0 {
			t.Errorf("services %v, evidence %v", w.Services, w.Deleted)
		}
	})

	t.Run("definitions-are-picked-up-and-let-go", func(t *testing.T) {
		d, err := dynamic.NewForConfig(c.Config())
		check(err)
		crds := d.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
		_, err = crds.Create(ctx, definition("ipaddresspools", "IPAddressPool"), metav1.CreateOptions{})
		check(err)
		poolsOf := d.Resource(schema.GroupVersionResource{Group: "metallb.io", Version: "v1beta1", Resource: "ipaddresspools"}).Namespace("default")
		made := &unstructured.Unstructured{Object: object{"apiVersion": "metallb.io/v1beta1", "kind": "IPAddressPool",
			"metadata": object{"name": "first"}, "spec": object{"addresses": []any{"203.0.113.0/28"}}}}
		testkit.Eventually(t, "the definition takes effect", func() error {
			_, err := poolsOf.Create(ctx, made, metav1.CreateOptions{})
			return err
		})
		seen := r.until(t, "a pool", func(w world.World) bool { return len(w.Pools) == 1 && w.Complete })
		if !seen.Pools[0].OnlyAdvertised {
			t.Error("it is not known to be of MetalLB's group")
		}
		check(poolsOf.Delete(ctx, "first", metav1.DeleteOptions{}))
		w := r.until(t, "without it", func(w world.World) bool { return len(w.Pools) == 0 })
		if n := len(w.Deleted); n != 1 || w.Deleted[0].ID != (world.ID{Name: "first"}) {
			t.Errorf("evidence %v", w.Deleted)
		}
		check(crds.Delete(ctx, "ipaddresspools.metallb.io", metav1.DeleteOptions{}))
		r.until(t, "complete without a definition", func(w world.World) bool {
			return w.Complete && view(t, w, world.KindPool).Version == 0
		})
	})

	t.Run("peers-that-nobody-converts-any-more-are-told-with-the-command-that-helps", func(t *testing.T) {
		d, err := dynamic.NewForConfig(c.Config())
		check(err)
		crds := d.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
		is, err := crds.Create(ctx, definition("bgppeers", "BGPPeer"), metav1.CreateOptions{})
		check(err)
		peers := d.Resource(schema.GroupVersionResource{Group: "metallb.io", Version: "v1beta1", Resource: "bgppeers"}).Namespace("kube-system")
		made := &unstructured.Unstructured{Object: object{"apiVersion": "metallb.io/v1beta1", "kind": "BGPPeer",
			"metadata": object{"name": "tor"}, "spec": object{"myASN": int64(64512), "peerASN": int64(64513), "peerAddress": "192.0.2.9"}}}
		testkit.Eventually(t, "the definition takes effect", func() error {
			_, err := peers.Create(ctx, made, metav1.CreateOptions{})
			return err
		})
		r.until(t, "a peer", func(w world.World) bool { return len(w.Peers) == 1 && w.Complete })

		// As newer releases of MetalLB have it, whose controller is gone.
		versions, _, err := unstructured.NestedSlice(is.Object, "spec", "versions")
		check(err)
		newer := runtime.DeepCopyJSON(versions[0].(object))
		newer["name"], versions[0].(object)["storage"] = "v1beta2", false
		patch, err := json.Marshal(object{"spec": object{"versions": []any{versions[0], newer}, "conversion": object{
			"strategy": "Webhook", "webhook": object{"conversionReviewVersions": []any{"v1"}, "clientConfig": object{
				"service": object{"namespace": "metallb-system", "name": "metallb-webhook-service", "path": "/convert"}}}}}})
		check(err)
		_, err = crds.Patch(ctx, "bgppeers.metallb.io", types.MergePatchType, patch, metav1.PatchOptions{})
		check(err)
		stop()
		r, stop = readReal(outer, c.Config())
		w := r.until(t, "told", func(w world.World) bool {
			return problem(w, "bgppeers", "the conversion webhook of metallb.io", "kubectl patch crd bgppeers.metallb.io --type=merge -p '")
		})
		if w.Complete || len(w.Peers) > 0 {
			t.Errorf("peers %v", w.Peers)
		}
		for _, p := range w.Problems {
			if _, said, found := strings.Cut(p.Remedy, "--type=merge -p '"); found {
				said, _, _ = strings.Cut(said, "'")
				_, err = crds.Patch(ctx, "bgppeers.metallb.io", types.MergePatchType, []byte(said), metav1.PatchOptions{})
				check(err)
			}
		}
		w = r.until(t, "read", func(w world.World) bool { return w.Complete && len(w.Peers) == 1 })
		if p := w.Peers[0]; p.Address != netip.MustParseAddr("192.0.2.9") || len(w.Problems) > 0 {
			t.Errorf("peer %+v, problems %v", p, w.Problems)
		}
		check(crds.Delete(ctx, "bgppeers.metallb.io", metav1.DeleteOptions{}))
		r.until(t, "without", func(w world.World) bool { return w.Complete && len(w.Peers) == 0 })
	})

	t.Run("too-small-an-RBAC-is-one-line-and-its-grant-is-picked-up", func(t *testing.T) {
		rules := []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"services", "configmaps"}, Verbs: []string{"list", "watch"}},
			{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: []string{"list", "watch"}},
			{APIGroups: []string{""}, Resources: []string{"namespaces"}, ResourceNames: []string{"kube-system"}, Verbs: []string{"get"}},
		}
		role, err := c.Client().RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "small"}, Rules: rules}, metav1.CreateOptions{})
		check(err)
		_, err = c.Client().RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "small"},
			RoleRef:  rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "small"},
			Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: "rbac.authorization.k8s.io", Name: "reader"}}}, metav1.CreateOptions{})
		check(err)
		config, err := c.ConfigFor("reader")
		check(err)
		small, _ := readReal(t, config)
		w := small.until(t, "told", func(w world.World) bool {
			return len(w.Services) > 0 && view(t, w, world.KindPool).Complete && problem(w, "list nodes is forbidden", `User "reader" cannot list resource "nodes"`, "allow list and watch of nodes")
		})
		if w.Complete || len(w.Problems) != 1 || !view(t, w, world.KindService).Complete || !view(t, w, world.KindPool).Complete {
			t.Errorf("problems %v, views %+v", w.Problems, w.Kinds)
		}
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list", "watch"}})
		_, err = c.Client().RbacV1().ClusterRoles().Update(ctx, role, metav1.UpdateOptions{})
		check(err)
		small.until(t, "complete", complete)
		if n := small.log.Count("list nodes is forbidden"); n != 2 { // its beginning and its end
			t.Errorf("%d lines about it", n)
		}
	})
}

// definition is a CustomResourceDefinition of MetalLB's group that takes any spec.
func definition(plural, kind string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: object{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": object{"name": plural + ".metallb.io"},
		"spec": object{"group": "metallb.io", "scope": "Namespaced", "names": object{"plural": plural, "kind": kind},
			"versions": []any{object{"name": "v1beta1", "served": true, "storage": true, "schema": object{"openAPIV3Schema": object{
				"type": "object", "properties": object{"spec": object{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}}}}}
}
