// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// lateTerms takes longer than an election may to write that a term begins, as a busy disk does.
type lateTerms struct {
	raft.StableStore
	by *atomic.Int64
}

func (s lateTerms) Set(key, value []byte) error {
	if string(key) == "CurrentTerm" {
		time.Sleep(time.Duration(s.by.Load()))
	}
	return s.StableStore.Set(key, value)
}

// A successor that takes long to be elected takes over all the same: the transfer is done then, and did not fail.
func TestTransferIsDoneWhenItsElectionTakesLong(t *testing.T) {
	inBubble(t, testTransferIsDoneWhenItsElectionTakesLong)
}

func testTransferIsDoneWhenItsElectionTakesLong(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	var late atomic.Int64
	g.change = func(_ *member, o *Options) { o.Stores.Stable = lateTerms{o.Stores.Stable, &late} }
	g.begin(1)
	leader := g.leader()
	by := leader.node.o.Tuning.Election * 6 / 5
	late.Store(int64(by))
	began := time.Now()
	if err := leader.node.Transfer(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if leader.node.raft.State() == raft.Leader || time.Since(began) < by {
		t.Errorf("after %s of %s it is %s", time.Since(began), by, leader.node.raft.State())
	}
}
