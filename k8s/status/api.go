// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"

	"fairlead.io/fairlead/fsm"
)

// API is what this package asks of an API server.
type API interface {
	// Write carries out a Write and gives what the Service is like then.
	Write(ctx context.Context, w Write) (*Seen, error)
	// Tell creates an Event.
	Tell(ctx context.Context, e *eventsv1.Event) error
}

// Kubernetes is an API server. Its account needs "patch" on services/status and "create" on events of the group
// events.k8s.io, and nothing else of this package's.
type Kubernetes struct {
	Services coreclient.ServicesGetter
	Events   eventsclient.EventsGetter
}

// Write applies the fields of w as those of Manager (server-side apply). The API server takes away what Manager owned
// and w lacks, leaves alone what others own, and refuses if the Service is no longer the one that w was decided on. It
// is forced, since pace.go decides how often to insist.
func (k Kubernetes) Write(ctx context.Context, w Write) (*Seen, error) {
	namespace, name, _ := strings.Cut(string(w.ID), "/")
	o := applycorev1.Service(name, namespace).WithUID(types.UID(w.UID)).WithResourceVersion(w.ResourceVersion)
	if len(w.Ingress) > 0 || len(w.Conditions) > 0 {
		o.WithStatus(statusOf(w))
	}
	got, err := k.Services.Services(namespace).ApplyStatus(ctx, o, metav1.ApplyOptions{FieldManager: Manager, Force: true})
	if err != nil {
		return nil, err
	}
	return SeenOf(got), nil
}

func statusOf(w Write) *applycorev1.ServiceStatusApplyConfiguration {
	status := applycorev1.ServiceStatus()
	if len(w.Ingress) > 0 {
		list := applycorev1.LoadBalancerStatus()
		for _, in := range w.Ingress {
			list.WithIngress(ingressOf(in))
		}
		status.WithLoadBalancer(list)
	}
	for _, c := range w.Conditions {
		condition := applymetav1.Condition().WithType(c.Type).WithStatus(c.Status).WithReason(c.Reason).
			WithMessage(c.Message).WithLastTransitionTime(c.LastTransitionTime)
		if c.ObservedGeneration != 0 {
			condition.WithObservedGeneration(c.ObservedGeneration)
		}
		status.WithConditions(condition)
	}
	return status
}

func ingressOf(in corev1.LoadBalancerIngress) *applycorev1.LoadBalancerIngressApplyConfiguration {
	out := applycorev1.LoadBalancerIngress()
	if in.IP != "" {
		out.WithIP(in.IP)
	}
	if in.Hostname != "" {
		out.WithHostname(in.Hostname)
	}
	if in.IPMode != nil {
		out.WithIPMode(*in.IPMode)
	}
	for _, port := range in.Ports {
		p := applycorev1.PortStatus().WithPort(port.Port).WithProtocol(port.Protocol)
		if port.Error != nil {
			p.WithError(*port.Error)
		}
		out.WithPorts(p)
	}
	return out
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
