// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/k8s/client"
)

// API is what this package asks of an API server.
type API interface {
	// Write carries out a Write and gives what the Service is like then.
	Write(ctx context.Context, w Write) (*Seen, error)
	// Tell creates an Event.
	Tell(ctx context.Context, e *eventsv1.Event) error
}

// Kubernetes is an API server. Its account needs "patch" on services/status and "create" on events of the group
// events.k8s.io, and nothing else of this package's; with Options.Finalizer, and until what it set is taken away, also
// "patch" on services.
type Kubernetes struct {
	Services client.CoreV1
	Events   client.EventsV1
}

// Write applies the fields of w as those of Manager (server-side apply). The API server takes away what Manager owned
// and w lacks, leaves alone what others own, and refuses if the Service is no longer the one that w was decided on. It
// is forced, since writes.Pace decides how often to insist.
func (k Kubernetes) Write(ctx context.Context, w Write) (*Seen, error) {
	namespace, name, _ := strings.Cut(string(w.ID), "/")
	part := []string{"status"}
	if w.Finalizer != KeepFinalizer {
		part = nil // of the Service itself, of which we apply nothing else
	}
	got, err := k.Services.Services(namespace).Apply(ctx, name, appliedFields(w), metav1.ApplyOptions{FieldManager: Manager, Force: true}, part...)
	if err != nil {
		return nil, err
	}
	return SeenOf(got), nil
}

// Tell creates an Event of the group events.k8s.io, where it has an action and a controller that can be selected by;
// `kubectl describe` shows it as any other.
func (k Kubernetes) Tell(ctx context.Context, e *eventsv1.Event) error {
	_, err := k.Events.Events(e.Namespace).Create(ctx, e, metav1.CreateOptions{FieldManager: Manager})
	return err
}

// reference names a Service in an Event.
func reference(id fsm.ServiceID, uid string) corev1.ObjectReference {
	namespace, name, _ := strings.Cut(string(id), "/")
	return corev1.ObjectReference{APIVersion: "v1", Kind: "Service", Namespace: namespace, Name: name, UID: types.UID(uid)}
}
