// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fairlead.io/fairlead/fsm"
)

// copies are the records of three members, who ask each other.
type copies struct {
	states [3]*fsm.State
	mu     sync.Mutex
	away   [3]bool
	next   fsm.Index
}

func newCopies(t *testing.T) *copies {
	c := &copies{next: 1}
	for i := range c.states {
		c.states[i] = fsm.New()
	}
	c.apply(t, &fsm.InitGroup{Group: "g1", Format: fsm.NewestFormat})
	return c
}

// apply has all apply a command; those who are named apply another one.
func (c *copies) apply(t *testing.T, command fsm.Command, wrong ...int) {
	t.Helper()
	for i, s := range c.states {
		does := command
		for _, w := range wrong {
			if w == i {
				does = &fsm.PutRegister{ID: fsm.RegisterID(fmt.Sprintf("wrong-%d", i)), UID: "u", Version: 1, Spec: []byte("{}")}
			}
		}
		_, epoch, _ := s.Identity()
		data, err := fsm.EncodeEntry(epoch, []fsm.Proposal{{Actor: "test", Command: does}})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.ApplyEntries([]fsm.LogEntry{{Index: c.next, Term: 1, Data: data}})[0][0].Err(); err != nil {
			t.Fatal(err)
		}
	}
	c.next++
}

func (c *copies) put(t *testing.T, wrong ...int) {
	t.Helper()
	c.apply(t, &fsm.PutRegister{ID: fsm.RegisterID(fmt.Sprint("p", c.next)), UID: "u", Version: 1, Spec: []byte("{}")}, wrong...)
}

func (c *copies) set(i int, away bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away[i] = away
}

func (c *copies) comparer(t *testing.T, self int) *Comparer {
	t.Helper()
	out, err := New(Options{
		Record: c.states[self], Log: slog.New(slog.DiscardHandler),
		Servers: func() (out []Server) {
			for i := range c.states {
				out = append(out, Server{ID: fmt.Sprint(i), Name: fmt.Sprint("m", i), Voter: true, Self: i == self})
			}
			return out
		},
		Ask: func(_ context.Context, s Server, at fsm.Index) (string, error) {
			var i int
			if _, err := fmt.Sscan(s.ID, &i); err != nil {
				return "", err
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			d, known := c.states[i].DigestAt(at)
			if c.away[i] || !known {
				return "", errors.New("it does not tell")
			}
			return d.String(), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// runs runs a Comparer until the test's bubble ends, and gives how it ended: nil while it runs.
func runs(t *testing.T, c *Comparer) (ended func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	var err error
	go func() { defer close(done); err = c.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return func() error {
		synctest.Wait()
		select {
		case <-done:
			return err
		default:
			return nil
		}
	}
}

func TestALeaderThatDiffersProposesNothingAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCopies(t)
		c.put(t, 0)
		lead, right := c.comparer(t, 0), c.comparer(t, 1)
		ended := runs(t, lead)
		_, _, err := lead.Agree(t.Context())
		var differs *DiffersError
		if !errors.As(err, &differs) || !errors.Is(err, ErrDiffers) || !strings.Contains(differs.Found, "at index 2") || !strings.Contains(differs.Found, "m1, m2") {
			t.Errorf("agreed: %v", err)
		}
		if !errors.Is(ended(), ErrDiffers) {
			t.Errorf("it goes on: %v", ended())
		}
		v, alike, err := right.Agree(t.Context())
		if err != nil || alike || v.Applied() != 2 {
			t.Fatalf("who is right leads: %v", err)
		}
		if why := right.Doubts("0"); !strings.Contains(why, "at index 2") || right.Doubts("2") != "" {
			t.Errorf("it says of the others %q, %q", why, right.Doubts("2"))
		}
		c.set(0, true) // it has ended
		if _, alike, err := right.Agree(t.Context()); err != nil || !alike || right.Doubts("0") == "" {
			t.Errorf("%v, and of who has ended %q", err, right.Doubts("0"))
		}
	})
}

// Who follows is told by a checkpoint, and ends by what most have, not by what the leader said.
func TestWhoFollowsIsJudgedByMost(t *testing.T) {
	for name, wrong := range map[string]int{"follower-is-wrong": 1, "leader-is-wrong": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCopies(t)
				c.put(t, wrong)
				var ended []func() error
				for i := range c.states {
					ended = append(ended, runs(t, c.comparer(t, i)))
				}
				v := c.states[0].Read() // of a leader that asks nobody, as former releases do
				c.apply(t, &fsm.Checkpoint{Index: v.Applied(), Digest: v.Digest()})
				for i, end := range ended {
					if i == wrong && i != 0 != errors.Is(end(), ErrDiffers) {
						t.Errorf("member %d, who is wrong: %v", i, end())
					}
					if i != wrong && end() != nil {
						t.Errorf("member %d, who is right: %v", i, end())
					}
				}
			})
		})
	}
}

