// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/testkit"
)

// What the mirror does to objects of bindings that ended is nothing to plan from; what hands do is, and what others do.
func TestWhatTheMirrorTakesAwayIsNoReasonToPlan(t *testing.T) {
	record := func(name, mirror string, finalizer bool) *world.BackendRecord {
		return &world.BackendRecord{Meta: world.Meta{ID: world.ID{Namespace: "shop", Name: name}, UID: name}, Mirror: mirror, Finalizer: finalizer}
	}
	deleted := func(name, mirror string) world.Deletion {
		return world.Deletion{Ref: world.Ref{Kind: world.KindBackendRecord, ID: world.ID{Namespace: "shop", Name: name}, UID: name}, Mirror: mirror}
	}
	ended := func(id world.ID, mirror string) bool { return mirror != "" && id.Name != "live" }
	all := world.World{BackendRecords: []*world.BackendRecord{record("a", "g/1", true), record("live", "g/2", true), record("z", "", true)}}
	without := func(i int) func(*world.World) {
		return func(w *world.World) { w.BackendRecords = slices.Delete(w.BackendRecords, i, i+1) }
	}
	stripped := func(i int) func(*world.World) {
		return func(w *world.World) { w.BackendRecords[i].Finalizer, w.BackendRecords[i].Version = false, 2 }
	}
	for name, c := range map[string]struct {
		change func(*world.World)
		alike  bool
	}{
		"nothing":                            {func(*world.World) {}, true},
		"ended goes":                         {without(0), true},
		"live goes":                          {without(1), false},
		"others' goes":                       {without(2), false},
		"ended loses its finalizer":          {stripped(0), true},
		"live loses its finalizer":           {stripped(1), false},
		"ours comes":                         {func(w *world.World) { w.BackendRecords = append(w.BackendRecords, record("zz", "g/3", true)) }, true},
		"others' comes":                      {func(w *world.World) { w.BackendRecords = append(w.BackendRecords, record("zz", "", true)) }, false},
		"ended goes, as the watch shows":     {func(w *world.World) { without(0)(w); w.Deleted = append(w.Deleted, deleted("a", "g/1")) }, true},
		"live went, as the watch shows":      {func(w *world.World) { w.Deleted = append(w.Deleted, deleted("live", "g/2")) }, false},
		"all of it goes":                     {func(w *world.World) { w.BackendRecords = nil }, false},
		"ended goes, and others' behind it":  {func(w *world.World) { w.BackendRecords = w.BackendRecords[1:2] }, false},
		"a pod goes, as only the watch says": {func(w *world.World) { w.Deleted = []world.Deletion{{Ref: world.Ref{Kind: world.KindPod}}} }, false},
	} {
		next := all.Clone()
		c.change(&next)
		if got := outsideAlike(all, next, ended); got != c.alike {
			t.Errorf("%s: alike is %v", name, got)
		}
	}
}

// Lists that were kept because nothing of them changed are what would be merged anew.
func TestPropertyWhatWasMergedBeforeIsMergedAlike(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		var kept mergingOutside
		views := []Admitted{{World: &world.World{}}, {World: &world.World{}}}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			i := rapid.IntRange(0, 1).Draw(t, "source")
			next := world.World{}
			if views[i].World != nil {
				next = *views[i].World
			}
			names := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), rapid.ID[string]).Draw(t, "names")
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				next.Pods = nil
				for _, name := range names {
					next.Pods = append(next.Pods, &world.Pod{Meta: world.Meta{ID: world.ID{Name: name}, UID: fmt.Sprint(i)}})
				}
			case 1:
				next.Nodes = nil
				for _, name := range names {
					next.Nodes = append(next.Nodes, &world.Node{Meta: world.Meta{ID: world.ID{Name: name}, UID: fmt.Sprint(i)}})
				}
			}
			next.Sort()
			views[i].World = &next
			if rapid.IntRange(0, 5).Draw(t, "not admitted") == 0 {
				views[i].World = nil
			}
			got, want := kept.merge(views), new(mergingOutside).merge(views)
			if !slices.Equal(got.pods, want.pods) || !slices.Equal(got.nodes, want.nodes) {
				t.Fatalf("got %d pods and %d nodes, want %d and %d", len(got.pods), len(got.nodes), len(want.pods), len(want.nodes))
			}
			for j := 1; j < len(want.pods); j++ {
				if want.pods[j-1].Compare(want.pods[j].ID) >= 0 {
					t.Fatalf("%s before %s", want.pods[j-1].ID, want.pods[j].ID)
				}
			}
		}
	})
}
