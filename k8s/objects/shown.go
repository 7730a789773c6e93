// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"maps"
	"slices"

	"fairlead.io/fairlead/fsm/world"
	v1 "fairlead.io/fairlead/k8s/api/lbcf/v1"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
	"fairlead.io/fairlead/k8s/mirror"
)

// followers are those who are told of every change of an object of LBCF's kinds.
type followers struct {
	last int
	by   map[int]func(mirror.Key)
}

// Complete tells whether every object of a kind was told.
func (s *Store) Complete(k mirror.Kind) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.listed[world.Kind(k)]
}

// BackendRecord is the one of a name; nil if it is not there.
func (s *Store) BackendRecord(namespace, name string) *v1beta1.BackendRecord {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.records.get(namespace, name)
}

// LoadBalancer is the one of a name; nil if it is not there.
func (s *Store) LoadBalancer(namespace, name string) *v1beta1.LoadBalancer {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.balancers.get(namespace, name)
}

// BackendGroup is the one of a name; nil if it is not there.
func (s *Store) BackendGroup(namespace, name string) *v1beta1.BackendGroup {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.groups.get(namespace, name)
}

// Bind is the one of a name; nil if it is not there.
func (s *Store) Bind(namespace, name string) *v1.Bind {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.binds.get(namespace, name)
}

// Driver is the LoadBalancerDriver of a name; nil if it is not there.
func (s *Store) Driver(namespace, name string) *v1beta1.LoadBalancerDriver {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.drivers.get(namespace, name)
}

// Names lists the objects of a kind of LBCF's.
func (s *Store) Names(k mirror.Kind) []mirror.Key {
	s.mu.RLock()
	defer s.mu.RUnlock()
	switch k {
	case mirror.Record:
		return names(k, s.records.snap)
	case mirror.LoadBalancer:
		return names(k, s.balancers.snap)
	case mirror.Group:
		return names(k, s.groups.snap)
	case mirror.Bind:
		return names(k, s.binds.snap)
	case mirror.Driver:
		return names(k, s.drivers.snap)
	}
	return nil
}

func names[T any](k mirror.Kind, of snap[T]) (out []mirror.Key) {
	for _, namespace := range sorted(of.of) {
		for _, name := range sorted(of.of[namespace]) {
			out = append(out, mirror.Key{Kind: k, Namespace: namespace, Name: name})
		}
	}
	return out
}

// Follow has notify called after every change of an object of LBCF's kinds, until stop is called.
func (s *Store) Follow(notify func(mirror.Key)) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.followers.by == nil {
		s.followers.by = map[int]func(mirror.Key){}
	}
	s.followers.last++
	id := s.followers.last
	s.followers.by[id] = notify
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.followers.by, id)
	}
}

// changed tells those who follow; others' kinds are nothing to them.
func (s *Store) changed(kind world.Kind, id world.ID) {
	switch k := mirror.Kind(kind); k {
	case mirror.Record, mirror.LoadBalancer, mirror.Group, mirror.Bind, mirror.Driver:
		for _, one := range slices.Sorted(maps.Keys(s.followers.by)) {
			s.followers.by[one](mirror.Key{Kind: k, Namespace: id.Namespace, Name: id.Name})
		}
	}
}