// Nobody is judged while no majority agrees; once one does, who is wrong ends.
func TestNobodyIsJudgedWithoutAMajority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCopies(t)
		c.put(t, 1)
		c.set(2, true)
		lead, other := c.comparer(t, 0), runs(t, c.comparer(t, 1))
		if _, _, err := lead.Agree(t.Context()); !errors.Is(err, ErrUndecided) || !strings.Contains(err.Error(), "m0: ") {
			t.Errorf("it is agreed: %v", err)
		}
		if why := lead.Doubts("1"); why != "" {
			t.Errorf("one is judged: %s", why)
		}
		c.apply(t, &fsm.Checkpoint{Index: 2, Digest: c.states[0].Digest()})
		time.Sleep(10 * askAgain)
		if err := other(); err != nil {
			t.Fatalf("one of two ended: %v", err)
		}
		c.set(2, false)
		time.Sleep(2 * askAgain)
		if err := other(); !errors.Is(err, ErrDiffers) {
			t.Errorf("who is wrong: %v", err)
		}
	})
}

// Members that tell nothing, as those of older releases do, are no majority, and no sign of a difference.
func TestNobodyAgreesWithTooFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCopies(t)
		c.set(1, true)
		c.set(2, true)
		lead := c.comparer(t, 0)
		if _, _, err := lead.Agree(t.Context()); !errors.Is(err, ErrUntold) {
			t.Errorf("it is agreed: %v", err)
		}
		c.set(2, false)
		if _, alike, err := lead.Agree(t.Context()); err != nil || !alike {
			t.Errorf("two of three: %v, %v", alike, err)
		}
	})
}

// A record that changed in memory is found by the walk in idle time, and by a leader before it asks anybody.
func TestAFlippedBitEndsItsMember(t *testing.T) {
	flipped := func(t *testing.T) *copies {
		c := newCopies(t)
		c.put(t)
		p, _ := fsm.Get[*fsm.Register](c.states[0].Read(), fsm.TableRegisters, "p2")
		p.Spec[0] ^= 4
		return c
	}
	t.Run("idle", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := flipped(t)
			bad, good := runs(t, c.comparer(t, 0)), runs(t, c.comparer(t, 1))
			time.Sleep(2 * walkEvery)
			if err := bad(); !errors.Is(err, fsm.ErrSpoiled) || !strings.Contains(err.Error(), `"p2"`) || !strings.Contains(err.Error(), "memory") {
				t.Errorf("it goes on: %v", err)
			}
			if err := good(); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("leader", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			lead := flipped(t).comparer(t, 0)
			ended := runs(t, lead)
			if _, _, err := lead.Agree(t.Context()); !errors.Is(err, fsm.ErrSpoiled) || !errors.Is(ended(), fsm.ErrSpoiled) {
				t.Errorf("agreed: %v; ended: %v", err, ended())
			}
		})
	})
}

// What is known of others is forgotten with the term.
func TestDoubtsEndWithTheTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCopies(t)
		c.put(t, 2)
		lead := c.comparer(t, 0)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { lead.Lead(ctx, 1) })
		if _, _, err := lead.Agree(ctx); err != nil || lead.Doubts("2") == "" {
			t.Errorf("%v, %q", err, lead.Doubts("2"))
		}
		cancel()
		running.Wait()
		if why := lead.Doubts("2"); why != "" {
			t.Error(why)
		}
	})
}
