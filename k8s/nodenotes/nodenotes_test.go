// SPDX-License-Identifier: Apache-2.0

package nodenotes

import (
	"encoding/json"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

// server is what an API server keeps of annotations: the value of each, and who owns it.
type server struct {
	values map[string]string
	owners map[string]map[string]bool
}

func newServer() *server {
	return &server{map[string]string{}, map[string]map[string]bool{}}
}

// apply is a forced server-side apply of a manager.
func (s *server) apply(manager string, all map[string]string) {
	for k, by := range s.owners {
		if _, still := all[k]; !still && by[manager] {
			if delete(by, manager); len(by) == 0 {
				delete(s.values, k)
				delete(s.owners, k)
			}
		}
	}
	for k, v := range all {
		if have, ok := s.values[k]; !ok || have != v {
			s.owners[k] = map[string]bool{}
		}
		s.values[k], s.owners[k][manager] = v, true
	}
}

// set is what a hand does to one annotation.
func (s *server) set(k, v string) {
	if s.owners[k] == nil || s.values[k] != v {
		s.owners[k] = map[string]bool{}
	}
	s.values[k], s.owners[k]["hand"] = v, true
}

func (s *server) node(t *rapid.T) *corev1.Node {
	o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u1", ResourceVersion: "7", Annotations: maps.Clone(s.values)}}
	owned := map[string]map[string]any{}
	for k, by := range s.owners {
		for who := range by {
			if owned[who] == nil {
				owned[who] = map[string]any{}
			}
			owned[who]["f:"+k] = map[string]any{}
		}
	}
	for who, fields := range owned {
		raw, err := json.Marshal(map[string]any{"f:metadata": map[string]any{"f:annotations": fields}})
		if err != nil {
			t.Fatal(err)
		}
		m := metav1.ManagedFieldsEntry{Manager: who, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(string(raw))}
		if who == "hand" {
			m.Operation = metav1.ManagedFieldsOperationUpdate
		}
		o.ManagedFields = append(o.ManagedFields, m)
	}
	return o
}

// Whatever was written before, and whoever wrote it: after one write a Node has what is wanted, has lost nothing of others, keeps nothing
// of ours that is not wanted, and there is nothing left to write.
func TestPropertyAWriteMakesTheNodeAsItShallBe(t *testing.T) {
	keys := []string{"balancing.elf.io/nodeId", "balancing.elf.io/nodeProxyIpv4", "balancing.elf.io/nodeProxyManaged", "example.com/other"}
	testkit.Check(t, func(t *rapid.T) {
		s := newServer()
		draw := func(name string) map[string]string {
			return rapid.MapOfN(rapid.SampledFrom(keys[:3]), rapid.SampledFrom([]string{"1", "2"}), 0, 3).Draw(t, name)
		}
		for range rapid.IntRange(0, 4).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "by hand") {
				s.set(rapid.SampledFrom(keys).Draw(t, "key"), rapid.SampledFrom([]string{"1", "2"}).Draw(t, "value"))
			} else {
				s.apply(Manager, draw("ours"))
			}
		}
		before := maps.Clone(s.values)
		byHand := map[string]bool{}
		for k, by := range s.owners {
			byHand[k] = by["hand"]
		}
		first, second := draw("wanted first"), draw("wanted second")
		by := []Contributor{func(*Seen) map[string]string { return first }, func(*Seen) map[string]string { return second }}
		wanted := maps.Clone(second)
		maps.Copy(wanted, first)
		if w := Plan(SeenOf(s.node(t)), by); w != nil {
			if w.UID != "u1" || w.ResourceVersion != "7" {
				t.Fatalf("written to %+v", w)
			}
			s.apply(Manager, w.Annotations)
		}
		for _, k := range keys {
			want, ok := wanted[k]
			if !ok && byHand[k] {
				want, ok = before[k], true
			}
			if have, has := s.values[k]; has != ok || have != want {
				t.Fatalf("%s is %q (%v), want %q (%v)", k, have, has, want, ok)
			}
		}
		if w := Plan(SeenOf(s.node(t)), by); w != nil {
			t.Fatalf("a second write: %+v", w)
		}
	})
}

// Who does not know what an annotation shall be has it stay.
func TestWhatNobodyKnowsStays(t *testing.T) {
	seen := &Seen{Annotations: map[string]string{"balancing.elf.io/nodeId": "7", "balancing.elf.io/nodeProxyIpv4": "192.0.2.1"}, Owned: map[string]bool{"balancing.elf.io/nodeId": true}}
	keeps := func(s *Seen) map[string]string {
		return s.Keep("balancing.elf.io/nodeId", "balancing.elf.io/nodeProxyIpv4")
	}
	if w := Plan(seen, []Contributor{keeps}); w != nil {
		t.Errorf("written: %+v", w)
	}
	if w := Plan(seen, nil); w == nil || len(w.Annotations) > 0 {
		t.Errorf("not taken away: %+v", w)
	}
}
