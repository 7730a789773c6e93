// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// adapter is the raft.BatchingFSM over a Machine. The library calls it from one goroutine; Backup and readers of the
// position come from others.
type adapter struct {
	self       raft.ServerID
	fail       func(error)    // ends this member
	changed    func()         // after anything was applied
	newMachine func() Machine // for a backup that is restored
	replacing  func()         // before one takes the place of the record

	currentTerm func() uint64 // of this member

	mu            sync.Mutex
	machine       Machine
	staging       *staging           // a backup that is being restored, nil for none
	loading       *loading           // a snapshot that is being read, nil for none
	applied, term uint64             // of the newest command or configuration applied, or of the snapshot restored
	configuration raft.Configuration // the newest committed one
	configuredAt  uint64             // its index
	belonged      bool               // this server was part of a committed one
	broken        error              // why nothing can be applied any more
	ending        bool               // nothing more is begun

	committed atomic.Pointer[raft.Configuration] // configuration, for those who cannot wait while entries are applied
}

var _ raft.BatchingFSM = (*adapter)(nil)

// Apply applies one entry; the library only calls it when it recovers a folder.
func (a *adapter) Apply(l *raft.Log) any { return a.ApplyBatch([]*raft.Log{l})[0] }

// ApplyBatch applies committed entries. The answer to a command is its []Outcome, or the error that broke this
// member: after a panic nothing is applied any more, and no snapshot is taken of what the panic left behind.
func (a *adapter) ApplyBatch(logs []*raft.Log) []any {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.laterLocked(logs) {
		return make([]any, len(logs)) // nobody asked this member for them
	}
	return a.batchLocked(logs)
}

func (a *adapter) batchLocked(logs []*raft.Log) []any {
	answers := make([]any, 0, len(logs))
	for len(logs) > len(answers) && a.broken == nil {
		answers = append(answers, a.applyLocked(logs[len(answers):])...)
	}
	for len(logs) > len(answers) {
		answers = append(answers, a.broken)
	}
	if a.broken == nil {
		last := logs[len(logs)-1]
		a.applied, a.term = last.Index, last.Term
	}
	a.changed()
	return answers
}

// applyLocked applies the first of some entries, and with it all that can go to the machine together: a step of a restore stands alone.
func (a *adapter) applyLocked(logs []*raft.Log) (answers []any) {
	first := logs[0]
	defer func() {
		if v := recover(); v != nil {
			a.breakLocked(fmt.Sprintf("apply entries %d to %d", first.Index, first.Index+uint64(max(len(answers), 1))-1), v)
			answers = nil
		}
	}()
	if a.staging != nil && a.staging.term < first.Term {
		a.unstageLocked() // whoever brought it leads no more
	}
	if first.Type == raft.LogConfiguration {
		a.configureLocked(raft.DecodeConfiguration(first.Data), first.Index)
		return []any{nil}
	}
	if s, body, ok := stepOf(first.Data); ok && first.Type == raft.LogCommand {
		return []any{a.stepLocked(s, body, Index(first.Index), first.Term)}
	}
	entries := make([]LogEntry, 0, len(logs))
	for _, l := range logs {
		if _, _, ok := stepOf(l.Data); ok || l.Type != raft.LogCommand {
			break
		}
		entries = append(entries, LogEntry{Index: Index(l.Index), Term: l.Term, Data: l.Data})
	}
	if len(entries) == 0 {
		return []any{nil} // nothing of the record's
	}
	outcomes := a.machine.ApplyEntries(entries)
	if len(outcomes) != len(entries) {
		panic(fmt.Sprintf("%d entries gave %d answers", len(entries), len(outcomes)))
	}
	for _, o := range outcomes {
		answers = append(answers, o)
	}
	return answers
}

func (a *adapter) breakLocked(in string, value any) {
	a.broken = &PanicError{In: in, Value: value, Stack: debug.Stack()}
	a.unstageLocked()
	a.fail(a.broken)
}

func (a *adapter) positionLocked(meta *raft.SnapshotMeta) {
	a.applied, a.term = meta.Index, meta.Term
	a.configureLocked(meta.Configuration, meta.ConfigurationIndex)
}

func (a *adapter) configureLocked(c raft.Configuration, index uint64) {
	a.configuration, a.configuredAt = c, index
	a.committed.Store(&c)
	a.belonged = a.belonged || inConfiguration(c, a.self)
}

// Snapshot freezes the state; Persist writes it later, beside further applies.
//
// While a backup is brought there is none: the log would begin in the middle of that. While a snapshot is read there is one already.
func (a *adapter) Snapshot() (raft.FSMSnapshot, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.loading != nil {
		return nil, errLoading
	}
	if a.staging != nil {
		return nil, errStaging
	}
	if a.broken != nil {
		return nil, a.broken
	}
	return &image{frozen: a.machine.Freeze(), fail: a.fail}, nil
}

// errStaging says why no snapshot is taken.
var errStaging = errors.New("a backup is being restored")

// giveUp lets go of what was brought of a backup, once the library applies nothing any more.
func (a *adapter) giveUp() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unstageLocked()
}

// brought gives what was brought of a backup in a term, nil for nothing.
func (a *adapter) brought(term uint64) *staging {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.staging == nil || a.staging.term != term {
		return nil
	}
	return a.staging
}

// freeze gives the state and the position that it is the state of.
func (a *adapter) freeze(ctx context.Context) (frozen Frozen, index, term uint64, err error) {
	for {
		if err := a.loaded(ctx); err != nil {
			return nil, 0, 0, err
		}
		a.mu.Lock()
		if a.loading == nil {
			defer a.mu.Unlock()
			return a.machine.Freeze(), a.applied, a.term, a.broken
		}
		a.mu.Unlock() // there is another one already
	}
}

// position tells how far this member applied.
func (a *adapter) position() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.applied
}

// configured is the index of the newest committed configuration.
func (a *adapter) configured() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.configuredAt
}

// removed tells whether this server was part of a committed configuration and is not part of the newest one.
func (a *adapter) removed() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.leftOutLocked(a.configuration)
}

// belongedBefore tells whether this server was part of a committed configuration and is not part of this one. Who is new holds
// configurations without it as well, while it catches up.
func (a *adapter) belongedBefore(newest raft.Configuration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.leftOutLocked(newest)
}

func (a *adapter) leftOutLocked(c raft.Configuration) bool {
	return a.belonged && !inConfiguration(c, a.self)
}

// image is a frozen state on its way to a file.
type image struct {
	frozen Frozen
	fail   func(error)
}

// Persist writes the state. A state that cannot be encoded ends this member: it could never be restored.
func (i *image) Persist(sink raft.SnapshotSink) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{In: "write snapshot", Value: v, Stack: debug.Stack()}
			i.fail(err)
		}
	}()
	if err := i.frozen.Write(sink); err != nil {
		_ = sink.Cancel() // the first error is the one to tell
		err = fmt.Errorf("write snapshot: %w", err)
		i.fail(err)
		return err
	}
	return sink.Close()
}

func (i *image) Release() {}
