// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

func TestOutcomesBelongToTheirProposals(t *testing.T) {
	inBubble(t, testOutcomesBelongToTheirProposals)
}

func testOutcomesBelongToTheirProposals(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	g.startAll()
	defer g.stopAll()
	refused := Proposal{Actor: "test", Command: &fsm.PutRegister{}} // a policy without an id
	n := g.leader().node
	var wg sync.WaitGroup
	for i := range 100 { // batched in any way
		wg.Add(1)
		go func() {
			defer wg.Done()
			proposals, rejects := []Proposal{put(i), refused}, []fsm.Reject{fsm.Accepted, fsm.RejectInvalid}
			if i%3 == 0 {
				proposals, rejects = []Proposal{refused, put(i), put(i + 100)}, []fsm.Reject{fsm.RejectInvalid, fsm.Accepted, fsm.Accepted}
			}
			outcomes, err := n.Propose(context.Background(), Urgency(i%2), proposals...)
			if errors.Is(err, ErrUnknownOutcome) || errors.Is(err, ErrNotLeader) {
				return // an election came in between
			}
			if err != nil || len(outcomes) != len(proposals) {
				t.Errorf("%d outcomes, error %v", len(outcomes), err)
				return
			}
			for k, want := range rejects {
				if outcomes[k].Reject != want {
					t.Errorf("outcome %d is %v, want %v", k, outcomes[k].Reject, want)
				}
			}
		}()
	}
	wg.Wait()
}

func TestFollowerSurelyDidNotPropose(t *testing.T) { inBubble(t, testFollowerSurelyDidNotPropose) }

func testFollowerSurelyDidNotPropose(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	g.startAll()
	defer g.stopAll()
	_, err := g.followers()[0].node.ProposeLocal(context.Background(), Bulk, put(1))
	if !errors.Is(err, ErrNotLeader) || errors.Is(err, ErrUnknownOutcome) {
		t.Fatalf("want ErrNotLeader alone, got %v", err)
	}
}

// A leader that was cut off cannot know what becomes of what it handed to the log; what had not had its turn yet
// surely was not proposed.
func TestLostLeadershipIsToldApart(t *testing.T) { inBubble(t, testLostLeadershipIsToldApart) }

func testLostLeadershipIsToldApart(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	g.startAll()
	defer g.stopAll()
	proposals := make([][]Proposal, 64)
	for i := range proposals {
		proposals[i] = putMany(i*maxBatch, maxBatch)
	}
	// A leader that steps down before the first proposal comes to it was not asked in time: another one is.
	testkit.Until(t, "a leader without a quorum proposed something, and not everything", func() bool {
		leader := g.leader()
		mustPropose(t, leader, put(0))
		results := make(chan error, len(proposals))
		g.setCut(leader.name, true)
		for _, p := range proposals {
			go func() {
				_, err := leader.node.ProposeLocal(context.Background(), Bulk, p...)
				results <- err
			}()
		}
		unknown, surelyNot := 0, 0
		for range proposals {
			switch err := <-results; {
			case errors.Is(err, ErrUnknownOutcome):
				unknown++
			case errors.Is(err, ErrNotLeader), errors.Is(err, ErrBusy):
				surelyNot++
			default:
				t.Fatalf("a leader without a quorum answered %v", err)
			}
		}
		g.setCut(leader.name, false)
		g.settle()
		return unknown > 0 && surelyNot > 0
	})
}

// A leader that lost its power does not answer. Who waited for that would have the others wait, too, who say the same to
// the new leader.
func TestAnswerOfADeposedLeaderIsNotWaitedFor(t *testing.T) {
	for _, answers := range []bool{false, true} {
		runInBubble(t, fmt.Sprint("answers-", answers), func(t *testing.T) {
			g := newGroup(t, "a", "b", "c")
			var next atomic.Bool // whoever is asked next does not answer before it is deposed
			asked := make(chan string, 1)
			g.change = func(m *member, o *Options) {
				o.Forward = func(ctx context.Context, to Peer, u Urgency, p []Proposal) ([]Outcome, error) {
					if !next.CompareAndSwap(true, false) {
						return g.forward(ctx, to, u, p)
					}
					asked <- to.Name
					for answers { // what it said before arrives, however late
						if later, ok := m.node.Leader(); ok && later.Name != to.Name {
							return []Outcome{{}}, nil
						}
						awaitTick()
					}
					<-ctx.Done()
					return nil, fmt.Errorf("%w: %w", ErrUnknownOutcome, ctx.Err())
				}
			}
			g.startAll()
			defer g.stopAll()
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			result := make(chan error, 1)
			for cut := false; !cut; {
				m := g.followers()[0]
				next.Store(false)
				mustPropose(t, m, put(0)) // it knows who leads
				next.Store(true)
				go func() {
					_, err := m.node.Propose(ctx, Bulk, put(1))
					result <- err
				}()
				select {
				case name := <-asked:
					g.setCut(name, true)
					cut = true
				case <-result: // an election came in between
				}
			}
			err := <-result
			if ctx.Err() != nil {
				t.Fatalf("it waited until the end: %v", err)
			}
			if answers != (err == nil) || err != nil && (!errors.Is(err, ErrUnknownOutcome) || errors.Is(err, ErrNotLeader)) {
				t.Fatalf("got %v", err)
			}
		})
	}
}

