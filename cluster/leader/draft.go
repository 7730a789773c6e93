// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// Draft is what somebody thinks of applying.
type Draft struct {
	// World has the objects. Foresee looks at those that Services are planned from, ForeseeOutside at those of outside load balancers.
	World *world.World
	// InPlaceOf names the source whose objects it takes the place of, all of them. Empty: each object takes the place of
	// the one of its name, or comes beside what the sources show.
	InPlaceOf string
}

// Left counts the objects of a draft that are of outside load balancers.
func (d *Draft) Left() int {
	w := d.World
	return len(w.Drivers) + len(w.LoadBalancers) + len(w.BackendGroups) + len(w.Binds) + len(w.BackendRecords) + len(w.Pods)
}

// on is the input as it would be with the draft, and what the guard would put before an operator. Errors: there is no such
// source, or it is none whose whole a draft can say.
func (d *Draft) on(in Input) (Input, []Hold, error) {
	w := PartServices.View(d.World.Clone())
	in.Views = slices.Clone(in.Views)
	inherit(&w, merge(in.Views, in.Record))
	w.Sort()
	if d.InPlaceOf == "" {
		in.overlay(&w)
		return in, nil, nil
	}
	i, err := d.place(in.Views)
	if err != nil {
		return in, nil, err
	}
	stand := inPlace(in.Views, i, &w, PartServices)
	stand.read(in.Record, in.Views) // what it lacks is gone from the second list on
	views, held := stand.read(in.Record, in.Views)
	in.Views = views
	return in, held, nil
}

// place is which view the draft takes the place of, -1 for none. Errors: there is no such source, or it is none whose whole a draft can
// say.
func (d *Draft) place(views []Admitted) (int, error) {
	if d.InPlaceOf == "" {
		return -1, nil
	}
	i := slices.IndexFunc(views, func(a Admitted) bool { return a.World != nil && a.World.Source == d.InPlaceOf })
	switch {
	case i < 0:
		return 0, fmt.Errorf("the leader acts on no source %s: %s", d.InPlaceOf, sourcesOf(views))
	case views[i].World.WholeCluster:
		return 0, fmt.Errorf("source %s is a cluster, and files cannot stand for all of it; leave it out, and they come on top", d.InPlaceOf)
	}
	return i, nil
}

func sourcesOf(views []Admitted) string {
	var names []string
	for _, a := range views {
		if a.World != nil {
			names = append(names, a.World.Source)
		}
	}
	if len(names) == 0 {
		return "it acts on none now"
	}
	return "it acts on " + strings.Join(names, ", ")
}

// overlay puts the objects of w before those of their names in all views: the first view that shows an object wins. Slices do not
// win but add up, so those of the same names are taken out.
func (in *Input) overlay(w *world.World) {
	w.Kinds, w.Source = nil, "" // it tells of nothing that it is gone, and is nothing to have acted on
	drafted := map[world.ID]bool{}
	for _, s := range w.EndpointSlices {
		drafted[s.ID] = true
	}
	for i := range in.Views {
		old := in.Views[i].World
		if old == nil || len(drafted) == 0 {
			continue
		}
		in.Views[i].MayRemove = draftedAway(in.Record, old, drafted, in.Views[i].MayRemove)
		next := *old
		next.EndpointSlices = slices.DeleteFunc(slices.Clone(old.EndpointSlices), func(s *world.EndpointSlice) bool { return drafted[s.ID] })
		in.Views[i].World = &next
	}
	in.Views = append([]Admitted{{World: w, Complete: true}}, in.Views...)
}

// draftedAway is what a view tells of what is gone, now that slices of it are drafted anew: an endpoint that one of those had is
// listed there no more, which needs no further evidence. Where the record has others, too, the guard's word stands.
func draftedAway(record *fsm.View, old *world.World, drafted map[world.ID]bool, before func(world.Kind, world.ID) bool) func(world.Kind, world.ID) bool {
	return func(kind world.Kind, id world.ID) bool {
		have, known := fsm.Get[*fsm.Service](record, fsm.TableServices, id.String())
		if kind != world.KindEndpointSlice || !known || before != nil && before(kind, id) {
			return before != nil && before(kind, id)
		}
		listed, anew := map[netip.Addr]bool{}, false
		for _, slice := range old.SlicesOf(id) {
			anew = anew || drafted[slice.ID]
			for _, e := range slice.Endpoints {
				listed[e.Address] = true
			}
		}
		return anew && !slices.ContainsFunc(have.Endpoints, func(e fsm.Endpoint) bool { return !listed[e.Address] })
	}
}

// standIn is a world in the place of what a source showed, under a guard of its own.
type standIn struct {
	w      *world.World
	part   Part
	at     int                                     // which view it is in the place of
	before Admitted                                // what that was
	lacked func(kind world.Kind, id world.ID) bool // by the source already: that was judged with what it shows
	guard  *Guard
	now    time.Duration
}

