// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// What no entry can hold is refused alone, whoever it is proposed by and whatever it is proposed with; nothing of it goes to another member.
func TestUnfitProposalsAreSetAside(t *testing.T) { inBubble(t, testUnfitProposalsAreSetAside) }

func testUnfitProposalsAreSetAside(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	g.change = func(_ *member, o *Options) {
		forward := o.Forward
		o.Forward = func(ctx context.Context, to Peer, u Urgency, proposals []Proposal) ([]Outcome, error) {
			if len(proposals) != 2 {
				t.Errorf("%d proposals go to %s", len(proposals), to.Name)
			}
			return forward(ctx, to, u, proposals)
		}
	}
	g.startAll()
	defer g.stopAll()
	bad := Proposal{Actor: "test", Command: &fsm.PutRegister{ID: "bad\xff"}}
	for _, m := range []*member{g.leader(), g.followers()[0]} {
		testkit.Until(t, "an answer of "+m.name, func() bool {
			outcomes, err := m.node.Propose(context.Background(), Bulk, bad, put(1), bad, put(2))
			if err != nil {
				return false // an election came in between
			}
			for i, want := range []fsm.Reject{fsm.RejectUnfit, fsm.Accepted, fsm.RejectUnfit, fsm.Accepted} {
				if outcomes[i].Reject != want {
					t.Errorf("%s: outcome %d is %v, want %v", m.name, i, outcomes[i].Err(), want)
				}
			}
			return true
		})
		outcomes, err := m.node.Propose(context.Background(), Bulk, bad)
		if err != nil || outcomes[0].Reject != fsm.RejectUnfit || !strings.Contains(outcomes[0].Err().Error(), `PutRegister bad?: unfit (have encode *fsm.PutRegister: wire: PutRegister.ID: not UTF-8`) {
			t.Errorf("%v, %v", outcomes, err)
		}
	}
}

func TestMoreThanAnEntryHoldsIsTooLarge(t *testing.T) {
	inBubble(t, testMoreThanAnEntryHoldsIsTooLarge)
}

func testMoreThanAnEntryHoldsIsTooLarge(t *testing.T) {
	g := newGroup(t, "a")
	g.startAll()
	defer g.stopAll()
	large := make([]Proposal, fsm.MaxEntry>>20+1)
	for i := range large {
		large[i] = put(i)
		large[i].Command.(*fsm.PutRegister).Spec = make([]byte, 1<<20)
	}
	n := g.leader().node
	if _, err := n.Propose(context.Background(), Bulk, large...); !errors.Is(err, fsm.ErrTooLarge) || errors.Is(err, ErrUnknownOutcome) {
		t.Fatalf("got %v", err)
	}
	mustPropose(t, g.leader(), large[:2]...)
}

// Of any proposals those that fit are proposed in order, and every outcome belongs to its proposal.
func TestPropertySiftAndMerge(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		n := &Node{metrics: newMetrics(), o: Options{Fit: func(p Proposal) (int, error) {
			if strings.HasPrefix(p.Reason, "bad") {
				return 0, errors.New("bad")
			}
			return len(p.Reason), nil
		}}}
		var proposals []Proposal
		for i, bad := range rapid.SliceOfN(rapid.Bool(), 0, 8).Draw(t, "bad") {
			p := Proposal{Reason: fmt.Sprint("good ", i), Command: &fsm.PutRegister{}}
			if bad {
				p.Reason = fmt.Sprint("bad ", i)
			}
			proposals = append(proposals, p)
		}
		var proposed []string
		outcomes, err := n.fitting(Bulk, proposals, func(fit []Proposal, bytes int) (out []Outcome, err error) {
			for _, p := range fit {
				proposed = append(proposed, p.Reason)
				out = append(out, Outcome{Subject: p.Reason})
				bytes -= len(p.Reason)
			}
			if bytes != 0 {
				t.Fatalf("%d bytes too many", bytes)
			}
			return out, nil
		})
		if err != nil || len(outcomes) != len(proposals) {
			t.Fatalf("%d outcomes of %d: %v", len(outcomes), len(proposals), err)
		}
		var want []string
		for i, p := range proposals {
			if strings.HasPrefix(p.Reason, "good") {
				want = append(want, p.Reason)
				if outcomes[i].Subject != p.Reason {
					t.Fatalf("%s got the outcome of %s", p.Reason, outcomes[i].Subject)
				}
			} else if outcomes[i].Reject != fsm.RejectUnfit {
				t.Fatalf("%s: %v", p.Reason, outcomes[i])
			}
		}
		if fmt.Sprint(proposed) != fmt.Sprint(want) {
			t.Fatalf("proposed %v, want %v", proposed, want)
		}
	})
}
