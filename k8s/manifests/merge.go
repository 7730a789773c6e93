// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"fmt"
	"reflect"
	"slices"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/convert"
)

// key names an object whatever its UID: a file may hold one life of it only.
type key struct {
	kind world.Kind
	id   world.ID
}

// place is an object and the file that it stands in.
type place struct {
	*object
	file    string
	missing bool // the file is not there at the moment
}

// merged is what all files say together.
type merged struct {
	// inForce is the object that counts for each key: its newest usable form, or the last good one.
	inForce map[key]place
	// unusable are objects without any usable form so far.
	unusable map[key]place
	deleted  []world.Deletion
	problems []world.Problem
}

func newMerged() merged {
	return merged{inForce: map[key]place{}, unusable: map[key]place{}}
}

// update takes in what the files say now. If the folder was read without trouble since the last update, objects that
// are not there any more were seen to go.
func (m *merged) update(files map[string]*file, order []string, continuous bool) {
	candidates, keys := gather(files, order)
	before, present := m.inForce, m.present()
	m.inForce, m.unusable, m.problems = make(map[key]place, len(keys)), map[key]place{}, nil
	for _, k := range keys {
		m.choose(k, candidates[k], before[k])
	}
	m.noteDeleted(present, continuous)
	m.noteOverlaps()
}

func gather(files map[string]*file, order []string) (map[key][]place, []key) {
	candidates := map[key][]place{}
	var keys []key
	for _, name := range order {
		f := files[name]
		for i := range f.good.objects {
			o := &f.good.objects[i]
			k := key{o.ref.Kind, o.ref.ID}
			if candidates[k] == nil {
				keys = append(keys, k)
			}
			candidates[k] = append(candidates[k], place{o, name, !f.missing.IsZero()})
		}
	}
	return candidates, keys
}

// choose decides which form of an object counts. The file that it came from before goes first, so that a second
// definition changes nothing; a file that is just missing goes last.
func (m *merged) choose(k key, all []place, before place) {
	rank := func(p place) int {
		switch {
		case !p.usable():
			return 3
		case p.missing:
			return 2
		case p.file != before.file:
			return 1
		}
		return 0
	}
	best := slices.MinFunc(all, func(a, b place) int { return rank(a) - rank(b) })
	chosen := false
	for _, p := range all {
		switch {
		case !chosen && p.file == best.file && p.line == best.line:
			chosen = true
			m.problems = append(m.problems, p.problems...)
		case !p.usable():
			m.problems = append(m.problems, p.problems...)
		case !p.missing:
			m.problems = append(m.problems, world.Problem{Severity: world.Failed, File: p.file, Line: p.line, Object: p.ref,
				Why: fmt.Sprintf("defined in %s:%d already", best.file, best.line), Remedy: "remove one of them; until then the other one counts"})
		}
	}
	switch {
	case best.usable():
		m.inForce[k] = best
	case before.usable():
		m.inForce[k] = before
		m.problems = append(m.problems, world.Problem{Severity: world.Ignored, File: best.file, Line: best.line, Object: best.ref,
			Why: "its last good form stays in use"})
	default:
		m.unusable[k] = best
	}
}

// present is what the World holds, with the Service of each slice.
func (m *merged) present() map[key]world.Deletion {
	out := make(map[key]world.Deletion, len(m.inForce))
	for _, p := range m.inForce {
		for _, v := range p.values {
			d := refOf(v)
			out[key{d.Kind, d.ID}] = d
		}
	}
	for k, p := range m.unusable {
		if k.kind != kindEndpoints && k.kind != world.KindEndpointSlice {
			out[k] = world.Deletion{Ref: p.ref}
		}
	}
	return out
}

// noteDeleted compares what the World holds with what it held.
func (m *merged) noteDeleted(before map[key]world.Deletion, continuous bool) {
	now := m.present()
	m.deleted = slices.DeleteFunc(m.deleted, func(d world.Deletion) bool {
		_, back := now[key{d.Kind, d.ID}]
		return back
	})
	if continuous {
		for k, d := range before {
			if _, still := now[k]; !still {
				d.How = world.ByScan
				m.deleted = append(m.deleted, d)
			}
		}
	}
	if over := len(m.deleted) - maxDeleted; over > 0 {
		m.deleted = slices.Delete(m.deleted, 0, over)
	}
}

// noteOverlaps says which pools have addresses in common.
func (m *merged) noteOverlaps() {
	var w world.World
	for _, p := range m.inForce {
		for _, v := range p.values {
			if pool, ok := v.(*world.Pool); ok {
				w.Pools = append(w.Pools, pool)
			}
		}
	}
	w.SortLists()
	for _, problem := range convert.Overlaps(w.Pools) {
		if at, there := m.inForce[key{problem.Object.Kind, problem.Object.ID}]; there {
			problem.File, problem.Line = at.file, at.line
		}
		m.problems = append(m.problems, problem)
	}
}

// world is everything in force, unsorted. What its lists lead to is shared with files and earlier Worlds.
func (m *merged) world() world.World {
	w := world.World{Source: Name, Cluster: Cluster, Deleted: slices.Clone(m.deleted)}
	counts := map[reflect.Type]int{}
	for _, p := range m.inForce {
		for _, v := range p.values {
			counts[reflect.TypeOf(v)]++
		}
	}
	grow(&w, counts)
	for _, p := range m.inForce {
		for _, v := range p.values {
			put(&w, v)
		}
	}
	for k, p := range m.unusable {
		ref := p.ref
		if k.kind == kindEndpoints {
			ref.Kind = world.KindEndpointSlice
		}
		w.Unusable = append(w.Unusable, ref)
	}
	return w
}

// refOf names a value of the World; How is left to the caller.
func refOf(value any) world.Deletion {
	switch v := value.(type) {
	case *world.Service:
		return world.Deletion{Ref: v.Ref(world.KindService)}
	case *world.EndpointSlice:
		return world.Deletion{Ref: v.Ref(world.KindEndpointSlice), Service: v.Service}
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
