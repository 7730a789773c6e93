// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"slices"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/leader"
	"fairlead.io/fairlead/fsm"
)

// AcceptRewind implements fairleadv1connect.RecordServiceHandler. Where no view of the source is older than another, the word is not taken
// in: it would count for whatever comes next.
func (s *Service) AcceptRewind(ctx context.Context, req *fairleadv1.AcceptRewindRequest) (*fairleadv1.AcceptRewindResponse, error) {
	source := req.GetSource()
	what, v := "accept-rewind "+source, s.o.Record.Read()
	outcome := s.noRewind(source)
	if outcome.Err() == nil {
		var err error
		if outcome, err = s.commit(ctx, what, req.GetReason(), leader.AcceptRewind(v, source)...); err != nil {
			return nil, err
		}
	}
	_, known := fsm.Get[*fsm.SourceView](v, fsm.TableViews, source)
	switch {
	case outcome.Reject == fsm.RejectNotFound && known:
		return nil, &admin.Refusal{
			Code: admin.NotReady, What: what, Why: "there is no rewind: no list of " + source + " is older than what was seen of it before",
			Remedy: "nothing waits for this word; if the cluster was restored from a backup just now, say it again in a minute, once `fairlead get sources` shows that it ran back",
		}
	case outcome.Err() != nil:
		return nil, &admin.Refusal{Code: admin.Invalid, What: what, Why: outcome.Err().Error(), Remedy: "`fairlead get sources` lists the sources"}
	}
	return &fairleadv1.AcceptRewindResponse{}, nil
}

// noRewind is the refusal of a word that a source was set back, from a member that leads and sees no older view of it. Other members know
// of no views: they leave it to the leader (Propose).
func (s *Service) noRewind(source string) fsm.Outcome {
	v := s.o.Record.Read()
	if s.o.Planner == nil || s.o.Leader == nil || s.o.Leader.LeadingTerm() == 0 || leader.RewindOf(v, source) != nil {
		return fsm.Outcome{}
	}
	older := slices.ContainsFunc(s.o.Planner.Status().Sources, func(o leader.SourceStatus) bool { return o.Name == source && o.Older })
	if older {
		return fsm.Outcome{}
	}
	return fsm.Outcome{Reject: fsm.RejectNotFound, Subject: "rewind of source " + source}
}

// unfounded is the refusal of proposals with a word that a source was set back, where none was.
func (s *Service) unfounded(proposals []fsm.Proposal) (out []fsm.Outcome) {
	for i := range proposals {
		if c, ok := proposals[i].Command.(*fsm.AcceptRewind); ok {
			if o := s.noRewind(c.Source); o.Err() != nil {
				return slices.Repeat([]fsm.Outcome{o}, len(proposals))
			}
		}
	}
	return nil
}
