// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"fairlead.io/fairlead/sim/engine"
)

// key names an object of one resource.
type key struct{ namespace, name string }

func keyOf(o Object) key { return key{o.GetNamespace(), o.GetName()} }

func (k key) compare(o key) int {
	if c := strings.Compare(k.namespace, o.namespace); c != 0 {
		return c
	}
	return strings.Compare(k.name, o.name)
}

// change is one step of one object. Objects in it are never changed.
type change struct {
	at            time.Duration
	version       uint64
	resource      *resource
	key           key
	before, after Object // nil: not there
	gone          Object // of a deletion: the object as it last was, at the version of the deletion
	by, verb      string

	frames map[string][]byte // of a watch, encoded, by kind of event and encoding
}

// store is an etcd: every object of a cluster, and one sequence of versions.
type store struct {
	w         *engine.World
	epoch     time.Time
	stream    string // of randomness
	version   uint64
	compacted uint64 // what was before it cannot be asked for any more
	founded   uint64 // there is no cluster without what it was founded with
	log       []*change
	objects   map[*resource]map[key]Object
	sorted    map[*resource][]key
	// committed is told of every change, in order.
	committed func(*change)
}

func newStore(w *engine.World, epoch time.Time, stream string, version uint64) *store {
	return &store{w: w, epoch: epoch, stream: stream, version: version, compacted: version,
		objects: map[*resource]map[key]Object{}, sorted: map[*resource][]key{}, committed: func(*change) {}}
}

// now is the wall clock of the server, in seconds as objects have it.
func (s *store) now() metav1.Time {
	return metav1.NewTime(s.epoch.Add(s.w.Now()).UTC().Truncate(time.Second))
}

func (s *store) uid() types.UID {
	var b [16]byte
	r := s.w.Random(s.stream + "/uid")
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16]))
}

func (s *store) get(r *resource, k key) Object { return s.objects[r][k] }

// list gives the objects of a resource in order.
func (s *store) list(r *resource) []Object {
	keys, ok := s.sorted[r]
	if !ok {
		for k := range s.objects[r] {
			keys = append(keys, k)
		}
		slices.SortFunc(keys, key.compare)
		s.sorted[r] = keys
	}
	out := make([]Object, len(keys))
	for i, k := range keys {
		out[i] = s.objects[r][k]
	}
	return out
}

// listAt gives the objects of a resource as they were at a version.
func (s *store) listAt(r *resource, version uint64) []Object {
	if version >= s.version {
		return s.list(r)
	}
	then := map[key]Object{}
	for k, o := range s.objects[r] {
		then[k] = o
	}
	for i := len(s.log) - 1; i >= 0 && s.log[i].version > version; i-- {
		if c := s.log[i]; c.resource == r && c.before != nil {
			then[c.key] = c.before
		} else if c.resource == r {
			delete(then, c.key)
		}
	}
	out := make([]Object, 0, len(then))
	for _, o := range then {
		out = append(out, o)
	}
	slices.SortFunc(out, func(a, b Object) int { return keyOf(a).compare(keyOf(b)) })
	return out
}

// since gives the changes after a version, in order.
func (s *store) since(version uint64) []*change {
	n, _ := slices.BinarySearchFunc(s.log, version+1, func(c *change, v uint64) int {
		switch {
		case c.version < v:
			return -1
		case c.version > v:
			return 1
		}
		return 0
	})
	return s.log[n:]
}

// versionAt is the version that was current at a time, and no older than the cluster.
func (s *store) versionAt(at time.Duration) uint64 {
	for i := len(s.log) - 1; i >= 0; i-- {
		if s.log[i].at <= at {
			return max(s.log[i].version, s.founded)
		}
	}
	return s.founded
}

// commit makes after the object of a key; nil deletes. The store keeps after: nobody may change it any more.
func (s *store) commit(r *resource, k key, after Object, by, verb string) *change {
	s.version++
	c := &change{at: s.w.Now(), version: s.version, resource: r, key: k, before: s.get(r, k), after: after, by: by, verb: verb}
	version := strconv.FormatUint(s.version, 10)
	if after != nil {
		after.SetResourceVersion(version)
	} else {
		c.gone = c.before.DeepCopyObject().(Object)
		c.gone.SetResourceVersion(version)
	}
	s.set(r, k, after)
	s.log = append(s.log, c)
	s.committed(c)
	return c
}

func (s *store) set(r *resource, k key, o Object) {
	all := s.objects[r]
	if all == nil {
		all = map[key]Object{}
		s.objects[r] = all
	}
	if _, known := all[k]; known != (o != nil) {
		delete(s.sorted, r)
	}
	if o == nil {
		delete(all, k)
	} else {
		all[k] = o
	}
}

// compact makes everything before the present version unavailable.
func (s *store) compact() { s.compacted = s.version }

// pass lets versions go by for objects that are not modelled, such as leases.
func (s *store) pass(n uint64) { s.version += n }

// rewind brings a backup back: everything is as it was at a version, which is the present one again. It gives what
// that changed, as steps from the state before.
func (s *store) rewind(version uint64) []*change {
	var out []*change
	undone := map[*resource]map[key]bool{}
	for i := len(s.log) - 1; i >= 0 && s.log[i].version > version; i-- {
		c := s.log[i]
		if undone[c.resource] == nil {
			undone[c.resource] = map[key]bool{}
		}
		if !undone[c.resource][c.key] {
			undone[c.resource][c.key] = true
			out = append(out, &change{at: s.w.Now(), version: version, resource: c.resource, key: c.key, before: s.get(c.resource, c.key)})
		}
		s.set(c.resource, c.key, c.before)
	}
	s.log = slices.Clip(s.log[:len(s.log)-len(s.since(version))])
	s.version, s.compacted = version, min(s.compacted, version)
	for _, c := range out {
		c.after = s.get(c.resource, c.key)
	}
	slices.Reverse(out)
	return out
}
