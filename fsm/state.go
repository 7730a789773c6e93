// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"fmt"
	"sync/atomic"

	"github.com/hashicorp/go-memdb"

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
	db      *memdb.MemDB
	applied Index
	digest  Digest
	graves  int
	recent  digests
	view    atomic.Pointer[View]
	waiters *waiters
	// published counts the views that were given out, for waiters.
	published uint64
}

// New gives an empty State, as every member starts.
func New() *State {
	db, err := memdb.NewMemDB(schema())
	if err != nil {
		panic(fmt.Sprintf("fsm: schema: %v", err)) // a schema that does not hold together is a bug of the build
	}
	// A snapshot of a database tracks no watchers, which would cost more than the writes: State.Wait has its own.
	s := &State{db: db.Snapshot(), waiters: newWaiters()}
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
// see whole entries only, some together. It panics on an entry that this release cannot read, on an index that does not rise and on
// a checkpoint that contradicts this copy: going on would fork the record.
func (s *State) ApplyEntries(entries []LogEntry) [][]Outcome {
	tx := s.begin()
	out := make([][]Outcome, len(entries))
	for i, e := range entries {
		out[i] = tx.applyEntry(e)
		s.recent.remember(e.Index, s.digest)
	}
	tx.memdb.Commit()
	s.publish(tx.touched)
	return out
}

func (s *State) begin() *txn { return &txn{state: s, memdb: s.db.Txn(true), touched: map[Table]bool{}} }

// txn is the application of some entries: the only place from which the record changes.
type txn struct {
	state   *State
	memdb   *memdb.Txn
	term    uint64
	item    *Item
	buf     []byte
	touched map[Table]bool
	meta    *Group // the group's row, read once and kept current
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
	return c.apply(tx)
}

// revision is that of the entry being applied.
func (tx *txn) revision() Revision {
	return Revision{Epoch: tx.group().Epoch, Index: tx.state.applied}
}

func (tx *txn) ok() Outcome { return Outcome{Revision: tx.revision()} }

func (tx *txn) group() *Group {
	if tx.meta == nil {
		tx.meta = &Group{}
		if g, ok := find[*Group](tx.memdb, TableGroup, groupKey); ok {
			tx.meta = g
		}
	}
	return tx.meta
}

// put inserts r or replaces the record of the same key, and keeps the digest current.
func (tx *txn) put(r Record) {
	old, existed := find[Record](tx.memdb, r.Table(), r.Key())
	if existed {
		tx.state.digest.sub(old.sealed().sum)
	} else if r.Table() == TableGraves {
		tx.state.graves++
	}
	r.sealed().sum, tx.buf = sumOf(r, tx.buf)
	tx.state.digest.add(r.sealed().sum)
	tx.touched[r.Table()] = true
	must(tx.memdb.Insert(string(r.Table()), r))
	if existed {
		tx.reindex(old, r)
	} else {
		tx.reindex(nil, r)
	}
	if g, ok := r.(*Group); ok {
		tx.meta = g
	}
}

func (tx *txn) remove(r Record) {
	tx.state.digest.sub(r.sealed().sum)
	if r.Table() == TableGraves {
		tx.state.graves--
	}
	tx.touched[r.Table()] = true
	must(tx.memdb.Delete(string(r.Table()), r))
	tx.reindex(r, nil)
}

// find reads one record by its key.
func find[R Record](tx *memdb.Txn, t Table, key string) (R, bool) {
	var none R
	raw, err := tx.First(string(t), indexID, key)
	must(err)
	if raw == nil {
		return none, false
	}
	r := raw.(R)
	unchanged(r)
	return r, true
}

// list reads a whole table, in key order.
func list[R Record](tx *memdb.Txn, t Table) []R {
	it, err := tx.Get(string(t), indexID)
	must(err)
	var out []R
	for raw := it.Next(); raw != nil; raw = it.Next() {
		r := raw.(R)
		unchanged(r)
		out = append(out, r)
	}
	return out
}

// must turns an error of go-memdb into a panic: with a fixed schema it can only mean a bug here.
func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("fsm: %v", err))
	}
}
