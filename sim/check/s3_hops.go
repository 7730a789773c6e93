// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

// hopsOf is whose the next hops of addresses are, and which member announces those of several Services: an address that belongs
// to another Service than before, as after a restore, leads to the nodes of the one or of the other, not to both. Members that
// cannot say anything new are not judged, and all may take exchange to replace one by the other.
type hopsOf struct {
	services map[netip.Prefix]map[netip.Addr][]fsm.ServiceID // who had the address when a hop was committed last
	both     overdue
}

// exchange is how long a member may announce the nodes of a former owner beside those of the next one.
const exchange = time.Second

func newHopsOf() hopsOf {
	return hopsOf{services: map[netip.Prefix]map[netip.Addr][]fsm.ServiceID{}, both: newOverdue()}
}

// step takes from the record whose hops are.
func (h *hopsOf) step(before *fsm.View, s *step) {
	fsm.Changes(before, s.after, fsm.TableRoutes, func(_, is *fsm.Route) {
		if is != nil {
			h.commit(s.after, is)
		}
	})
	fsm.Changes(before, s.after, fsm.TableAllocations, func(_, is *fsm.Allocation) {
		if is == nil {
			return
		}
		if r, ok := fsm.Get[*fsm.Route](s.after, fsm.TableRoutes, fsm.HostPrefix(is.Address).String()); ok {
			h.commit(s.after, r)
		}
	})
}

// commit notes whose the hops of a route are that are not on their way out.
func (h *hopsOf) commit(v *fsm.View, r *fsm.Route) {
	var owners []fsm.ServiceID
	for _, o := range v.Owners(r.Prefix.Addr().String()) {
		owners = append(owners, o.Service)
	}
	if h.services[r.Prefix] == nil {
		h.services[r.Prefix] = map[netip.Addr][]fsm.ServiceID{}
	}
	for _, hop := range r.NextHops {
		if !hop.Withdrawing && len(owners) > 0 {
			h.services[r.Prefix][hop.Address()] = owners
		}
	}
}

// tick looks at what every member announces to each switch.
func (h *hopsOf) tick(j *judge) {
	if len(h.services) == 0 {
		return
	}
	s := j.scene
	for at, f := range s.ways.all {
		for _, m := range s.members() {
			l := link{at.at, m}
			speaks := s.runs[m] && s.sessions[l].up && !s.cut[l] && s.frozen[m] == 0 && s.unexcused(at.at)
			why := h.mixed(at.prefix, m, f)
			h.both.note(at.at+" "+at.prefix.String()+" by "+m, speaks && why != "", s.now, why, f.number)
		}
	}
	for _, key := range h.both.over(s.now, exchange) {
		w := h.both.since[key]
		j.broken(key, fmt.Sprintf("since %s it leads to nodes of several Services: %s", w.at, w.why), w.event)
	}
}

// mixed says which two hops of a member's paths are of different Services, "" if none.
func (h *hopsOf) mixed(prefix netip.Prefix, member string, f forwarding) string {
	var first event.Path
	var owners []fsm.ServiceID
	for _, p := range f.Paths {
		of := h.services[prefix][p.NextHop]
		switch {
		case p.Member != member || !p.Best || len(of) == 0:
		case owners == nil:
			first, owners = p, of
		case !slices.ContainsFunc(of, func(id fsm.ServiceID) bool { return slices.Contains(owners, id) }):
			return fmt.Sprintf("%s of %v, %s of %v", first.NextHop, owners, p.NextHop, of)
		}
	}
	return ""
}
