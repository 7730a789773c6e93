// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"fmt"
	"sync/atomic"

	"fairlead.io/fairlead/fsm/wire"
)

// LogEntry is a committed entry as Raft hands it over.
type LogEntry struct {
	Index Index
	Term  uint64
	Data  []byte
}

// State is one member's copy of the record. One goroutine applies; any number read through Read, which gives
// an immutable View. The zero State is not usable: see New.
type State struct {
	rows    *rows
	applied Index
	digest  Digest
	graves  int
	recent  digests
	alike   alike
	view    atomic.Pointer[View]
	waiters *waiters
	// published counts the views that were given out, for waiters.
	published uint64
}

// New gives an empty State, as every member starts.
func New() *State {
	s := &State{rows: newRows(), waiters: newWaiters()}
	s.publish(nil)
	return s
}

// Applied is the index of the newest entry that was applied, 0 for none.
func (s *State) Applied() Index { return s.Read().applied }

// Digest is equal on members with equal records. It costs nothing: applying keeps it current.
func (s *State) Digest() Digest { return s.Read().digest }

// Identity tells which group this record belongs to, its epoch and its format; zero before bootstrap.
func (s *State) Identity() (GroupID, Epoch, uint32) {
	g := s.Read().Group()
	return g.ID, g.Epoch, g.Format
}

// ApplyEntries applies committed entries in order and returns the outcomes of each entry's commands. Readers
// see whole entries only, some together. It panics on an entry that this release cannot read and on an index that does not rise: going on would
// fork the record.
func (s *State) ApplyEntries(entries []LogEntry) [][]Outcome {
	tx := s.begin()
	out := make([][]Outcome, len(entries))
	for i, e := range entries {
		out[i] = tx.applyEntry(e)
		s.recent.remember(e.Index, s.digest)
	}
	s.publish(tx.touched)
	return out
}

func (s *State) begin() *txn {
	return &txn{state: s, rows: s.rows, touched: map[Table]bool{}, fenced: map[string]bool{}}
}

// txn is the application of some entries: the only place from which the record changes.
type txn struct {
	state   *State
	rows    *rows
	term    uint64
	item    *Item
	buf     []byte
	touched map[Table]bool
	fenced  map[string]bool // what the present entry gave a fence to
	drawn   int             // how many UIDs the present entry drew
	meta    *Group          // the group's row, read once and kept current
	changes []change        // by the present command
	fences  []string        // that it gave
}

func (tx *txn) applyEntry(e LogEntry) []Outcome {
	if e.Index <= tx.state.applied {
		panic(fmt.Sprintf("fsm: entry %d comes after %d was applied", e.Index, tx.state.applied))
	}
	var entry Entry
	if err := wire.Decode(e.Data, &entry); err != nil {
		panic(fmt.Sprintf("fsm: entry %d: %v", e.Index, err))
	}
	tx.state.applied, tx.term = e.Index, e.Term
	clear(tx.fenced)
	tx.drawn = 0
	out := make([]Outcome, len(entry.Items))
	for i := range entry.Items {
		tx.item = &entry.Items[i]
		out[i] = tx.applyItem(entry.Epoch)
	}
	return out
}

func (tx *txn) applyItem(epoch Epoch) Outcome {
	c, err := tx.item.command()
	if err != nil {
		panic(fmt.Sprintf("fsm: entry %d: %v", tx.state.applied, err))
	}
	if have := tx.group().Epoch; epoch != have && c.Kind() != KindNewEpoch {
		return refuse(RejectEpoch, fmt.Sprintf("command %d", c.Kind()), fmt.Sprint(have), fmt.Sprint(epoch))
	}
	return tx.attempt(c)
}

// revision is that of the entry being applied.
func (tx *txn) revision() Revision {
	return Revision{Epoch: tx.group().Epoch, Index: tx.state.applied}
}

// fence gives the present revision to a call or a lease, once in an entry: two fences for one subject must
// not be equal, or what is said of the first would be taken for the second.
func (tx *txn) fence(subject string) (Revision, bool) {
	if tx.fenced[subject] {
		return Revision{}, false
	}
	tx.fenced[subject] = true
	tx.fences = append(tx.fences, subject)
	return tx.revision(), true
}

func (tx *txn) ok() Outcome { return Outcome{Revision: tx.revision()} }

func (tx *txn) group() *Group {
	if tx.meta == nil {
		tx.meta = &Group{}
		if g, ok := find[*Group](tx.rows, TableGroup, groupKey); ok {
			tx.meta = g
		}
	}
	return tx.meta
}

// put inserts r or replaces the record of the same key, and keeps digest and indexes current.
func (tx *txn) put(r Record) {
	r.sealed().sum, tx.buf = sumOf(r, tx.buf)
	tx.changes = append(tx.changes, change{tx.write(r), r})
}

// write is put of a record whose sum is known. It gives the record that stood there.
func (tx *txn) write(r Record) Record {
	t := r.Table()
	old := tx.rows.tables[t].put(r)
	if old != nil {
		tx.state.digest.sub(old.sealed().sum)
	} else if t == TableGraves {
		tx.state.graves++
	}
	tx.state.digest.add(r.sealed().sum)
	tx.touched[t] = true
	if g, ok := r.(*Group); ok {
		tx.meta = g
	}
	return old
}

// remove takes out a record that is there.
func (tx *txn) remove(r Record) {
	tx.changes = append(tx.changes, change{before: r})
	tx.erase(r)
}

func (tx *txn) erase(r Record) {
	t := r.Table()
	tx.rows.tables[t].remove(r)
	tx.state.digest.sub(r.sealed().sum)
	if t == TableGraves {
		tx.state.graves--
	}
	tx.touched[t] = true
}
