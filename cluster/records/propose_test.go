// SPDX-License-Identifier: Apache-2.0

package records_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/internal/freeport"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/records"
	"fairlead.io/fairlead/fsm"
)

// What a member forwards arrives as it was, and so do the outcomes.
func TestForwardCarriesProposalsAndOutcomes(t *testing.T) {
	t.Parallel()
	g := grouptest.NewGroup(t)
	clients := serve(t, records.Options{Member: "m1", Record: g, Leader: g})
	proposals := []fsm.Proposal{
		{Actor: "operator/bob", Reason: "because", AtUnixMilli: 7, Command: &fsm.PutNode{ID: "n1", Eligible: true}},
		{Actor: "member/m2", Command: &fsm.DeleteNode{ID: "n9"}},
	}
	for i, u := range []cluster.Urgency{cluster.Urgent, cluster.Bulk} {
		outcomes, err := records.Forward(t.Context(), clients(pki.Member).Record, 1, u, proposals)
		if err != nil {
			t.Fatal(err)
		}
		if len(outcomes) != 2 || outcomes[0].Reject != fsm.Accepted || outcomes[0].Revision != g.Read().Revision() || outcomes[1].Reject != fsm.RejectNotFound || outcomes[1].Subject != "node n9" {
			t.Errorf("outcomes %+v", outcomes)
		}
		if _, urgencies := g.Proposed(); urgencies[i] != u {
			t.Errorf("urgency %v, want %v", urgencies[i], u)
		}
	}
	n, _ := fsm.Get[*fsm.Node](g.Read(), fsm.TableNodes, "n1")
	if h := n.History[0]; h.By().Actor != "operator/bob (by way of m2)" || h.By().Reason != "because" || h.AtUnixMilli != 7 {
		t.Errorf("history %+v", h)
	}
}

// Whether something surely was not proposed decides whether it may be proposed again.
func TestForwardKeepsWhatErrorsMean(t *testing.T) {
	t.Parallel()
	g := grouptest.NewGroup(t)
	clients := serve(t, records.Options{Member: "m1", Record: g, Leader: g})
	member := clients(pki.Member).Record
	proposals := []fsm.Proposal{{Command: &fsm.PutNode{ID: "n1"}}}
	forward := func(client fairleadv1connect.RecordServiceClient, epoch fsm.Epoch) error {
		_, err := records.Forward(t.Context(), client, epoch, cluster.Bulk, proposals)
		return err
	}
	for _, want := range []error{cluster.ErrNotLeader, cluster.ErrBusy, cluster.ErrStopped, cluster.ErrUnknownOutcome} {
		g.Change(func(k *grouptest.Knobs) { k.Refuse = fmt.Errorf("propose: %w", want) })
		if err := forward(member, 1); !errors.Is(err, want) {
			t.Errorf("%v became %v", want, err)
		}
	}
	g.Change(func(k *grouptest.Knobs) { k.Refuse = errors.New("lightning") })
	if err := forward(member, 1); !errors.Is(err, cluster.ErrUnknownOutcome) {
		t.Errorf("an error that nobody knows: %v", err)
	}
	g.Change(func(k *grouptest.Knobs) { k.Refuse = nil })
	if err := forward(member, 2); !errors.Is(err, cluster.ErrNotLeader) || !strings.Contains(err.Error(), "epoch 2, ours is 1") {
		t.Errorf("another epoch: %v", err)
	}
	if err := forward(clients(pki.Operator).Record, 1); !errors.Is(err, admin.Forbidden) {
		t.Errorf("an operator proposes: %v", err)
	}
	listener, err := freeport.Listen(netip.MustParseAddr("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	nobody := listener.Addr().String()
	_ = listener.Close()
	away := grouptest.NewWorld(t).Client(t, pki.Member, "m2", nobody).Record
	if err := forward(away, 1); !errors.Is(err, cluster.ErrNotLeader) {
		t.Errorf("nobody there: %v", err)
	}
	if list, _ := g.Proposed(); len(list) != 0 {
		t.Errorf("proposed %v", list)
	}
}

func TestProposeRefusesWhatDoesNotDecode(t *testing.T) {
	t.Parallel()
	g := grouptest.NewGroup(t)
	s := records.New(records.Options{Record: g, Leader: g})
	two, err := fsm.EncodeEntry(1, []fsm.Proposal{{Command: &fsm.PutNode{ID: "a"}}, {Command: &fsm.PutNode{ID: "b"}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, entries := range map[string][][]byte{
		"none": nil, "garbage": {{0xff}}, "empty": {{}}, "two-in-one": {two}, "too-many": make([][]byte, cluster.MaxProposals+1),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := s.Propose(t.Context(), &fairleadv1.ProposeRequest{Proposals: entries}); !errors.Is(err, admin.Invalid) {
				t.Errorf("%v", err)
			}
		})
	}
}

// follower is a member that applies what it is let to.
type follower struct {
	leads  bool
	awaits []fsm.Index
}

func (f *follower) Leader() (cluster.Peer, bool) { return cluster.Peer{Name: "m1"}, f.leads }
func (f *follower) AwaitApplied(_ context.Context, i fsm.Index) error {
	f.awaits = append(f.awaits, i)
	return nil
}

// A linearizable read waits for what the leader had committed, and is refused where that cannot be known.
func TestLinearizableReadsWaitForTheLeadersCommit(t *testing.T) {
	t.Parallel()
	g := grouptest.NewGroup(t)
	leader := serve(t, records.Options{Member: "m1", Record: g, Leader: g})(pki.Member)
	f := &follower{leads: true}
	s := records.New(records.Options{Record: g, Leader: g, Barrier: records.NewBarrier(f, func(cluster.Peer) (fairleadv1connect.RecordServiceClient, error) {
		return leader.Record, nil
	})})
	read := func() error {
		_, get := s.Get(t.Context(), &fairleadv1.GetRequest{Kind: "group", Linearizable: true})
		_, describe := s.Describe(t.Context(), &fairleadv1.DescribeRequest{Kind: "group", Name: "group", Linearizable: true})
		if (get == nil) != (describe == nil) {
			t.Errorf("get: %v, describe: %v", get, describe)
		}
		return get
	}
	at := g.Read().Applied()
	if err := read(); err != nil || !slices.Equal(f.awaits, []fsm.Index{at, at}) {
		t.Errorf("%v, awaited %v, want %d", err, f.awaits, at)
	}
	g.Change(func(k *grouptest.Knobs) { k.Verify = cluster.ErrNotLeader })
	if err := read(); err == nil {
		t.Error("the leader lost its quorum, and it was read all the same")
	}
	g.Change(func(k *grouptest.Knobs) { k.Verify, k.Follow = nil, true })
	if err := read(); err == nil {
		t.Error("it does not lead, and it was read all the same")
	}
	f.leads = false
	if err := read(); !errors.Is(err, admin.NotLeader) {
		t.Errorf("nobody leads: %v", err)
	}
	s = records.New(records.Options{Record: g, Leader: g})
	if err := read(); err == nil {
		t.Error("without a barrier it was read all the same")
	}
}
