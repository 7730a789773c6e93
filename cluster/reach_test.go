// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// unreachable is a transport to a peer that comes back.
type unreachable struct {
	Transport
	back  time.Time
	calls int
}

func (u *unreachable) AppendEntries(raft.ServerID, raft.ServerAddress, *raft.AppendEntriesRequest, *raft.AppendEntriesResponse) error {
	u.calls++
	if time.Now().Before(u.back) {
		return errors.New("nobody there")
	}
	return nil
}

// A peer that was away for long gets its entries with the first heartbeat that reaches it: the library's own retries would
// have come to seconds by then.
func TestEntriesWaitForAPeerToComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &unreachable{back: time.Now().Add(time.Minute)}
		o := newObserver(u, "m1", func() {})
		entries := &raft.AppendEntriesRequest{Term: 3, PrevLogEntry: 5, Entries: []*raft.Log{{Index: 6, Term: 3}}}
		if o.AppendEntries("m2", "m2", entries, &raft.AppendEntriesResponse{}) == nil {
			t.Fatal("the first one arrived")
		}
		began, calls := time.Now(), u.calls
		done := make(chan error, 1)
		go func() { done <- o.AppendEntries("m2", "m2", entries, &raft.AppendEntriesResponse{}) }()
		for beats := 1; ; beats++ {
			time.Sleep(20 * time.Millisecond)
			err := o.AppendEntries("m2", "m2", &raft.AppendEntriesRequest{Term: 3}, &raft.AppendEntriesResponse{})
			synctest.Wait()
			if err == nil {
				break
			}
			if u.calls != calls+beats {
				t.Fatalf("%d calls and %d heartbeats", u.calls-calls, beats)
			}
		}
		if err := <-done; err != nil || time.Since(began) != time.Minute {
			t.Errorf("entries arrived after %v: %v", time.Since(began), err)
		}
	})
}

func TestNobodyWaitsForAPeerWhoNeedNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newReach()
		if err := p.await("m2"); err != nil {
			t.Errorf("a peer that was never missed: %v", err)
		}
		p.note("m2", errors.New("away"))
		older, newer := make(chan error, 1), make(chan error, 1)
		go func() { older <- p.await("m2") }()
		synctest.Wait()
		go func() { newer <- p.await("m2") }()
		synctest.Wait()
		if err := <-older; !errors.Is(err, errAway) {
			t.Errorf("of an earlier term: %v", err)
		}
		p.release()
		if err := <-newer; !errors.Is(err, errAway) {
			t.Errorf("at the end: %v", err)
		}
		began := time.Now()
		q := newReach()
		q.note("m2", errors.New("away"))
		if err := q.await("m2"); err != nil || time.Since(began) != waitAway {
			t.Errorf("a peer that stays away: %v after %v", err, time.Since(began))
		}
	})
}
