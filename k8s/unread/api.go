// SPDX-License-Identifier: Apache-2.0

package unread

import (
	"context"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/k8s/client"
)

// manager is the name under which the API server keeps that an Event is ours.
const manager = "fairlead"

// Kubernetes is an API server. Its account needs "create" on events of the group events.k8s.io.
type Kubernetes struct{ API *client.API }

// Tell creates an Event.
func (k Kubernetes) Tell(ctx context.Context, e *eventsv1.Event) error {
	_, err := k.API.Client.EventsV1().Events(e.Namespace).Create(ctx, e, metav1.CreateOptions{FieldManager: manager})
	return err
}
