// SPDX-License-Identifier: Apache-2.0

package liveness_test

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/agents"
	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/cluster/liveness"
	"fairlead.io/fairlead/fsm"
)

// cast is a group of three members in this process, in the time of a synctest bubble: services over heartbeats that a
// test sends, and the leader's watcher.
type cast struct {
	*grouptest.Group
	services map[string]*liveness.Service
	registry *prometheus.Registry

	mu     sync.Mutex
	beats  map[string][]agents.Beat // by member
	alive  map[netip.Addr]bool      // what answers probes
	away   map[string]bool          // members that do not answer
	voters []string
	begun  time.Time
}

func newCast(t *testing.T) *cast {
	t.Helper()
	c := &cast{
		Group: grouptest.NewGroup(t), services: map[string]*liveness.Service{}, registry: prometheus.NewRegistry(),
		beats: map[string][]agents.Beat{}, alive: map[netip.Addr]bool{}, away: map[string]bool{},
		voters: []string{"m1", "m2", "m3"}, begun: time.Now(),
	}
	for _, name := range c.voters {
		s, err := liveness.NewService(liveness.ServiceOptions{
			Record: c.State, Prober: c,
			Beats: func() ([]agents.Beat, time.Time) {
				c.mu.Lock()
				defer c.mu.Unlock()
				return append([]agents.Beat(nil), c.beats[name]...), c.begun
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		c.services[name] = s
		c.keep(t, func(ctx context.Context) { _ = s.Run(ctx) })
	}
	for _, id := range []fsm.NodeID{"n1", "n2", "n3"} {
		c.Apply(t, &fsm.PutNode{ID: id, Addresses: []netip.Addr{addressOf(id)}}, &fsm.RegisterBoot{Node: id, Boot: "b1"})
	}
	return c
}

func addressOf(id fsm.NodeID) netip.Addr {
	return netip.AddrFrom4([4]byte{192, 0, 2, id[1]})
}

// keep runs something until the test ends.
func (c *cast) keep(t *testing.T, run func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
}

// beat has a node beat to members until the returned function is called.
func (c *cast) beat(t *testing.T, id fsm.NodeID, members ...string) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	c.keep(t, func(end context.Context) {
		for ctx.Err() == nil && end.Err() == nil {
			c.mu.Lock()
			for _, m := range members {
				c.hear(m, agents.Beat{Node: id, Boot: "b1", At: time.Now()})
			}
			c.mu.Unlock()
			select {
			case <-ctx.Done():
			case <-end.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	return cancel
}

func (c *cast) hear(member string, b agents.Beat) {
	for i := range c.beats[member] {
		if c.beats[member][i].Node == b.Node {
			c.beats[member][i] = b
			return
		}
	}
	c.beats[member] = append(c.beats[member], b)
}

// Answers implements liveness.Prober.
func (c *cast) Answers(ctx context.Context, addresses []netip.Addr) bool {
	c.mu.Lock()
	answers := c.alive[addresses[0]]
	c.mu.Unlock()
	if !answers {
		<-ctx.Done()
	}
	return answers
}

// Voters, Colleague and Propose implement liveness.Group.
func (c *cast) Voters() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.voters...)
}

func (c *cast) Colleague(name string) liveness.Colleague {
	return mayBeAway{c.services[name].Local(), func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.away[name]
	}}
}

func (c *cast) Propose(ctx context.Context, proposals []fsm.Proposal) ([]fsm.Outcome, error) {
	return c.Group.Propose(ctx, cluster.Urgent, proposals...)
}

type mayBeAway struct {
	liveness.Colleague
	away func() bool
}

func (m mayBeAway) Silences(ctx context.Context, about []fsm.NodeID) (liveness.Report, error) {
	if m.away() {
		<-ctx.Done()
		return liveness.Report{}, ctx.Err()
	}
	return m.Colleague.Silences(ctx, about)
}

func (m mayBeAway) Probe(ctx context.Context, nodes []fsm.NodeID) (map[fsm.NodeID]bool, error) {
	if m.away() {
		return nil, errors.New("connection refused")
	}
	return m.Colleague.Probe(ctx, nodes)
}

// bubbleClock is that of a synctest bubble.
type bubbleClock struct{ begun time.Time }

func (c bubbleClock) Now() time.Duration                     { return time.Since(c.begun) }
func (c bubbleClock) After(d time.Duration) <-chan time.Time { return time.After(d) }
func (c bubbleClock) Wall() time.Time                        { return time.Now() }

// lead runs the watcher until the returned function is called.
func (c *cast) lead(t *testing.T) (stop func()) {
	t.Helper()
	w, err := liveness.NewWatcher(liveness.WatcherOptions{
		Record: c.State, Group: c, Clock: bubbleClock{c.begun}, Log: slog.New(slog.DiscardHandler), Metrics: c.registry,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); w.Run(ctx, 3) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

func (c *cast) wait(t *testing.T, id fsm.NodeID, want fsm.Liveness) *fsm.Node {
	t.Helper()
	for deadline := time.Now().Add(15 * time.Second); ; {
		n, _ := fsm.Get[*fsm.Node](c.Read(), fsm.TableNodes, string(id))
		if n.Liveness == want {
			return n
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is %s, want %s", id, n.Liveness, want)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// metric counts the series of a metric and adds up what gauges show.
func (c *cast) metric(t *testing.T, name string) (series int, sum float64) {
	t.Helper()
	families, err := c.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				series++
				sum += m.GetGauge().GetValue()
			}
		}
	}
	return series, sum
}

func TestWatcherCommitsWhatTheMembersFindOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCast(t)
		all := c.Voters()
		stop1 := c.beat(t, "n1", all...)
		stop2 := c.beat(t, "n2", all...)
		c.beat(t, "n3", all...)
		c.lead(t)
		time.Sleep(time.Second) // nothing must come of three silences of nobody
		for _, id := range []fsm.NodeID{"n1", "n2", "n3"} {
			c.wait(t, id, fsm.NodeUp)
		}
		c.mu.Lock()
		c.alive[addressOf("n2")] = true
		c.mu.Unlock()
		stop1()
		stop2()
		n := c.wait(t, "n1", fsm.NodeDown)
		c.wait(t, "n2", fsm.AgentDown)
		c.wait(t, "n3", fsm.NodeUp)
		last := n.History[len(n.History)-1]
		if last.By().Actor != "leader" || last.By().Reason == "" {
			t.Errorf("history %+v does not tell who said so, and why", last)
		}
		c.beat(t, "n1", all...)
		c.beat(t, "n2", all...)
		c.wait(t, "n2", fsm.NodeUp)
		c.wait(t, "n1", fsm.NodeUp)
		if got, _ := c.metric(t, "fairlead_liveness_verdict_seconds"); got != 2 {
			t.Errorf("verdicts are counted in %d states, want down and agent-down", got)
		}
	})
}

func TestWatcherShowsTheStatesAndWhetherItJudges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCast(t)
		c.beat(t, "n1", c.Voters()...)
		stop := c.lead(t)
		judging := func() bool { _, sum := c.metric(t, "fairlead_liveness_judging"); return sum == 1 }
		for deadline := time.Now().Add(5 * time.Second); !judging(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("a leader with three members does not judge")
			}
		}
		if series, sum := c.metric(t, "fairlead_node_liveness"); series != 9 || sum != 3 {
			t.Errorf("three nodes have %d series and are in %v states", series, sum)
		}
		stop()
		if judging() {
			t.Error("a member that does not lead judges")
		}
	})
}

// A member that hangs must not keep the others' answers, nor the end of the term.
func TestMemberThatHangsHoldsNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCast(t)
		all := c.Voters()
		c.beat(t, "n1", all...)
		stop := c.beat(t, "n2", all...)
		c.away["m3"] = true
		end := c.lead(t)
		stop()
		c.wait(t, "n2", fsm.NodeDown)
		begin := time.Now()
		end()
		if took := time.Since(begin); took > 2*time.Second {
			t.Errorf("the term ended after %s", took)
		}
	})
}

// A refused verdict, as after a reboot, is not the last word.
func TestVerdictOnAnotherBootIsJudgedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCast(t)
		all := c.Voters()
		c.beat(t, "n1", all...)
		var once sync.Once
		c.Change(func(k *grouptest.Knobs) {
			k.Before = func(cmd fsm.Command) {
				if s, ok := cmd.(*fsm.SetLiveness); ok && s.Node == "n2" {
					once.Do(func() { s.Boot = "another" })
				}
			}
		})
		c.lead(t)
		c.wait(t, "n2", fsm.NodeDown)
	})
}
