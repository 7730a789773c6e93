// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"reflect"
	"testing"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// What an advertisement selects by labels is what the record names.
func TestL2AdvertisementsAreResolved(t *testing.T) {
	pool := func(name, tier string, keeps bool) *world.Pool {
		return &world.Pool{Meta: world.Meta{ID: world.ID{Name: name}}, Labels: []world.KV{{Key: "tier", Value: tier}}, KeepAnswering: keeps}
	}
	node := func(name, rack string) *world.Node {
		return &world.Node{Meta: world.Meta{ID: world.ID{Name: name}}, Labels: []world.KV{{Key: "rack", Value: rack}}}
	}
	p := &planner{
		seen:  &merged{pools: []*world.Pool{pool("a", "front", true), pool("b", "back", false), pool("c", "front", false)}, nodes: []*world.Node{node("n2", "r1"), node("n1", "r1"), node("n3", "r2")}},
		pools: []*poolPlan{{name: "c"}, {name: "b"}, {name: "a"}, {name: "unseen"}, {name: "foreign"}},
	}
	w := &world.L2Advertisement{
		Meta: world.Meta{ID: world.ID{Name: "lan"}, Version: 3}, Interfaces: []string{"eth1"},
		PoolSelectors: []world.Selector{{Labels: []world.KV{{Key: "tier", Value: "front"}}}},
		NodeSelectors: []world.Selector{{Labels: []world.KV{{Key: "rack", Value: "r1"}}}},
	}
	old := &fsm.L2Advertisement{Name: "lan", Pools: []fsm.PoolName{"b", "unseen"}, Kept: []fsm.PoolName{"unseen"}}
	want := fsm.L2Advertisement{
		Name: "lan", Pools: []fsm.PoolName{"a", "c", "unseen"}, Kept: []fsm.PoolName{"a", "unseen"}, Nodes: []fsm.NodeID{"n1", "n2"},
		Interfaces: []string{"eth1"}, Version: 3,
	}
	if got := p.l2Of(w, old); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, not %+v", got, want)
	}
	every := p.l2Of(&world.L2Advertisement{Meta: world.Meta{ID: world.ID{Name: "all"}}}, nil)
	if !every.EveryNode || !reflect.DeepEqual(every.Pools, []fsm.PoolName{"a", "b", "c"}) {
		t.Errorf("%+v", every)
	}
}
