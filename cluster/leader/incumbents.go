// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"fmt"
	"slices"
	"strings"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// What configures the fabric the record knows by names alone, and sources may show several objects of one name: in two namespaces, in our
// group and in MetalLB's, in a cluster and in a folder. The one counts that the record holds, so that nobody takes a peer or a pool over by
// its name; the others wait for it to go, and are told of.

// passed is an object whose name another one has.
type passed struct {
	table fsm.Table
	name  string
	text  string
}

// heldNames are the objects that the configuration of the record came from, by kind and name. Those of records that cannot tell are left
// out.
func heldNames(record *fsm.View) map[world.Kind]map[string]fsm.ObjectRef {
	out := map[world.Kind]map[string]fsm.ObjectRef{}
	if record.Group().Format < formatObjectRef {
		return out
	}
	note := func(kind world.Kind, name string, h fsm.ObjectRef, version uint64) {
		if h == (fsm.ObjectRef{}) && version != 0 {
			return // of a cluster, put there when the record could not say of which object
		}
		if out[kind] == nil {
			out[kind] = map[string]fsm.ObjectRef{}
		}
		out[kind][name] = h
	}
	for _, p := range fsm.List[*fsm.Pool](record, fsm.TablePools) {
		note(world.KindPool, string(p.Name), p.Object, p.Version)
	}
	for _, p := range fsm.List[*fsm.Peer](record, fsm.TablePeers) {
		if _, legacy := ConfigMapOf(p.Name); !legacy {
			note(world.KindPeer, string(p.Name), p.Object, p.Version)
		}
	}
	for _, a := range fsm.List[*fsm.Advertisement](record, fsm.TableAdvertisements) {
		note(world.KindAdvertisement, string(a.Name), a.Object, a.Version)
	}
	for _, a := range fsm.List[*fsm.L2Advertisement](record, fsm.TableL2Advertisements) {
		note(world.KindL2Advert, string(a.Name), a.Object, a.Version)
	}
	return out
}

// incumbents lists the objects of all views in order of their names, each name once: see first. A name whose object is there, and cannot be
// used, is nobody else's; what the record holds of it stays.
func incumbents[T any](m *merged, kind world.Kind, table fsm.Table, held map[world.Kind]map[string]fsm.ObjectRef, list func(*world.World) []*T, meta func(*T) *world.Meta) []*T {
	var all, out []*T
	for _, a := range m.views {
		all = append(all, list(a.World)...)
	}
	slices.SortStableFunc(all, func(a, b *T) int { return strings.Compare(meta(a).Name, meta(b).Name) })
	for len(all) > 0 {
		n := 1
		for n < len(all) && meta(all[n]).Name == meta(all[0]).Name {
			n++
		}
		rivals := all[:n]
		all = all[n:]
		objects := make([]rival, n)
		for i, o := range rivals {
			objects[i] = rival{fsm.ObjectRef{Namespace: *world.HomeOf(o), UID: meta(o).UID}, meta(o).Created}
		}
		name := meta(rivals[0]).Name
		h, known := held[kind][name]
		at := first(objects, h, known)
		stands := objects[at].ref
		if known && stands != h && m.isUnusable(kind, name, h) {
			stands = h
		} else {
			out = append(out, rivals[at])
		}
		m.pass(kind, table, name, stands, objects)
	}
	return out
}

// rival is one of the objects that have one name.
type rival struct {
	ref     fsm.ObjectRef
	created uint32
}

// first tells which of some objects of one name counts: the one that the record holds; if that is gone, one in its namespace, such as comes in
// its place when it is made anew; then the oldest, as far as that is known, and the one of the source that is listed first.
func first(objects []rival, h fsm.ObjectRef, known bool) int {
	best := 0
	for i := 1; i < len(objects); i++ {
		if before(objects[i], objects[best], h, known) {
			best = i
		}
	}
	return best
}

func before(a, b rival, h fsm.ObjectRef, known bool) bool {
	if known && (a.ref == h) != (b.ref == h) {
		return a.ref == h
	}
	if known && (a.ref.Namespace == h.Namespace) != (b.ref.Namespace == h.Namespace) {
		return a.ref.Namespace == h.Namespace
	}
	return a.created != 0 && b.created != 0 && a.created < b.created
}

// isUnusable tells whether an object of the record is there still, in a form that cannot be used.
func (m *merged) isUnusable(kind world.Kind, name string, h fsm.ObjectRef) bool {
	return h.UID != "" && slices.ContainsFunc(m.views, func(a Admitted) bool {
		return slices.Contains(a.World.Unusable, world.Ref{Kind: kind, ID: world.ID{Name: name}, UID: h.UID})
	})
}

// pass notes which objects do not count since another one stands for their name.
func (m *merged) pass(kind world.Kind, table fsm.Table, name string, stands fsm.ObjectRef, objects []rival) {
	for _, o := range objects {
		if o.ref != stands {
			m.passed = append(m.passed, passed{table, name, fmt.Sprintf("%s %s does not count: %s had the name first; rename or remove one of them",
				kind, homeText(o.ref, name), homeText(stands, name))})
		}
	}
}

// homeText is how people name an object that the record knows by its name.
func homeText(ref fsm.ObjectRef, name string) string {
	return world.ID{Namespace: ref.Namespace, Name: name}.String()
}

// explainPassed tells of the objects whose name another one had first.
func (p *planner) explainPassed() {
	for _, o := range p.seen.passed {
		p.explain(o.table, o.name, WaitsForOverlap, o.text)
	}
}

// explainKeptAsWas says why a part of the configuration stays that no source shows: its object may be in a namespace that does not count.
func (p *planner) explainKeptAsWas(table fsm.Table, kind world.Kind, name string, from fsm.ObjectRef) {
	if problem, is := p.seen.unusable[objectName{kind, world.ID{Namespace: from.Namespace, Name: name}}]; is && from.Namespace != "" {
		p.explain(table, name, WaitsForMend, "it stays as it was: "+problem.String())
		return
	}
	p.explainAbsent(table, kind, world.ID{Name: name})
}