func putMany(from, n int) []Proposal {
	out := make([]Proposal, n)
	for i := range out {
		out[i] = put(from + i)
	}
	return out
}

func TestFullQueueIsBusyAndSaysWhatToDo(t *testing.T) {
	q := newQueue(8, 8)
	q.accept() // in, but not out
	if _, err := q.put(Bulk, putMany(0, 8), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := q.put(Bulk, putMany(0, 1), 0); !errors.Is(err, ErrBusy) {
		t.Fatalf("want ErrBusy, got %v", err)
	}
	if _, err := q.put(Urgent, putMany(0, 1), 0); err != nil {
		t.Fatalf("the urgent queue is another one: %v", err)
	}
}

func TestProposalGivenUpBeforeItsTurnIsTakenBack(t *testing.T) {
	inBubble(t, testProposalGivenUpBeforeItsTurnIsTakenBack)
}

func testProposalGivenUpBeforeItsTurnIsTakenBack(t *testing.T) {
	g := newGroup(t, "a")
	g.startAll()
	defer g.stopAll()
	n := g.leader().node
	n.queue.accept() // holds everything back
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err := n.Propose(ctx, Bulk, put(5))
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrUnknownOutcome) {
		t.Fatalf("want the deadline alone, got %v", err)
	}
	n.queue.begin()
	mustPropose(t, g.leader(), put(6))
	if has(g.leader().state, 5) {
		t.Fatal("it was proposed all the same")
	}
}

func TestTooManyCommandsAtOnceAreRefused(t *testing.T) {
	inBubble(t, testTooManyCommandsAtOnceAreRefused)
}

func testTooManyCommandsAtOnceAreRefused(t *testing.T) {
	g := newGroup(t, "a")
	g.startAll()
	defer g.stopAll()
	if _, err := g.leader().node.Propose(context.Background(), Bulk, putMany(0, MaxProposals+1)...); err == nil {
		t.Fatal("accepted")
	}
	mustPropose(t, g.leader(), putMany(0, MaxProposals)...)
}

// What cannot be encoded does not take along what it was batched with.
func TestProposalThatCannotBeEncodedFailsAlone(t *testing.T) {
	inBubble(t, testProposalThatCannotBeEncodedFailsAlone)
}

func testProposalThatCannotBeEncodedFailsAlone(t *testing.T) {
	g := newGroup(t, "a")
	g.change = func(_ *member, o *Options) {
		o.Fit = func(Proposal) (int, error) { return 0, nil } // nobody saw it coming
		encode := o.Encode
		o.Encode = func(proposals []Proposal) ([]byte, error) {
			data, err := encode(proposals)
			if err != nil {
				panic(err)
			}
			return data, nil
		}
	}
	g.startAll()
	defer g.stopAll()
	n := g.leader().node
	bad := Proposal{Actor: "test", Command: &fsm.PutRegister{ID: "\xff"}}
	n.queue.accept()
	errs := make(chan error, 2)
	for _, p := range []Proposal{bad, put(1)} {
		go func() {
			_, err := n.Propose(context.Background(), Bulk, p)
			errs <- err
		}()
	}
	testkit.Until(t, "both wait", func() bool { return n.queue.depth(Bulk) == 2 })
	n.queue.begin()
	busy := 0
	for range 2 {
		err := <-errs
		if err == nil || errors.Is(err, ErrUnknownOutcome) {
			t.Fatalf("got %v", err)
		}
		if errors.Is(err, ErrBusy) {
			busy++
		}
	}
	if busy != 1 {
		t.Fatal("the good one was not asked to come again")
	}
	mustPropose(t, g.leader(), put(1))
}

