// SPDX-License-Identifier: Apache-2.0

package records

import (
	"slices"
	"strings"

	"fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/fsm"
)

// drain tells by the record how far a drain has come: what it left behind it, and on whom that hangs.
func (r *renderer) drain(d *fsm.Drain) any {
	doc := records.Drain{
		Name: d.Key(), Of: string(d.Of), Subject: d.Name, Since: revision(d.Since), Left: []records.DrainLeft{},
		Flows: r.drainFlows(d),
	}
	members := fsm.List[*fsm.Member](r.view, fsm.TableMembers)
	if d.Of == fsm.DrainMember {
		doc.Left = r.memberLeft(d, members)
		doc.Done = len(doc.Left) == 0
		return doc
	}
	for _, route := range fsm.List[*fsm.Route](r.view, fsm.TableRoutes) {
		for _, h := range route.NextHops {
			if r.drains(d, route, h) {
				doc.Left = append(doc.Left, r.drainLeft(route, h, members, notLeft(d.Of, route)))
			}
		}
	}
	doc.Done = len(doc.Left) == 0
	return doc
}

// drainFlows tells what is left of the connections by way of a node that is drained.
func (r *renderer) drainFlows(d *fsm.Drain) []records.DrainFlows {
	if d.Of != fsm.DrainNode || r.flows == nil {
		return []records.DrainFlows{}
	}
	f, told := r.flows(fsm.NodeID(d.Name))
	if !told {
		return []records.DrainFlows{}
	}
	return []records.DrainFlows{{Node: d.Name, Open: f.Open, Busy: f.Busy, AgeMs: f.Age.Milliseconds(), Why: f.Why}}
}

// memberLeft tells what a member that is drained still does.
func (r *renderer) memberLeft(d *fsm.Drain, members []*fsm.Member) []records.DrainLeft {
	left := []records.DrainLeft{}
	add := func(state, why string, waitsFor ...string) {
		left = append(left, records.DrainLeft{State: state, Why: why, WaitsFor: append([]string{}, waitsFor...)})
	}
	if r.leader == d.Name {
		add("leading", "no other member that stays could take over yet")
	}
	var behind []string
	ended := true
	for _, m := range members {
		switch {
		case m.Name == d.Name:
			ended = ended && (m.Announced.IsZero() || !m.Announced.Before(d.Aside))
		case !r.view.Drained(fsm.DrainMember, m.Name) && m.Announced.Before(d.Since):
			behind = append(behind, m.Name)
		}
	}
	switch {
	case d.Aside.IsZero():
		add("announcing", "until another member holds a session with each peer of this one and has announced the same, and a quorum "+
			"answers without this one; its log says what is missing", behind...)
	case !ended:
		add("ending", "it has not said yet that its BGP sessions have ended", d.Name)
	}
	return left
}

// drains tells whether a drain is to take a hop away. An address leads past a Service once all who own it are drained; those who
// share it with others lead to their endpoints no more, and no hop says whose it is.
func (r *renderer) drains(d *fsm.Drain, route *fsm.Route, h fsm.NextHop) bool {
	if d.Of == fsm.DrainNode {
		return string(h.Node()) == d.Name
	}
	owners := slices.DeleteFunc(r.view.Owners(route.Prefix.Addr().String()), func(a *fsm.Allocation) bool { return a.Releasing })
	owns := func(a *fsm.Allocation) bool { return string(a.Service) == d.Name }
	drained := func(a *fsm.Allocation) bool { return r.view.Drained(fsm.DrainService, string(a.Service)) }
	return slices.ContainsFunc(owners, owns) && !slices.ContainsFunc(owners, func(a *fsm.Allocation) bool { return !drained(a) })
}

// notLeft tells why a hop stays that a drain is to take away. That of a Service leaves none, whatever else there is.
func notLeft(of fsm.DrainOf, route *fsm.Route) string {
	if of == fsm.DrainService {
		return "the leader has yet to withdraw it"
	}
	return "no other node may be announced yet; `fairlead why " + route.Prefix.Addr().String() + "` tells why"
}

// drainLeft tells of a hop that is to go. Stays is why it is not being withdrawn yet, where it is not.
func (r *renderer) drainLeft(route *fsm.Route, h fsm.NextHop, members []*fsm.Member, stays string) records.DrainLeft {
	left := records.DrainLeft{
		Prefix: route.Prefix.String(), Node: string(h.Node()), Address: h.Address().String(), State: string(r.view.HopState(route, h)),
		WaitsFor: []string{}, Why: stays,
	}
	if !h.Withdrawing {
		return left
	}
	for _, m := range members {
		if m.WithdrawnIn(r.view.Group().Format).Before(h.Since) {
			left.WaitsFor = append(left.WaitsFor, m.Name)
		}
	}
	if n, ok := fsm.Get[*fsm.Node](r.view, fsm.TableNodes, string(h.Node())); ok && n.Speaking.MayBeHeld(h.Since) {
		left.WaitsFor = append(left.WaitsFor, "the speaker of "+string(h.Node()))
	}
	left.Why = "the leader has yet to end the withdrawal"
	if len(left.WaitsFor) > 0 {
		left.Why = "not withdrawn yet, or a switch may hold it still, by " + strings.Join(left.WaitsFor, ", ")
	}
	return left
}
