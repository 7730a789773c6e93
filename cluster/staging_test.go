// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"testing"

	"github.com/hashicorp/raft"

	"fairlead.io/fairlead/cluster/store"
)

// applier applies steps to a record in the same term, one entry after the other.
type applier struct {
	*adapter
	index uint64
	ended error
}

func newApplier() *applier {
	a := &applier{}
	a.adapter = &adapter{
		machine: emptyRecord(), newMachine: emptyRecord, changed: func() {}, replacing: func() {}, fail: func(err error) { a.ended = err },
	}
	return a
}

func (a *applier) step(s restoreStep, body []byte) any {
	a.index++
	return a.Apply(&raft.Log{Index: a.index, Term: 1, Type: raft.LogCommand, Data: s.entry(body)})
}

// What a member read of a backup and is not what its leader sent ends it: the others go on with another record.
func TestBackupThatIsNotWhatTheLeaderSentIsNotTakenIn(t *testing.T) {
	var state, zipped bytes.Buffer
	if err := emptyRecord().Freeze().Write(&state); err != nil {
		t.Fatal(err)
	}
	w := gzip.NewWriter(&zipped)
	_, _ = w.Write(state.Bytes())
	_ = w.Close()
	sum := sha256.Sum256([]byte("another one"))
	body, err := json.Marshal(finish{Sum: sum[:]})
	if err != nil {
		t.Fatal(err)
	}
	a := newApplier()
	a.step(stepBegin, []byte("r1"))
	a.step(stepPart, zipped.Bytes())
	a.step(stepPart, nil)
	var broke *PanicError
	if answer, _ := a.step(stepFinish, body).(error); !errors.As(answer, &broke) || !errors.As(a.ended, &broke) {
		t.Fatalf("%v; ended with %v", answer, a.ended)
	}
}

// Only the abort of a restore ends it: not that of an earlier one, which nobody waited for.
func TestAbortIsOfOneRestore(t *testing.T) {
	a := newApplier()
	defer a.giveUp()
	a.step(stepBegin, []byte("r2"))
	a.step(stepAbort, []byte("r1"))
	if _, err := a.Snapshot(); !errors.Is(err, errStaging) {
		t.Fatalf("another restore's abort has ended it: %v", err)
	}
	a.step(stepAbort, []byte("r2"))
	if _, err := a.Snapshot(); err != nil {
		t.Fatalf("its own has not: %v", err)
	}
}

// A member that gets a snapshot in the middle of a restore has what came of that.
func TestSnapshotEndsARestoreThatAMemberIsInTheMiddleOf(t *testing.T) {
	a := newApplier()
	defer a.giveUp()
	a.step(stepBegin, []byte("r1"))
	var state bytes.Buffer
	if err := emptyRecord().Freeze().Write(&state); err != nil {
		t.Fatal(err)
	}
	in := io.NopCloser(&state)
	if err := a.load(&store.Snapshot{ReadCloser: in, Meta: &raft.SnapshotMeta{ID: "s", Index: 9, Term: 1}}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Snapshot(); err != nil {
		t.Fatalf("it is in the middle of that still: %v", err)
	}
}

// A member that died in the middle of a restore can be recovered, to the record from before.
func TestRecoverInTheMiddleOfARestore(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g, _ := backedUp(t, "a")
		m := g.members["a"]
		if err := m.node.raft.Apply(stepBegin.entry([]byte("r1")), 0).Error(); err != nil {
			t.Fatal(err)
		}
		g.stopAll()
		recoverMember(t, m)
		g.start("a")
		defer g.stopAll()
		mustPropose(t, g.leader(), put(30))
		if !has(m.state, 19) || !has(m.state, 30) {
			t.Error("something is lost")
		}
	})
}
