// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	v1 "fairlead.io/fairlead/k8s/api/lbcf/v1"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
	"fairlead.io/fairlead/k8s/client"
)

// API is what this package asks of an API server.
type API interface {
	// Do carries out a write and gives what the object is like then; what was deleted is given as it was. What it is
	// given belongs to the caller.
	Do(ctx context.Context, w *Write) (Object, error)
	// Tell creates an Event.
	Tell(ctx context.Context, e *corev1.Event) error
	// Count has an Event count further: e's count and when it was told last.
	Count(ctx context.Context, e *corev1.Event) error
}

// manager is who we are to the API server as an owner of fields.
const manager = "fairlead"

// Kubernetes is an API server. Its account needs "create", "update", "patch" and "delete" on backendrecords, "patch"
// on loadbalancers and binds, "update" on the status of all five kinds and on the finalizers of backendgroups and binds, and
// "create" and "patch" on events of the core group.
type Kubernetes struct {
	beta, stable *client.Group
	events       client.CoreV1
}

// NewKubernetes makes the ways to the kinds.
func NewKubernetes(a *client.API) (*Kubernetes, error) {
	beta, err := a.CustomGroup(v1beta1.GroupVersion(), v1beta1.Kinds()...)
	if err != nil {
		return nil, err
	}
	stable, err := a.CustomGroup(v1.GroupVersion(), v1.Kinds()...)
	if err != nil {
		return nil, err
	}
	return &Kubernetes{beta, stable, a.Client.CoreV1()}, nil
}

// Do carries out a write.
func (k *Kubernetes) Do(ctx context.Context, w *Write) (Object, error) {
	switch w.Kind {
	case Record:
		return do[v1beta1.BackendRecord](ctx, k.beta, "backendrecords", w)
	case LoadBalancer:
		return do[v1beta1.LoadBalancer](ctx, k.beta, "loadbalancers", w)
	case Group:
		return do[v1beta1.BackendGroup](ctx, k.beta, "backendgroups", w)
	case Driver:
		return do[v1beta1.LoadBalancerDriver](ctx, k.beta, "loadbalancerdrivers", w)
	case Bind:
		return do[v1.Bind](ctx, k.stable, "binds", w)
	}
	return nil, fmt.Errorf("write %s: no kind of ours", w.Kind)
}

func do[T any, P interface {
	*T
	runtime.Object
	metav1.Object
}](ctx context.Context, g *client.Group, plural string, w *Write) (Object, error) {
	to := client.ResourceOf[T, P](g, plural, w.Namespace)
	given := w.Object.(P)
	got, err := given, error(nil)
	switch w.Verb {
	case Create:
		got, err = to.Create(ctx, given, metav1.CreateOptions{FieldManager: manager})
	case Update:
		got, err = to.Update(ctx, w.Name, given, metav1.UpdateOptions{FieldManager: manager})
	case UpdateStatus:
		got, err = to.Update(ctx, w.Name, given, metav1.UpdateOptions{FieldManager: manager}, "status")
	case Patch:
		var patch []byte
		if patch, err = patchOf(given); err == nil {
			got, err = to.Patch(ctx, w.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: manager})
		}
	case Delete:
		err = to.Delete(ctx, w.Name, *metav1.NewPreconditionDeleteOptions(string(given.GetUID())))
	}
	if err != nil {
		return nil, err
	}
	return got, nil
}

// patchOf is the merge patch of a Patch. No two objects have the same resourceVersion.
func patchOf(o metav1.Object) ([]byte, error) {
	finalizers := o.GetFinalizers()
	if finalizers == nil {
		finalizers = []string{}
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": o.GetResourceVersion(), "finalizers": finalizers, "annotations": o.GetAnnotations(),
	}})
}

// Tell creates an Event. It is one of the core group: LBCF's have a source and are counted.
func (k *Kubernetes) Tell(ctx context.Context, e *corev1.Event) error {
	_, err := k.events.Events(e.Namespace).Create(ctx, e, metav1.CreateOptions{FieldManager: manager})
	return err
}

// Count has an Event count further.
func (k *Kubernetes) Count(ctx context.Context, e *corev1.Event) error {
	patch, err := json.Marshal(map[string]any{"count": e.Count, "lastTimestamp": e.LastTimestamp})
	if err != nil {
		return fmt.Errorf("encode the count of event %s: %w", e.Name, err)
	}
	_, err = k.events.Events(e.Namespace).Patch(ctx, e.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: manager})
	return err
}
