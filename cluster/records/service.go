// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"sync"
	"time"

	"connectrpc.com/connect"

	"fairlead.io/fairlead/api/desired"
	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/spelling"
)

// Leader is what the leader's side of the API needs of the member; *cluster.Node is one.
type Leader interface {
	ProposeLocal(ctx context.Context, u cluster.Urgency, proposals ...fsm.Proposal) ([]fsm.Outcome, error)
	VerifyLeader(ctx context.Context) error
	LeadingTerm() uint64
	Contact() cluster.Contact
}

// Options is what a Service is made of. Fields without "optional" are required.
type Options struct {
	Member string // the answering member's name
	Record fsm.Reader
	Leader Leader
	// Proposer commits an operator's word.
	Proposer Proposer
	// Barrier returns once everything that was committed before the call is in Record. Without it
	// linearizable reads are refused. Optional: see NewBarrier.
	Barrier func(ctx context.Context) error
	// Sessions gives the state of this member's BGP sessions. Optional.
	Sessions func() map[fsm.PeerName]string
	// Flows gives what a node counted of the connections that come in by it, false if it told nothing lately. Optional.
	Flows func(fsm.NodeID) (Flows, bool)
	// NodeSessions gives the states of the sessions that nodes have themselves with a peer. Optional.
	NodeSessions func(fsm.PeerName) map[fsm.NodeID]string
	// Planner explains what the leader decides; optional: without it Why goes by the record alone.
	Planner Planner
	// Manifests reads files as a source that is a folder would. Optional: without it Plan is refused.
	Manifests func(ctx context.Context, files map[string][]byte) (world.World, error)
	// ToLeader names who leads, as far as is known, and the way there: nil if its address is not known. Optional.
	ToLeader func() (name string, client fairleadv1connect.RecordServiceClient)
	// Leaderless tells why this member knows nobody who leads and what to do about it; empty if it knows one. Optional.
	Leaderless func() (why, remedy string)
	// Settle is how long a watch waits after a change for those that follow it. Default 50 ms.
	Settle time.Duration
}

// Flows is what a node counted of its connections, or why it could not.
type Flows struct {
	Open, Busy uint64 // see api/records
	Age        time.Duration
	Why        string
}

// Service implements fairleadv1connect.RecordServiceHandler.
type Service struct {
	o          Options
	explaining chan struct{} // holds a token while an answer of Why is made
}

var _ fairleadv1connect.RecordServiceHandler = (*Service)(nil)

// New makes a service.
func New(o Options) *Service {
	if o.Settle == 0 {
		o.Settle = 50 * time.Millisecond
	}
	return &Service{o: o, explaining: make(chan struct{}, 1)}
}

// view is what a read is answered from.
func (s *Service) view(ctx context.Context, what string, linearizable bool) (*fsm.View, error) {
	if linearizable {
		if s.o.Barrier == nil {
			return nil, refuse(connect.CodeUnimplemented, "invalid", what, "this member cannot make linearizable reads", "leave out linearizable")
		}
		if err := s.o.Barrier(ctx); err != nil {
			return nil, s.refused(what, err)
		}
	}
	return s.o.Record.Read(), nil
}

// doubt is why what a read without a leader showed may stand otherwise by now, and what to do about it; empty where nothing makes it doubtful.
func (s *Service) doubt(linearizable bool) string {
	if why, remedy := s.leaderless(); why != "" && !linearizable {
		return why + "; " + remedy
	}
	return ""
}

func (s *Service) leaderless() (why, remedy string) {
	if s.o.Leaderless == nil {
		return "", ""
	}
	return s.o.Leaderless()
}

// none says that the record has no such thing, and where nobody leads, that it cannot be known whether the group has.
func (s *Service) none(what, why, remedy string, linearizable bool) error {
	if lack, mend := s.leaderless(); lack != "" && !linearizable {
		return &admin.Refusal{
			Code: admin.NoQuorum, What: what, Why: "the record of " + s.o.Member + " has none, which may be behind by now: " + lack, Remedy: mend,
		}
	}
	return notFound(what, why, remedy)
}

