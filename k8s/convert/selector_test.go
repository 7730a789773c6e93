// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/k8s/api"
)

// genSelector draws selectors, some of which make no sense.
func genSelector() *rapid.Generator[metav1.LabelSelector] {
	key, value := rapid.SampledFrom([]string{"a", "b", "team/c"}), rapid.SampledFrom([]string{"", "x", "y"})
	return rapid.Custom(func(t *rapid.T) metav1.LabelSelector {
		s := metav1.LabelSelector{MatchLabels: rapid.MapOfN(key, value, 0, 2).Draw(t, "matchLabels")}
		for range rapid.IntRange(0, 2).Draw(t, "expressions") {
			s.MatchExpressions = append(s.MatchExpressions, metav1.LabelSelectorRequirement{
				Key:      key.Draw(t, "key"),
				Operator: rapid.SampledFrom([]metav1.LabelSelectorOperator{"In", "NotIn", "Exists", "DoesNotExist", "Gt"}).Draw(t, "operator"),
				Values:   rapid.SliceOfN(value, 0, 2).Draw(t, "values"),
			})
		}
		return s
	})
}

// A selector chooses what it chooses for Kubernetes, and one that Kubernetes refuses makes its object unusable.
func TestPropertySelectorsChooseWhatTheyDoInKubernetes(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		spec := rapid.SliceOfN(genSelector(), 0, 2).Draw(t, "selectors")
		o := &api.L2Advertisement{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: api.L2AdvertisementSpec{NodeSelectors: spec}}
		have := rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "team/c"}), rapid.SampledFrom([]string{"", "x", "y"}), 0, 3).Draw(t, "labels")
		legal, want := true, false
		for i := range spec {
			s, err := metav1.LabelSelectorAsSelector(&spec[i])
			legal = legal && err == nil
			want = want || err == nil && s.Matches(labels.Set(have))
		}
		a, problems := L2Advertisement(o)
		if Usable(problems) != legal {
			t.Fatalf("usable: %v: %v", Usable(problems), problems)
		}
		w := world.World{L2Advertisements: []*world.L2Advertisement{&a}}
		w.Sort() // the canonical form means the same
		if got := world.AnyMatches(w.L2Advertisements[0].NodeSelectors, kvs(have, all)); legal && got != want {
			t.Fatalf("%v: chosen: %v, in Kubernetes: %v", have, got, want)
		}
	})
}

// An advertisement without names and selectors is of all pools; with some, of those that either chooses.
func TestL2AdvertisementSelectsPoolsByNameOrLabel(t *testing.T) {
	byLabel := []world.Selector{{Labels: []world.KV{{Key: "zone", Value: "a"}}}}
	zoneA := []world.KV{{Key: "zone", Value: "a"}}
	for _, c := range []struct {
		name   string
		a      world.L2Advertisement
		labels []world.KV
		want   bool
	}{
		{"all", world.L2Advertisement{}, nil, true},
		{"by-name", world.L2Advertisement{Pools: []string{"p"}, PoolSelectors: byLabel}, nil, true},
		{"by-label", world.L2Advertisement{Pools: []string{"q"}, PoolSelectors: byLabel}, zoneA, true},
		{"by-neither", world.L2Advertisement{Pools: []string{"q"}, PoolSelectors: byLabel}, nil, false},
		{"no-such-label", world.L2Advertisement{PoolSelectors: byLabel}, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.a.Selects("p", c.labels); got != c.want {
				t.Errorf("selected: %v", got)
			}
		})
	}
}
