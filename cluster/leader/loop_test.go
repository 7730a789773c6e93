// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/prometheus/client_golang/prometheus"

	comparing "fairlead.io/fairlead/cluster/compare"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/testkit"
)

// wall is the time of the machine that the tests run on.
type wall struct{ start time.Time }

func newWall() wall                                   { return wall{time.Now()} }
func (w wall) Now() time.Duration                     { return time.Since(w.start) }
func (w wall) After(d time.Duration) <-chan time.Time { return time.After(d) }
func (w wall) Wall() time.Time                        { return time.Now() }

// liveGroup is a group of one, whose commits are immediate, and whose servers and errors a test chooses.
type liveGroup struct {
	*group
	mu      sync.Mutex
	servers []Server
	fail    error
	failed  int // proposals
	entries [][]fsm.Proposal
}

func newLiveGroup(t failer) *liveGroup { return &liveGroup{group: newGroup(t)} }

func (g *liveGroup) Propose(ctx context.Context, _ Urgency, proposals []fsm.Proposal) ([]fsm.Outcome, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := errors.Join(ctx.Err(), g.fail); err != nil {
		g.failed++
		return nil, err
	}
	g.entries = append(g.entries, slices.Clone(proposals))
	return g.propose(proposals, fsm.MaxItems), nil
}

// forgetfulGroup is a group of one that keeps nothing of what was proposed to it.
type forgetfulGroup struct {
	*liveGroup
	services []weak.Pointer[fsm.PutService]
	held     int // the most commands that somebody held when others were proposed after them
}

func (g *forgetfulGroup) Propose(_ context.Context, _ Urgency, proposals []fsm.Proposal) ([]fsm.Outcome, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	runtime.GC()
	held := 0
	for _, c := range g.services {
		if c.Value() != nil {
			held++
		}
	}
	g.held = max(g.held, held)
	for _, p := range proposals {
		if c, ok := p.Command.(*fsm.PutService); ok {
			g.services = append(g.services, weak.Make(c))
		}
	}
	return g.propose(proposals, fsm.MaxItems), nil
}

// since gives the entries from number n on.
func (g *liveGroup) since(n int) [][]fsm.Proposal {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.entries[n:])
}

func (g *liveGroup) VerifyLeader(ctx context.Context) error { return ctx.Err() }

func (g *liveGroup) Servers() []Server {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.servers
}

// commit is what somebody else has committed.
func (g *liveGroup) commit(cs ...fsm.Command) {
	g.t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.must(cs...)
}

func (g *liveGroup) set(change func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change()
}

// committed counts the commands of a type.
func committed[C fsm.Command](g *liveGroup) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := 0
	for _, e := range g.entries {
		for _, p := range e {
			if _, ok := p.Command.(C); ok {
				n++
			}
		}
	}
	return n
}

// folder is a source that a test writes to.
type folder struct {
	mu      sync.Mutex
	scene   *scene
	lists   uint64
	blind   bool
	changed chan struct{}
}

func newFolder(t failer) *folder {
	return &folder{scene: &scene{kept: map[string]bool{}, group: &group{t: t}}, changed: make(chan struct{}, 1)}
}

// World lists everything anew each time, as a folder that is polled often does.
func (f *folder) World() world.World {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lists++
	w := f.scene.world.Clone()
	w.Source, w.Cluster, w.Complete = "folder", "folder", !f.blind
	w.AddressPolicies = append(w.AddressPolicies, anything())
	for _, k := range world.Kinds() {
		w.Kinds = append(w.Kinds, world.KindView{Kind: k, Listed: !f.blind, Complete: !f.blind, Lists: f.lists})
	}
	w.Sort()
	return w
}

func (f *folder) Changed() <-chan struct{} { return f.changed }

func (f *folder) write(lines ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, line := range lines {
		f.scene.line(line)
	}
	poke(f.changed)
}

func (f *folder) delete(kind, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.scene.remove(kind, name)
	poke(f.changed)
}

// deleteSeen deletes an object before the source's eyes.
func (f *folder) deleteSeen(kind, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.scene.remove(kind, name)
	d := world.Deletion{Ref: world.Ref{Kind: world.KindService, ID: world.ID{Namespace: "default", Name: name}, UID: name + "-uid"}, How: world.ByWatch}
	if kind == "endpoints" {
		d.Service, d.Kind, d.Name = d.ID, world.KindEndpointSlice, name+"-ipv4"
	}
	f.scene.world.Deleted = append(f.scene.world.Deleted, d)
}

