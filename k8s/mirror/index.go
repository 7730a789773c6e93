// SPDX-License-Identifier: Apache-2.0

package mirror

import "fairlead.io/fairlead/fsm"

// index is what the record does not find quickly: the load balancers of a Bind, and how many backends of an owner are
// registered. It follows the changes of the record.
type index struct {
	binds      map[bindKey]map[string]fsm.BalancerID // by entry
	registered map[string]int32                      // by Binding.Owner
}

type bindKey struct {
	Key
	uid string
}

func newIndex() index {
	return index{map[bindKey]map[string]fsm.BalancerID{}, map[string]int32{}}
}

// balancer takes in that a load balancer came or went.
func (x *index) balancer(of balancer, id fsm.BalancerID, there bool) {
	if of.Kind != Bind {
		return
	}
	k := bindKey{of.Key, of.UID}
	entries := x.binds[k]
	switch {
	case !there:
		delete(entries, of.Entry)
		if len(entries) == 0 {
			delete(x.binds, k)
		}
		return
	case entries == nil:
		entries = map[string]fsm.BalancerID{}
		x.binds[k] = entries
	}
	entries[of.Entry] = id
}

// binding takes in a change of a binding, either side of which may be nil.
func (x *index) binding(before, after *fsm.Binding) {
	x.count(before, -1)
	x.count(after, 1)
}

func (x *index) count(b *fsm.Binding, n int32) {
	if b == nil || !b.Registered {
		return
	}
	if x.registered[b.Owner] += n; x.registered[b.Owner] == 0 {
		delete(x.registered, b.Owner)
	}
}

// entries are the load balancers of a Bind as v has them.
func (x *index) entries(v *fsm.View, k Key, uid string) map[string]*fsm.LoadBalancer {
	out := map[string]*fsm.LoadBalancer{}
	for entry, id := range x.binds[bindKey{k, uid}] {
		if l, ok := fsm.Get[*fsm.LoadBalancer](v, fsm.TableBalancers, string(id)); ok {
			out[entry] = l
		}
	}
	return out
}
