// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"log/slog"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"fairlead.io/fairlead/e2e/kubetest"
	v1 "fairlead.io/fairlead/k8s/api/lbcf/v1"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
	"fairlead.io/fairlead/k8s/cabundle"
	"fairlead.io/fairlead/k8s/client"
	"fairlead.io/fairlead/k8s/mirror"
)

// showOutside writes to objects of LBCF's kinds all that the projection of outside load balancers writes.
func showOutside(t *testing.T, api *client.API) {
	t.Helper()
	k, err := mirror.NewKubernetes(api)
	if err != nil {
		t.Fatal(err)
	}
	write := func(verb mirror.Verb, kind mirror.Kind, name string, o mirror.Object) mirror.Object {
		t.Helper()
		got, err := k.Do(t.Context(), &mirror.Write{Verb: verb, Key: mirror.Key{Kind: kind, Namespace: o.GetNamespace(), Name: name}, Object: o})
		if err != nil {
			t.Fatalf("%s %s %s: %v", verb, kind, name, err)
		}
		return got
	}
	beta, err := api.CustomGroup(v1beta1.GroupVersion(), v1beta1.Kinds()...)
	if err != nil {
		t.Fatal(err)
	}
	stable, err := api.CustomGroup(v1.GroupVersion(), v1.Kinds()...)
	if err != nil {
		t.Fatal(err)
	}
	group, bind := stored[v1beta1.BackendGroup](t, beta, "backendgroups"), stored[v1.Bind](t, stable, "binds")
	of := func(namespace, owner, kind, version string, uid types.UID) *v1beta1.BackendRecord {
		yes := true
		return &v1beta1.BackendRecord{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shown", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "lbcf.tkestack.io/" + version, Kind: kind, Name: owner, UID: uid, Controller: &yes, BlockOwnerDeletion: &yes},
		}}}
	}
	write(mirror.Create, mirror.Record, "shown", of("default", bind.Name, "Bind", "v1", bind.UID)) // elsewhere, to be told from the other one
	record := write(mirror.Create, mirror.Record, "shown", of("kube-system", group.Name, "BackendGroup", "v1beta1", group.UID))
	record = write(mirror.Update, mirror.Record, "shown", record)
	record = write(mirror.UpdateStatus, mirror.Record, "shown", record)
	record = write(mirror.Patch, mirror.Record, "shown", record)
	write(mirror.Delete, mirror.Record, "shown", record)
	write(mirror.UpdateStatus, mirror.Driver, "lbcf", stored[v1beta1.LoadBalancerDriver](t, beta, "loadbalancerdrivers"))
	write(mirror.UpdateStatus, mirror.Group, "lbcf", group)
	lb := write(mirror.UpdateStatus, mirror.LoadBalancer, "lbcf", stored[v1beta1.LoadBalancer](t, beta, "loadbalancers"))
	write(mirror.Patch, mirror.LoadBalancer, "lbcf", lb)
	write(mirror.Patch, mirror.Bind, "lbcf", write(mirror.UpdateStatus, mirror.Bind, "lbcf", bind))
	e := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: "lbcf.1", Namespace: "kube-system"},
		InvolvedObject: corev1.ObjectReference{APIVersion: "lbcf.tkestack.io/v1beta1", Kind: "LoadBalancer", Namespace: "kube-system", Name: "lbcf"},
		Reason:         "SuccEnsureLoadBalancer", Type: corev1.EventTypeNormal, Count: 1, LastTimestamp: metav1.NewTime(time.Unix(1e9, 0)),
	}
	if err := k.Tell(t.Context(), e); err != nil {
		t.Error(err)
	}
	e.Count++
	if err := k.Count(t.Context(), e); err != nil {
		t.Error(err)
	}
}

// stored reads one of the objects that some wrote.
func stored[T any, P interface {
	*T
	mirror.Object
}](t *testing.T, of *client.Group, resource string) P {
	t.Helper()
	o, err := client.ResourceOf[T, P](of, resource, "kube-system").Get(t.Context(), "lbcf", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// trust has the API server trust members in the configurations that are installed.
func trust(t *testing.T, c *kubetest.Cluster, api *client.API) {
	t.Helper()
	newApplier(t, c).apply(t, manifests(t, "components/admission/webhooks.yaml")...)
	keeper, err := cabundle.New(cabundle.Options{
		API: api, Bundle: func() ([]byte, error) { return c.Config().CAData, nil }, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := keeper.Look(t.Context()); err != nil {
		t.Error(err)
	}
}