// lead runs a leader until the test ends or stop is called, which returns once everything has ended.
func lead(t *testing.T, c Config) (l *Leader, stop func()) {
	t.Helper()
	c.Clock = newWall()
	c.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	c.Metrics = prometheus.NewRegistry()
	l, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := l.Run(ctx, 1); err != nil {
			t.Errorf("run: %v", err)
		}
	}()
	stop = func() {
		cancel()
		select {
		case <-done:
		case <-time.After(testkit.Patience):
			t.Fatal("the leader's goroutines did not end with its term")
		}
	}
	t.Cleanup(stop)
	return l, stop
}

// plans waits until a leader has planned n times more.
func plans(t *testing.T, l *Leader, n int) {
	t.Helper()
	last := l.Status().Planned
	testkit.Eventually(t, "plans", func() error {
		if at := l.Status().Planned; at != last {
			last, n = at, n-1
		}
		if n > 0 {
			return errors.New("the leader does not plan")
		}
		return nil
	})
}

func hopsOf(v *fsm.View, address string) string {
	r, ok := fsm.Get[*fsm.Route](v, fsm.TableRoutes, fsm.HostPrefix(netip.MustParseAddr(address)).String())
	if !ok {
		return ""
	}
	out := ""
	for _, h := range r.NextHops {
		out += fmt.Sprintf("%s=%s ", h.Node(), v.HopState(r, h))
	}
	return out
}

func want(v *fsm.State, address, hops string) func() error {
	return func() error {
		if have := hopsOf(v.Read(), address); have != hops {
			return fmt.Errorf("%s has hops %q, want %q", address, have, hops)
		}
		return nil
	}
}

func fastLimits() Limits { return Limits{Confirm: 20 * time.Millisecond} }

func TestLoopFollowsSourcesAndReports(t *testing.T) {
	g, f := newLiveGroup(t), newFolder(t)
	f.write("node n1 192.0.2.1", "node n2 192.0.2.2", "service web ip=203.0.113.10", "endpoints web n1/10.0.0.1 n2/10.0.0.2")
	l, _ := lead(t, Config{Sources: []NamedSource{{"folder", f}}, Record: g.state, Group: g, Limits: fastLimits()})
	testkit.Eventually(t, "the hops", want(g.state, "203.0.113.10", "n1=wanted n2=wanted "))

	g.commit(&fsm.RegisterBoot{Node: "n1", Boot: "b"}, &fsm.RegisterBoot{Node: "n2", Boot: "b"},
		&fsm.ReportMember{Server: "m1", Name: "m1", Format: fsm.NewestFormat, Run: "r"})
	g.set(func() { g.servers = []Server{{"m1", true}} })
	for _, n := range []fsm.NodeID{"n1", "n2"} {
		l.Acknowledged(fsm.AppliedMark{Node: n, Boot: "b", Upto: g.state.Read().Revision()})
	}
	testkit.Eventually(t, "the hops", want(g.state, "203.0.113.10", "n1=acknowledged n2=acknowledged "))
	l.Announced(fsm.AnnouncedMark{Server: "m1", Run: "r", Upto: g.state.Read().Revision()})
	testkit.Eventually(t, "the hops", want(g.state, "203.0.113.10", "n1=announced n2=announced "))

	f.delete("endpoints", "web")
	f.delete("service", "web")
	testkit.Eventually(t, "the hops", want(g.state, "203.0.113.10", "n1=withdrawing n2=withdrawing "))
	now := g.state.Read().Revision()
	l.Announced(fsm.AnnouncedMark{Server: "m1", Run: "r", Upto: now, Withdrawn: now})
	testkit.Eventually(t, "the service to go", func() error {
		if n := len(fsm.List[*fsm.Service](g.state.Read(), fsm.TableServices)); n > 0 {
			return fmt.Errorf("%d services left", n)
		}
		return nil
	})
}

