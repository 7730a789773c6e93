// SPDX-License-Identifier: Apache-2.0

package policystatus

import (
	"context"
	"strings"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/api/balancing/v1beta1"
	"fairlead.io/fairlead/k8s/client"
)

// Manager is the name under which the API server keeps which fields are ours.
const Manager = "fairlead"

// Kubernetes is an API server. Its account needs "patch" on balancingpolicies/status and localredirectpolicies/status, and "create" on
// events of the group events.k8s.io.
type Kubernetes struct{ API *client.API }

// Write applies the status of w as that of Manager (server-side apply). The API server leaves alone what others own, and refuses if the
// policy is no longer as w was decided on.
func (k Kubernetes) Write(ctx context.Context, w *Write) (*Seen, error) {
	body, err := appliedFields(w)
	if err != nil {
		return nil, err
	}
	kind, name, _ := strings.Cut(string(w.ID), "/")
	force := true
	got, err := k.API.Dynamic.Resource(v1beta1.GroupVersion().WithResource(resources()[kind])).
		Patch(ctx, name, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: Manager, Force: &force}, "status")
	if err != nil {
		return nil, err
	}
	return SeenOf(world.Kind(kind), got), nil
}

// Tell creates an Event of the group events.k8s.io.
func (k Kubernetes) Tell(ctx context.Context, e *eventsv1.Event) error {
	_, err := k.API.Client.EventsV1().Events(e.Namespace).Create(ctx, e, metav1.CreateOptions{FieldManager: Manager})
	return err
}

func resources() map[string]string {
	return map[string]string{string(world.KindBalancingPolicy): "balancingpolicies", string(world.KindLocalRedirect): "localredirectpolicies"}
}

func kindOf(id fsm.PolicyID) string {
	kind, _, _ := strings.Cut(string(id), "/")
	return kind
}