func TestLibrarysErrorsAreSortedIntoSureAndUnknown(t *testing.T) {
	for err, want := range map[error]error{
		raft.ErrNotLeader: ErrNotLeader, raft.ErrLeadershipTransferInProgress: ErrNotLeader,
		raft.ErrLeadershipLost: ErrUnknownOutcome, raft.ErrAbortedByRestore: ErrUnknownOutcome,
		raft.ErrRaftShutdown: ErrUnknownOutcome, errDisk: ErrUnknownOutcome,
	} {
		if got := proposalError(err); !errors.Is(got, want) || errors.Is(got, ErrNotLeader) && errors.Is(got, ErrUnknownOutcome) {
			t.Errorf("%v becomes %v, want %v", err, got, want)
		}
	}
}

// The queue against a simpler account of it: every request is answered exactly once, in order within its lane, urgent
// ones first, and what is answered as not proposed was never handed out.
func TestPropertyQueueAnswersEveryRequestOnce(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		const limit = 3 * maxBatch
		q := newQueue(limit, limit)
		var model struct {
			leading, open bool
			waiting       [2][]*request
			flying        []*batch
		}
		commands := func(rs []*request) (n int) {
			for _, r := range rs {
				n += len(r.proposals)
			}
			return n
		}
		bytes := func(rs []*request) (n int) {
			for _, r := range rs {
				n += r.bytes
			}
			return n
		}
		wantAnswer := func(r *request, want error) {
			select {
			case a := <-r.answer:
				if !errors.Is(a.err, want) {
					t.Fatalf("answered %v, want %v", a.err, want)
				}
			default:
				t.Fatalf("not answered, want %v", want)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				u := Urgency(rapid.IntRange(0, 1).Draw(t, "urgency"))
				n := rapid.SampledFrom([]int{1, 2, maxBatch - 1, maxBatch, maxBatch + 1}).Draw(t, "commands")
				size := rapid.SampledFrom([]int{0, 100, maxBatchBytes / 2, maxBatchBytes, maxBatchBytes + 1, maxWaitingBytes}).Draw(t, "bytes")
				r, err := q.put(u, make([]Proposal, n), size)
				switch {
				case !model.leading:
					if !errors.Is(err, ErrNotLeader) {
						t.Fatalf("want ErrNotLeader, got %v", err)
					}
				case commands(model.waiting[u])+n > limit, bytes(model.waiting[u]) > 0 && bytes(model.waiting[u])+size > maxWaitingBytes:
					if !errors.Is(err, ErrBusy) {
						t.Fatalf("want ErrBusy, got %v", err)
					}
				case err != nil:
					t.Fatal(err)
				default:
					model.waiting[u] = append(model.waiting[u], r)
				}
			},
			"take": func(t *rapid.T) {
				b := q.take()
				flying := [2]int{}
				for _, f := range model.flying {
					flying[f.urgency]++
				}
				u := Urgent
				if len(model.waiting[u]) == 0 || flying[u] == inFlightPerLane {
					u = Bulk
				}
				if !model.open || len(model.waiting[u]) == 0 || flying[u] == inFlightPerLane {
					if b != nil {
						t.Fatal("handed out what should wait")
					}
					return
				}
				if b == nil || b.urgency != u {
					t.Fatalf("want a batch of %v, got %+v", u, b)
				}
				for i, r := range b.requests {
					if r != model.waiting[u][i] {
						t.Fatal("out of order")
					}
				}
				if n := commands(b.requests); n != b.commands || n > maxBatch && len(b.requests) > 1 {
					t.Fatalf("batch of %d says %d", n, b.commands)
				}
				if n := bytes(b.requests); n > maxBatchBytes && len(b.requests) > 1 {
					t.Fatalf("%d bytes in one batch", n)
				}
				model.waiting[u] = model.waiting[u][len(b.requests):]
				model.flying = append(model.flying, b)
			},
			"finish": func(t *rapid.T) {
				if len(model.flying) == 0 {
					t.Skip("nothing in flight")
				}
				i := rapid.IntRange(0, len(model.flying)-1).Draw(t, "which")
				b := model.flying[i]
				model.flying = append(model.flying[:i], model.flying[i+1:]...)
				q.finish(b, func(int, *request) answer { return answer{} })
				q.finish(b, func(int, *request) answer { return answer{err: errDisk} }) // too late
				for _, r := range b.requests {
					wantAnswer(r, nil)
				}
			},
			"withdraw": func(t *rapid.T) {
				u := Urgency(rapid.IntRange(0, 1).Draw(t, "urgency"))
				if len(model.waiting[u]) == 0 {
					t.Skip("nothing waits")
				}
				i := rapid.IntRange(0, len(model.waiting[u])-1).Draw(t, "which")
				r := model.waiting[u][i]
				if !q.withdraw(u, r) || q.withdraw(u, r) {
					t.Fatal("a waiting request is taken back once")
				}
				model.waiting[u] = append(append([]*request(nil), model.waiting[u][:i]...), model.waiting[u][i+1:]...)
			},
			"accept": func(*rapid.T) { q.accept(); model.leading, model.open = true, false },
			"begin":  func(*rapid.T) { q.begin(); model.leading, model.open = true, true },
			"lose": func(*rapid.T) {
				q.lose()
				model.leading, model.open = false, false
				for u := range model.waiting {
					for _, r := range model.waiting[u] {
						wantAnswer(r, ErrNotLeader)
					}
					model.waiting[u] = nil
				}
			},
			"": func(t *rapid.T) {
				for u := range model.waiting {
					if got, want := q.depth(Urgency(u)), commands(model.waiting[u]); got != want {
						t.Fatalf("%d commands wait in %v, want %d", got, Urgency(u), want)
					}
				}
			},
		})
	})
}

