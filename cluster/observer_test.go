// SPDX-License-Identifier: Apache-2.0

package cluster

import (
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
	g.startAll()
	defer g.stopAll()
	mustPropose(t, g.leader(), put(1))
	g.settle()
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