// inPlace has w in the place of a view.
func inPlace(views []Admitted, i int, w *world.World, part Part) *standIn {
	old := views[i].World
	w.Source, w.Cluster, w.Deleted = old.Source, old.Cluster, nil
	shows := shown{world.KindPod: each(old.Pods, func(o *world.Pod) world.Meta { return o.Meta })}
	lacked := func(kind world.Kind, id world.ID) bool {
		if kind == world.KindEndpointSlice {
			return len(old.SlicesOf(id)) == 0
		}
		_, showed := shows.of(old, kind)[id]
		return !showed
	}
	return &standIn{w: w, part: part, at: i, before: views[i], lacked: lacked, guard: NewGuard(Limits{})}
}

// read is what the source lists once more, as long after the list before as guards ask for: the views with that, and what would be put
// before an operator. What it does not show any more counts as gone from the second list on.
func (s *standIn) read(record *fsm.View, views []Admitted) ([]Admitted, []Hold) {
	known := KnownOf(record, s.w.Source, s.part)
	known.Objects = slices.DeleteFunc(slices.Clone(known.Objects), func(o KnownObject) bool { return s.lacked(o.Kind, o.ID) })
	s.now += s.guard.limits.Confirm + time.Second
	for k := range s.w.Kinds {
		s.w.Kinds[k].Lists++
	}
	v := s.guard.Judge(s.now, s.w, &known)
	a := v.Admit(s.w)
	if a.Complete = s.before.Complete; a.MayRemove != nil {
		a.WhyNot = whyNot(&v)
		a.MayRemove = func(kind world.Kind, id world.ID) bool {
			if s.lacked(kind, id) {
				return s.before.MayRemove != nil && s.before.MayRemove(kind, id)
			}
			return v.MayRemove(kind, id)
		}
	}
	views = slices.Clone(views)
	views[s.at] = a
	return views, v.Hold
}

// inherit fills in what files leave to others: the API server's word on an object that is there already, and the status of Nodes.
func inherit(w *world.World, from *merged) {
	for _, s := range w.Services {
		old := from.find(s.ID)
		if old == nil {
			continue
		}
		s.Meta = metaOf(&s.Meta, &old.Meta)
		if s.Families == 0 {
			s.Families = old.Families
		}
		if s.FamilyPolicy == 0 {
			s.FamilyPolicy = old.FamilyPolicy
		}
		for j := range s.Ports {
			of := slices.IndexFunc(old.Ports, func(o world.ServicePort) bool { return o.Port == s.Ports[j].Port && o.Protocol == s.Ports[j].Protocol })
			if of >= 0 && s.Ports[j].NodePort == 0 {
				s.Ports[j].NodePort = old.Ports[of].NodePort
			}
		}
	}
	for _, n := range w.Nodes {
		at, ok := slices.BinarySearchFunc(from.nodes, n.ID, func(o *world.Node, id world.ID) int { return o.ID.Compare(id) })
		if !ok {
			continue
		}
		old := from.nodes[at]
		n.Meta = metaOf(&n.Meta, &old.Meta)
		if len(n.Addresses) == 0 {
			n.Addresses, n.Ready, n.NetworkUnavailable = old.Addresses, old.Ready, old.NetworkUnavailable
		}
	}
	inheritMeta(w.Pools, from.pools, func(p *world.Pool) *world.Meta { return &p.Meta })
	inheritMeta(w.Peers, from.peers, func(p *world.Peer) *world.Meta { return &p.Meta })
	inheritMeta(w.Advertisements, from.advertisements, func(a *world.Advertisement) *world.Meta { return &a.Meta })
	inheritMeta(w.L2Advertisements, from.l2Advertisements, func(a *world.L2Advertisement) *world.Meta { return &a.Meta })
}

// inheritMeta has objects be those of their names that are there already. One that names another namespace is another one.
func inheritMeta[T any](objects []*T, from []*T, meta func(*T) *world.Meta) {
	for _, o := range objects {
		m := meta(o)
		at, ok := slices.BinarySearchFunc(from, m.ID, func(o *T, id world.ID) int { return meta(o).ID.Compare(id) })
		if home, old := world.HomeOf(o), ""; ok {
			if home != nil {
				old = *world.HomeOf(from[at])
			}
			if home != nil && *home != "" && *home != old {
				continue
			}
			*m = metaOf(m, meta(from[at]))
			if home != nil {
				*home = old
			}
		}
	}
}

// metaOf is what the API server says of an object that is there, whatever a file says of it, but whether it is going.
func metaOf(m, old *world.Meta) world.Meta {
	is := *old
	is.Deleting = m.Deleting
	return is
}
