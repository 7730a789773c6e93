// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"fairlead.io/fairlead/cluster/transport/transporttest"
)

// wire keeps what is sent.
type wire struct {
	raft.AppendPipeline
	sent []*raft.AppendEntriesRequest
}

func (w *wire) AppendEntries(args *raft.AppendEntriesRequest, _ *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	w.sent = append(w.sent, args)
	return nil, nil
}

func TestPipelineSendsWhatIsNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, losses := &wire{}, new(atomic.Uint64)
		p := &pipeline{AppendPipeline: w, losses: losses}
		message := func(term, prev, commit uint64, entries ...*raft.Log) *raft.AppendEntriesRequest {
			return &raft.AppendEntriesRequest{Term: term, PrevLogEntry: prev, PrevLogTerm: term, LeaderCommitIndex: commit, Entries: entries}
		}
		entry := &raft.Log{Index: 6, Term: 3}
		for _, step := range []struct {
			name   string
			before func()
			say    *raft.AppendEntriesRequest
			sent   bool
		}{
			{"the first word", nil, message(3, 5, 4), true},
			{"the same", nil, message(3, 5, 4), false},
			{"a commit", nil, message(3, 5, 5), true},
			{"the same commit", nil, message(3, 5, 5), false},
			{"an entry", nil, message(3, 5, 5, entry), true},
			{"what came with the entry", nil, message(3, 6, 5), false},
			{"the entry again", nil, message(3, 5, 5, entry), true},
			{"the entry's commit", nil, message(3, 6, 6), true},
			{"another term", nil, message(4, 6, 6), true},
			{"after a loss", func() { losses.Add(1) }, message(4, 6, 6), true},
			{"once after a loss", nil, message(4, 6, 6), false},
			{"not long after", func() { time.Sleep(sayAgain - time.Nanosecond) }, message(4, 6, 6), false},
			{"long after", func() { time.Sleep(time.Nanosecond) }, message(4, 6, 6), true},
		} {
			if step.before != nil {
				step.before()
			}
			before := len(w.sent)
			if _, err := p.AppendEntries(step.say, nil); err != nil {
				t.Fatal(err)
			}
			if sent := slices.Contains(w.sent[before:], step.say); sent != step.sent {
				t.Errorf("%s: sent %v, want %v", step.name, sent, step.sent)
			}
		}
	})
}

func TestLossOfAHeartbeatMakesPipelinesRepeat(t *testing.T) {
	cert := transporttest.New(t)
	a, b := listen(t, cert, nil), listen(t, cert, nil)
	answer(b)
	p, err := a.AppendEntriesPipeline("x", b.LocalAddr())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	if err := heartbeat(a, b); err != nil || p.(*pipeline).losses.Load() != 0 {
		t.Fatalf("a heartbeat that arrived: %v, counted as %d losses", err, p.(*pipeline).losses.Load())
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := heartbeat(a, b); err == nil || p.(*pipeline).losses.Load() == 0 {
		t.Errorf("a heartbeat to nobody: %v, counted as %d losses", err, p.(*pipeline).losses.Load())
	}
}