// The first plan of a large cluster is as large as its record, and takes seconds to be committed.
func TestLoopHoldsNothingOfWhatIsCommitted(t *testing.T) {
	g, f := &forgetfulGroup{liveGroup: newLiveGroup(t)}, newFolder(t)
	const services = 3 * maxTogether
	for i := range services {
		f.write(fmt.Sprintf("service web-%d ip=198.18.%d.%d", i, i/250, i%250+1))
	}
	lead(t, Config{Sources: []NamedSource{{"folder", f}}, Record: g.state, Group: g, Limits: fastLimits()})
	testkit.Eventually(t, "all services in the record", func() error {
		if n := g.state.Read().Count(fsm.TableServices); n < services {
			return fmt.Errorf("the record has %d of %d Services", n, services)
		}
		return nil
	})
	if g.mu.Lock(); g.held > 0 {
		t.Errorf("%d commands were held after they were committed", g.held)
	}
	g.mu.Unlock()
}

func TestLoopRemovesNothingWithoutAView(t *testing.T) {
	g, f := newLiveGroup(t), newFolder(t)
	f.write("node n1 192.0.2.1", "service web ip=203.0.113.10", "endpoints web n1/10.0.0.1")
	_, stop := lead(t, Config{Sources: []NamedSource{{"folder", f}}, Record: g.state, Group: g, Limits: fastLimits()})
	testkit.Eventually(t, "the hops", want(g.state, "203.0.113.10", "n1=wanted "))
	stop()

	f.blind = true
	f.delete("service", "web")
	f.delete("endpoints", "web")
	before := g.state.Digest()
	l, _ := lead(t, Config{Sources: []NamedSource{{"folder", f}}, Record: g.state, Group: g, Limits: fastLimits(), Timing: Timing{Replan: 5 * time.Millisecond}})
	plans(t, l, 10)
	if after := g.state.Digest(); after != before {
		t.Fatalf("the record changed: hops %q", hopsOf(g.state.Read(), "203.0.113.10"))
	}
	if s := l.Status().Sources[0]; s.Usable || s.Why == "" {
		t.Fatalf("source status %+v, want an unusable view and why", s)
	}
}

// A member that is lost holds withdrawals up for as long as a switch may keep its paths, and no longer.
func TestLoopExcusesMembersLostForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, f := newLiveGroup(t), newFolder(t)
		f.write("node n1 192.0.2.1", "service web ip=203.0.113.10", "endpoints web n1/10.0.0.1")
		g.commit(&fsm.ReportMember{Server: "m1", Name: "m1", Format: fsm.NewestFormat, Run: "r"}, &fsm.ReportMember{Server: "m2", Name: "m2", Format: fsm.NewestFormat, Run: "r"})
		g.servers = []Server{{"m1", true}, {"m2", false}}
		const holds = 300 * time.Millisecond
		began := time.Now()
		l, _ := lead(t, Config{
			Sources: []NamedSource{{"folder", f}}, Record: g.state, Group: g, Limits: fastLimits(),
			Timing: Timing{SwitchHolds: holds, Replan: 20 * time.Millisecond},
		})
		testkit.Eventually(t, "the hops", want(g.state, "203.0.113.10", "n1=wanted "))
		f.delete("endpoints", "web")
		testkit.Eventually(t, "the hops", want(g.state, "203.0.113.10", "n1=withdrawing "))
		now := g.state.Read().Revision()
		l.Announced(fsm.AnnouncedMark{Server: "m1", Run: "r", Upto: now, Withdrawn: now})
		testkit.Eventually(t, "the hops", want(g.state, "203.0.113.10", ""))
		if took := time.Since(began); took < holds {
			t.Fatalf("the withdrawal was over after %s, before a switch gave up the lost member's paths (%s)", took, holds)
		}
		g.set(func() { g.servers = []Server{{"m1", true}} }) // removed from the group
		testkit.Eventually(t, "the lost member to be forgotten", func() error {
			if n := committed[*fsm.RemoveMember](g); n != 1 {
				return fmt.Errorf("%d members forgotten", n)
			}
			return nil
		})
	})
}

