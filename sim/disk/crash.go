// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// sector is what a disk writes wholly or not at all, in bytes.
const sector = 512

// change is a change of directories: node leaves from[old], if from is set, and enters to[name], if to is set.
type change struct {
	node     *Node
	from, to *Node
	old      string
	name     string
}

// concerns says whether a Sync of n has to make the change durable.
func (c change) concerns(n *Node) bool { return c.node == n || c.from == n || c.to == n }

// change does it for everybody to see.
func (d *Disk) change(c change) {
	if c.from != nil {
		delete(c.from.entries, c.old)
		c.node.parent = nil
	}
	if c.to != nil {
		c.to.entries[c.name] = c.node
		c.node.parent = c.to
	}
	d.changes = append(d.changes, c)
}

// commit makes durable what concerns n and, as a journal does, everything before.
func (d *Disk) commit(n *Node) {
	last := len(d.changes) - 1
	for last >= 0 && !d.changes[last].concerns(n) {
		last--
	}
	for _, c := range d.changes[:last+1] {
		c.keep()
	}
	d.changes = slices.Delete(d.changes, 0, last+1)
}

// keep makes it durable.
func (c change) keep() {
	if c.from != nil {
		delete(c.from.kept, c.old)
	}
	if c.to != nil {
		c.to.kept[c.name] = c.node
	}
}

// Crash is the loss of power: the disk becomes what survives of it, which r decides. Nobody may have it open.
func (d *Disk) Crash(r *rand.Rand) {
	if r.IntN(2) == 0 {
		d.crashJournal(r)
	} else {
		d.crashDirectories(r)
	}
	d.changes = nil
	d.root.crash(r, nil)
}

// crashJournal keeps the changes of directories up to some moment.
func (d *Disk) crashJournal(r *rand.Rand) {
	for _, c := range d.changes[:r.IntN(len(d.changes)+1)] {
		c.keep()
	}
}

// crashDirectories keeps the changes of each directory up to a moment of its own.
func (d *Disk) crashDirectories(r *rand.Rand) {
	stopped := map[*Node]bool{}
	for _, c := range d.changes {
		if stopped[c.from] || stopped[c.to] || r.IntN(4) == 0 || !d.possible(c) {
			for _, dir := range []*Node{c.from, c.to} {
				if dir != nil {
					stopped[dir] = true
				}
			}
			continue
		}
		c.keep()
	}
}

// possible says whether the change fits what is durable, where earlier changes of other directories may have been lost.
func (d *Disk) possible(c change) bool {
	if c.to == nil {
		return len(c.node.kept) == 0
	}
	there := c.to.kept[c.name]
	return (there == nil || len(there.kept) == 0) && d.root.holds(c.to) && !c.node.holds(c.to)
}

// holds says whether other is n or durably below it.
func (n *Node) holds(other *Node) bool {
	if n == other {
		return true
	}
	for _, below := range n.kept {
		if below.holds(other) {
			return true
		}
	}
	return false
}

// crash makes a durable tree the one that is seen.
func (n *Node) crash(r *rand.Rand, parent *Node) {
	n.parent = parent
	if n.dir {
		n.entries = maps.Clone(n.kept)
		for _, e := range n.Entries() {
			e.crash(r, n)
		}
		return
	}
	n.survive(r)
	n.data, n.pending = slices.Clone(n.durable), nil
}

// survive decides which of the pending writes of a file a crash leaves.
func (n *Node) survive(r *rand.Rand) {
	if len(n.pending) == 0 {
		return
	}
	first, all := r.IntN(len(n.pending)+1), false
	torn := -1
	switch r.IntN(4) {
	case 0:
		return
	case 1:
		first = len(n.pending)
	case 2: // the first few, and a part of the next
		torn = first
	case 3: // any few, one of them torn
		all, torn = true, r.IntN(len(n.pending))
	}
	for k, w := range n.pending {
		switch {
		case k == torn:
			n.tear(r, w)
		case k < first && !all, all && r.IntN(2) == 0:
			n.durable = w.apply(n.durable)
		}
	}
}

// tear keeps the beginning of a write.
func (n *Node) tear(r *rand.Rand, w write) {
	if w.data == nil {
		return
	}
	end := w.at + r.IntN(len(w.data))
	if end < len(n.durable) {
		end -= end % sector
	}
	if end > w.at {
		n.durable = write{at: w.at, data: w.data[:end-w.at]}.apply(n.durable)
	}
}