// step is one thing that happens to a group.
type step struct {
	What string
	Who  string
	N    int
}

func (s step) String() string { return fmt.Sprintf("%s %s %d", s.What, s.Who, s.N) }

func genSteps(members ...string) *rapid.Generator[[]step] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		return step{
			What: rapid.SampledFrom([]string{"kill", "start", "cut", "heal", "mend", "transfer", "snapshot", "propose", "propose", "propose"}).Draw(t, "what"),
			Who:  rapid.SampledFrom(members).Draw(t, "who"),
			N:    rapid.IntRange(0, 7).Draw(t, "n"),
		}
	}), 25, 40)
}

// mend brings everybody back.
func (g *group) mend() {
	for _, name := range g.names() {
		g.setCut(name, false)
		if g.members[name].node == nil {
			g.start(name)
		}
	}
	g.leader()
}

// Whatever happens to members, an acknowledged command is in the record of all of them in the end (S2), and their
// records are equal (S1).
func TestAcknowledgedCommandsSurviveKillsAndCuts(t *testing.T) {
	for seed := range 6 {
		runInBubble(t, fmt.Sprint("seed-", seed), func(t *testing.T) {
			g := newGroup(t, "a", "b", "c")
			g.startAll()
			defer g.stopAll()
			g.leader()
			acknowledged, next := map[int]bool{}, 0
			for _, s := range genSteps("a", "b", "c").Example(seed) {
				m := g.members[s.Who]
				if s.What == "propose" && m.node == nil {
					m = g.members[map[string]string{"a": "b", "b": "c", "c": "a"}[s.Who]]
				}
				if (s.What == "kill" || s.What == "cut") && s.N%4 != 0 {
					g.mend() // mostly a minority is away, so that there is something to acknowledge
				}
				switch running := m.node != nil; {
				case s.What == "start" && !running:
					g.start(s.Who)
				case s.What == "mend":
					g.mend()
				case s.What == "cut" || s.What == "heal":
					g.setCut(s.Who, s.What == "cut")
				case !running:
				case s.What == "kill":
					m.stop()
				case s.What == "transfer":
					_ = m.node.Transfer(context.Background(), "") // it may well not lead
				case s.What == "snapshot":
					_, _ = m.node.Snapshot(context.Background()) // there may be nothing to write
				case s.What == "propose":
					// A step takes a while at most: there may be no majority.
					ctx, cancel := context.WithTimeout(context.Background(), 5*g.tuning.Heartbeat)
					for i := 0; i < 20 && ctx.Err() == nil; i++ {
						if _, err := m.node.Propose(ctx, Bulk, put(next)); err == nil {
							acknowledged[next] = true
						} else {
							awaitTick()
						}
						next++
					}
					cancel()
				}
			}
			g.mend()
			g.settle()
			for i := range acknowledged {
				if !has(g.leader().state, i) {
					t.Fatalf("command %d was acknowledged and is lost", i)
				}
			}
			t.Logf("%d of %d commands acknowledged", len(acknowledged), next)
		})
	}
}
