// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"net/netip"
	"slices"

	"fairlead.io/fairlead/fsm"
)

// portLoss is a port of an address that a Service gave up while the address led somewhere.
type portLoss struct {
	address netip.Addr
	port    fsm.Port
	service fsm.ServiceID
}

// portLosses are ports that may still be passed on to Services which gave them up: until each node that the address leads
// to carried out something newer, or the address leads nowhere. Nobody else may get them before. What a node carried out
// is taken from itself, not from what the record was told of it.
type portLosses struct {
	since map[portLoss]fsm.Revision
	acted map[string]fsm.Revision // what nodes carried out
}

func newPortLosses() *portLosses {
	return &portLosses{since: map[portLoss]fsm.Revision{}, acted: map[string]fsm.Revision{}}
}

// forget drops what nobody can be led to any more.
func (l *portLosses) forget(v *fsm.View) {
	for loss, since := range l.since {
		if !l.leadsAstray(v, loss.address, since) {
			delete(l.since, loss)
		}
	}
}

// of lists, in order, the others to whom a port of an address may still be passed on.
func (l *portLosses) of(a netip.Addr, port fsm.Port, but fsm.ServiceID) (former []fsm.ServiceID) {
	for loss := range l.since {
		if loss.address == a && loss.port == port && loss.service != but {
			former = append(former, loss.service)
		}
	}
	slices.Sort(former)
	return former
}

// leadsAstray tells whether an address leads to a node that has not carried out a revision.
func (l *portLosses) leadsAstray(v *fsm.View, a netip.Addr, since fsm.Revision) bool {
	prefix := netip.PrefixFrom(a, a.BitLen())
	route, ok := fsm.Get[*fsm.Route](v, fsm.TableRoutes, prefix.String())
	if !ok {
		return false
	}
	return slices.ContainsFunc(route.NextHops, func(h fsm.NextHop) bool {
		n, known := fsm.Get[*fsm.Node](v, fsm.TableNodes, string(h.Node()))
		return !known || l.acted[string(h.Node())].Before(since) || slices.Contains(n.Failed, prefix)
	})
}

// comparePorts notes what the owners of an address gave up in a step, and tells of what others got too early. Groups that
// were not raised to format 2 do not remember what was given up, and where nodes acknowledge nothing they follow the
// cluster by themselves.
func (r *s3) comparePorts(a netip.Addr, was, is map[fsm.ServiceID]fsm.Allocation, s *step) {
	if g := s.after.Group(); g.Format < 2 || g.Settings.Unsteered {
		return
	}
	for id, o := range is {
		for _, p := range o.Ports() {
			delete(r.lost.since, portLoss{a, p, id})
		}
	}
	for id, o := range was {
		has := is[id]
		for _, p := range o.Ports() {
			if loss := (portLoss{a, p, id}); !slices.Contains(has.Ports(), p) && r.lost.leadsAstray(s.after, a, s.after.Revision()) {
				r.lost.since[loss] = s.after.Revision()
			}
		}
	}
	for _, id := range sortedKeys(is) {
		has, had := is[id], was[id]
		for _, p := range has.Ports() {
			if slices.Contains(had.Ports(), p) {
				continue
			}
			r.checked()
			if former := r.lost.of(a, p, id); len(former) > 0 {
				r.broken(a.String(), fmt.Sprintf("%s got port %d/%s while nodes may still pass it on to %s", id, p.Number, p.Protocol, former[0]), s.Number)
			}
		}
	}
}
