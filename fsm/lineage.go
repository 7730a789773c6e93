// SPDX-License-Identifier: Apache-2.0

package fsm

// Lineage names the log that the members of a group share. Epochs that a restore begins go through the log and are of one lineage: who
// missed one reads it like anything else. A recover goes on from one member's copy, where others may have another: it begins a lineage.
type Lineage struct {
	Group GroupID `pb:"1" json:"group"` // under which the log was begun
	Epoch Epoch   `pb:"2" json:"epoch"` // that the lineage began in
	// Nonce tells apart who was recovered in the same epoch. It is empty for the lineage that a group began with.
	Nonce string `pb:"3" json:"nonce,omitempty"`
}

// MaxNonceBytes bounds Lineage.Nonce.
const MaxNonceBytes = 16

// formatLineages is the first format in which lineages are told from epochs. Before it each epoch is one.
const formatLineages uint32 = 2

// Of gives the lineage that a group's log is of.
func (g *Group) Of() Lineage {
	if g.Lineage == (Lineage{}) {
		return Lineage{Group: g.ID, Epoch: g.Epoch}
	}
	return g.Lineage
}

// bounded refuses what no handshake could name.
func (l Lineage) bounded(tx *txn, epoch Epoch) (Outcome, bool) {
	if l == (Lineage{}) {
		return Outcome{}, true
	}
	if out, old := tx.formatBelow(formatLineages, "lineage"); old {
		return out, false
	}
	if l.Group == "" || l.Epoch == 0 || l.Epoch > epoch || len(l.Nonce) > MaxNonceBytes {
		return refuse(RejectInvalid, "lineage", "of a group and of an epoch up to the record's", string(l.Group)+"/"+utoa(uint64(l.Epoch))), false
	}
	return Outcome{}, true
}
