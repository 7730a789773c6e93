// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"connectrpc.com/connect"

	"fairlead.io/fairlead/api/desired"
	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/fsm"
)

// Shares tells what nodes announce themselves. It is called from several goroutines.
type Shares interface {
	// Tables are those of the record that it depends on.
	Tables() []fsm.Table
	// Of gives what a node announces as of a view, which is not older than of earlier calls, and a number of that: nil if the
	// node has it already. Numbers are never 0.
	Of(v *fsm.View, node fsm.NodeID, have uint64) (*fairleadv1.AnnouncementsResponse, uint64)
}

// Announcements implements fairleadv1connect.AgentServiceHandler.
func (s *Service) Announcements(ctx context.Context, req *fairleadv1.AnnouncementsRequest, out *connect.ServerStream[fairleadv1.AnnouncementsResponse]) error {
	if req.GetNode() == "" || req.GetBoot() == "" {
		return &admin.Refusal{Code: admin.Invalid, What: "announce", Why: "node or boot is missing", Remedy: "name both"}
	}
	if s.o.Shares == nil {
		return &admin.Refusal{Code: admin.NotReady, What: "announce", Why: "this member tells nodes nothing to announce", Remedy: "ask another member"}
	}
	st := &stream{s: s, node: fsm.NodeID(req.GetNode()), boot: fsm.BootID(req.GetBoot()), sent: desired.RevisionOf(req.GetHave())}
	if err := st.catchUp(ctx); err != nil {
		return err
	}
	if err := st.declare(ctx); err != nil {
		return err
	}
	return st.announce(ctx, out.Send)
}

// declare has the record know that the node speaks, before it is told anything that a switch could come to hold (S9).
func (st *stream) declare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, st.s.o.Tuning.Behind)
	defer cancel()
	proposed := false
	for {
		v := st.s.o.Record.Read()
		n, ok := fsm.Get[*fsm.Node](v, fsm.TableNodes, string(st.node))
		switch {
		case ok && n.Speaking.Speaks && n.Boot == st.boot && st.s.o.Contact().CaughtUp():
			return nil
		case !proposed && !(ok && n.Speaking.Speaks && n.Boot == st.boot):
			mark := fsm.SpeakerMark{Node: st.node, Boot: st.boot, Speaks: true}
			if err := st.s.commitSpeaker(ctx, mark, "its agent speaks BGP"); err != nil {
				return err
			}
			proposed = true
		}
		look, done := context.WithTimeout(ctx, st.s.o.Tuning.Look)
		err := st.s.o.Record.Wait(look, v, fsm.TableNodes)
		done()
		if ctx.Err() != nil {
			return fmt.Errorf("wait until the record has it that node %s speaks: %w", st.node, err)
		}
	}
}

