// SPDX-License-Identifier: Apache-2.0

package status

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"fairlead.io/fairlead/fsm"
)

// served is a Service as an API server keeps it: a much simpler one, with the rules of field ownership that the
// projection counts on. What TestRealServerOwnsAsTheModelDoes sees agrees with it.
type served struct {
	namespace, name, uid string
	version              int
	kind                 corev1.ServiceType
	class                string

	ingress []corev1.LoadBalancerIngress
	// owners are managers by field: "ingress" and the types of conditions. Ours applies, all others update.
	nodePort   int32    // of its port, if it has one
	external   []string // spec.externalIPs
	owners     map[string]map[string]bool
	conditions map[string]metav1.Condition
	finalizer  map[string]bool // who set Finalizer
	going      bool
}

func newServed(id string, kind corev1.ServiceType, class string) *served {
	return &served{
		namespace: "default", name: id, uid: "uid-default/" + id, version: 1, kind: kind, class: class,
		owners: map[string]map[string]bool{}, conditions: map[string]metav1.Condition{},
		finalizer: map[string]bool{},
	}
}

func (s *served) id() fsm.ServiceID { return fsm.ServiceID(s.namespace + "/" + s.name) }

// object is what a watch shows.
func (s *served) object() *corev1.Service {
	o := &corev1.Service{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.namespace, Name: s.name, UID: types.UID(s.uid), ResourceVersion: strconv.Itoa(s.version),
	}}
	o.Spec.Type, o.Spec.ExternalIPs = s.kind, s.external
	o.Spec.Ports = []corev1.ServicePort{{Port: 80, NodePort: s.nodePort}}
	if s.going {
		o.DeletionTimestamp = &metav1.Time{Time: noon}
	}
	if len(s.finalizer) > 0 {
		o.Finalizers = []string{Finalizer, "example.com/other"}
	}
	for m := range s.finalizer {
		how := metav1.ManagedFieldsOperationUpdate
		if m == Manager {
			how = metav1.ManagedFieldsOperationApply
		}
		o.ManagedFields = append(o.ManagedFields, metav1.ManagedFieldsEntry{Manager: m, Operation: how, FieldsV1: metav1.NewFieldsV1(
			`{"f:metadata":{"f:finalizers":{".":{},"v:\"service.kubernetes.io/load-balancer-cleanup\"":{}}}}`,
		)})
	}
	if s.class != "" {
		o.Spec.LoadBalancerClass = &s.class
	}
	o.Status.LoadBalancer.Ingress = s.ingress
	for _, kind := range slices.Sorted(maps.Keys(s.conditions)) {
		o.Status.Conditions = append(o.Status.Conditions, s.conditions[kind])
	}
	fields := map[string]map[string]any{}
	for field, managers := range s.owners {
		for m := range managers {
			if fields[m] == nil {
				fields[m] = map[string]any{}
			}
			if field == "ingress" {
				fields[m]["f:loadBalancer"] = map[string]any{"f:ingress": map[string]any{}}
			} else {
				fields[m]["f:conditions "+field] = map[string]any{}
			}
		}
	}
	for m, f := range fields {
		raw, err := json.Marshal(map[string]any{"f:status": f})
		if err != nil {
			panic(err)
		}
		how := metav1.ManagedFieldsOperationUpdate
		if m == Manager {
			how = metav1.ManagedFieldsOperationApply
		}
		o.ManagedFields = append(o.ManagedFields, metav1.ManagedFieldsEntry{Manager: m, Operation: how, Subresource: "status", FieldsV1: metav1.NewFieldsV1(string(raw))})
	}
	return o
}

func (s *served) seen() *Seen { return SeenOf(s.object()) }

// apply carries out a Write as server-side apply does, by force.
func (s *served) apply(w Write) {
	s.version++
	switch w.Finalizer {
	case SetFinalizer:
		if s.going {
			panic("an API server lets nobody add a finalizer to what is being deleted")
		}
		s.finalizer[Manager] = true
		return
	case LiftFinalizer:
		delete(s.finalizer, Manager)
		return
	}
	own := func(field string) {
		s.owners[field] = map[string]bool{Manager: true}
	}
	disown := func(field string) (last bool) {
		if !s.owners[field][Manager] {
			return false
		}
		delete(s.owners[field], Manager)
		return len(s.owners[field]) == 0
	}
	switch {
	case len(w.Ingress) > 0 && slices.EqualFunc(w.Ingress, s.ingress, sameIngress):
		if s.owners["ingress"] == nil {
			s.owners["ingress"] = map[string]bool{}
		}
		s.owners["ingress"][Manager] = true
	case len(w.Ingress) > 0:
		s.ingress = w.Ingress
		own("ingress")
	case disown("ingress"):
		s.ingress = nil
	}
	written := map[string]bool{}
	for _, c := range w.Conditions {
		written[c.Type] = true
		s.conditions[c.Type] = c
		own(c.Type)
	}
	for kind := range s.conditions {
		if !written[kind] && disown(kind) {
			delete(s.conditions, kind)
		}
	}
}

// update is another manager's write of the ingress.
func (s *served) update(manager string, ingress ...string) {
	s.version++
	var list []corev1.LoadBalancerIngress
	for _, ip := range ingress {
		list = append(list, corev1.LoadBalancerIngress{IP: ip})
	}
	if slices.EqualFunc(list, s.ingress, sameIngress) {
		return
	}
	s.ingress = list
	s.owners["ingress"] = map[string]bool{manager: true}
}

// turn changes spec.type and class; what is no LoadBalancer loses its ingress, whoever wrote it.
func (s *served) turn(kind corev1.ServiceType, class string) {
	s.version++
	s.kind, s.class = kind, class
	if kind != corev1.ServiceTypeLoadBalancer {
		s.ingress = nil
	}
}
