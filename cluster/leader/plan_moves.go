// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"fairlead.io/fairlead/fsm"
)

// movesOf tells where operators moved Services.
func movesOf(record *fsm.View) map[fsm.ServiceID]fsm.NodeID {
	if record.Count(fsm.TableMoves) == 0 {
		return nil
	}
	to := map[fsm.ServiceID]fsm.NodeID{}
	for _, m := range fsm.List[*fsm.Move](record, fsm.TableMoves) {
		to[m.Service] = m.Node
	}
	return to
}

// movedTo is the node that an address shall lead to alone, by an operator's word: all who have it were moved there. Empty for
// none.
func (p *planner) movedTo(a netip.Addr) fsm.NodeID {
	if len(p.moves) == 0 || len(p.claims[a]) == 0 {
		return ""
	}
	node := p.moves[p.claims[a][0].owner.id]
	for _, c := range p.claims[a] {
		if p.moves[c.owner.id] != node || c.owner.next.Everywhere() {
			return ""
		}
	}
	return node
}

// passes tells whether a node without endpoints may carry an address: somewhere there is one, and nobody asks for the nodes of
// endpoints alone.
func (p *planner) passes(a netip.Addr) bool {
	claims := p.led(p.claims[a])
	local := slices.ContainsFunc(claims, func(c *claim) bool { return c.owner.next.Local })
	return !local && slices.ContainsFunc(claims, func(c *claim) bool { return len(p.serving(c.owner.next, a)) > 0 })
}

// onSegment tells whether nodes answer for an address at layer 2. There the holder of its lease has the traffic, and is chosen of
// the next hops by what links work, which the plan does not know: the others stay, so that one of them can follow it.
func (p *planner) onSegment(a netip.Addr) bool {
	return slices.ContainsFunc(p.claims[a], func(c *claim) bool { return p.in.Record.OnSegment(c.pool) })
}

// move is what comes of an operator's word on one address.
type move struct {
	to    fsm.NodeID // empty: nobody moved it
	fit   fit        // of that node; without use if it does not serve the address
	alone bool       // the address leads there alone
}

// takes tells whether the node may have it: otherwise the address leads where it would without the word.
func (m *move) takes() bool { return m.to != "" && m.fit.use == used && !m.fit.aside }

// moveOf judges the move of an address to a node, of those that serve it.
func (p *planner) moveOf(prefix netip.Prefix, nodes []fsm.NodeID) (m move) {
	m.to = p.movedTo(prefix.Addr())
	if _, serves := slices.BinarySearch(nodes, m.to); m.to == "" || !serves {
		return m
	}
	m.fit = p.fitOf(prefix, m.to)
	m.alone = m.takes() && m.fit.acknowledged && !p.onSegment(prefix.Addr())
	return m
}

// explainMove says what keeps an address from leading where it was moved.
func (p *planner) explainMove(prefix netip.Prefix, m *move) {
	switch why := p.notMoved(prefix.Addr()); {
	case why != "":
		p.explain(fsm.TableRoutes, prefix.String(), WaitsForMove, why+"; it leads where it would without the move")
	case m.to == "" || m.alone:
	case len(p.servingItself(prefix.Addr())) == 0: // it would lead nowhere without the move, too
	case !m.takes():
		p.explain(fsm.TableRoutes, prefix.String(), WaitsForMove, "it was moved to "+p.sayUnfit(prefix.Addr(), m)+"; until that changes it leads where it would otherwise")
	case !m.fit.acknowledged:
		p.explain(fsm.TableRoutes, prefix.String(), WaitsForRules, "its other next hops stay until "+string(m.to)+", to which it was moved, acknowledged its rules")
	}
}

// notMoved tells why an address is not moved although a Service was that has it; empty otherwise.
func (p *planner) notMoved(a netip.Addr) string {
	if p.movedTo(a) != "" {
		return ""
	}
	why := ""
	for _, c := range p.claims[a] {
		to := p.moves[c.owner.id]
		switch {
		case to == "":
		case c.owner.next.Everywhere():
			return string(c.owner.id) + ", which was moved to " + string(to) + ", asks for every node as a next hop"
		default:
			why = string(c.owner.id) + " was moved to " + string(to) + ", and not all who share the address were"
		}
	}
	return why
}

// sayUnfit names the node that an address was moved to, and why it does not take it.
func (p *planner) sayUnfit(a netip.Addr, m *move) string {
	node := string(m.to)
	switch {
	case m.fit.hop.Node == "":
		return node + ", where no endpoint of it is ready"
	case m.fit.use == used:
		return node + ", which " + p.aside(p.nodes[m.to]).Text
	}
	return node + ", which " + p.sayFit(m.fit, a)
}

// movedBy tells who moved a Service to a node, when and why; zero if nobody did.
func movedBy(record *fsm.View, id fsm.ServiceID) Reason {
	m, moved := fsm.Get[*fsm.Move](record, fsm.TableMoves, string(id))
	if !moved {
		return Reason{}
	}
	last := m.History[len(m.History)-1] // every command on it leaves a step
	text := fmt.Sprintf("%s moved it to node %s at %s", last.By().Who(), m.Node, time.UnixMilli(last.AtUnixMilli).UTC().Format(time.RFC3339))
	if last.By().Reason != "" {
		text += ": " + last.By().Reason
	}
	return Reason{Moved, text}
}

// moveReason tells of a node what the move of an address means for it; false where it means nothing.
func (p *planner) moveReason(id fsm.NodeID, serves bool, d *decision) (Reason, bool) {
	switch m := &d.move; {
	case !m.takes():
	case id == m.to && m.alone:
		return Reason{MovedHere, "an operator moved the Service here"}, true
	case id == m.to && m.fit.acknowledged:
		return Reason{MovedHere, "an operator moved the Service here: it is the first to answer at layer 2"}, true
	case id == m.to:
		return Reason{MovedHere, "an operator moved the Service here; other nodes go once it acknowledged its rules"}, true
	case m.alone && serves:
		return Reason{MovedAway, "an operator moved the Service to " + string(m.to)}, true
	}
	return Reason{}, false
}
