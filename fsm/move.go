// SPDX-License-Identifier: Apache-2.0

package fsm

// Move is an operator's word that the traffic of a Service shall come in by one node. It is a preference: while that node
// cannot serve, the addresses lead where they would without it. It lasts until an operator ends it, or until the Service or the
// node is gone. How far it has come is derived from routes, leases and marks.
type Move struct {
	seal
	Service ServiceID `pb:"1" json:"service"`
	Node    NodeID    `pb:"2" json:"node"`
	Since   Revision  `pb:"3" json:"since"` // of the node that it names now
	History Trail     `pb:"4" json:"history"`
}

// FormatMoves is the first format with moves: members before it cannot read them, and end where they come to one.
const FormatMoves = 2

// Table is TableMoves.
func (*Move) Table() Table { return TableMoves }

// Key is the Service's.
func (m *Move) Key() string { return string(m.Service) }

// Everywhere tells whether all eligible nodes shall be next hops of the Service, those without endpoints, too.
func (s *Service) Everywhere() bool { return s.AllNodes && !s.Local }

// MovedTo tells to which node operators moved an address: all Services that own it were moved there, and none of them asks
// for all nodes. Empty for none.
func (v *View) MovedTo(address string) NodeID {
	if v.Count(TableMoves) == 0 {
		return ""
	}
	node, all := NodeID(""), true
	for _, own := range v.Owners(address) {
		if own.Releasing {
			continue
		}
		m, moved := Get[*Move](v, TableMoves, string(own.Service))
		s, known := Get[*Service](v, TableServices, string(own.Service))
		if !moved || !known || s.Everywhere() || node != "" && node != m.Node {
			all = false
			continue
		}
		node = m.Node
	}
	if !all {
		return ""
	}
	return node
}

// BeginMove has the addresses of a Service lead to one node, as far as that can serve. To say so again changes nothing; to name
// another node moves it on.
type BeginMove struct {
	Service ServiceID `pb:"1"`
	Node    NodeID    `pb:"2"`
}

// Kind is KindBeginMove.
func (*BeginMove) Kind() Kind { return KindBeginMove }

// It is refused where it would be without effect from the start.
func (c *BeginMove) apply(tx *txn) Outcome {
	subject := "service " + string(c.Service)
	if out, old := tx.formatBelow(FormatMoves, "move of "+subject); old {
		return out
	}
	s, known := find[*Service](tx.rows, TableServices, string(c.Service))
	if !known {
		return refuse(RejectNotFound, subject, "", "")
	}
	n, known := find[*Node](tx.rows, TableNodes, string(c.Node))
	if !known {
		return refuse(RejectNotFound, "node "+string(c.Node), "", "")
	}
	next := &Move{Service: c.Service}
	if was, moved := find[*Move](tx.rows, TableMoves, string(c.Service)); moved {
		if was.Node == c.Node {
			return tx.ok()
		}
		*next = *was
	}
	if s.Everywhere() {
		return refuse(RejectWrongState, subject, "every node as a next hop", "those with endpoints")
	}
	if shared, with := tx.sharer(c.Service); shared != nil {
		return refuse(RejectInUse, subject, shared.Address.String()+" shared with "+string(with), "addresses of its own")
	}
	if why := tx.unfit(n); why != "" {
		return refuse(RejectWrongState, "node "+string(c.Node), why, "one that may serve")
	}
	next.Node, next.Since, next.History = c.Node, tx.revision(), tx.step(next.History, "moved to "+string(c.Node))
	tx.put(next)
	return tx.ok()
}

// sharer finds an address of a Service that another one has as well, and that one; nil if there is none.
func (tx *txn) sharer(id ServiceID) (*Allocation, ServiceID) {
	for _, own := range allocationsOf(tx.rows, id) {
		for _, other := range ownersOf(tx.rows, own.Address.String()) {
			if other.Service != id && !other.Releasing && !own.Releasing {
				return own, other.Service
			}
		}
	}
	return nil, ""
}

// unfit tells why a node may carry nothing new now; empty if it may.
func (tx *txn) unfit(n *Node) string {
	switch {
	case !n.Eligible:
		return "not eligible: " + n.Why
	case n.Liveness != NodeUp:
		return n.Liveness.String()
	case tx.drained(DrainNode, string(n.ID)):
		return "being drained"
	}
	return ""
}

// EndMove has the addresses of a Service lead where they would without an operator's word. To say so again changes nothing.
type EndMove struct {
	Service ServiceID `pb:"1"`
}

// Kind is KindEndMove.
func (*EndMove) Kind() Kind { return KindEndMove }

func (c *EndMove) apply(tx *txn) Outcome {
	_, known := find[*Service](tx.rows, TableServices, string(c.Service))
	if !tx.endMove(c.Service, "ended") && !known {
		return refuse(RejectNotFound, "service "+string(c.Service), "", "")
	}
	return tx.ok()
}

// endMove ends the move of a Service, if there is one.
func (tx *txn) endMove(id ServiceID, why string) bool {
	m, moved := find[*Move](tx.rows, TableMoves, string(id))
	if moved {
		tx.bury(m, m.History, why)
	}
	return moved
}

// endMovesTo ends the moves to a node.
func (tx *txn) endMovesTo(id NodeID, why string) {
	for _, m := range list[*Move](tx.rows, TableMoves) {
		if m.Node == id {
			tx.bury(m, m.History, why)
		}
	}
}
