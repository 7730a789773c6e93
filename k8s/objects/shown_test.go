// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"slices"
	"testing"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/mirror"
)

var _ mirror.Objects = (*Store)(nil)

// The mirror finds every kind under its name, is told of what comes and goes, and of nothing else.
func TestTheMirrorIsShownWhatIsStored(t *testing.T) {
	s := New()
	var told []mirror.Key
	stop := s.Follow(func(k mirror.Key) { told = append(told, k) })
	for _, k := range mirror.Kinds() {
		if s.Complete(k) {
			t.Errorf("%s is complete before it was listed", k)
		}
		s.tell(world.Kind(k), stored("shop", "a", map[string]any{}))
		s.Listed(world.Kind(k), true)
		key := mirror.Key{Kind: k, Namespace: "shop", Name: "a"}
		if !s.Complete(k) || !slices.Equal(s.Names(k), []mirror.Key{key}) || told[len(told)-1] != key {
			t.Errorf("%s: complete %v, names %v, told %v", k, s.Complete(k), s.Names(k), told)
		}
	}
	if s.BackendRecord("shop", "a") == nil || s.LoadBalancer("shop", "a") == nil || s.BackendGroup("shop", "a") == nil ||
		s.Bind("shop", "a") == nil || s.Driver("shop", "a") == nil || s.Driver("shop", "b") != nil || s.BackendRecord("other", "a") != nil {
		t.Error("something is not found, or found that is not there")
	}
	s.Set(world.KindPod, world.ID{Namespace: "shop", Name: "p"}, manifest{uid: "p"})
	s.Delete(world.KindBackendRecord, world.ID{Namespace: "shop", Name: "a"})
	if len(told) != len(mirror.Kinds())+1 || s.BackendRecord("shop", "a") != nil {
		t.Errorf("told %v", told)
	}
	stop()
	s.Delete(world.KindBind, world.ID{Namespace: "shop", Name: "a"})
	if len(told) != len(mirror.Kinds())+1 {
		t.Error("told after the end")
	}
}
