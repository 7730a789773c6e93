// SPDX-License-Identifier: Apache-2.0

package records_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"connectrpc.com/connect"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/cluster/records"
)

// Where nobody leads, each answer says so and what helps: words are refused with it, what is shown is doubted, and what is not found may be there by now. It
// never says that there is no such thing, nor names a remedy of another fault.
func TestAnswersWithoutALeaderSaySo(t *testing.T) {
	t.Parallel()
	g := grouptest.NewGroup(t)
	furnish(t, g)
	g.Change(func(k *grouptest.Knobs) { k.Follow = true })
	synctest.Test(t, func(t *testing.T) {
		const why, remedy = "nobody leads: m1 heard nothing", "start m2"
		s := records.New(records.Options{
			Member: "m1", Record: g, Leader: g, Proposer: &electing{Group: g, left: 1 << 30, err: cluster.ErrNotLeader}, Planner: plans{Group: g, lost: true},
			Barrier:    func(context.Context) error { return cluster.ErrNotLeader },
			Leaderless: func() (string, string) { return why, remedy },
		})
		ctx := t.Context()
		refused := map[string]func() error{
			"get": func() error {
				_, err := s.Get(ctx, &fairleadv1.GetRequest{Kind: "services", Name: "shop/none"})
				return err
			},
			"get-linearizable": func() error {
				_, err := s.Get(ctx, &fairleadv1.GetRequest{Kind: "services", Linearizable: true})
				return err
			},
			"describe": func() error {
				_, err := s.Describe(ctx, &fairleadv1.DescribeRequest{Kind: "services", Name: "shop/none"})
				return err
			},
			"plan": func() error {
				_, err := s.Plan(ctx, &fairleadv1.PlanRequest{Files: []*fairleadv1.PlanRequest_File{{Name: "a.yaml"}}})
				return err
			},
			"drain": func() error { _, err := s.Drain(ctx, &fairleadv1.DrainRequest{Of: "node", Name: "n1"}); return err },
			"hold":  func() error { _, err := s.ReleaseHold(ctx, &fairleadv1.ReleaseHoldRequest{}); return err },
			"rewind": func() error {
				_, err := s.AcceptRewind(ctx, &fairleadv1.AcceptRewindRequest{Source: "kubernetes"})
				return err
			},
			"move": func() error {
				_, err := s.Move(ctx, &fairleadv1.MoveRequest{Service: "shop/web", Undo: true})
				return err
			},
		}
		for name, call := range refused {
			err := call()
			if err == nil || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), remedy) {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if text := err.Error(); connect.CodeOf(err) == connect.CodeNotFound || strings.Contains(text, "finalize") || strings.Contains(text, cluster.ErrNotLeader.Error()) {
				t.Errorf("%s: %s", name, text)
			}
		}
		for _, subject := range []string{"shop/none", "none", "192.0.2.77", "bind shop/none"} {
			_, err := s.Why(ctx, &fairleadv1.WhyRequest{Subject: subject})
			if err == nil || !strings.Contains(err.Error(), why) || connect.CodeOf(err) == connect.CodeNotFound || strings.Contains(err.Error(), "no such") {
				t.Errorf("why %s: %v", subject, err)
			}
		}
		shown, err := s.Get(ctx, &fairleadv1.GetRequest{Kind: "services"})
		if err != nil || len(shown.GetDocuments()) == 0 || shown.GetDoubt() != why+"; "+remedy {
			t.Errorf("get: %v, %v", shown, err)
		}
		described, err := s.Describe(ctx, &fairleadv1.DescribeRequest{Kind: "services", Name: "shop/web"})
		if err != nil || described.GetDoubt() != why+"; "+remedy {
			t.Errorf("describe: %v, %v", described, err)
		}
	})
}