// What one leader waited of the time for which a switch may keep a lost member's paths, the next one need not wait again.
func TestLoopExcusesMembersLostOverTerms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, f := newLiveGroup(t), newFolder(t)
		f.write("node n1 192.0.2.1", "service web ip=203.0.113.10", "endpoints web n1/10.0.0.1")
		g.commit(&fsm.ReportMember{Server: "m1", Name: "m1", Format: fsm.NewestFormat, Run: "r"}, &fsm.ReportMember{Server: "m2", Name: "m2", Format: fsm.NewestFormat, Run: "r"})
		g.servers = []Server{{"m1", true}, {"m2", false}}
		c := Config{Sources: []NamedSource{{"folder", f}}, Record: g.state, Group: g, Limits: fastLimits()}
		began := time.Now()
		l, stop := lead(t, c)
		testkit.Eventually(t, "the hops", want(g.state, "203.0.113.10", "n1=wanted "))
		f.delete("endpoints", "web")
		testkit.Eventually(t, "the hops", want(g.state, "203.0.113.10", "n1=withdrawing "))
		now := g.state.Read().Revision()
		l.Announced(fsm.AnnouncedMark{Server: "m1", Run: "r", Upto: now, Withdrawn: now})
		const holds, term, terms = 631 * time.Second, 200 * time.Second, 4
		for range terms {
			time.Sleep(term)
			if gone := hopsOf(g.state.Read(), "203.0.113.10") == ""; gone && time.Since(began) < holds {
				t.Fatalf("the withdrawal was over after %s, before a switch gave up the lost member's paths", time.Since(began))
			}
			stop()
			_, stop = lead(t, c)
		}
		time.Sleep(time.Until(began.Add(holds + terms*(tellEvery+10*time.Second))))
		if hops := hopsOf(g.state.Read(), "203.0.113.10"); hops != "" {
			t.Fatalf("after %s the withdrawal goes on: %s", time.Since(began), hops)
		}
	})
}

func TestLoopCoalescesReports(t *testing.T) { synctest.Test(t, testLoopCoalescesReports) }

func testLoopCoalescesReports(t *testing.T) {
	g := newLiveGroup(t)
	l, _ := lead(t, Config{Record: g.state, Group: g, Timing: Timing{Reports: 100 * time.Millisecond}})
	const nodes = 200
	for i := range nodes {
		id := fsm.NodeID(fmt.Sprint("n", i))
		g.commit(&fsm.PutNode{ID: id}, &fsm.RegisterBoot{Node: id, Boot: "b"})
	}
	for i := range nodes { // a fifth of the window in all, in which whoever does not wait for its end has time for each
		time.Sleep(100 * time.Microsecond)
		for step := range 3 {
			l.Acknowledged(fsm.AppliedMark{Node: fsm.NodeID(fmt.Sprint("n", i)), Boot: "b", Upto: fsm.Revision{Epoch: 1, Index: fsm.Index(step + 1)}})
		}
	}
	testkit.Eventually(t, "the marks", func() error {
		for _, n := range fsm.List[*fsm.Node](g.state.Read(), fsm.TableNodes) {
			if n.Acknowledged.Index != 3 {
				return fmt.Errorf("%s acknowledged %s", n.ID, n.Acknowledged)
			}
		}
		return nil
	})
	if n := committed[*fsm.Acknowledge](g); n > 2 {
		t.Fatalf("%d commands for the marks of one window", n)
	}
}

func TestLoopRepeatsReportsThatDidNotGetThrough(t *testing.T) {
	g := newLiveGroup(t)
	g.commit(&fsm.PutNode{ID: "n1"}, &fsm.RegisterBoot{Node: "n1", Boot: "b"})
	g.fail = errors.New("too busy")
	l, _ := lead(t, Config{Record: g.state, Group: g})
	l.Acknowledged(fsm.AppliedMark{Node: "n1", Boot: "b", Upto: fsm.Revision{Epoch: 1, Index: 1}})
	testkit.Eventually(t, "the mark to be proposed", func() error {
		var failed int
		g.set(func() { failed = g.failed })
		if failed == 0 {
			return errors.New("none was")
		}
		return nil
	})
	g.set(func() { g.fail = nil })
	testkit.Eventually(t, "the mark", func() error {
		if n, _ := fsm.Get[*fsm.Node](g.state.Read(), fsm.TableNodes, "n1"); n.Acknowledged.IsZero() {
			return errors.New("the mark is lost")
		}
		return nil
	})
}

func TestLoopCheckpointsWhatChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLiveGroup(t)
		lead(t, Config{Record: g.state, Group: g, Timing: Timing{Checkpoint: 10 * time.Millisecond}})
		checkpoints := func(n int) func() error {
			return func() error {
				if have := committed[*fsm.Checkpoint](g); have != n {
					return fmt.Errorf("%d checkpoints, want %d", have, n)
				}
				return nil
			}
		}
		testkit.Eventually(t, "checkpoints", checkpoints(1))
		g.commit(&fsm.PutNode{ID: "n1"})
		testkit.Eventually(t, "checkpoints", checkpoints(2))
		time.Sleep(60 * time.Millisecond) // several checkpoints' time
		g.commit(&fsm.ReportMember{Server: "m1", Name: "m1", Format: fsm.NewestFormat, Run: "r"})
		for range 3 { // what members announced, of which there is news after each checkpoint
			g.commit(&fsm.ReportAnnounced{Marks: []fsm.AnnouncedMark{{Server: "m1", Run: "r", Upto: g.state.Read().Revision()}}})
			time.Sleep(20 * time.Millisecond)
		}
		if err := checkpoints(2)(); err != nil {
			t.Fatalf("an idle group: %v", err)
		}
		if c := g.state.Read().Group().Checkpoint; c == 0 {
			t.Fatal("no checkpoint was accepted")
		}
		g.commit(&fsm.PutSettings{Settings: fsm.Settings{HistoryLimit: 9}})
		testkit.Eventually(t, "checkpoints", checkpoints(3))
	})
}

// What most members do not have alike is never proposed. While one differs it hears of what the others have again and again, whether or not anything was
// decided.
func TestLoopProposesCheckpointsOfMostAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLiveGroup(t)
		var agreed, alike atomic.Bool
		lead(t, Config{Record: g.state, Group: g, Timing: Timing{Checkpoint: time.Second}, Agree: func(context.Context) (*fsm.View, bool, error) {
			if !agreed.Load() {
				return nil, false, comparing.ErrUndecided
			}
			return g.state.Read(), alike.Load(), nil
		}})
		time.Sleep(500 * time.Millisecond) // no step ends in the moment of a checkpoint
		for _, step := range []struct {
			agreed, alike bool
			least, most   int
		}{{false, false, 0, 0}, {true, false, 5, 10}, {true, true, 0, 1}} {
			before := committed[*fsm.Checkpoint](g)
			agreed.Store(step.agreed)
			alike.Store(step.alike)
			time.Sleep(10 * time.Second)
			if n := committed[*fsm.Checkpoint](g) - before; n < step.least || n > step.most {
				t.Errorf("%d checkpoints in 10 s: %+v", n, step)
			}
		}
	})
}

func TestLoopEndsQuarantineOnceACompleteViewWasAdopted(t *testing.T) {
	g, f := newLiveGroup(t), newFolder(t)
	f.blind = true
	g.commit(&fsm.NewEpoch{Group: "test", Epoch: 2, Cause: "restored"})
	l, _ := lead(t, Config{Sources: []NamedSource{{"folder", f}}, Record: g.state, Group: g, Limits: fastLimits(), Timing: Timing{Replan: 5 * time.Millisecond}})
	plans(t, l, 10)
	if g.state.Read().Group().Quarantine.IsZero() {
		t.Fatal("the quarantine ended without a view")
	}
	f.mu.Lock()
	f.blind = false
	f.mu.Unlock()
	f.write("node n1 192.0.2.1", "service web ip=203.0.113.10", "endpoints web n1/10.0.0.1")
	testkit.Eventually(t, "the hops", want(g.state, "203.0.113.10", "n1=wanted "))
}

// Objects that one folder lost are that folder's to answer for: to the other one they were never there.
func TestLoopAsksOnlyTheSourceThatShowedAnObject(t *testing.T) {
	g, a, b := newLiveGroup(t), newFolder(t), newFolder(t)
	a.write("node n1 192.0.2.1", "service kept ip=203.0.113.99", "endpoints kept n1/10.0.1.1")
	const many = 30
	for i := range many {
		b.write(fmt.Sprintf("service s%d ip=203.0.113.%d", i, i+1), fmt.Sprintf("endpoints s%d n1/10.0.0.%d", i, i+1))
	}
	lead(t, Config{Sources: []NamedSource{{"a", a}, {"b", b}}, Record: g.state, Group: g, Limits: fastLimits()})
	services := func(n int) func() error {
		return func() error {
			if have := len(fsm.List[*fsm.Service](g.state.Read(), fsm.TableServices)); have != n {
				return fmt.Errorf("%d services, want %d", have, n)
			}
			return nil
		}
	}
	testkit.Eventually(t, "the services", services(many+1))
	for i := range many {
		b.deleteSeen("service", fmt.Sprint("s", i))
		b.deleteSeen("endpoints", fmt.Sprint("s", i))
	}
	poke(b.changed)
	testkit.Eventually(t, "the services", services(1))
}
