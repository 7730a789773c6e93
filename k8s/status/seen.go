// SPDX-License-Identifier: Apache-2.0

package status

import (
	"bytes"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/fsm"
)

// Manager is the name under which the API server keeps which fields are ours.
const Manager = "fairlead"

// Finalizer keeps a deleted Service visible until its addresses are withdrawn, under the name that Kubernetes has for it.
const Finalizer = "service.kubernetes.io/load-balancer-cleanup"

// prefix begins the types of our conditions.
const prefix = "fairlead.io/"

// Types of our conditions.
const (
	// Allocated tells whether the Service has every address that it asks for.
	Allocated = prefix + "Allocated"
	// Announced tells whether each of its addresses is announced through at least one node.
	Announced = prefix + "Announced"
)

// Seen is what the API server last showed of one Service, as far as this package cares. It is immutable.
type Seen struct {
	ID              fsm.ServiceID
	UID             string
	ResourceVersion string
	// Generation is zero for servers that do not count the generations of Services.
	Generation int64
	// LoadBalancer says that spec.type is.
	LoadBalancer bool
	// InPart says that it is of another type and has node ports or spec.externalIPs, which the record may hold it for.
	InPart bool
	// Class is spec.loadBalancerClass, empty if unset.
	Class string
	// Foreign says that the Service is left to another service proxy by label.
	Foreign bool
	// Going says that it has a deletionTimestamp.
	Going bool
	// Ingress is status.loadBalancer.ingress.
	Ingress []corev1.LoadBalancerIngress
	// Owned says that field manager "fairlead" owns something of the status, and OwnsIngress that it owns Ingress.
	Owned, OwnsIngress bool
	// Finalized says that it has Finalizer by our hand, whether or not others set it as well.
	Finalized bool
	// Conditions are ours, by type.
	Conditions []metav1.Condition
}

const labelServiceProxy = "service.kubernetes.io/service-proxy-name"

// SeenOf takes from a Service what Seen keeps.
func SeenOf(o *corev1.Service) *Seen {
	s := &Seen{
		ID: fsm.ServiceID(o.Namespace + "/" + o.Name), UID: string(o.UID), ResourceVersion: o.ResourceVersion, Generation: o.Generation,
		LoadBalancer: o.Spec.Type == corev1.ServiceTypeLoadBalancer, Foreign: o.Labels[labelServiceProxy] != "",
		Going: o.DeletionTimestamp != nil,
	}
	ported := slices.ContainsFunc(o.Spec.Ports, func(p corev1.ServicePort) bool { return p.NodePort != 0 })
	s.InPart = !s.LoadBalancer && (ported || len(o.Spec.ExternalIPs) > 0)
	s.Owned, s.OwnsIngress = owned(o.ManagedFields)
	s.Finalized = slices.Contains(o.Finalizers, Finalizer) && finalized(o.ManagedFields)
	if c := o.Spec.LoadBalancerClass; c != nil {
		s.Class = *c
	}
	for _, in := range o.Status.LoadBalancer.Ingress {
		s.Ingress = append(s.Ingress, *in.DeepCopy())
	}
	s.Conditions = make([]metav1.Condition, 0, 2)
	for _, c := range o.Status.Conditions {
		if c.Type == Allocated || c.Type == Announced {
			c.Type, c.Status, c.Reason = word(c.Type), metav1.ConditionStatus(word(string(c.Status))), word(c.Reason)
			s.Conditions = append(s.Conditions, c)
		}
	}
	slices.SortFunc(s.Conditions, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
	return s
}

// word gives what conditions say as this package's own strings: the API server tells it of every Service anew.
func word(said string) string {
	for _, w := range []string{
		Allocated, Announced, string(metav1.ConditionTrue), string(metav1.ConditionFalse), string(metav1.ConditionUnknown), ReasonAllocated, ReasonAnnounced,
		ReasonUndecided, ReasonQuarantined, ReasonDeleting, ReasonNotAllocated, ReasonNoNextHop, ReasonNodesFailed, ReasonWaitingForNodes,
		ReasonWaitingForMembers, ReasonSilentNodes,
	} {
		if w == said {
			return w
		}
	}
	return said
}

// owned looks into the sets of fields that the API server keeps for each manager. A set names a field as a key of
// JSON, so that no value can be taken for one.
func owned(managed []metav1.ManagedFieldsEntry) (any, ingress bool) {
	for _, m := range managed {
		if m.Manager == Manager && m.Operation == metav1.ManagedFieldsOperationApply && m.Subresource == "status" && m.FieldsV1 != nil {
			any = true
			ingress = ingress || bytes.Contains(m.FieldsV1.GetRawBytes(), []byte(`"f:ingress":`))
		}
	}
	return any, ingress
}

// finalized tells whether a finalizer is ours: we apply no other field outside of the status.
func finalized(managed []metav1.ManagedFieldsEntry) bool {
	return slices.ContainsFunc(managed, func(m metav1.ManagedFieldsEntry) bool {
		return m.Manager == Manager && m.Operation == metav1.ManagedFieldsOperationApply && m.Subresource == "" && m.FieldsV1 != nil &&
			bytes.Contains(m.FieldsV1.GetRawBytes(), []byte(`"f:finalizers":`))
	})
}

// condition finds one of our conditions.
func (s *Seen) condition(kind string) *metav1.Condition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == kind {
			return &s.Conditions[i]
		}
	}
	return nil
}

// Options are the choices of an operator that the projection depends on.
type Options struct {
	// Class is the spec.loadBalancerClass that is ours.
	Class string
	// IgnoreUnclassed leaves Services without a class to somebody else.
	IgnoreUnclassed bool
	// ExternalIPs also shows the addresses of spec.externalIPs in status.loadBalancer. Listings then show them twice.
	ExternalIPs bool
	// Finalizer sets Finalizer on Services before an address of theirs is shown, and takes it away once they have none.
	// Without it, what was set is taken away.
	Finalizer bool
}

// ours tells whether a Service is ours to serve, by the same rule as the leader's plan.
func (o Options) ours(s *Seen) bool {
	switch {
	case !s.LoadBalancer || s.Foreign:
		return false
	case s.Class == "":
		return !o.IgnoreUnclassed
	}
	return s.Class == o.Class
}
