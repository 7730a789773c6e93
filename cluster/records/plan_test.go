// SPDX-License-Identifier: Apache-2.0

package records_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"slices"
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

// oneService reads any files as one Service, and a policy that lets it have its address.
func oneService(context.Context, map[string][]byte) (world.World, error) {
	of := netip.MustParseAddr("203.0.113.1")
	return world.World{
		AddressPolicies: []*world.AddressPolicy{{
			Meta: world.Meta{ID: world.ID{Name: "typed"}}, LimitsExternalIPs: true, ExternalIPs: []world.Range{{From: of, To: of}},
		}},
		Services: []*world.Service{{
			Meta: world.Meta{ID: world.ID{Namespace: "shop", Name: "new"}}, Type: world.LoadBalancer, ExternalIPs: []netip.Addr{of},
		}, {
			Meta: world.Meta{ID: world.ID{Namespace: "shop", Name: "waits"}}, Type: world.LoadBalancer, Extra: &world.Extra{Pool: "nowhere"},
		}},
		Problems: []world.Problem{{File: "a.yaml", Why: "odd"}}, Drivers: []*world.Driver{{Meta: world.Meta{ID: world.ID{Namespace: "shop", Name: "clb"}, UID: "u"}, URL: "http://192.0.2.7"}},
		LoadBalancers: []*world.OutsideBalancer{{
			Meta: world.Meta{ID: world.ID{Namespace: "shop", Name: "lb"}, UID: "u"}, DriverID: world.ID{Namespace: "shop", Name: "clb"}, Spec: []world.KV{{Key: "vip", Value: "7"}},
		}},
	}, nil
}

func planRequest(size int) *fairleadv1.PlanRequest {
	return &fairleadv1.PlanRequest{Files: []*fairleadv1.PlanRequest_File{{Name: "a.yaml", Data: []byte(strings.Repeat("#", size))}}}
}

func TestPlanTellsWhatWouldChangeAndChangesNothing(t *testing.T) {
	t.Parallel()
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
	if len(d.Changes) != 5 || d.Changes[0].Target != "service" || d.Changes[2] != (apirecords.PlanChange{Target: "address", Name: "203.0.113.1", What: "goes to Service shop/new"}) {
		t.Errorf("changes %+v", d.Changes)
	}
	if len(d.Waiting) == 0 || d.Waiting[0].Name != "shop/waits" || d.Waiting[0].Code != leader.PendingNoPool || d.Held == nil {
		t.Errorf("waiting %+v, held %v", d.Waiting, d.Held)
	}
	if d.AnsweredBy != "m1" || d.Left != 0 || d.LeftWhy != "" || len(d.Problems) != 1 || d.Revision.Index != uint64(g.Read().Applied()) {
		t.Errorf("answer %+v", d)
	}
	calls := []apirecords.PlanCall{{Driver: "shop/clb", Action: "create-balancer", LoadBalancer: "LoadBalancer shop/lb", With: "vip=7"}}
	if d.Changes[4] != (apirecords.PlanChange{Target: "loadbalancer", Name: "LoadBalancer shop/lb", What: "comes to be, by driver shop/clb"}) || !slices.Equal(d.Calls, calls) {
		t.Errorf("outside: changes %+v, calls %+v", d.Changes[3:], d.Calls)
	}
	if g.Read().Digest() != before {
		t.Error("the record changed")
	}
	var refusal *admin.Refusal
	if _, err := as(pki.Agent).Record.Plan(t.Context(), planRequest(7)); !errors.As(err, &refusal) || refusal.Code != admin.Forbidden {
		t.Errorf("an agent got %v", err)
	}
}

// Where nobody plans outside load balancers the answer is about Services, and says what was left out and why.
func TestPlanSaysWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	g, _ := furnished(t)
	as := serve(t, records.Options{Member: "m1", Record: g, Leader: g, Planner: plans{Group: g, busy: "an LBCF controller runs"}, Manifests: oneService})
	answer, err := as(pki.Viewer).Record.Plan(t.Context(), planRequest(7))
	if err != nil {
		t.Fatal(err)
	}
	var d apirecords.Plan
	if err := json.Unmarshal([]byte(answer.GetDocument()), &d); err != nil {
		t.Fatal(err)
	}
	if d.Left != 2 || d.LeftWhy != "an LBCF controller runs" || len(d.Changes) != 3 || d.Calls == nil || len(d.Calls) > 0 {
		t.Errorf("answer %+v", d)
	}
}