func (s *Service) renderer(v *fsm.View) *renderer {
	r := &renderer{view: v, self: s.o.Member, flows: s.o.Flows}
	if s.o.ToLeader != nil {
		r.leader, _ = s.o.ToLeader()
	}
	if s.o.Sessions != nil {
		r.sessions = sync.OnceValue(s.o.Sessions)
	}
	r.nodeSessions = s.o.NodeSessions
	return r
}

// Get implements fairleadv1connect.RecordServiceHandler.
func (s *Service) Get(ctx context.Context, req *fairleadv1.GetRequest) (*fairleadv1.GetResponse, error) {
	what := "get " + req.GetKind()
	k, ok := kindNamed(req.GetKind())
	if !ok {
		return nil, unknownKind(what, req.GetKind())
	}
	if why, remedy := k.CheckFilter(req.GetFilter(), spelling.Meant); why != "" {
		return nil, refuse(connect.CodeInvalidArgument, "invalid", what, why, remedy)
	}
	v, err := s.view(ctx, what, req.GetLinearizable())
	if err != nil {
		return nil, err
	}
	rows := fsm.List[fsm.Record]
	if name := req.GetName(); name != "" {
		found := k.lookup(v, name)
		if len(found) == 0 {
			return nil, s.none(what+" "+name, "there is none", "`fairlead get "+k.Name+"` lists them", req.GetLinearizable())
		}
		rows = func(*fsm.View, fsm.Table) []fsm.Record { return found }
	}
	p := page{filter: req.GetFilter(), limit: limitOf(req.GetLimit())}
	if err := p.fill(ctx, after(rows(v, k.table), req.GetAfter()), k, s.renderer(v)); err != nil {
		return nil, err
	}
	return &fairleadv1.GetResponse{
		Documents: p.documents, Revision: desired.RevisionMessage(v.Revision()), More: p.more, Next: p.next, Doubt: s.doubt(req.GetLinearizable()),
	}, nil
}

// Describe implements fairleadv1connect.RecordServiceHandler. What is gone is described by the history that is
// left of it; what came back under the same name has both.
func (s *Service) Describe(ctx context.Context, req *fairleadv1.DescribeRequest) (*fairleadv1.DescribeResponse, error) {
	what := "describe " + req.GetKind() + " " + req.GetName()
	k, ok := kindNamed(req.GetKind())
	if !ok {
		return nil, unknownKind(what, req.GetKind())
	}
	v, err := s.view(ctx, what, req.GetLinearizable())
	if err != nil {
		return nil, err
	}
	out := &fairleadv1.DescribeResponse{Revision: desired.RevisionMessage(v.Revision()), Doubt: s.doubt(req.GetLinearizable())}
	found, name := k.lookup(v, req.GetName()), req.GetName()
	switch {
	case len(found) > 1:
		return nil, refuse(connect.CodeInvalidArgument, "invalid", what, "the name means several", "`fairlead get "+k.Name+" "+name+"` lists them")
	case len(found) == 1:
		name = found[0].Key()
		if out.Document, err = document(k.render(s.renderer(v), found[0])); err != nil {
			return nil, err
		}
	}
	out.History = history(v, k, name, found)
	if out.Document == "" && len(out.History) == 0 {
		return nil, s.none(what, "there is none, and none is remembered", "`fairlead get "+k.Name+"` lists them", req.GetLinearizable())
	}
	return out, nil
}

// history joins what is left of earlier objects of that name with that of the present one.
func history(v *fsm.View, k kind, name string, found []fsm.Record) []*fairleadv1.Transition {
	var trail fsm.Trail
	if grave, ok := fsm.Get[*fsm.Grave](v, fsm.TableGraves, string(k.table)+"/"+name); ok {
		trail = append(trail, grave.History...)
	}
	if len(found) == 1 && k.trail != nil {
		trail = append(trail, k.trail(found[0])...)
	}
	return each(trail, func(t fsm.Transition) *fairleadv1.Transition {
		return &fairleadv1.Transition{
			Revision: desired.RevisionMessage(t.Revision), Term: t.By().Term, Actor: t.By().Actor, Reason: t.By().Reason, Change: t.What,
			Time: time.UnixMilli(t.AtUnixMilli).UTC().Format(time.RFC3339Nano),
		}
	})
}
