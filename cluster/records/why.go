// SPDX-License-Identifier: Apache-2.0

package records

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/leader"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// Planner gives what this member plans from while it leads; *leader.Leader is one.
type Planner interface {
	Asked(ctx context.Context) (leader.Input, bool)
	AskedOutside(ctx context.Context) (in leader.OutsideInput, why string)
	NextCalls(ctx context.Context, subjects []fsm.Subject) (map[fsm.Subject]leader.NextCall, bool)
	Status() leader.Status
}

// How long an answer waits for others before the record alone has to do.
const (
	askLoopWithin   = 2 * time.Second
	askLeaderWithin = 5 * time.Second
)

// Why implements fairleadv1connect.RecordServiceHandler.
func (s *Service) Why(ctx context.Context, req *fairleadv1.WhyRequest) (*fairleadv1.WhyResponse, error) {
	what := "why " + req.GetSubject()
	in, leads := s.asked(ctx)
	doubt := ""
	if !leads {
		answer, why, err := s.askLeader(ctx, req)
		if answer != nil || err != nil {
			return answer, err
		}
		in, doubt = leader.Input{Record: s.o.Record.Read()}, why+"; this is from the record of "+s.o.Member+" alone"
	}
	select { // a plan of everything is made for each answer: one at a time
	case s.explaining <- struct{}{}:
		defer func() { <-s.explaining }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if kind, name, outside := strings.Cut(req.GetSubject(), " "); outside {
		return s.whyOutside(ctx, kind, name, leads, doubt)
	}
	x := leader.Explain(in)
	ids, err := resolve(x, what, req.GetSubject())
	if err != nil {
		return nil, doubted(err, what, doubt)
	}
	doc, err := document(s.whyDocument(x, ids, req.GetSubject(), leads, doubt))
	return &fairleadv1.WhyResponse{Document: doc}, err
}

// asked is what this member plans from, if it leads.
func (s *Service) asked(ctx context.Context) (leader.Input, bool) {
	if s.o.Planner == nil {
		return leader.Input{}, false
	}
	ctx, cancel := context.WithTimeout(ctx, askLoopWithin)
	defer cancel()
	return s.o.Planner.Asked(ctx)
}

// askLeader hands a request on. Without an answer and an error this member has to answer, and why tells what kept the
// leader from it.
func (s *Service) askLeader(ctx context.Context, req *fairleadv1.WhyRequest) (answer *fairleadv1.WhyResponse, why string, err error) {
	name, client := "", fairleadv1connect.RecordServiceClient(nil)
	if s.o.ToLeader != nil {
		name, client = s.o.ToLeader()
	}
	switch {
	case name == "":
		why, _ := s.leaderless()
		return nil, cmp.Or(why, "nobody leads at present"), nil
	case name == s.o.Member:
		return nil, s.o.Member + " leads, and waits for a commit or has not planned yet", nil
	case req.GetHere():
		return nil, s.o.Member + " does not lead", nil
	case client == nil:
		return nil, "the API address of the leader " + name + " is not known", nil
	}
	ctx, cancel := context.WithTimeout(ctx, askLeaderWithin)
	defer cancel()
	answer, err = client.Why(ctx, &fairleadv1.WhyRequest{Subject: req.GetSubject(), Here: true})
	var refusal *admin.Refusal
	switch {
	case err == nil:
		return answer, "", nil
	case errors.As(err, &refusal) && string(refusal.Code) == notFoundCode:
		return nil, "", notFound(refusal.What, refusal.Why, refusal.Remedy)
	}
	return nil, "the leader " + name + " did not answer: " + err.Error(), nil
}

// resolve finds the Services that somebody means, by name or by address. Errors say what comes near.
func resolve(x *leader.Explained, what, subject string) ([]fsm.ServiceID, error) {
	if a, err := netip.ParseAddr(subject); err == nil {
		a = a.Unmap()
		if ids := x.Claimants(a); len(ids) > 0 {
			return ids, nil
		}
		return nil, notFound(what, "no Service has the address: "+x.WhoseAddress(a), "`fairlead get allocations` lists who has which")
	}
	all := x.Services()
	if strings.Contains(subject, "/") {
		id := fsm.ServiceID(subject)
		if slices.Contains(all, id) {
			return []fsm.ServiceID{id}, nil
		}
		if grave, ok := fsm.Get[*fsm.Grave](x.Record(), fsm.TableGraves, string(fsm.TableServices)+"/"+subject); ok {
			return nil, notFound(what, "it is gone since "+grave.At.String(), "`fairlead describe service "+subject+"` tells what became of it")
		}
		return nil, noService(x, what, id, func(of world.ID) bool { return of.String() == subject })
	}
	same := slices.DeleteFunc(all, func(id fsm.ServiceID) bool { return !strings.HasSuffix(string(id), "/"+subject) })
	switch len(same) {
	case 0:
		return nil, noService(x, what, fsm.ServiceID("default/"+subject), func(of world.ID) bool { return of.Name == subject })
	case 1:
		return same, nil
	}
	return nil, refuse(connect.CodeInvalidArgument, "invalid", what, "Services of several namespaces have the name: "+strings.Join(words(same), ", "), "name one of them, or its namespace with -n")
}

// doubted is that something was not found where it cannot be known whether there is any: who leads did not answer.
func doubted(err error, what, doubt string) error {
	if doubt == "" || connect.CodeOf(err) != connect.CodeNotFound {
		return err
	}
	return &admin.Refusal{
		Code: admin.NoQuorum, What: what, Why: "it is not found, and there may be one by now: " + doubt,
		Remedy: "ask again once somebody leads; `fairlead raft status` shows who is away",
	}
}

// noService says that nobody has a Service: one that a manifest is there of may be of no use as it is written.
func noService(x *leader.Explained, what string, id fsm.ServiceID, meant func(world.ID) bool) error {
	var unusable []string
	for _, p := range x.Problems(meant) {
		if p.Severity == world.Failed {
			unusable = append(unusable, p.String())
		}
	}
	if len(unusable) > 0 {
		return notFound(what, "it cannot be used as it is written: "+strings.Join(unusable, "; "), "mend it; `fairlead plan -f FILE` tells what would come of it")
	}
	return notFound(what, "there is no such Service"+near(x, id), "`fairlead get services` lists them")
}

func near(x *leader.Explained, id fsm.ServiceID) string {
	if guesses := x.Near(id); len(guesses) > 0 {
		return "; did you mean " + strings.Join(words(guesses), " or ") + "?"
	}
	return ""
}

func (s *Service) whyDocument(x *leader.Explained, ids []fsm.ServiceID, subject string, leads bool, doubt string) records.Why {
	v := x.Record()
	d := s.whyHead(v, subject, leads, doubt)
	w := &whyRenderer{x: x, renderer: s.renderer(v), members: fsm.List[*fsm.Member](v, fsm.TableMembers)}
	for _, id := range ids {
		if r, known := x.Service(id); known {
			d.Services = append(d.Services, w.service(&r))
		}
	}
	return d
}

// whyHead is what an answer says of itself.
func (s *Service) whyHead(v *fsm.View, subject string, leads bool, doubt string) records.Why {
	d := records.Why{
		Asked: subject, AnsweredBy: s.o.Member, Basis: records.WhyRecord, Doubt: doubt, Revision: revision(v.Revision()),
		Quarantine: !v.Group().Quarantine.IsZero(), Sources: []records.WhySource{}, Services: []records.WhyService{}, Outside: []records.WhyOutside{},
	}
	if contact := s.o.Leader.Contact(); !contact.At.IsZero() {
		ms := int64(0)
		if !contact.Leads {
			ms = max(0, milliseconds(time.Since(contact.At)))
		}
		d.LastContactMs = &ms
	}
	if s.o.ToLeader != nil {
		d.Leader, _ = s.o.ToLeader()
	}
	if leads {
		d.Basis, d.Leader = records.WhySources, s.o.Member
		d.Sources = each(s.o.Planner.Status().Sources, func(o leader.SourceStatus) records.WhySource {
			return records.WhySource{Name: o.Name, Usable: o.Usable, Why: o.Why}
		})
	}
	return d
}
