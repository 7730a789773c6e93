// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// Change is one step in the life of an object, as it truly happened. Objects are not to be changed.
type Change struct {
	At      time.Duration
	Version uint64
	By      string
	Verb    string // "create", "update", "status", "delete"
	Before  Object // nil if it was not there
	After   Object // nil if it is not there any more
}

// History gives all that ever happened to an object, in order of time. A backup that was restored is a step like any
// other, by "etcd"; versions may run back there.
func (s *Server) History(kind, namespace, name string) (out []Change) {
	for _, c := range s.chronicle {
		if c.resource.kind == kind && c.key == (key{namespace, name}) {
			out = append(out, Change{c.at, c.version, c.by, c.verb, c.before, c.after})
		}
	}
	return out
}

// Absent tells whether there was a time between two, inclusive, at which an object was not there.
func (s *Server) Absent(kind, namespace, name string, from, to time.Duration) bool {
	there := false // just before from
	for _, c := range s.History(kind, namespace, name) {
		switch {
		case c.At > to:
			return !there
		case c.At < from:
			there = c.After != nil
		case !there || c.After == nil:
			return true
		}
	}
	return !there
}

// account is a short account of an object for people.
func account(o Object) string {
	var out []string
	switch o := o.(type) {
	case *corev1.Service:
		out = append(out, string(o.Spec.Type))
		for _, p := range o.Spec.Ports {
			out = append(out, fmt.Sprintf("%d/%s", p.Port, p.Protocol))
		}
		for _, in := range o.Status.LoadBalancer.Ingress {
			out = append(out, "shows "+in.IP+in.Hostname)
		}
	case *discoveryv1.EndpointSlice:
		out = append(out, o.Labels[discoveryv1.LabelServiceName])
		for _, e := range o.Endpoints {
			out = append(out, strings.Join(e.Addresses, ","))
		}
	case *corev1.Node:
		for _, c := range o.Status.Conditions {
			if c.Type == corev1.NodeReady {
				out = append(out, "ready "+string(c.Status))
			}
		}
	case *corev1.Pod:
		out = append(out, o.Spec.NodeName, o.Status.PodIP)
	}
	if o.GetDeletionTimestamp() != nil {
		out = append(out, "deleting")
	}
	return strings.Join(out, " ")
}
