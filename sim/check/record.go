// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"fmt"
	"maps"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

// window is for how many entries back the Record knows digests, and deep for how many it knows states: that many can be
// lost with those who had them.
const (
	window = 4096
	deep   = 256
)

// Record is the reference replica: what the group agreed on, replayed natively from the entries that members applied,
// each when the first of them did. It is the one place where code under test serves as truth; S1 compares.
type Record struct {
	state *fsm.State
	// past holds the newest entries, by index; order lists them from oldest to newest.
	past  map[fsm.Index]*entry
	order []fsm.Index
	// restoring is set once somebody asked for a restore or recover: only then may the record become another one.
	restoring bool
	// took are the processes that took in something of this record, and behind those that took in something of a former one
	// and nothing of this: what they apply yet is of that one.
	took, behind map[string]bool
	// broken says why an entry could not be replayed.
	broken string
}

// entry is one that was applied.
type entry struct {
	data   []byte
	digest string
	epoch  fsm.Epoch   // of the group, after it
	format uint32      // of the group, after it
	frozen *fsm.Frozen // nil where that was too long ago
	number uint64      // of the event that brought it
}

// step is one entry of the record, and what it did.
type step struct {
	event.Stamped
	index     fsm.Index
	proposals []fsm.Proposal
	outcomes  []fsm.Outcome
	before    *fsm.View
	after     *fsm.View
	// replaced says that after has nothing to do with before: the record was restored from a backup.
	replaced bool
}

// NewRecord makes a Record of a group that has done nothing yet.
func NewRecord() *Record {
	return &Record{state: fsm.New(), past: map[fsm.Index]*entry{}, took: map[string]bool{}, behind: map[string]bool{}}
}

// View is the newest state.
func (r *Record) View() *fsm.View { return r.state.Read() }

// hear takes in an event. It gives the step that it made, if any.
func (r *Record) hear(e event.Stamped) *step {
	switch x := e.Event.(type) {
	case event.CallBegan:
		r.restoring = r.restoring || x.Do == "restore" || x.Do == "recover"
	case event.Applied:
		return r.applied(e, x)
	case event.Restored:
		return r.restored(e, x)
	}
	return nil
}

func (r *Record) applied(e event.Stamped, x event.Applied) *step {
	if r.behind[x.Process] {
		return nil
	}
	r.took[x.Process] = true
	index := fsm.Index(x.Index)
	before, replaced := r.View(), false
	if index <= before.Applied() {
		if !r.restoring || !opensEpoch(x.Entry, before.Group().Epoch) || !r.rewind(index) {
			return nil
		}
		replaced = true
	}
	_, proposals, err := fsm.DecodeEntry(x.Entry)
	if err != nil {
		r.broken = err.Error()
		return nil
	}
	s := &step{Stamped: e, index: index, proposals: proposals, before: before, replaced: replaced}
	if s.outcomes = r.replay(fsm.LogEntry{Index: index, Term: x.Term, Data: x.Entry}); s.outcomes == nil {
		return nil
	}
	s.after = r.View()
	r.remember(index, e.Number, x.Entry)
	return s
}

// replay applies an entry. It gives nil where that is impossible.
func (r *Record) replay(l fsm.LogEntry) (outcomes []fsm.Outcome) {
	defer func() {
		if v := recover(); v != nil {
			r.broken, outcomes = fmt.Sprint(v), nil
		}
	}()
	return r.state.ApplyEntries([]fsm.LogEntry{l})[0]
}

func (r *Record) remember(index fsm.Index, number uint64, data []byte) {
	v := r.View()
	g := v.Group()
	r.past[index] = &entry{data: data, digest: v.Digest().String(), epoch: g.Epoch, format: g.Format, frozen: r.state.Freeze(), number: number}
	r.order = append(r.order, index)
	if n := len(r.order); n > deep {
		r.past[r.order[n-1-deep]].frozen = nil
	}
	if len(r.order) > window {
		delete(r.past, r.order[0])
		r.order = r.order[1:]
	}
}

// opensEpoch tells whether an entry begins a later life of the group.
func opensEpoch(data []byte, than fsm.Epoch) bool {
	_, proposals, err := fsm.DecodeEntry(data)
	if err != nil {
		return false
	}
	for _, p := range proposals {
		if c, ok := p.Command.(*fsm.NewEpoch); ok && c.Epoch > than {
			return true
		}
	}
	return false
}

// rewind goes back to the newest state before an index: what came after it was lost with those who had it.
func (r *Record) rewind(index fsm.Index) bool {
	n := len(r.order)
	for n > 0 && r.order[n-1] >= index {
		n--
	}
	state := fsm.New()
	if n > 0 {
		var b bytes.Buffer
		last := r.past[r.order[n-1]].frozen
		if last == nil || last.Write(&b) != nil || state.Restore(&b) != nil {
			return false
		}
	}
	for _, lost := range r.order[n:] {
		delete(r.past, lost)
	}
	r.order, r.state = r.order[:n], state
	return true
}

// restored takes over a snapshot that came from elsewhere. Who took in entries of the record before it may be about to apply
// more of those.
func (r *Record) restored(e event.Stamped, x event.Restored) *step {
	before := r.View()
	if x.Digest == before.Digest().String() || r.at(fsm.Index(x.Index), x.Digest) {
		r.took[x.Process] = true
		delete(r.behind, x.Process)
		return nil
	}
	if !r.restoring || len(x.Snapshot) == 0 {
		return nil
	}
	state := fsm.New()
	if err := state.Restore(bytes.NewReader(x.Snapshot)); err != nil {
		r.broken = fmt.Sprintf("snapshot at %d: %v", x.Index, err)
		return nil
	}
	r.state, r.past, r.order = state, map[fsm.Index]*entry{}, nil
	maps.Copy(r.behind, r.took)
	delete(r.behind, x.Process)
	r.took = map[string]bool{x.Process: true}
	r.remember(fsm.Index(x.Index), e.Number, nil)
	return &step{Stamped: e, index: fsm.Index(x.Index), before: before, after: r.View(), replaced: true}
}

// upto finds the newest entry that is not behind an index. Raft has entries of its own between ours.
func (r *Record) upto(index fsm.Index) *entry {
	for i := len(r.order) - 1; i >= 0; i-- {
		if r.order[i] <= index {
			return r.past[r.order[i]]
		}
	}
	return nil
}

// at tells whether the record had a digest at an index.
func (r *Record) at(index fsm.Index, digest string) bool {
	p := r.upto(index)
	return p != nil && p.digest == digest
}
