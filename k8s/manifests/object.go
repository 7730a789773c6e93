// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"cmp"
	"fmt"
	"iter"
	"strings"

	"fairlead.io/fairlead/fsm/world"
)

// kindEndpoints is the legacy form of endpoints. It has names of its own, since a slice may have the same.
const kindEndpoints world.Kind = "Endpoints"

// object is one Kubernetes object of a file. There are very many, so that it has nothing that its value tells.
type object struct {
	// is a pointer to a canonical value of a type of fsm/world, or a *beside where that does not tell which object it is, or something
	// is wrong with it. Worlds list these very values, so that everything is there once. Nobody writes to them.
	is   any
	line int32
}

// beside is what few objects have beside their value.
type beside struct {
	// value is a pointer to one of fsm/world, or for kindEndpoints an []*world.EndpointSlice; nil if the object cannot be used.
	value    any
	ref      world.Ref
	problems []world.Problem
}

func (o *object) beside() *beside {
	b, _ := o.is.(*beside)
	return b
}

// value is what the object adds to the World; see beside.
func (o *object) value() any {
	if b := o.beside(); b != nil {
		return b.value
	}
	return o.is
}

func (o *object) usable() bool { return o != nil && o.value() != nil }

// values yields what the object adds to the World, as pointers to values.
func (o *object) values(yield func(any) bool) { valuesOf(o.value())(yield) }

func valuesOf(value any) iter.Seq[any] {
	return func(yield func(any) bool) {
		switch v := value.(type) {
		case nil:
		case []*world.EndpointSlice:
			for _, slice := range v {
				if !yield(slice) {
					return
				}
			}
		default:
			yield(v)
		}
	}
}

func (o *object) ref() world.Ref {
	if b := o.beside(); b != nil {
		return b.ref
	}
	return refOf(o.is).Ref
}

func (o *object) problems() []world.Problem {
	if b := o.beside(); b != nil {
		return b.problems
	}
	return nil
}

// key names an object whatever its UID: a file may hold one life of it only.
type key struct {
	kind world.Kind
	id   world.ID
}

func (o *object) key() key { return keyOf(o.ref()) }

func keyOf(r world.Ref) key { return key{r.Kind, r.ID} }

func (k key) compare(o key) int {
	return cmp.Or(strings.Compare(string(k.kind), string(o.kind)), k.id.Compare(o.id))
}

// refOf names a value of the World; How is left to the caller.
func refOf(value any) world.Deletion {
	switch v := value.(type) {
	case *world.Service:
		return world.Deletion{Ref: v.Ref(world.KindService)}
	case *world.EndpointSlice:
		return world.Deletion{Ref: v.Ref(world.KindEndpointSlice), Service: v.Service()}
	case *world.Node:
		return world.Deletion{Ref: v.Ref(world.KindNode)}
	case *world.Pool:
		return world.Deletion{Ref: v.Ref(world.KindPool)}
	case *world.Peer:
		return world.Deletion{Ref: v.Ref(world.KindPeer)}
	case *world.Advertisement:
		return world.Deletion{Ref: v.Ref(world.KindAdvertisement)}
	case *world.L2Advertisement:
		return world.Deletion{Ref: v.Ref(world.KindL2Advert)}
	case *world.AddressPolicy:
		return world.Deletion{Ref: v.Ref(world.KindPolicy)}
	case *world.Namespace:
		return world.Deletion{Ref: v.Ref(world.KindNamespace)}
	case *world.BFDProfile:
		return world.Deletion{Ref: v.Ref(world.KindBFDProfile)}
	case *world.Community:
		return world.Deletion{Ref: v.Ref(world.KindCommunity)}
	case *world.ConfigMap:
		return world.Deletion{Ref: v.Ref(world.KindConfigMap)}
	case *world.Driver:
		return world.Deletion{Ref: v.Ref(world.KindDriver)}
	case *world.OutsideBalancer:
		return world.Deletion{Ref: v.Ref(world.KindLoadBalancer)}
	case *world.BackendGroup:
		return world.Deletion{Ref: v.Ref(world.KindBackendGroup)}
	case *world.Bind:
		return world.Deletion{Ref: v.Ref(world.KindBind)}
	case *world.BackendRecord:
		return world.Deletion{Ref: v.Ref(world.KindBackendRecord)}
	case *world.Pod:
		return world.Deletion{Ref: v.Ref(world.KindPod)}
	case *world.BalancingPolicy:
		return world.Deletion{Ref: v.Ref(world.KindBalancingPolicy)}
	case *world.LocalRedirectPolicy:
		return world.Deletion{Ref: v.Ref(world.KindLocalRedirect)}
	}
	panic(fmt.Sprintf("manifests: conversion made a %T", value))
}
