// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// beaten is a transport on which nothing arrives but what a test hands to its heartbeat handler.
type beaten struct {
	Transport
	beat func(raft.RPC)
}

func (b *beaten) SetHeartbeatHandler(f func(raft.RPC)) { b.beat = f }
func (*beaten) Consumer() <-chan raft.RPC              { return nil }

// A heartbeat that makes a leader a follower of a newer term must not do so beside the main goroutine of the library, which
// may be appending commands: they would be stamped with the other leader's term. Found by the simulator (S1, seed
// 1795294217046).
func TestHeartbeatsThatChangeTheTermWaitTheirTurn(t *testing.T) {
	t.Parallel()
	g := newGroup(t, "a", "b", "c")
	g.begin(1)
	follower := g.followers()[0].node
	for _, c := range []struct {
		name   string
		node   *Node // whose library runs; nil: not yet
		newer  uint64
		beside bool
	}{
		{"a follower of the term", follower, 0, true},
		{"a follower of an older term", follower, 1, false},
		{"the leader", g.leader().node, 0, false},
		{"the library does not run yet", nil, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := &beaten{}
			o := newObserver(b, "self", func() {})
			term := follower.raft.CurrentTerm()
			if c.node != nil {
				o.library.Store(c.node.raft)
				term = c.node.raft.CurrentTerm()
			}
			beside := false
			o.SetHeartbeatHandler(func(rpc raft.RPC) {
				beside = true
				rpc.Respond(&raft.AppendEntriesResponse{}, nil)
			})
			go o.forward()
			defer close(o.stop)
			go func() {
				for {
					select {
					case rpc := <-o.rpcs:
						rpc.Respond(&raft.AppendEntriesResponse{}, nil)
					case <-o.stop:
						return
					}
				}
			}()
			answer := make(chan raft.RPCResponse, 1)
			beat := addressed(&raft.AppendEntriesRequest{Term: term + c.newer, Leader: []byte("x")}, o.self) //nolint:staticcheck // older releases of the library fill it in
			b.beat(raft.RPC{Command: beat, RespChan: answer})
			select {
			case r := <-answer:
				if r.Error != nil {
					t.Fatal(r.Error)
				}
			case <-time.After(patience):
				t.Fatal("no answer")
			}
			if beside != c.beside {
				t.Errorf("taken in beside the main goroutine: %v", beside)
			}
		})
	}
}

// talkative is a transport that connects anew whenever something is sent, as the real one does, also once it was closed.
type talkative struct {
	Transport
	sent atomic.Int64
}

func (s *talkative) AppendEntries(raft.ServerID, raft.ServerAddress, *raft.AppendEntriesRequest, *raft.AppendEntriesResponse) error {
	s.sent.Add(1)
	return nil
}

func (s *talkative) RequestVote(raft.ServerID, raft.ServerAddress, *raft.RequestVoteRequest, *raft.RequestVoteResponse) error {
	s.sent.Add(1)
	return nil
}

func (s *talkative) RequestPreVote(raft.ServerID, raft.ServerAddress, *raft.RequestPreVoteRequest, *raft.RequestPreVoteResponse) error {
	s.sent.Add(1)
	return nil
}

func (s *talkative) InstallSnapshot(raft.ServerID, raft.ServerAddress, *raft.InstallSnapshotRequest, *raft.InstallSnapshotResponse, io.Reader) error {
	s.sent.Add(1)
	return nil
}

func (s *talkative) TimeoutNow(raft.ServerID, raft.ServerAddress, *raft.TimeoutNowRequest, *raft.TimeoutNowResponse) error {
	s.sent.Add(1)
	return nil
}

func (s *talkative) AppendEntriesPipeline(raft.ServerID, raft.ServerAddress) (raft.AppendPipeline, error) {
	return &talkativePipeline{s}, nil
}

func (*talkative) Close() error { return nil }

type talkativePipeline struct{ of *talkative }

func (p *talkativePipeline) AppendEntries(*raft.AppendEntriesRequest, *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	p.of.sent.Add(1)
	return nil, nil
}

func (*talkativePipeline) Consumer() <-chan raft.AppendFuture { return nil }
func (*talkativePipeline) Close() error                       { return nil }

// A member that has ended leaves a library behind which sends heartbeats on, when its disk hangs. Nobody may hear them, or nobody else leads.
// Found by the simulator (L3, a disk that hangs).
func TestNothingIsSentOnceTheTransportIsClosed(t *testing.T) {
	wire := &talkative{}
	o := newObserver(wire, "self", func() {})
	pipe, err := o.AppendEntriesPipeline("f", "f")
	if err != nil {
		t.Fatal(err)
	}
	say := map[string]func() error{
		"heartbeat": func() error {
			return o.AppendEntries("f", "f", &raft.AppendEntriesRequest{Term: 7}, new(raft.AppendEntriesResponse))
		},
		"entries": func() error {
			_, err := pipe.AppendEntries(&raft.AppendEntriesRequest{Term: 7, Entries: []*raft.Log{{Index: 1}}}, new(raft.AppendEntriesResponse))
			return err
		},
		"vote": func() error {
			return o.RequestVote("f", "f", new(raft.RequestVoteRequest), new(raft.RequestVoteResponse))
		},
		"pre-vote": func() error {
			return o.RequestPreVote("f", "f", new(raft.RequestPreVoteRequest), new(raft.RequestPreVoteResponse))
		},
		"snapshot": func() error {
			return o.InstallSnapshot("f", "f", new(raft.InstallSnapshotRequest), new(raft.InstallSnapshotResponse), strings.NewReader(""))
		},
		"timeout-now": func() error { return o.TimeoutNow("f", "f", new(raft.TimeoutNowRequest), new(raft.TimeoutNowResponse)) },
	}
	for what, f := range say {
		if before := wire.sent.Load(); f() != nil || wire.sent.Load() != before+1 {
			t.Errorf("%s is not sent", what)
		}
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	for what, f := range say {
		if before := wire.sent.Load(); !errors.Is(f(), raft.ErrTransportShutdown) || wire.sent.Load() != before {
			t.Errorf("%s is sent once it was closed", what)
		}
	}
}
