// SPDX-License-Identifier: Apache-2.0

package fsm

import "fmt"

// Number is one that a policy had which is gone, or has another now, and that hosts may still hold: whoever had it next would be taken
// for that policy there. It stays until every node whose agent carries policies out, and every host outside the cluster that was there,
// has acknowledged what came after it. From format 2 on.
type Number struct {
	seal
	Number uint32   `pb:"1" json:"number"`
	Of     PolicyID `pb:"2" json:"of"`
	// At is when it was given up: a node that acknowledged this holds it no more.
	At Revision `pb:"3" json:"at"`
}

// maxNumbers bounds how many are kept while a node stays away: beyond that the oldest go.
const maxNumbers = 4096

// Table is TableNumbers.
func (*Number) Table() Table { return TableNumbers }

// Key begins with when it was given up, so that the oldest come first.
func (n *Number) Key() string {
	return fmt.Sprintf("%016x%016x%08x", uint64(n.At.Epoch), uint64(n.At.Index), n.Number)
}

// NumberHolder is the policy that has a number, or had it while hosts may still hold it; gone says that. It is false for a free number.
func (v *View) NumberHolder(number uint32) (id PolicyID, gone, held bool) {
	if r, ok := policyWith(v.rows, number); ok {
		return r.ID, false, true
	}
	if n, ok := lastHeld(v.rows, number); ok {
		return n.Of, true, true
	}
	return "", false, false
}

func policyWith(r *rows, number uint32) (*Policy, bool) {
	has := listRefs[*Policy](r, TablePolicies, refNumber, utoa(uint64(number)))
	if len(has) == 0 {
		return nil, false
	}
	return has[0], true
}

// lastHeld finds the newest row of a number that hosts may still hold.
func lastHeld(r *rows, number uint32) (*Number, bool) {
	all := listRefs[*Number](r, TableNumbers, refNumber, utoa(uint64(number)))
	if len(all) == 0 {
		return nil, false
	}
	last := all[len(all)-1]
	upto, any := heldUpto(r)
	return last, any && upto.Before(last.At)
}

// heldUpto is what every node has acknowledged whose agent carries policies out, and every host outside the cluster; false if there is
// none.
func heldUpto(r *rows) (upto Revision, any bool) {
	note := func(has Revision) {
		if !any || has.Before(upto) {
			upto, any = has, true
		}
	}
	for _, n := range list[*Node](r, TableNodes) {
		if n.Redirects {
			note(n.Acknowledged)
		}
	}
	for _, h := range list[*Host](r, TableHosts) {
		if h.Boot != "" {
			note(h.Acknowledged)
		}
	}
	return upto, any
}

// giveUp keeps a number from others while hosts may hold it, and forgets those that they hold no more.
func (tx *txn) giveUp(number uint32, of PolicyID) {
	upto, any := heldUpto(tx.rows)
	held := 0
	for _, n := range list[*Number](tx.rows, TableNumbers) {
		if !any || !upto.Before(n.At) {
			tx.remove(n)
			continue
		}
		held++
	}
	for _, n := range list[*Number](tx.rows, TableNumbers)[:max(0, held-maxNumbers+1)] {
		tx.remove(n)
	}
	if any && upto.Before(tx.revision()) {
		tx.put(&Number{Number: number, Of: of, At: tx.revision()})
	}
}

// numberFree tells whether a number may be given to a policy. One that it had before under its name it may have again.
func (tx *txn) numberFree(n uint32, id PolicyID) bool {
	if n == 0 {
		return false
	}
	if has, ok := policyWith(tx.rows, n); ok && has.ID != id {
		return false
	}
	last, held := lastHeld(tx.rows, n)
	return !held || last.Of == id
}

// nextNumber is one that no policy has. A host may hold what is gone from the record, so they are given in turn.
func (tx *txn) nextNumber() uint32 {
	g := *tx.group()
	for g.LastNumber++; !tx.numberFree(g.LastNumber, ""); {
		g.LastNumber++
	}
	tx.put(&g)
	return g.LastNumber
}

// NumberNode gives a node its id on hosts, once: the one that is asked for if no other node has it, else, or for 0, one that none has.
type NumberNode struct {
	ID     NodeID `pb:"1"`
	Number uint32 `pb:"2"`
}

// Kind is KindNumberNode.
func (*NumberNode) Kind() Kind { return KindNumberNode }

func (c *NumberNode) apply(tx *txn) Outcome {
	subject := "node " + string(c.ID)
	if out, old := tx.formatBelow(formatPolicies, subject); old {
		return out
	}
	n, ok := find[*Node](tx.rows, TableNodes, string(c.ID))
	switch {
	case !ok:
		return refuse(RejectNotFound, subject, "", "")
	case n.Number != 0:
		return refuse(RejectExists, subject, utoa(uint64(n.Number)), utoa(uint64(c.Number)))
	}
	next := *n
	if next.Number = c.Number; !tx.nodeNumberFree(c.Number) {
		g := *tx.group()
		for g.LastNumber++; !tx.nodeNumberFree(g.LastNumber); {
			g.LastNumber++
		}
		tx.put(&g)
		next.Number = g.LastNumber
	}
	tx.put(&next)
	return tx.ok()
}

func (tx *txn) nodeNumberFree(n uint32) bool {
	return n != 0 && len(listRefs[*Node](tx.rows, TableNodes, refNumber, utoa(uint64(n)))) == 0
}

// ReportPolicySupport says whether the agent of a node carries policies out.
type ReportPolicySupport struct {
	Node    NodeID `pb:"1"`
	Boot    BootID `pb:"2" max:"128"` // that the agent runs under
	Carries bool   `pb:"3"`
}

// Kind is KindReportPolicySupport.
func (*ReportPolicySupport) Kind() Kind { return KindReportPolicySupport }

func (c *ReportPolicySupport) apply(tx *txn) Outcome {
	n, out := tx.says(c.Node, c.Boot, formatPolicies)
	if n == nil || n.Redirects == c.Carries {
		return out
	}
	next := *n
	next.Redirects = c.Carries
	tx.put(&next)
	return tx.ok()
}
