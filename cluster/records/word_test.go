// SPDX-License-Identifier: Apache-2.0

package records_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/cluster/records"
	"fairlead.io/fairlead/fsm"
)

// electing is a group that nobody leads for the first so many proposals.
type electing struct {
	*grouptest.Group
	left  int
	asked int
	err   error
}

func (e *electing) Propose(ctx context.Context, u cluster.Urgency, proposals ...fsm.Proposal) ([]fsm.Outcome, error) {
	if e.asked++; e.asked <= e.left {
		return nil, e.err
	}
	return e.Group.Propose(ctx, u, proposals...)
}

// An operator's word outlasts an election. What may have been taken in already is not said twice.
func TestOperatorsWordOutlastsAnElection(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		left  int
		err   error
		asked int
		code  admin.Code
	}{
		"an-election":     {10, cluster.ErrNotLeader, 11, ""},
		"nobody-leads":    {1 << 30, cluster.ErrNotLeader, 51, admin.NotLeader},
		"unknown-outcome": {1 << 30, cluster.ErrUnknownOutcome, 1, admin.UnknownOutcome},
		"busy":            {1 << 30, cluster.ErrBusy, 1, admin.Busy},
	} {
		t.Run(name, func(t *testing.T) {
			g := grouptest.NewGroup(t)
			furnish(t, g)
			synctest.Test(t, func(t *testing.T) {
				e := &electing{Group: g, left: c.left, err: c.err}
				s := records.New(records.Options{Member: "m1", Record: g, Leader: g, Proposer: e})
				begin := time.Now()
				_, err := s.Drain(t.Context(), &fairleadv1.DrainRequest{Of: "node", Name: "n1"})
				var refusal *admin.Refusal
				if errors.As(err, &refusal); (err == nil) != (c.code == "") || err != nil && refusal.Code != c.code {
					t.Errorf("%v", err)
				}
				if e.asked < c.asked || e.asked > c.asked+1 || time.Since(begin) > 6*time.Second {
					t.Errorf("asked %d times in %s", e.asked, time.Since(begin))
				}
				if have := g.Read().Drained(fsm.DrainNode, "n1"); have != (c.code == "") {
					t.Errorf("drained: %t", have)
				}
			})
		})
	}
}
