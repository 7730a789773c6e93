// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"slices"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// buried are the lives that ended by the record, or are about to: of Services and Nodes, as many as it has graves. UIDs never come back, so
// that a source which shows one of them is behind, whatever version it claims to be at, until the object was asked for by name: only then
// the cluster's etcd was restored, or the Service is of a type again that is served. The zero value has seen nothing.
type buried struct {
	record *fsm.View
	lives  map[KnownObject]end
	// vouched are those that were there when they were asked for by name, since the record had them end.
	vouched map[KnownObject]bool
	told    map[KnownObject]bool // those of which the log was told
	// shown is what the newest lists of each source show of them.
	shown []shownBuried
}

// end is how the record tells of the end of a life.
type end uint8

const (
	endGoing end = 1 << iota // it is being taken back
	endGrave
)

// shownBuried are the ended lives that lists of a source show, and these lists without those that do not count.
type shownBuried struct {
	services []*world.Service
	nodes    []*world.Node
	lives    []KnownObject

	out          []KnownObject
	leftServices []*world.Service
	leftNodes    []*world.Node
}

// follow takes in what ended by the record since.
func (b *buried) follow(record *fsm.View) {
	if b.lives == nil {
		b.lives, b.vouched, b.told = map[KnownObject]end{}, map[KnownObject]bool{}, map[KnownObject]bool{}
	}
	fsm.Changes(b.record, record, fsm.TableGraves, func(was, is *fsm.Grave) {
		b.forget(lifeIn(was), endGrave)
		b.add(lifeIn(is), endGrave)
	})
	fsm.Changes(b.record, record, fsm.TableServices, func(was, is *fsm.Service) {
		if was != nil && is != nil && was.Deleting == is.Deleting && was.UID == is.UID {
			return // what happens most
		}
		b.forget(goingLife(was), endGoing)
		b.add(goingLife(is), endGoing)
	})
	b.record = record
}

func (b *buried) add(life KnownObject, how end) {
	if life.UID == "" {
		return
	}
	b.lives[life] |= how
	delete(b.vouched, life)
	b.shown = nil
}

func (b *buried) forget(life KnownObject, how end) {
	if b.lives[life]&^how != 0 {
		b.lives[life] &^= how
		return
	}
	delete(b.lives, life)
	delete(b.vouched, life)
	delete(b.told, life)
	b.shown = nil
}

// lifeIn is the life that a grave tells of; the zero KnownObject for none, and for those that are not looked for.
func lifeIn(g *fsm.Grave) KnownObject {
	if g == nil {
		return KnownObject{}
	}
	switch g.Of {
	case fsm.TableServices:
		return KnownObject{world.KindService, idOf(fsm.ServiceID(g.Name)), g.UID}
	case fsm.TableNodes:
		return KnownObject{world.KindNode, world.ID{Name: g.Name}, g.UID}
	}
	return KnownObject{}
}

// goingLife is that of a Service that is being taken back; the zero KnownObject for others.
func goingLife(s *fsm.Service) KnownObject {
	if s == nil || !s.Deleting {
		return KnownObject{}
	}
	return KnownObject{world.KindService, idOf(s.ID), s.UID}
}

// shownBy lists the ended lives that a world of a source shows.
func (b *buried) shownBy(source int, w *world.World) []KnownObject {
	for len(b.shown) <= source {
		b.shown = append(b.shown, shownBuried{})
	}
	f := &b.shown[source]
	if same(f.services, w.Services) && same(f.nodes, w.Nodes) {
		return f.lives
	}
	*f = shownBuried{services: w.Services, nodes: w.Nodes}
	for life := range b.lives {
		m, ok := shownMeta(w, life)
		if ok && m.UID == life.UID && !m.Deleting { // else it is not taken in anyway
			f.lives = append(f.lives, life)
		}
	}
	return f.lives
}

// shownMeta finds the Service or Node of a life's name.
func shownMeta(w *world.World, life KnownObject) (world.Meta, bool) {
	if life.Kind == world.KindNode {
		i, ok := slices.BinarySearchFunc(w.Nodes, life.ID, func(n *world.Node, id world.ID) int { return n.ID.Compare(id) })
		if !ok {
			return world.Meta{}, false
		}
		return w.Nodes[i].Meta, true
	}
	i, ok := slices.BinarySearchFunc(w.Services, life.ID, func(s *world.Service, id world.ID) int { return s.ID.Compare(id) })
	if !ok {
		return world.Meta{}, false
	}
	return w.Services[i].Meta, true
}

// lives tells whether the record has taken a life in again.
func lives(record *fsm.View, life KnownObject) bool {
	if life.Kind == world.KindNode {
		n, ok := fsm.Get[*fsm.Node](record, fsm.TableNodes, life.ID.Name)
		return ok && n.UID == life.UID
	}
	s, ok := fsm.Get[*fsm.Service](record, fsm.TableServices, life.ID.String())
	return ok && s.UID == life.UID && !s.Deleting
}

// withoutBuried leaves out of what a source shows what the record knows to have ended, and has that asked for by name. Files are the truth, and
// may name any UID.
func (s *sentry) withoutBuried(source int, w *world.World, vouched []world.Ref, record *fsm.View) {
	if !w.WholeCluster || len(s.buried.lives) == 0 {
		return
	}
	var out []KnownObject
	for _, life := range s.buried.shownBy(source, w) {
		if slices.Contains(vouched, world.Ref{Kind: life.Kind, ID: life.ID, UID: life.UID}) {
			s.buried.vouched[life] = true
		}
		if !s.buried.vouched[life] && !lives(record, life) {
			out = append(out, life)
		}
	}
	if len(out) > 0 {
		s.leaveOut(source, w, out)
	}
}

// leaveOut takes lives out of a world, and asks its source for lists of their kinds.
func (s *sentry) leaveOut(source int, w *world.World, gone []KnownObject) {
	f := &s.buried.shown[source]
	if !slices.Equal(f.out, gone) { // else they are the lists of before, by which it shows that nothing is new
		is := func(kind world.Kind, m world.Meta) bool { return slices.Contains(gone, KnownObject{kind, m.ID, m.UID}) }
		f.out = gone
		f.leftServices = slices.DeleteFunc(slices.Clone(w.Services), func(o *world.Service) bool { return is(world.KindService, o.Meta) })
		f.leftNodes = slices.DeleteFunc(slices.Clone(w.Nodes), func(o *world.Node) bool { return is(world.KindNode, o.Meta) })
	}
	w.Services, w.Nodes = f.leftServices, f.leftNodes
	r, asks := s.sources[source].Source.(Relister)
	for _, life := range gone {
		if asks {
			r.Relist(life.Kind)
		}
		if !s.buried.told[life] {
			s.buried.told[life] = true
			s.c.Log.Info("object that ended is asked for by name", "source", s.sources[source].Name, "kind", life.Kind, "object", life.ID.String(), "uid", life.UID,
				"reason", "its end was acted on, and it is shown again")
		}
	}
}
