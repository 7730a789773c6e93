// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"cmp"
	"strings"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/k8s/api/lbcf"
)

// Kind is a kind of object, as metrics name it.
type Kind string

// The kinds that are written.
const (
	Record       Kind = "BackendRecord"
	LoadBalancer Kind = "LoadBalancer"
	Group        Kind = "BackendGroup"
	Bind         Kind = "Bind"
	Driver       Kind = "LoadBalancerDriver"
)

// Kinds are all of them.
func Kinds() []Kind { return []Kind{Record, LoadBalancer, Group, Bind, Driver} }

// Key names an object.
type Key struct {
	Kind      Kind
	Namespace string
	Name      string
}

// ID is "namespace/name".
func (k Key) ID() string { return k.Namespace + "/" + k.Name }

func (k Key) compare(o Key) int {
	return cmp.Or(cmp.Compare(k.Kind, o.Kind), cmp.Compare(k.Namespace, o.Namespace), cmp.Compare(k.Name, o.Name))
}

func keyOf(k Kind, id string) Key {
	namespace, name, _ := strings.Cut(id, "/")
	return Key{k, namespace, name}
}

func recordKey(id fsm.BindingID) Key { return keyOf(Record, string(id)) }

// balancer is what an fsm.BalancerID says.
type balancer struct {
	Key
	UID string
	// Entry is the name of the load balancer in a Bind.
	Entry string
}

// balancerOf reads an id: "LoadBalancer/namespace/name/uid" or "Bind/namespace/name/uid/entry". It is false for others:
// those that BackendRecords alone know.
func balancerOf(id fsm.BalancerID) (balancer, bool) {
	p := strings.SplitN(string(id), "/", 5)
	switch {
	case len(p) == 4 && p[0] == string(LoadBalancer):
		return balancer{Key: Key{LoadBalancer, p[1], p[2]}, UID: p[3]}, true
	case len(p) == 5 && p[0] == string(Bind):
		return balancer{Key: Key{Bind, p[1], p[2]}, UID: p[3], Entry: p[4]}, true
	}
	return balancer{}, false
}

// id is the reverse of balancerOf.
func (b balancer) id() fsm.BalancerID {
	id := strings.Join([]string{string(b.Kind), b.Namespace, b.Name, b.UID}, "/")
	if b.Kind == Bind {
		id += "/" + b.Entry
	}
	return fsm.BalancerID(id)
}

// lbName is what BackendRecords call the load balancer.
func (b balancer) lbName() string {
	if b.Kind == Bind {
		return b.Entry
	}
	return b.Name
}

// owner is what Binding.Owner says: "kind/namespace/name/uid".
type owner struct {
	Key
	UID string
}

func ownerOf(text string) (owner, bool) {
	p := strings.SplitN(text, "/", 4)
	if len(p) != 4 || p[0] != string(Group) && p[0] != string(Bind) {
		return owner{}, false
	}
	return owner{Key{Kind(p[0]), p[1], p[2]}, p[3]}, true
}

// text is the reverse of ownerOf.
func (o owner) text() string {
	return strings.Join([]string{string(o.Kind), o.Namespace, o.Name, o.UID}, "/")
}

// driverName is the name of a driver as objects write it, given "namespace/name".
func driverName(driver string) string {
	_, name, _ := strings.Cut(driver, "/")
	return name
}

// markOf reads lbcf.AnnotationRecord; both are empty for a BackendRecord that is not marked.
func markOf(o Object) (group fsm.GroupID, uid string) {
	before, after, ok := strings.Cut(o.GetAnnotations()[lbcf.AnnotationRecord], "/")
	if !ok {
		return "", before
	}
	return fsm.GroupID(before), after
}

// finalizerOf is our finalizer of a kind. BackendGroups and LoadBalancerDrivers have none.
func finalizerOf(k Kind) string {
	if k == Record {
		return lbcf.FinalizerBackendRecord
	}
	return lbcf.FinalizerLoadBalancer
}
