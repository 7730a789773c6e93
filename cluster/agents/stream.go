// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"context"
	"fmt"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"fairlead.io/fairlead/api/desired"
	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/fsm"
)

// catchUpEvery is how often a member looks whether it knows as much as an agent that came to it.
const catchUpEvery = 10 * time.Millisecond

// stream is one agent's Sync. It runs on the goroutine of the call.
type stream struct {
	s    *Service
	node fsm.NodeID
	host *hostFacts // what a host outside the cluster says of itself, whose name node is then; nil for a node
	boot fsm.BootID
	send func(*fairleadv1.SyncResponse) error
	end  context.CancelCauseFunc
	// carries says that the agent carries policies out.
	carries bool

	at         place
	sent       fsm.Revision // of the newest step, or what the agent came with
	own        *fairleadv1.NodeState
	started    bool // a step was sent
	registered bool // the record has had this boot while the stream was there
	owed       bool // the record forgot what the node acknowledged: it has to say so anew
}

// Sync implements fairleadv1connect.AgentServiceHandler.
func (s *Service) Sync(ctx context.Context, req *fairleadv1.SyncRequest, out *connect.ServerStream[fairleadv1.SyncResponse]) error {
	if req.GetNode() == "" || req.GetBoot() == "" {
		return &admin.Refusal{Code: admin.Invalid, What: "sync", Why: "node or boot is missing", Remedy: "name both"}
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	st := &stream{
		s: s, node: fsm.NodeID(req.GetNode()), boot: fsm.BootID(req.GetBoot()), send: out.Send, end: end,
		sent: desired.RevisionOf(req.GetHave()), carries: req.GetRedirects(),
	}
	if caller, _ := admin.CallerFrom(ctx); caller.Identity.Role == pki.Host {
		at, err := underlayOf(req)
		if err != nil {
			return &admin.Refusal{Code: admin.Invalid, What: "sync", Why: err.Error(), Remedy: "use an agent of this release"}
		}
		st.host = &hostFacts{st.boot, at, req.GetTunnels()}
	}
	s.enter(st)
	defer s.leave(st)
	err := st.run(ctx, req)
	if cause := context.Cause(ctx); cause != nil && ctx.Err() != cause { //nolint:errorlint // a context that was given no cause has this very one
		return cause
	}
	return err
}

// enter makes st the stream of its node and ends the one before: an agent has one.
func (s *Service) enter(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.streams[st.who()]; old != nil {
		old.end(&admin.Refusal{Code: admin.Stopped, What: "serve this node", Why: "its agent began another stream", Remedy: "run one agent on a node"})
	}
	s.streams[st.who()] = st
}

func (s *Service) leave(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams[st.who()] == st {
		delete(s.streams, st.who())
	}
}

// who names an agent: a host outside the cluster may be called as a node is.
type who struct {
	name    fsm.NodeID
	outside bool
}

func (st *stream) who() who { return who{st.node, st.host != nil} }

func (st *stream) run(ctx context.Context, req *fairleadv1.SyncRequest) error {
	if err := st.catchUp(ctx); err != nil {
		return err
	}
	if st.host != nil {
		st.at = st.s.board.resumeOutside(st.sent, req.GetDigest())
	} else {
		st.at = st.s.board.resume(st.sent, req.GetDigest(), wantsOf(req))
	}
	for {
		u, err := st.s.board.since(st.at, string(st.node))
		if err == nil {
			err = st.s.standing.err()
		}
		if err == nil {
			err = st.checkBoot(ctx, u)
		}
		if err != nil {
			return err
		}
		if u.known && !st.isAs(u) {
			continue // registered a moment ago: look again
		}
		if err := st.checkTunnels(ctx, u, req.GetTunnels()); err != nil {
			return err
		}
		if err := st.step(ctx, u); err != nil {
			return err
		}
		select {
		case <-u.changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// wantsOf is what an agent has a use for.
func wantsOf(req *fairleadv1.SyncRequest) tells {
	switch {
	case req.GetAddressesOnly():
		return tellsAddresses
	case req.GetAllServices():
		return tellsAll
	}
	return tellsAddressed
}

// catchUp waits until this member knows as much as the agent does. An agent that comes with nothing may have lost its
// state, and cannot say what it acted on (S13): the member then has to know all that is committed.
func (st *stream) catchUp(ctx context.Context) error {
	if st.sent.IsZero() {
		if err := st.s.awaitCommitted(ctx); err != nil {
			return err
		}
	}
	ticks := time.NewTicker(catchUpEvery)
	defer ticks.Stop()
	deadline := st.s.o.Now().Add(st.s.o.Tuning.Behind)
	for {
		if err := st.s.standing.err(); err != nil {
			return err
		}
		v, err := st.s.board.refresh()
		if err != nil {
			return err
		}
		if !v.Revision().Before(st.sent) {
			return nil
		}
		if !st.s.o.Now().Before(deadline) {
			why := fmt.Sprintf("this member is behind: it is at %s, the agent at %s", v.Revision(), st.sent)
			return &admin.Refusal{Code: admin.NotReady, What: "serve this node", Why: why, Remedy: "another member is asked next"}
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// awaitCommitted waits until this member has applied all that is committed. The leader may change meanwhile, or be dead
// without anybody knowing, so it is asked for a while, and anew.
func (s *Service) awaitCommitted(ctx context.Context) error {
	deadline := s.o.Now().Add(s.o.Tuning.Behind)
	for {
		if err := s.standing.err(); err != nil {
			return err
		}
		err := s.barrier(ctx)
		if err == nil {
			return nil
		}
		if !s.o.Now().Before(deadline) {
			why := fmt.Sprintf("this member cannot learn what is committed: %v", err)
			return &admin.Refusal{Code: admin.NotReady, What: "serve this node", Why: why, Remedy: "another member is asked next"}
		}
		select {
		case <-time.After(catchUpEvery):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// barrier is one attempt at Barrier. It waits for one leader no longer than until the member would be in doubt of it.
func (s *Service) barrier(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.o.Tuning.Doubt)
	defer cancel()
	return s.o.Barrier(ctx)
}

// checkBoot makes sure that the record knows the boot that the node runs under, before the agent is told
// anything that it may acknowledge: a new boot voids what the node acknowledged before (S9).
func (st *stream) checkBoot(ctx context.Context, u update) error {
	switch {
	case !u.known && st.host != nil:
		return takenOut("serve this host", string(st.node))
	case !u.known:
		return nil // it gets its rules all the same; registered once the record knows it
	case st.isAs(u):
		st.registered = true
		return st.checkCarries(ctx)
	case st.registered && st.host != nil && u.boot == st.boot:
		why := "its host came anew since, and said other things of itself"
		return &admin.Refusal{Code: admin.NotReady, What: "serve this host", Why: why, Remedy: "the newer stream is served"}
	case st.registered && u.boot != "" && u.boot != st.boot:
		why := "its node is registered under another boot, " + string(u.boot)
		return &admin.Refusal{Code: admin.Stopped, What: "serve this node", Why: why, Remedy: "run one agent on a node, and give no two machines one node's name"}
	}
	var hello fsm.Command = &fsm.RegisterBoot{Node: st.node, Boot: st.boot}
	if st.host != nil {
		hello = &fsm.RegisterHost{ID: fsm.HostID(st.node), Boot: st.boot, Addresses: st.host.at, Tunnels: st.host.tunnels}
	}
	outcomes, err := st.s.o.Proposer.Propose(ctx, cluster.Urgent, st.s.proposal("agent connected", hello))
	if err != nil {
		return fmt.Errorf("register boot of node %s: %w", st.node, err)
	}
	if o := outcomes[0]; o.Reject != fsm.Accepted && o.Reject != fsm.RejectNotFound {
		return fmt.Errorf("register boot of node %s: %w", st.node, o.Err())
	}
	st.owed = true
	return st.awaitBoot(ctx)
}

// checkTunnels makes sure that the record knows whether the node makes tunnels. Nothing else waits for that.
func (st *stream) checkTunnels(ctx context.Context, u update, makes bool) error {
	if !u.known || !u.mayTunnel || u.tunnels == makes {
		return nil
	}
	c := &fsm.ReportTunnels{Node: st.node, Boot: st.boot, Tunnels: makes}
	outcomes, err := st.s.o.Proposer.Propose(ctx, cluster.Bulk, st.s.proposal("agent connected", c))
	if err != nil {
		return fmt.Errorf("report tunnels of node %s: %w", st.node, err)
	}
	if o := outcomes[0]; o.Reject != fsm.Accepted && o.Reject != fsm.RejectNotFound && o.Reject != fsm.RejectStaleBoot && o.Reject != fsm.RejectFormat {
		return fmt.Errorf("report tunnels of node %s: %w", st.node, o.Err())
	}
	return nil
}

// isAs tells whether the record has of the agent what it says of itself.
func (st *stream) isAs(u update) bool {
	return u.boot == st.boot && (st.host == nil || u.facts.equal(*st.host))
}

// awaits tells whether a view does not have what the agent said of itself yet.
func (st *stream) awaits(v *fsm.View) bool {
	if st.host != nil {
		h, ok := fsm.Get[*fsm.Host](v, fsm.TableHosts, string(st.node))
		return ok && !st.host.equal(factsOfHost(h))
	}
	n, ok := fsm.Get[*fsm.Node](v, fsm.TableNodes, string(st.node))
	return ok && n.Boot != st.boot
}

// checkCarries makes sure that the record knows whether the node carries policies out, once it can hold that.
func (st *stream) checkCarries(ctx context.Context) error {
	v := st.s.o.Record.Read()
	n, ok := fsm.Get[*fsm.Node](v, fsm.TableNodes, string(st.node))
	if st.host != nil || !ok || n.Boot != st.boot || n.Redirects == st.carries || v.Group().Format < formatPolicies {
		return nil
	}
	c := &fsm.ReportPolicySupport{Node: st.node, Boot: st.boot, Carries: st.carries}
	outcomes, err := st.s.o.Proposer.Propose(ctx, cluster.Bulk, st.s.proposal("agent connected", c))
	if err != nil {
		return fmt.Errorf("say whether node %s carries policies out: %w", st.node, err)
	}
	if o := outcomes[0]; o.Reject != fsm.Accepted && o.Reject != fsm.RejectNotFound && o.Reject != fsm.RejectStaleBoot {
		return fmt.Errorf("say whether node %s carries policies out: %w", st.node, o.Err())
	}
	return nil
}

// formatPolicies is the first format of the record with policies.
const formatPolicies = 2

// awaitBoot waits until a registration that was committed is applied here.
func (st *stream) awaitBoot(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, st.s.o.Tuning.Behind)
	defer cancel()
	for {
		v := st.s.o.Record.Read()
		if !st.awaits(v) {
			_, err := st.s.board.refresh()
			return err
		}
		if err := st.s.o.Record.Wait(ctx, v, fsm.TableNodes, fsm.TableHosts); err != nil {
			return fmt.Errorf("wait for the boot of node %s to be applied here: %w", st.node, err)
		}
	}
}

// step sends what the agent lacks, if there is anything that it has to hear of.
func (st *stream) step(ctx context.Context, u update) error {
	if u.own != nil && st.own != nil && proto.Equal(u.own, st.own) {
		u.own = nil
	}
	st.at = u.to
	if st.started && !st.owed && len(u.changes) == 0 && !u.full && u.own == nil && !st.sent.Before(u.wanted) {
		return nil
	}
	if u.revision.Before(st.sent) {
		return fmt.Errorf("serve node %s: revision %s would run back to %s", st.node, st.sent, u.revision)
	}
	for _, m := range messages(u) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := st.send(m); err != nil {
			return err
		}
	}
	st.s.metrics.stepped(u.full)
	st.sent, st.started, st.owed = u.revision, true, false
	if u.own != nil {
		st.own = u.own
	}
	return nil
}

// messages cuts a step into messages of about desired.PieceBytes.
func messages(u update) []*fairleadv1.SyncResponse {
	digest := u.digest
	blank := func() *fairleadv1.SyncResponse {
		return &fairleadv1.SyncResponse{
			Revision: desired.RevisionMessage(u.revision), Full: u.full, Digest: digest[:], More: true,
		}
	}
	last, size := blank(), 0
	out := []*fairleadv1.SyncResponse{last}
	for _, c := range u.changes {
		if size > 0 && size+len(c) > desired.PieceBytes {
			last, size = blank(), 0
			out = append(out, last)
		}
		last.Changes, size = append(last.Changes, c), size+len(c)
	}
	last.More, last.Node = false, u.own
	return out
}