// A draft without objects of outside load balancers takes those of a folder away that it takes the place of; on top of it there is nothing to leave out.
func TestPlanSaysThatItLeavesOutWhatADraftWouldTakeAway(t *testing.T) {
	t.Parallel()
	g, _ := furnished(t)
	folder := []leader.Admitted{{World: &world.World{Source: "manifests:/etc/x"}, Complete: true}}
	as := serve(t, records.Options{
		Member: "m1", Record: g, Leader: g, Planner: plans{Group: g, busy: "an LBCF controller runs", seen: folder},
		Manifests: func(context.Context, map[string][]byte) (world.World, error) { return world.World{}, nil },
	})
	for source, want := range map[string]string{"": "", "manifests:/etc/x": "an LBCF controller runs"} {
		req := planRequest(7)
		req.InPlaceOf = source
		answer, err := as(pki.Viewer).Record.Plan(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		var d apirecords.Plan
		if err := json.Unmarshal([]byte(answer.GetDocument()), &d); err != nil {
			t.Fatal(err)
		}
		if d.LeftWhy != want || d.Left != 0 {
			t.Errorf("in place of %q: %d left, %q, want %q", source, d.Left, d.LeftWhy, want)
		}
	}
}

// Of policies of client-side balancing no plan tells what would come of them, so that it names them: those of the manifests, and that the ones which the
// group has may go where a draft takes the place of their source.
func TestPlanNamesWhatItDoesNotForetell(t *testing.T) {
	t.Parallel()
	g, _ := furnished(t)
	folder := []leader.Admitted{{World: &world.World{Source: "manifests:/etc/x"}, Complete: true}}
	some := world.World{
		BalancingPolicies:     []*world.BalancingPolicy{{Meta: world.Meta{ID: world.ID{Namespace: "shop", Name: "web"}}}},
		LocalRedirectPolicies: []*world.LocalRedirectPolicy{{Meta: world.Meta{ID: world.ID{Namespace: "shop", Name: "dns"}}}},
	}
	for _, c := range []struct {
		drafted   world.World
		inPlaceOf string
		want      []string
	}{
		{drafted: some, want: []string{"BalancingPolicy shop/web", "LocalRedirectPolicy shop/dns"}},
		{drafted: world.World{}, want: []string{}},
		{drafted: world.World{}, inPlaceOf: "manifests:/etc/x", want: []string{"policies of client-side balancing that the source has and the manifests have not"}},
	} {
		as := serve(t, records.Options{
			Member: "m1", Record: g, Leader: g, Planner: plans{Group: g, seen: folder},
			Manifests: func(context.Context, map[string][]byte) (world.World, error) { return c.drafted, nil },
		})
		req := planRequest(7)
		req.InPlaceOf = c.inPlaceOf
		answer, err := as(pki.Viewer).Record.Plan(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		var d apirecords.Plan
		if err := json.Unmarshal([]byte(answer.GetDocument()), &d); err != nil {
			t.Fatal(err)
		}
		if d.Unforetold == nil || !slices.Equal(d.Unforetold, c.want) || len(d.Changes) > 0 {
			t.Errorf("of %v in place of %q: %q, want %q", len(c.drafted.BalancingPolicies), c.inPlaceOf, d.Unforetold, c.want)
		}
	}
}

// Of documents that no object can be read from nothing could be foretold: which they are is said, and that nothing else is.
func TestPlanRefusesDocumentsThatAreNoObjects(t *testing.T) {
	t.Parallel()
	g, _ := furnished(t)
	none := func(line int) world.Problem {
		return world.Problem{Severity: world.Failed, File: "a.yaml", Line: line, Why: "no Kubernetes object: it has no kind", Remedy: "add it"}
	}
	invalid := world.Problem{Severity: world.Failed, File: "a.yaml", Object: world.Ref{Kind: world.KindService, ID: world.ID{Namespace: "shop", Name: "new"}}, Why: "odd"}
	for _, c := range []struct {
		problems []world.Problem
		want     string // empty: it is answered
	}{
		{[]world.Problem{invalid, {Severity: world.Ignored, File: "a.yaml", Why: "not used"}}, ""},
		{[]world.Problem{invalid, none(7)}, "plan: a.yaml:7: no Kubernetes object: it has no kind; mend it (a manifest has apiVersion, kind and metadata), or leave it out"},
		{[]world.Problem{none(7), none(9), none(11)}, "a.yaml:7: no Kubernetes object: it has no kind, and 2 more like it; mend it"},
	} {
		as := serve(t, records.Options{Member: "m1", Record: g, Leader: g, Planner: plans{Group: g}, Manifests: func(ctx context.Context, files map[string][]byte) (world.World, error) {
			w, err := oneService(ctx, files)
			w.Problems = c.problems
			return w, err
		}})
		_, err := as(pki.Viewer).Record.Plan(t.Context(), planRequest(7))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.problems, err, c.want)
		}
	}
}

func TestPlanRefusesWhatItCannotAnswer(t *testing.T) {
	t.Parallel()
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

// A plan ends with its call: what is not waited for any more is not worked on, and the next one is not kept waiting by it.
func TestPlanEndsWithItsCall(t *testing.T) {
	t.Parallel()
	g, _ := furnished(t)
	read := make(chan struct{})
	as := serve(t, records.Options{Member: "m1", Record: g, Leader: g, Planner: plans{Group: g}, Manifests: func(ctx context.Context, files map[string][]byte) (world.World, error) {
		if _, slow := files["slow.yaml"]; slow {
			close(read)
			<-ctx.Done()
		}
		return oneService(ctx, files)
	}})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := as(pki.Viewer).Record.Plan(ctx, &fairleadv1.PlanRequest{Files: []*fairleadv1.PlanRequest_File{{Name: "slow.yaml"}}})
		ended <- err
	}()
	<-read
	cancel()
	if err := <-ended; err == nil {
		t.Error("a call that was given up was answered")
	}
	if _, err := as(pki.Viewer).Record.Plan(t.Context(), planRequest(7)); err != nil {
		t.Errorf("the next one: %v", err)
	}
}
