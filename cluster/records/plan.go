// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"fmt"

	"connectrpc.com/connect"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/leader"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// Plan implements fairleadv1connect.RecordServiceHandler.
func (s *Service) Plan(ctx context.Context, req *fairleadv1.PlanRequest) (*fairleadv1.PlanResponse, error) {
	const what = "plan"
	files, err := filesOf(req)
	if err != nil {
		return nil, refuse(connect.CodeInvalidArgument, "invalid", what, err.Error(), "name fewer or smaller files")
	}
	in, leads := s.asked(ctx)
	if !leads || s.o.Manifests == nil {
		return s.planAtLeader(ctx, what, req)
	}
	select { // it costs several plans of everything: one at a time
	case s.explaining <- struct{}{}:
		defer func() { <-s.explaining }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	w, err := s.o.Manifests(ctx, files)
	if err != nil {
		return nil, err
	}
	if why := noObject(w.Problems); why != "" {
		return nil, refuse(connect.CodeInvalidArgument, "invalid", what, why, "mend it (a manifest has apiVersion, kind and metadata), or leave it out: nothing is foretold of it")
	}
	draft := leader.Draft{World: &w, InPlaceOf: req.GetInPlaceOf()}
	f, err := leader.Foresee(ctx, in, draft)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, refuse(connect.CodeInvalidArgument, "invalid", what, err.Error(), "`fairlead get sources` lists what was acted on")
	}
	out, left, err := s.foreseeOutside(ctx, draft)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, refuse(connect.CodeInvalidArgument, "invalid", what, err.Error(), "look for what is asked for twice, or leave some of it out")
	}
	d := planDocument(&f, &out)
	d.AnsweredBy, d.Revision, d.InPlaceOf = s.o.Member, revision(in.Record.Revision()), req.GetInPlaceOf()
	if d.LeftWhy = left; left != "" {
		d.Left = draft.Left()
	}
	d.Unforetold = unforetold(&w, draft.InPlaceOf != "" && in.Record.Count(fsm.TablePolicies) > 0)
	d.Problems = each(w.Problems, func(p world.Problem) string { return p.String() })
	doc, err := document(d)
	return &fairleadv1.PlanResponse{Document: doc}, err
}

// unforetold names what a plan does not look at, though something may come of it: policies of client-side balancing. What takes the place of a
// source may take away those that the group has.
func unforetold(w *world.World, takesAway bool) []string {
	out := each(w.BalancingPolicies, func(p *world.BalancingPolicy) string { return p.Ref(world.KindBalancingPolicy).String() })
	out = append(out, each(w.LocalRedirectPolicies, func(p *world.LocalRedirectPolicy) string { return p.Ref(world.KindLocalRedirect).String() })...)
	if len(out) == 0 && takesAway {
		out = append(out, "policies of client-side balancing that the source has and the manifests have not")
	}
	return out
}

// noObject says which document or file is none that an object can be read from, and why; empty for none. Of such a draft it would be foretold
// that nothing changes.
func noObject(problems []world.Problem) string {
	var none []world.Problem
	for _, p := range problems {
		if p.Severity == world.Failed && p.Object == (world.Ref{}) {
			p.Remedy = ""
			none = append(none, p)
		}
	}
	switch len(none) {
	case 0:
		return ""
	case 1:
		return none[0].String()
	}
	return fmt.Sprintf("%s, and %d more like it", none[0], len(none)-1)
}

// foreseeOutside is what would come of a draft outside. Left says why that is left out, where there would be anything to tell: what takes the place
// of a source may take away what that had.
func (s *Service) foreseeOutside(ctx context.Context, d leader.Draft) (f leader.OutsideForecast, left string, err error) {
	asking, cancel := context.WithTimeout(ctx, askLoopWithin)
	in, why := s.o.Planner.AskedOutside(asking)
	cancel()
	switch {
	case why != "" && d.Left() == 0 && d.InPlaceOf == "":
		return f, "", nil
	case why != "":
		return f, why, nil
	}
	if d.InPlaceOf != "" && !in.Shows(d.InPlaceOf) {
		if d.Left() == 0 {
			return f, "", nil
		}
		return f, "outside load balancers are not planned from source " + d.InPlaceOf, nil
	}
	f, err = leader.ForeseeOutside(ctx, in, d)
	return f, "", err
}

func filesOf(req *fairleadv1.PlanRequest) (map[string][]byte, error) {
	files, size := make(map[string][]byte, len(req.GetFiles())), 0
	for _, f := range req.GetFiles() {
		size += len(f.GetName()) + len(f.GetData())
		files[f.GetName()] = f.GetData()
	}
	switch {
	case size > records.PlanMaxBytes:
		return nil, fmt.Errorf("%d bytes of manifests; %d are allowed", size, records.PlanMaxBytes)
	case len(files) == 0 || len(files) != len(req.GetFiles()):
		return nil, fmt.Errorf("%d files of %d names; at least one is needed, each of its own name", len(req.GetFiles()), len(files))
	}
	return files, nil
}

// planAtLeader hands a request on to who leads.
func (s *Service) planAtLeader(ctx context.Context, what string, req *fairleadv1.PlanRequest) (*fairleadv1.PlanResponse, error) {
	name, client := "", fairleadv1connect.RecordServiceClient(nil)
	if s.o.ToLeader != nil {
		name, client = s.o.ToLeader()
	}
	notLeader := func(why string) error {
		return &admin.Refusal{Code: admin.NotLeader, What: what, Why: why, Remedy: "try again in a moment; `fairlead raft status` tells more if it stays so"}
	}
	switch {
	case name == "":
		why, remedy := s.leaderless()
		if why == "" {
			return nil, notLeader("nobody leads at present, and only the leader knows what the sources show")
		}
		return nil, &admin.Refusal{Code: admin.NotLeader, What: what, Why: why, Remedy: remedy}
	case name == s.o.Member:
		return nil, notLeader(name + " leads, and waits for a commit or has not planned yet")
	case req.GetHere(), client == nil:
		return nil, notLeader(s.o.Member + " does not lead")
	}
	answer, err := client.Plan(ctx, &fairleadv1.PlanRequest{Files: req.GetFiles(), InPlaceOf: req.GetInPlaceOf(), Here: true})
	if err != nil {
		return nil, fmt.Errorf("%s: by the leader %s: %w", what, name, err)
	}
	return answer, nil
}

func planDocument(f *leader.Forecast, out *leader.OutsideForecast) records.Plan {
	wait := func(e leader.Explanation) records.PlanWait {
		return records.PlanWait{Kind: e.Kind, Name: e.Name, Reason: reasonOf(leader.Code(e.Code), e.Text)}
	}
	return records.Plan{
		Calls:   each(out.Calls, planCall),
		Changes: each(append(f.Changes, out.Changes...), func(c leader.Change) records.PlanChange { return records.PlanChange(c) }),
		Held: each(append(f.Held, out.Held...), func(h leader.Hold) records.PlanHold {
			return records.PlanHold{Of: string(h.Kind), Subjects: h.Subjects, Why: h.Why}
		}),
		Waiting: append(each(f.Pending, wait), each(append(f.Waiting, out.Waiting...), wait)...),
	}
}

func planCall(c leader.OutsideCall) records.PlanCall {
	return records.PlanCall{
		Driver: c.Driver, Action: c.Action, LoadBalancer: c.Balancer, Backend: c.Backend, Target: c.Target, Owner: c.Owner, Address: c.Address, With: c.With,
	}
}
