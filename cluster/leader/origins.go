// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"slices"

	"fairlead.io/fairlead/fsm/world"
)

// origins remembers, for one term, which of several sources showed an object last. Only that one is asked when the
// object is gone: to the others it was never there, and many such at once would look like a mass change. What no
// source showed in this term they are all asked about.
type origins struct {
	of map[origin]int
}

type origin struct {
	kind world.Kind
	id   world.ID
}

// see takes in what each source shows now.
func (o *origins) see(worlds []world.World) {
	if len(worlds) < 2 {
		return
	}
	if o.of == nil {
		o.of = map[origin]int{}
	}
	for i := range slices.Backward(worlds) { // the first source wins
		for kind, ids := range index(&worlds[i]) {
			for id := range ids {
				o.of[origin{kind, id}] = i
			}
		}
		for j := range worlds[i].Pods {
			o.of[origin{world.KindPod, worlds[i].Pods[j].ID}] = i
		}
		for j := range worlds[i].EndpointSlices {
			o.of[origin{world.KindEndpointSlice, worlds[i].EndpointSlices[j].Service()}] = i
		}
	}
}

// elsewhere tells whether another source than i is to be asked about an object.
func (o *origins) elsewhere(i int, kind world.Kind, id world.ID) bool {
	from, known := o.of[origin{kind, id}]
	return known && from != i
}

// known leaves out of what a source is asked about what is another's.
func (o *origins) known(i int, k Known) Known {
	if o.of != nil {
		k.Objects = slices.DeleteFunc(slices.Clone(k.Objects), func(obj KnownObject) bool { return o.elsewhere(i, obj.Kind, obj.ID) })
	}
	return k
}

// admit has a source leave to others what is theirs.
func (o *origins) admit(i int, a Admitted) Admitted {
	if o.of == nil || a.MayRemove == nil {
		return a
	}
	own := a.MayRemove
	a.MayRemove = func(kind world.Kind, id world.ID) bool { return o.elsewhere(i, kind, id) || own(kind, id) }
	return a
}
