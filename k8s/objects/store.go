// SPDX-License-Identifier: Apache-2.0

// Package objects keeps what webhook calls of drivers and admission need of Kubernetes objects beside the World: LBCF's
// objects as they are typed, Pods and Services as drivers are given them, and the addresses of Nodes.
//
// A Store is filled by the source (package informers), whatever member leads. What it hands out is never changed; a View
// of it stays as it was at its moment. It decides nothing. Start reading at Store.
package objects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/admission"
	v1 "fairlead.io/fairlead/k8s/api/lbcf/v1"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

// Store keeps objects by kind and name. Its methods may be called from any goroutine.
type Store struct {
	mu     sync.RWMutex
	listed map[world.Kind]bool

	drivers   table[*v1beta1.LoadBalancerDriver]
	balancers table[*v1beta1.LoadBalancer]
	groups    table[*v1beta1.BackendGroup]
	records   table[*v1beta1.BackendRecord]
	binds     table[*v1.Bind]

	pods     map[world.ID]manifest
	services map[world.ID]manifest
	nodes    map[world.ID]manifest // their addresses

	followers followers
}

// New returns an empty store.
func New() *Store {
	return &Store{listed: map[world.Kind]bool{}, pods: map[world.ID]manifest{}, services: map[world.ID]manifest{}, nodes: map[world.ID]manifest{}}
}

// Keep makes of an object what the store holds of it: nil if that is nothing, or what nobody can read.
func (s *Store) Keep(kind world.Kind, o runtime.Object) any {
	switch kind {
	case world.KindDriver:
		return typed[v1beta1.LoadBalancerDriver](o)
	case world.KindLoadBalancer:
		return typed[v1beta1.LoadBalancer](o)
	case world.KindBackendGroup:
		return typed[v1beta1.BackendGroup](o)
	case world.KindBackendRecord:
		return typed[v1beta1.BackendRecord](o)
	case world.KindBind:
		return typed[v1.Bind](o)
	}
	if m, ok := manifestOf(o); ok {
		return m
	}
	return nil
}

// Set takes in what Keep made of an object. One of which nothing could be made is not there.
func (s *Store) Set(kind world.Kind, id world.ID, kept any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.changed(kind, id)
	switch o := kept.(type) {
	case *v1beta1.LoadBalancerDriver:
		s.drivers.set(id, o)
	case *v1beta1.LoadBalancer:
		s.balancers.set(id, o)
	case *v1beta1.BackendGroup:
		s.groups.set(id, o)
	case *v1beta1.BackendRecord:
		s.records.set(id, o)
	case *v1.Bind:
		s.binds.set(id, o)
	case manifest:
		if of := s.manifests(kind); of != nil {
			of[id] = o
		}
	default:
		s.delete(kind, id)
	}
}

// Delete takes in that an object is gone.
func (s *Store) Delete(kind world.Kind, id world.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.changed(kind, id)
	s.delete(kind, id)
}

func (s *Store) delete(kind world.Kind, id world.ID) {
	switch kind {
	case world.KindDriver:
		s.drivers.delete(id)
	case world.KindLoadBalancer:
		s.balancers.delete(id)
	case world.KindBackendGroup:
		s.groups.delete(id)
	case world.KindBackendRecord:
		s.records.delete(id)
	case world.KindBind:
		s.binds.delete(id)
	default:
		delete(s.manifests(kind), id)
	}
}

func (s *Store) manifests(kind world.Kind) map[world.ID]manifest {
	switch kind {
	case world.KindPod:
		return s.pods
	case world.KindService:
		return s.services
	case world.KindNode:
		return s.nodes
	}
	return nil
}

// Listed takes in whether every object of a kind was told.
func (s *Store) Listed(kind world.Kind, whole bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed[kind] = whole
}

// admitted are the kinds of which a View holds everything.
func admitted() []world.Kind {
	return []world.Kind{world.KindDriver, world.KindLoadBalancer, world.KindBackendGroup, world.KindBackendRecord, world.KindBind}
}

// errUnlisted is that not everything was told.
var errUnlisted = errors.New("they have not been listed yet; try again in a moment")

// View is what is stored at this moment of LBCF's kinds. It is an error before all of them were listed.
func (s *Store) View(context.Context) (admission.View, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, kind := range admitted() {
		if !s.listed[kind] {
			return nil, fmt.Errorf("look at stored %s objects: %w", kind, errUnlisted)
		}
	}
	return &view{
		drivers: s.drivers.snapshot(), balancers: s.balancers.snapshot(), groups: s.groups.snapshot(),
		records: s.records.snapshot(), binds: s.binds.snapshot(),
	}, nil
}

// Pod gives one life of a pod as JSON, without kind, apiVersion and managedFields; false if it is not there. It is not to be
// changed. An empty UID stands for any life.
func (s *Store) Pod(namespace, name, uid string) (json.RawMessage, bool) {
	m, ok := s.manifest(world.KindPod, world.ID{Namespace: namespace, Name: name})
	if !ok || uid != "" && m.uid != uid {
		return nil, false
	}
	return m.text, true
}

// Unavailable tells why a pod gets no address now; empty if it gets one, or if there is none.
func (s *Store) Unavailable(namespace, name string) string {
	m, _ := s.manifest(world.KindPod, world.ID{Namespace: namespace, Name: name})
	return m.unavailable
}

// Service gives a Service of type NodePort as Pod gives a pod. Others are not kept.
func (s *Store) Service(namespace, name string) (json.RawMessage, bool) {
	m, ok := s.manifest(world.KindService, world.ID{Namespace: namespace, Name: name})
	return m.text, ok
}

// NodeAddresses gives a Node's status.addresses as a JSON list, as they are there; false if there is no such Node. They are
// not to be changed.
func (s *Store) NodeAddresses(name string) (json.RawMessage, bool) {
	m, ok := s.manifest(world.KindNode, world.ID{Name: name})
	return m.text, ok
}

func (s *Store) manifest(kind world.Kind, id world.ID) (manifest, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	m, ok := s.manifests(kind)[id]
	return m, ok
}

// sorted gives the names of a map in order.
func sorted[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
