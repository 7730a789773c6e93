// SPDX-License-Identifier: Apache-2.0

package balancers

import (
	"slices"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// Known lists the objects that the record stands on, in order and each life once: their absence is what Plan asks
// MayRemove about. UID is empty where the record does not have it.
func Known(record *fsm.View) []world.Ref {
	seen := map[world.Ref]bool{}
	add := func(kind world.Kind, id world.ID, uid string) {
		if id.Name != "" {
			seen[world.Ref{Kind: kind, ID: id, UID: uid}] = true
		}
	}
	for _, d := range fsm.List[*fsm.Driver](record, fsm.TableDrivers) {
		add(world.KindDriver, splitID(d.Name), d.UID)
	}
	for _, l := range fsm.List[*fsm.LoadBalancer](record, fsm.TableBalancers) {
		switch at := placeOf(string(l.ID)); at.kind {
		case orphanKind:
			add(world.KindLoadBalancer, at.id, "")
		default:
			add(at.kind, at.id, at.uid)
		}
	}
	owners := map[string]bool{}
	for _, b := range fsm.List[*fsm.Binding](record, fsm.TableBindings) {
		if !owners[b.Owner] && b.Owner != "" {
			owners[b.Owner] = true
			at := placeOf(b.Owner)
			add(at.kind, at.id, at.uid)
		}
		namespace := splitID(string(b.ID)).Namespace
		switch b.Backend.Kind {
		case kindPod:
			add(world.KindPod, world.ID{Namespace: namespace, Name: b.Backend.Name}, b.Backend.UID)
		case kindService:
			add(world.KindService, world.ID{Namespace: namespace, Name: b.Backend.Name}, "")
			add(world.KindNode, world.ID{Name: b.Backend.Node}, "")
		}
	}
	out := make([]world.Ref, 0, len(seen))
	for r := range seen {
		out = append(out, r)
	}
	slices.SortStableFunc(out, world.Ref.Compare)
	return out
}
