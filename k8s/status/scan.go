// SPDX-License-Identifier: Apache-2.0

package status

import (
	"net/netip"
	"slices"

	"fairlead.io/fairlead/fsm"
)

// scan names the Services for which Project or tell may say something else of the newer of two views of the record: few,
// however many there are. All means every Service.
func scan(before, now *fsm.View) (concerned map[fsm.ServiceID]bool, all bool) {
	if before == nil || groupDiffers(before, now) {
		return nil, true
	}
	c := changes{before: before, now: now, out: map[fsm.ServiceID]bool{}}
	fsm.Changes(before, now, fsm.TableServices, func(old, new *fsm.Service) { c.out[either(old, new).ID] = true })
	fsm.Changes(before, now, fsm.TableAllocations, func(old, new *fsm.Allocation) { c.out[either(old, new).Service] = true })
	fsm.Changes(before, now, fsm.TableRoutes, func(old, new *fsm.Route) { c.owners(either(old, new).Prefix.Addr()) })
	fsm.Changes(before, now, fsm.TableNodes, c.node)
	then, since := newestMarks(before), newestMarks(now)
	if !slices.EqualFunc(then, since, func(a, b heard) bool { return a.sessions.Equal(b.sessions) }) {
		return nil, true
	}
	for i := range since {
		c.marks(then[i].upto, since[i].upto)
	}
	return c.out, false
}

// groupDiffers tells whether something changed that all Services depend on.
func groupDiffers(a, b *fsm.View) bool {
	return a.Group().Quarantine != b.Group().Quarantine || a.Group().Settings != b.Group().Settings ||
		fsm.Differ(a, b, fsm.TablePeers, fsm.TableAdvertisements, fsm.TableL2Advertisements)
}

func either[R comparable](old, new R) R {
	var none R
	if new != none {
		return new
	}
	return old
}

// changes gathers the Services that a change concerns.
type changes struct {
	before, now *fsm.View
	out         map[fsm.ServiceID]bool
}

func (c *changes) owners(a netip.Addr) {
	for _, v := range []*fsm.View{c.before, c.now} {
		for _, o := range v.Owners(a.String()) {
			c.out[o.Service] = true
		}
	}
}

// hops names the owners of every address with a hop that matters.
func (c *changes) hops(matters func(h fsm.NextHop) bool) {
	for _, r := range fsm.List[*fsm.Route](c.now, fsm.TableRoutes) {
		if slices.ContainsFunc(r.NextHops, matters) {
			c.owners(r.Prefix.Addr())
		}
	}
}

// node looks for hops whose state a change of their node may have changed. An acknowledgement that only went on says
// nothing new of a hop that an earlier one went past. Of one that it just reached it does: see since.
func (c *changes) node(old, new *fsm.Node) {
	id := either(old, new).ID
	onward := old != nil && new != nil && old.Boot == new.Boot && !new.Acknowledged.Before(old.Acknowledged) && slices.Equal(old.Failed, new.Failed) &&
		old.Speaking.Equal(new.Speaking)
	c.hops(func(h fsm.NextHop) bool {
		return h.Node() == id && (!onward || !h.Since.Before(old.Acknowledged))
	})
}

// marks looks for hops that members' marks newly cover, or cover no more: the newest one runs back when all members
// restart or are forgotten, and one address that waits for them again may be what a Service is said to wait for.
func (c *changes) marks(before, now fsm.Revision) {
	if before == now {
		return
	}
	c.hops(func(h fsm.NextHop) bool {
		since := c.since(h)
		return before.Before(since) != now.Before(since)
	})
}

// since is what a member's mark must reach for a hop to be announced. It is as before where node names nobody.
func (c *changes) since(h fsm.NextHop) fsm.Revision {
	if n, ok := fsm.Get[*fsm.Node](c.now, fsm.TableNodes, string(h.Node())); ok && n.Acknowledged == h.Since {
		return n.AcknowledgedAt
	}
	return h.Since
}

// heard is up to where any of the members announced the record whose sessions are the same.
type heard struct {
	sessions fsm.Sessions
	upto     fsm.Revision
}

// newestMarks are the newest of members by their sessions: of those with the same one is enough for a hop to be announced. Mostly all have.
func newestMarks(v *fsm.View) (out []heard) {
	for _, m := range v.Speakers() {
		i := slices.IndexFunc(out, func(h heard) bool { return h.sessions.Equal(m.Sessions) })
		if i < 0 {
			out, i = append(out, heard{sessions: m.Sessions}), len(out)
		}
		if out[i].upto.Before(m.Announced) {
			out[i].upto = m.Announced
		}
	}
	return out
}

// reworded names the Services of which the leader says something else than before.
func reworded(v *fsm.View, before, now Explanations, concerned map[fsm.ServiceID]bool) {
	say := func(a, b Explanations) {
		for key, list := range a {
			if slices.Equal(list, b[key]) {
				continue
			}
			switch fsm.Table(key[0]) {
			case fsm.TableServices:
				concerned[fsm.ServiceID(key[1])] = true
			case fsm.TableRoutes:
				if prefix, err := netip.ParsePrefix(key[1]); err == nil {
					for _, o := range v.Owners(prefix.Addr().String()) {
						concerned[o.Service] = true
					}
				}
			}
		}
	}
	say(before, now)
	say(now, before)
}
