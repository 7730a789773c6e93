// SPDX-License-Identifier: Apache-2.0

package derive

import (
	"maps"
	"net/netip"
	"slices"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/fsm"
)

// Follower keeps the paths of a record that changes, at the cost of the change: one pod that moves must not cost a
// walk over thousands of routes. Always, its paths are those that Paths gives. The zero value has seen nothing; one
// goroutine uses it, with newer and newer views of one State.
type Follower struct {
	view       *fsm.View
	attributes attributes
	paths      bgp.Paths
	// unsettled are the prefixes with hops that wait for their node, by node: all that can come of a newer mark.
	unsettled map[fsm.NodeID]map[netip.Prefix]bool
}

// Follow takes in a newer view. It gives all paths, and the prefixes, in order, that are the only ones whose
// paths may differ from before; whole says that all may.
func (f *Follower) Follow(v *fsm.View) (paths bgp.Paths, touched []netip.Prefix, whole bool) {
	if f.view == nil || f.rulesChanged(v) {
		f.begin(v)
		return f.paths, nil, true
	}
	dirty := f.dirty(v)
	f.view, f.attributes.view = v, v
	touched = slices.SortedFunc(maps.Keys(dirty), netip.Prefix.Compare)
	if len(touched) > 0 {
		f.splice(touched)
	}
	return f.paths, touched, false
}

// rulesChanged tells whether what holds for all routes changed.
func (f *Follower) rulesChanged(v *fsm.View) bool {
	changed := f.view.Group().Settings != v.Group().Settings
	fsm.Changes(f.view, v, fsm.TableAdvertisements, func(_, _ *fsm.Advertisement) { changed = true })
	return changed
}

// begin derives everything.
func (f *Follower) begin(v *fsm.View) {
	f.view, f.attributes, f.unsettled = v, newAttributes(v), map[fsm.NodeID]map[netip.Prefix]bool{}
	var paths []bgp.Path
	for _, r := range fsm.List[*fsm.Route](v, fsm.TableRoutes) {
		paths = append(paths, f.pathsOf(r)...)
	}
	f.paths = bgp.NewPaths(paths...)
}

// dirty finds the prefixes whose paths may have changed on the way to v.
func (f *Follower) dirty(v *fsm.View) map[netip.Prefix]bool {
	dirty := map[netip.Prefix]bool{}
	fsm.Changes(f.view, v, fsm.TableRoutes, func(before, after *fsm.Route) {
		if before != nil {
			f.forget(before)
			dirty[before.Prefix] = true
		}
		if after != nil {
			dirty[after.Prefix] = true
		}
	})
	if f.attributes.pools != nil {
		fsm.Changes(f.view, v, fsm.TableAllocations, func(before, after *fsm.Allocation) {
			if after == nil {
				after = before
			}
			f.attributes.repool(v, after.Address)
			dirty[fsm.HostPrefix(after.Address)] = true
		})
	}
	f.rechosen(v, dirty)
	fsm.Changes(f.view, v, fsm.TableNodes, func(before, after *fsm.Node) {
		if before != nil && after != nil && !before.Acknowledged.IsZero() &&
			!after.Acknowledged.Before(before.Acknowledged) && slices.Equal(before.Failed, after.Failed) {
			if before.Acknowledged != after.Acknowledged {
				maps.Copy(dirty, f.unsettled[after.ID]) // hops that were announced stay so
			}
			return
		}
		if after == nil {
			after = before
		}
		for _, r := range fsm.List[*fsm.Route](v, fsm.TableRoutes) {
			if slices.ContainsFunc(r.NextHops, func(h fsm.NextHop) bool { return h.Node() == after.ID }) {
				dirty[r.Prefix] = true
			}
		}
	})
	return dirty
}

// rechosen notes the addresses of Services that other advertisements choose now, or that have other endpoints where those weigh. A
// Service that comes or goes does so without any.
func (f *Follower) rechosen(v *fsm.View, dirty map[netip.Prefix]bool) {
	ads := f.attributes.advertisements
	choosy := slices.ContainsFunc(ads, func(ad *fsm.Advertisement) bool { return ad.Terms.OnlyServices })
	weighted := slices.ContainsFunc(ads, func(ad *fsm.Advertisement) bool { return ad.Terms.Weighted })
	if !choosy && !weighted {
		return
	}
	fsm.Changes(f.view, v, fsm.TableServices, func(before, after *fsm.Service) {
		if before == nil || after == nil || slices.Equal(before.Advertisements(), after.Advertisements()) &&
			(!weighted || slices.EqualFunc(before.Endpoints, after.Endpoints, weighsAlike)) {
			return
		}
		for _, own := range v.Addresses(after.ID) {
			dirty[fsm.HostPrefix(own.Address)] = true
		}
	})
}

// splice derives the prefixes anew and puts their paths in place.
func (f *Follower) splice(touched []netip.Prefix) {
	f.paths = f.paths.With(touched, func(prefix netip.Prefix) []bgp.Path {
		if r, ok := fsm.Get[*fsm.Route](f.view, fsm.TableRoutes, prefix.String()); ok {
			return f.pathsOf(r)
		}
		return nil
	})
}

// pathsOf gives the paths of a route, in order, and notes which hops wait for their node.
func (f *Follower) pathsOf(r *fsm.Route) []bgp.Path {
	settings := f.view.Group().Settings
	node := func(id fsm.NodeID) *fsm.Node {
		n, _ := fsm.Get[*fsm.Node](f.view, fsm.TableNodes, string(id))
		return n
	}
	f.forget(r)
	for _, h := range r.NextHops {
		if !h.Withdrawing && !fsm.Announceable(r.Prefix, h, node(h.Node()), settings) {
			if f.unsettled[h.Node()] == nil {
				f.unsettled[h.Node()] = map[netip.Prefix]bool{}
			}
			f.unsettled[h.Node()][r.Prefix] = true
		}
	}
	return f.attributes.paths(r, node, settings)
}

func (f *Follower) forget(r *fsm.Route) {
	for _, h := range r.NextHops {
		delete(f.unsettled[h.Node()], r.Prefix)
	}
}
