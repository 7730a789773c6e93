// SPDX-License-Identifier: Apache-2.0

package records_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	apirecords "fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/cluster/leader"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/records"
	"fairlead.io/fairlead/fsm/world"
)

// oneService reads any files as one Service.
func oneService(map[string][]byte) world.World {
	return world.World{
		Services: []world.Service{{
			Meta: world.Meta{ID: world.ID{Namespace: "shop", Name: "new"}}, Type: world.LoadBalancer, ExternalIPs: []netip.Addr{netip.MustParseAddr("203.0.113.1")},
		}, {
			Meta: world.Meta{ID: world.ID{Namespace: "shop", Name: "waits"}}, Type: world.LoadBalancer, Pool: "nowhere",
		}},
		Problems: []world.Problem{{File: "a.yaml", Why: "odd"}}, Drivers: make([]world.Driver, 2),
	}
}

func planRequest(size int) *fairleadv1.PlanRequest {
	return &fairleadv1.PlanRequest{Files: []*fairleadv1.PlanRequest_File{{Name: "a.yaml", Data: []byte(strings.Repeat("#", size))}}}
}

func TestPlanTellsWhatWouldChangeAndChangesNothing(t *testing.T) {
	g, _ := furnished(t)
	before := g.Read().Digest()
	as := serve(t, records.Options{Member: "m1", Record: g, Leader: g, Planner: plans{Group: g}, Manifests: oneService})
	answer, err := as(pki.Viewer).Record.Plan(t.Context(), planRequest(7))
	if err != nil {
		t.Fatal(err)
	}
	var d apirecords.Plan
	if err := json.Unmarshal([]byte(answer.GetDocument()), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Changes) != 3 || d.Changes[0].Target != "service" || d.Changes[2] != (apirecords.PlanChange{Target: "address", Name: "203.0.113.1", What: "goes to Service shop/new"}) {
		t.Errorf("changes %+v", d.Changes)
	}
	if len(d.Waiting) == 0 || d.Waiting[0].Name != "shop/waits" || d.Waiting[0].Code != leader.PendingNoPool || d.Held == nil {
		t.Errorf("waiting %+v, held %v", d.Waiting, d.Held)
	}
	if d.AnsweredBy != "m1" || d.Left != 2 || len(d.Problems) != 1 || d.Revision.Index != uint64(g.Read().Applied()) {
		t.Errorf("answer %+v", d)
	}
	if g.Read().Digest() != before {
		t.Error("the record changed")
	}
	var refusal *admin.Refusal
	if _, err := as(pki.Agent).Record.Plan(t.Context(), planRequest(7)); !errors.As(err, &refusal) || refusal.Code != admin.Forbidden {
		t.Errorf("an agent got %v", err)
	}
}

func TestPlanRefusesWhatItCannotAnswer(t *testing.T) {
	g, _ := furnished(t)
	leading := serve(t, records.Options{Member: "m1", Record: g, Leader: g, Planner: plans{Group: g}, Manifests: oneService})
	to := leading(pki.Member).Record
	named := planRequest(1)
	named.InPlaceOf = "nowhere"
	twice := planRequest(1)
	twice.Files = append(twice.Files, twice.Files[0])
	for text, req := range map[string]*fairleadv1.PlanRequest{
		"524288 are allowed": planRequest(apirecords.PlanMaxBytes), "acts on no source nowhere": named, "at least one is needed": {}, "of 1 names": twice,
	} {
		if _, err := to.Plan(t.Context(), req); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%q is not in %v", text, err)
		}
	}
	if _, err := to.Plan(t.Context(), planRequest(2<<20)); err == nil {
		t.Error("2 MiB were taken")
	}
	behind := grouptest.NewGroup(t)
	follower := func(name string, client fairleadv1connect.RecordServiceClient) *records.Service {
		return records.New(records.Options{
			Member: "m2", Record: behind, Leader: behind, Planner: plans{Group: behind, lost: true}, Manifests: oneService,
			ToLeader: func() (string, fairleadv1connect.RecordServiceClient) { return name, client },
		})
	}
	answer, err := follower("m1", to).Plan(t.Context(), planRequest(7))
	if err != nil || !strings.Contains(answer.GetDocument(), `"answeredBy":"m1"`) {
		t.Errorf("not handed on: %v, %v", answer, err)
	}
	for text, s := range map[string]*records.Service{
		"nobody leads": follower("", nil), "m2 leads, and waits": follower("m2", nil), "does not lead": follower("m1", nil), "connection refused": follower("m1", broken{}),
	} {
		if _, err := s.Plan(context.Background(), planRequest(7)); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%q is not in %v", text, err)
		}
	}
}

func (broken) Plan(context.Context, *fairleadv1.PlanRequest) (*fairleadv1.PlanResponse, error) {
	return nil, errors.New("connection refused")
}
