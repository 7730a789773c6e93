// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Create makes an object, as by names who does: "user", "kubelet", a controller. It gives the object as the server
// keeps it, which is not to be changed. Errors are those of client-go (apierrors.IsAlreadyExists and so on).
func (s *Server) Create(by string, o Object) (Object, error) {
	r, err := s.resourceOf(o)
	if err != nil {
		return nil, err
	}
	o, f := s.create(s.store, r, o.DeepCopyObject().(Object), writer{by: by, manager: by, verb: "create"})
	return o, f.err()
}

// Update changes an object, but for its status where that is written by itself. With a resourceVersion in o, it
// fails if the object has changed since.
func (s *Server) Update(by string, o Object) (Object, error) {
	return s.put(o, writer{by: by, manager: by, verb: "update"})
}

// UpdateStatus changes the status of an object.
func (s *Server) UpdateStatus(by string, o Object) (Object, error) {
	return s.put(o, writer{by: by, manager: by, verb: "status", subresource: "status"})
}

func (s *Server) put(o Object, w writer) (Object, error) {
	r, err := s.resourceOf(o)
	if err != nil {
		return nil, err
	}
	o = o.DeepCopyObject().(Object)
	o, f := s.update(s.store, r, keyOf(o), w, func(Object) (Object, *failure) { return o, nil })
	return o, f.err()
}

// Change calls f with a copy of an object and updates it with what f made of it.
func (s *Server) Change(by, kind, namespace, name string, f func(Object)) (Object, error) {
	return s.edit(kind, key{namespace, name}, writer{by: by, manager: by, verb: "update"}, f)
}

// ChangeStatus is Change for the status.
func (s *Server) ChangeStatus(by, kind, namespace, name string, f func(Object)) (Object, error) {
	return s.edit(kind, key{namespace, name}, writer{by: by, manager: by, verb: "status", subresource: "status"}, f)
}

func (s *Server) edit(kind string, k key, w writer, f func(Object)) (Object, error) {
	r := s.byKind(kind)
	if r == nil {
		return nil, fmt.Errorf("kind %s: not served", kind)
	}
	o, failed := s.update(s.store, r, k, w, func(o Object) (Object, *failure) {
		f(o)
		return o, nil
	})
	return o, failed.err()
}

// Delete deletes an object. One with finalizers is marked, and goes with the last of them.
func (s *Server) Delete(by, kind, namespace, name string) error {
	return s.delete(by, kind, key{namespace, name}, 0)
}

// Terminate is how pods are deleted: it marks the pod, gives it grace to end, and leaves its deletion to the kubelet,
// that is to Delete.
func (s *Server) Terminate(by, namespace, name string, grace time.Duration) error {
	return s.delete(by, "Pod", key{namespace, name}, max(1, int64(grace/time.Second)))
}

func (s *Server) delete(by, kind string, k key, grace int64) error {
	r := s.byKind(kind)
	if r == nil {
		return fmt.Errorf("kind %s: not served", kind)
	}
	_, f := s.remove(s.store, r, k, by, metav1.Preconditions{}, grace)
	return f.err()
}

// Get gives an object as it truly is; nil if it is not there. It is not to be changed.
func (s *Server) Get(kind, namespace, name string) Object {
	if r := s.byKind(kind); r != nil {
		return s.store.get(r, key{namespace, name})
	}
	return nil
}

// List gives all objects of a kind as they truly are, in order of namespace and name. They are not to be changed.
func (s *Server) List(kind string) []Object {
	if r := s.byKind(kind); r != nil {
		return s.store.list(r)
	}
	return nil
}

// resourceOf finds the resource of an object by its kind, or by its type.
func (s *Server) resourceOf(o Object) (*resource, error) {
	gvk := o.GetObjectKind().GroupVersionKind()
	for _, r := range s.resources {
		switch {
		case r.reviewed, r.custom && !s.installed[r.GroupVersion.String()+"/"+r.name]:
		case r.custom && r.gvk() == gvk, !r.custom && fmt.Sprintf("%T", r.blank()) == fmt.Sprintf("%T", o):
			return r, nil
		}
	}
	return nil, fmt.Errorf("%T %s: not served", o, gvk)
}

// Watches is how many watches are open.
func (s *Server) Watches() int { return len(s.watchers) }

// Version is the newest resourceVersion.
func (s *Server) Version() uint64 { return s.store.version }

// Cluster is the UID of the namespace kube-system, by which clusters are told apart.
func (s *Server) Cluster() string {
	return string(s.store.get(s.namespaces, key{"", metav1.NamespaceSystem}).GetUID())
}

// Services gives the Services as they truly are, in order. They are not to be changed.
func (s *Server) Services() []*corev1.Service {
	all := s.store.list(s.services)
	out := make([]*corev1.Service, len(all))
	for i, o := range all {
		out[i] = o.(*corev1.Service)
	}
	return out
}

// Endpoint is one endpoint of a Service, as its EndpointSlices have it.
type Endpoint struct {
	Address string
	Node    string
	Pod     string // "namespace/name", empty if it is none
	Ready   bool
	Serving bool
	// Terminating says that its pod is about to end.
	Terminating bool
	Ports       []discoveryv1.EndpointPort
}

// Endpoints gives the endpoints of a Service, in order of slices and of their places in them.
func (s *Server) Endpoints(namespace, name string) (out []Endpoint) {
	for _, o := range s.List("EndpointSlice") {
		slice := o.(*discoveryv1.EndpointSlice)
		if slice.Namespace != namespace || slice.Labels[discoveryv1.LabelServiceName] != name {
			continue
		}
		for _, e := range slice.Endpoints {
			c := e.Conditions
			out = append(out, Endpoint{Address: e.Addresses[0], Node: orEmpty(e.NodeName), Pod: podOf(e.TargetRef), Ports: slice.Ports,
				Ready: c.Ready == nil || *c.Ready, Serving: c.Serving == nil && (c.Ready == nil || *c.Ready) || c.Serving != nil && *c.Serving,
				Terminating: c.Terminating != nil && *c.Terminating})
		}
	}
	return out
}

func orEmpty(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

func podOf(r *corev1.ObjectReference) string {
	if r == nil || r.Kind != "Pod" {
		return ""
	}
	return r.Namespace + "/" + r.Name
}
