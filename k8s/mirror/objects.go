// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	v1 "fairlead.io/fairlead/k8s/api/lbcf/v1"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

// Objects is what the API server last showed of the kinds, whole, kept by whoever watches them. Its methods may be
// called from any goroutine; what they give is nil for an object that is not there, and is not changed by either side.
type Objects interface {
	// Complete tells whether all objects of a kind were shown once. Before that, an object that is not there means
	// nothing, and none of its kind is written.
	Complete(k Kind) bool
	BackendRecord(namespace, name string) *v1beta1.BackendRecord
	LoadBalancer(namespace, name string) *v1beta1.LoadBalancer
	BackendGroup(namespace, name string) *v1beta1.BackendGroup
	Bind(namespace, name string) *v1.Bind
	Driver(namespace, name string) *v1beta1.LoadBalancerDriver
	// Names lists the objects of a kind, in any order.
	Names(k Kind) []Key
	// Follow has notify called after every change of an object, until stop is called. It must not block, and notify
	// does not. A kind that became complete need not be told.
	Follow(notify func(Key)) (stop func())
}

// objectOf gives an object of any kind; nil for none.
func objectOf(o Objects, k Key) Object {
	switch k.Kind {
	case Record:
		return present(o.BackendRecord(k.Namespace, k.Name))
	case LoadBalancer:
		return present(o.LoadBalancer(k.Namespace, k.Name))
	case Group:
		return present(o.BackendGroup(k.Namespace, k.Name))
	case Bind:
		return present(o.Bind(k.Namespace, k.Name))
	case Driver:
		return present(o.Driver(k.Namespace, k.Name))
	}
	return nil
}

// present keeps a nil pointer from becoming an Object.
func present[T any, P interface {
	*T
	Object
}](o P) Object {
	if o == nil {
		return nil
	}
	return o
}
