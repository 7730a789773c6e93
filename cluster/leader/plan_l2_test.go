// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"reflect"
	"strings"
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

// Selectors that choose nothing are told of; those that choose something, and none at all, are not.
func TestL2AdvertisementsThatChooseNothingAreToldOf(t *testing.T) {
	labelled := func(value string) []world.Selector {
		return []world.Selector{{Labels: []world.KV{{Key: "tier", Value: value}}}}
	}
	for name, c := range map[string]struct {
		pools, nodes []world.Selector
		named        []string
		want         []string
	}{
		"fine":     {pools: labelled("front"), nodes: labelled("front")},
		"all":      {},
		"no pool":  {pools: labelled("frnt"), want: []string{"spec.ipAddressPoolSelectors"}},
		"no node":  {nodes: labelled("frnt"), want: []string{"spec.nodeSelectors"}},
		"misspelt": {named: []string{"nope"}, want: []string{"there is no IPAddressPool nope"}},
		"both":     {pools: labelled("frnt"), nodes: labelled("frnt"), want: []string{"spec.ipAddressPoolSelectors", "spec.nodeSelectors"}},
	} {
		labels := []world.KV{{Key: "tier", Value: "front"}}
		p := &planner{
			seen: &merged{
				pools: []*world.Pool{{Meta: world.Meta{ID: world.ID{Name: "a"}}, Labels: labels}}, nodes: []*world.Node{{Meta: world.Meta{ID: world.ID{Name: "n1"}}, Labels: labels}},
			},
			pools: []*poolPlan{{name: "a"}},
		}
		p.l2Of(&world.L2Advertisement{Meta: world.Meta{ID: world.ID{Name: "lan"}}, Pools: c.named, PoolSelectors: c.pools, NodeSelectors: c.nodes}, nil)
		told := len(p.out.Waiting) == len(c.want)
		for i := range min(len(c.want), len(p.out.Waiting)) {
			told = told && strings.Contains(p.out.Waiting[i].Text, c.want[i]) && p.out.Waiting[i].Name == "lan"
		}
		if !told {
			t.Errorf("%s: told %+v, want %q", name, p.out.Waiting, c.want)
		}
	}
}
