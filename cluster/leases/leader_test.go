// SPDX-License-Identifier: Apache-2.0

package leases_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"fairlead.io/fairlead/cluster/leases"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/fsmtest"
	"fairlead.io/fairlead/internal/testkit"
)

// alone is a group of one member, whose proposals are committed at once.
type alone struct {
	*record
	mu      sync.Mutex
	deposed bool
}

func (a *alone) Propose(_ context.Context, proposals []fsm.Proposal) ([]fsm.Outcome, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return fsmtest.Commit(a.t, a.State, proposals...), nil
}

func (a *alone) VerifyLeader(context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.deposed {
		return errors.New("deposed")
	}
	return nil
}

type steadyClock struct{ began time.Time }

func (c steadyClock) Now() time.Duration                     { return time.Since(c.began) }
func (c steadyClock) After(d time.Duration) <-chan time.Time { return time.After(d) }
func (c steadyClock) Wall() time.Time                        { return time.Now() }

// A node that renews is granted what nobody else answers for; a member that does not lead, or only believes so,
// answers nothing.
func TestLeadersAnswerRenewals(t *testing.T) {
	t.Parallel()
	group := &alone{record: newRecord(t)}
	l := leases.New(leases.Options{
		Record: group, Group: group, Clock: steadyClock{time.Now()}, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Timing: leases.Timing{Term: 500 * time.Millisecond, Park: 100 * time.Millisecond, Look: 5 * time.Millisecond, Settle: time.Nanosecond},
	})
	sent := time.Duration(0)
	renew := func(boot fsm.BootID, held ...leases.Held) ([]leases.Grant, error) {
		sent++
		return l.Renew(t.Context(), leases.Renewal{Node: "n1", Boot: boot, Sent: sent, Held: held, Links: newStage(t).links["n1"]})
	}
	if _, err := renew("b0"); !errors.Is(err, leases.ErrNotLeading) {
		t.Fatalf("before it leads: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); l.Run(ctx, 1) }()
	var grants []leases.Grant
	for deadline := time.Now().Add(testkit.Patience); len(grants) == 0; { // the first term is waited out
		var err error
		grants, err = renew("b0")
		if err != nil && !errors.Is(err, leases.ErrNotLeading) || time.Now().After(deadline) {
			t.Fatalf("not granted: %v", err)
		}
	}
	if grants[0].Holder != "n1" {
		t.Fatalf("granted %v", grants)
	}
	if _, err := renew("b9"); !errors.Is(err, leases.ErrBoot) {
		t.Errorf("of another boot: %v", err)
	}
	group.mu.Lock()
	group.deposed = true
	group.mu.Unlock()
	if got, err := renew("b0"); !errors.Is(err, leases.ErrNotLeading) {
		t.Errorf("deposed without knowing: %v, %v", got, err)
	}
	cancel()
	<-ended
	if _, err := renew("b0"); !errors.Is(err, leases.ErrNotLeading) {
		t.Errorf("after its term: %v", err)
	}
}
