// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"slices"
	"strings"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// planWithdrawals takes withdrawn hops off the record once every member said so or is excused, and their nodes where those
// announce themselves (S9).
func (p *planner) planWithdrawals() {
	members := fsm.List[*fsm.Member](p.in.Record, fsm.TableMembers)
	for _, r := range p.routes {
		left := 0
		for _, h := range r.NextHops {
			if !h.Withdrawing || !p.finish(r, h, members) {
				left++
			}
		}
		if left == 0 {
			p.unrouted[r.Prefix.Addr()] = true
		}
	}
}

// finish proposes the end of one withdrawal, or explains what it waits for.
func (p *planner) finish(r *fsm.Route, h fsm.NextHop, members []*fsm.Member) bool {
	excused, lagging := p.notWithdrawn(h, members)
	silent, held := p.heldByNode(h)
	lease, leased := fsm.Get[*fsm.Lease](p.in.Record, fsm.TableLeases, r.Prefix.Addr().String())
	switch {
	case leased && lease.Holder == h.Node():
		p.explain(fsm.TableRoutes, r.Key(), WaitsForHolder, "node "+string(h.Node())+" answers for it on its segment until its lease ends")
		return false
	case len(lagging) > 0:
		p.explain(fsm.TableRoutes, r.Key(), WaitsForMember, "the withdrawal of node "+string(h.Node())+" waits for "+strings.Join(lagging, ", "))
		return false
	case held:
		p.explain(fsm.TableRoutes, r.Key(), WaitsForMember, "the withdrawal of node "+string(h.Node())+" waits for its own speaker")
		return false
	case p.quarantined:
		p.explain(fsm.TableRoutes, r.Key(), WaitsForQuarantine, quarantineText)
		return false
	}
	reason := "every member withdrew it"
	if len(excused) > 0 || silent {
		reason = "every speaker withdrew it or was lost for longer than a switch keeps its paths"
	}
	p.proposeUrgent(reason, &fsm.FinishWithdrawal{
		Prefix: r.Prefix, Node: h.Node(), Address: h.Address(), Since: h.Since, Excused: excused, NodeExcused: silent,
	})
	return true
}

// heldByNode tells whether a switch may hold a withdrawn hop of its node's own speaker, or whether that was waited out.
func (p *planner) heldByNode(h fsm.NextHop) (excused, held bool) {
	n, ok := fsm.Get[*fsm.Node](p.in.Record, fsm.TableNodes, string(h.Node()))
	if !ok || !n.Speaking.MayBeHeld(h.Since) {
		return false, false
	}
	excused = slices.Contains(p.in.ExcusedNodes, h.Node())
	return excused, !excused
}

// notWithdrawn finds the members that have not said of a hop that no switch holds it: those that are waited for, by their
// names, and those that are not waited for any more.
func (p *planner) notWithdrawn(h fsm.NextHop, members []*fsm.Member) (excused []fsm.ServerID, lagging []string) {
	for _, m := range members {
		if !m.WithdrawnIn(p.in.Record.Group().Format).Before(h.Since) {
			continue
		}
		if slices.Contains(p.in.Excused, m.Server) {
			excused = append(excused, m.Server)
		} else {
			lagging = append(lagging, m.Name)
		}
	}
	return excused, lagging
}

// planMembers forgets servers that left the configuration once none of their paths can be left.
func (p *planner) planMembers() {
	if p.in.Servers == nil {
		return
	}
	for _, m := range fsm.List[*fsm.Member](p.in.Record, fsm.TableMembers) {
		switch {
		case slices.Contains(p.in.Servers, m.Server):
		case slices.Contains(p.in.Excused, m.Server):
			p.propose("left the group, and no switch can hold paths of it", &fsm.RemoveMember{Server: m.Server})
		default:
			p.explain(fsm.TableMembers, string(m.Server), WaitsForMember, "left the group; forgotten once no switch can hold paths of it")
		}
	}
}

// endQuarantine lets removals and grants begin again once the plan of complete views came to rest.
func (p *planner) endQuarantine() {
	if p.quarantined && p.seen.complete() && !p.in.Adopting && !p.in.Leased && len(p.out.Urgent)+len(p.out.Bulk) == 0 {
		if prefix, unheard := p.unheard(); unheard {
			p.explain(fsm.TableRoutes, prefix.String(), WaitsForRules, "taken over after a restore; the quarantine lasts until one of its nodes acknowledged it: see that its agent runs")
			return
		}
		p.propose("complete views were read and adopted", &fsm.EndQuarantine{Since: p.in.Record.Group().Quarantine})
	}
}

// observeViews says with the plan's own commands up to where each source was acted on, so that no older view of it
// is acted on later (design §5). It goes with the first of them. Alone it is not worth a commit.
func (p *planner) observeViews() {
	if len(p.out.Urgent)+len(p.out.Bulk) == 0 {
		return
	}
	var first []fsm.Proposal
	for _, a := range p.seen.views {
		if a.World.Source == "" {
			continue
		}
		if next, changed := observed(p.in.Record, a.World); changed {
			first = append(first, p.proposal("acted on", next))
		}
	}
	if len(p.out.Urgent) > 0 {
		p.out.Urgent = append(first, p.out.Urgent...)
		return
	}
	p.out.Bulk = append(first, p.out.Bulk...)
}

// observed says up to where a view is acted on, and whether the record does not say so yet.
func observed(record *fsm.View, w *world.World) (next *fsm.ObserveView, changed bool) {
	old, known := fsm.Get[*fsm.SourceView](record, fsm.TableViews, w.Source)
	next = &fsm.ObserveView{Source: w.Source, Cluster: w.Cluster}
	changed = !known || old.Rewind || old.Cluster != w.Cluster
	for _, k := range w.Kinds { // of the record there may be more: other plans are made from other kinds
		version, was := k.Version, uint64(0)
		if known && !old.Rewind {
			was = old.Version(string(k.Kind))
			version = max(version, was)
		}
		if version != 0 {
			next.Versions = append(next.Versions, fsm.KindVersion{Kind: string(k.Kind), Version: version})
			changed = changed || version != was
		}
	}
	return next, changed
}
