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
	w := s.o.Manifests(files)
	draft := leader.Draft{World: &w, InPlaceOf: req.GetInPlaceOf()}
	f, err := leader.Foresee(in, draft)
	if err != nil {
		return nil, refuse(connect.CodeInvalidArgument, "invalid", what, err.Error(), "`fairlead get sources` lists what was acted on")
	}
	d := planDocument(&f)
	d.AnsweredBy, d.Revision, d.InPlaceOf, d.Left = s.o.Member, revision(in.Record.Revision()), req.GetInPlaceOf(), draft.Left()
	d.Problems = each(w.Problems, func(p world.Problem) string { return p.String() })
	doc, err := document(d)
	return &fairleadv1.PlanResponse{Document: doc}, err
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
		return nil, notLeader("nobody leads at present, and only the leader knows what the sources show")
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

func planDocument(f *leader.Forecast) records.Plan {
	wait := func(e leader.Explanation) records.PlanWait {
		return records.PlanWait{Kind: e.Kind, Name: e.Name, Reason: reasonOf(leader.Code(e.Code), e.Text)}
	}
	return records.Plan{
		Changes: each(f.Changes, func(c leader.Change) records.PlanChange { return records.PlanChange(c) }),
		Held: each(f.Held, func(h leader.Hold) records.PlanHold {
			return records.PlanHold{Of: string(h.Kind), Subjects: h.Subjects, Why: h.Why}
		}),
		Waiting: append(each(f.Pending, wait), each(f.Waiting, wait)...),
	}
}