// announce tells the node what it shall announce, whenever that changes, until ctx ends or this member should not be believed.
func (st *stream) announce(ctx context.Context, send func(*fairleadv1.AnnouncementsResponse) error) error {
	var told uint64
	for {
		if err := st.s.standing.err(); err != nil {
			return err
		}
		v := st.s.o.Record.Read()
		if n, ok := fsm.Get[*fsm.Node](v, fsm.TableNodes, string(st.node)); !ok || n.Boot != st.boot || !n.Speaking.Speaks {
			why := "its node is gone, runs under another boot or speaks no more"
			return &admin.Refusal{Code: admin.Stopped, What: "announce", Why: why, Remedy: "the agent begins anew"}
		}
		m, seq := st.s.o.Shares.Of(v, st.node, told)
		if m != nil {
			if err := send(m); err != nil {
				return err
			}
			told = seq
		}
		look, done := context.WithTimeout(ctx, st.s.o.Tuning.Look)
		err := st.s.o.Record.Wait(look, v, st.s.o.Shares.Tables()...)
		done()
		if err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// ReportSpeaker implements fairleadv1connect.AgentServiceHandler.
func (s *Service) ReportSpeaker(ctx context.Context, req *fairleadv1.ReportSpeakerRequest) (*fairleadv1.ReportSpeakerResponse, error) {
	m := fsm.SpeakerMark{
		Node: fsm.NodeID(req.GetNode()), Boot: fsm.BootID(req.GetBoot()), Speaks: req.GetSpeaks(),
		Announced: desired.RevisionOf(req.GetAnnounced()), Withdrawn: desired.RevisionOf(req.GetWithdrawn()),
	}
	var err error
	if m.Sessions, err = openSessions(req.GetSessions()); err != nil {
		return nil, err
	}
	if m.Node == "" || m.Boot == "" {
		return nil, &admin.Refusal{Code: admin.Invalid, What: "report of a speaker", Why: "node or boot is missing", Remedy: "name both"}
	}
	if awaitsSpeaker(s.o.Record.Read(), m) {
		if err := s.commitSpeaker(ctx, m, "announced and withdrawn"); err != nil {
			return nil, err
		}
	}
	return &fairleadv1.ReportSpeakerResponse{}, nil
}

// openSessions reads what a node says of its sessions; not told if it says nothing.
func openSessions(m *fairleadv1.OpenSessions) (out fsm.Sessions, err error) {
	if m == nil {
		return out, nil
	}
	refuse := func(why, remedy string) error {
		return &admin.Refusal{Code: admin.Invalid, What: "report of a speaker", Why: why, Remedy: remedy}
	}
	if n := len(m.GetSessions()); n > maxSessions {
		return out, refuse(fmt.Sprintf("it has %d BGP sessions", n), fmt.Sprintf("at most %d make sense", maxSessions))
	}
	out.Told = true
	for _, s := range m.GetSessions() {
		if n := len(s.GetNeighbour()); n > maxSessionText {
			return out, refuse(fmt.Sprintf("it names a neighbour in %d bytes", n), fmt.Sprintf("at most %d make sense", maxSessionText))
		}
		out.Open = append(out.Open, fsm.Reach{Peer: fsm.PeerName(s.GetNeighbour()), IPv4: s.GetIpv4(), IPv6: s.GetIpv6()})
	}
	return out, nil
}

// commitSpeaker has a mark committed.
func (s *Service) commitSpeaker(ctx context.Context, m fsm.SpeakerMark, reason string) error {
	outcomes, err := s.o.Proposer.Propose(ctx, cluster.Urgent, s.proposal(reason, &fsm.ReportSpeakers{Marks: []fsm.SpeakerMark{m}}))
	if err == nil {
		err = outcomes[0].Err()
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled) || len(outcomes) == 0:
		return fmt.Errorf("speaker of node %s: %w", m.Node, err)
	}
	remedy := "the agent asks again"
	if outcomes[0].Reject == fsm.RejectFormat {
		remedy = "`fairlead raft finalize`, once all members run this release"
	}
	return &admin.Refusal{Code: admin.NotReady, What: "note what node " + string(m.Node) + " announces", Why: err.Error(), Remedy: remedy}
}

// awaitsSpeaker tells whether somebody waits for what a mark says: what nobody waits for is not worth a commit. A record that is
// older than the mark does not know who waits.
func awaitsSpeaker(v *fsm.View, m fsm.SpeakerMark) bool {
	n, ok := fsm.Get[*fsm.Node](v, fsm.TableNodes, string(m.Node))
	if !ok || n.Speaking.Speaks != m.Speaks || v.Revision().Before(m.Announced) || v.Revision().Before(m.Withdrawn) {
		return true
	}
	if m.NewSessions(n) {
		return true
	}
	news := func(have, mark, since fsm.Revision) bool { return have.Before(since) && !mark.Before(since) }
	return slices.ContainsFunc(fsm.List[*fsm.Route](v, fsm.TableRoutes), func(r *fsm.Route) bool {
		return slices.ContainsFunc(r.NextHops, func(h fsm.NextHop) bool {
			switch {
			case h.Node() != m.Node:
				return false
			case h.Withdrawing:
				return news(n.Speaking.Withdrawn, m.Withdrawn, h.Since)
			}
			since, ok := v.AnnounceableSince(r, h)
			return ok && news(n.Speaking.Announced, m.Announced, since)
		})
	})
}
