// SPDX-License-Identifier: Apache-2.0

package records_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	apirecords "fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/cluster/leader"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/records"
	"fairlead.io/fairlead/fsm"
)

// sees is a planner that sees an older view of a source, or none.
type sees struct {
	plans
	older bool
}

func (s sees) Status() leader.Status {
	return leader.Status{Sources: []leader.SourceStatus{{Name: "kubernetes", Older: s.older}}}
}

// toLeader carries a follower's proposals to the leader's API, as members do.
type toLeader struct {
	group  *grouptest.Group
	leader fairleadv1connect.RecordServiceClient
}

func (f toLeader) Propose(ctx context.Context, u cluster.Urgency, proposals ...fsm.Proposal) ([]fsm.Outcome, error) {
	return records.Forward(ctx, f.leader, f.group.Read().Group().Epoch, u, proposals)
}

// The word that a source was set back counts where one was, whichever member hears it. Where none was, it is refused with what to do, and
// does not stay behind for whatever comes next.
func TestARewindIsAcceptedWhereThereIsOne(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		source            string
		older, held, away bool
		code              admin.Code
		want              string
	}{
		"none":            {source: "kubernetes", code: admin.NotReady, want: "there is no rewind"},
		"none-follower":   {source: "kubernetes", away: true, code: admin.NotReady, want: "there is no rewind"},
		"older":           {source: "kubernetes", older: true},
		"held":            {source: "kubernetes", held: true},
		"held-follower":   {source: "kubernetes", held: true, older: true, away: true},
		"unknown":         {source: "other", code: admin.Invalid, want: "fairlead get sources"},
		"unknown-and-all": {source: "other", away: true, code: admin.Invalid, want: "fairlead get sources"},
	} {
		t.Run(name, func(t *testing.T) {
			g := grouptest.NewGroup(t)
			g.Apply(t, &fsm.ObserveView{Source: "kubernetes", Cluster: "c", Versions: []fsm.KindVersion{{Kind: "Service", Version: 7}}})
			if c.held {
				g.Apply(t, &fsm.PutHold{ID: "rewind-kubernetes", Of: "Source", Subjects: []string{"kubernetes"}, Why: "it ran back"})
			}
			leads := records.Options{Member: "m1", Record: g, Leader: g, Proposer: g, Planner: sees{older: c.older}}
			s := records.New(leads)
			if c.away {
				client := serve(t, leads)(pki.Member)
				s = records.New(records.Options{Member: "m2", Record: g, Leader: following{g}, Proposer: toLeader{g, client.Record}, Planner: sees{}})
			}
			if got := ranBack(t, s); got != map[bool]string{true: "it ran back"}[c.held] {
				t.Errorf("get sources: ran back %q", got)
			}
			_, err := s.AcceptRewind(t.Context(), &fairleadv1.AcceptRewindRequest{Source: c.source})
			var refusal *admin.Refusal
			if errors.As(err, &refusal); (err == nil) != (c.code == "") || err != nil && (refusal.Code != c.code || refusal.Remedy == "" || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v", err)
			}
			view, _ := fsm.Get[*fsm.SourceView](g.Read(), fsm.TableViews, "kubernetes")
			if view.Rewind != (c.code == "") {
				t.Errorf("accepted: %t", view.Rewind)
			}
			if got := ranBack(t, s); c.code == "" && got != "" {
				t.Errorf("get sources: ran back %q still", got)
			}
		})
	}
}

// following is a member that does not lead.
type following struct{ *grouptest.Group }

func (following) LeadingTerm() uint64 { return 0 }

func ranBack(t *testing.T, s fairleadv1connect.RecordServiceHandler) string {
	t.Helper()
	answer, err := s.Get(t.Context(), &fairleadv1.GetRequest{Kind: "sources"})
	if err != nil || len(answer.GetDocuments()) != 1 {
		t.Fatal(answer, err)
	}
	var d apirecords.Source
	if err := json.Unmarshal([]byte(answer.GetDocuments()[0]), &d); err != nil {
		t.Fatal(err)
	}
	return d.RanBack
}
