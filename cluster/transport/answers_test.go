// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"errors"
	"testing"

	"github.com/hashicorp/raft"

	"fairlead.io/fairlead/cluster/transport/transporttest"
	"fairlead.io/fairlead/internal/testkit"
)

// refuse plays the library at the other end, where entries do not follow what is there.
func refuse(t *testing.T, tr *Transport) {
	done := make(chan struct{})
	t.Cleanup(func() { close(done) })
	go func() {
		for {
			select {
			case rpc := <-tr.Consumer():
				rpc.Respond(&raft.AppendEntriesResponse{Term: 7}, nil)
			case <-done:
				return
			}
		}
	}()
}

// The library takes no answer any more once one was no success; whoever sends must not wait for it.
func TestNobodyWaitsForAnswersToBeTaken(t *testing.T) {
	cert := transporttest.New(t)
	a, b := listen(t, cert, nil), listen(t, cert, nil)
	refuse(t, b)
	p, err := a.AppendEntriesPipeline("x", b.LocalAddr())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	sent := make(chan int)
	go func() {
		n := 0
		for ; err == nil; n++ {
			entry := &raft.Log{Index: uint64(n + 1), Term: 7}
			_, err = p.AppendEntries(&raft.AppendEntriesRequest{RPCHeader: raft.RPCHeader{Addr: []byte(a.LocalAddr())}, Term: 7, Entries: []*raft.Log{entry}},
				new(raft.AppendEntriesResponse))
		}
		sent <- n
	}()
	if first := <-p.Consumer(); first.Response().Success {
		t.Error("the first answer is no refusal")
	}
	testkit.Eventually(t, "a sender that does not wait for ever", func() error {
		select {
		case n := <-sent:
			if n <= mostUntaken {
				t.Errorf("the pipeline ended after %d messages", n)
			}
			return nil
		default:
			return errors.New("it waits")
		}
	})
}
