// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fairlead.io/fairlead/dataplane/bgp"
)

// world is where children are goroutines. It remembers what they are told.
type world struct {
	mu       sync.Mutex
	children []*task
	broken   bool        // none can be started
	others   *neighbours // with whom sessions are had; nil: with all peers at once
}

// task is a child, and its speaker. What it does not implement is not called.
type task struct {
	Served
	near  net.Conn
	gone  chan struct{}
	kill  sync.Once
	end   error         // how Serve ended
	has   atomic.Uint64 // bytes of memory
	limit atomic.Uint64 // of which it is to make do

	others *neighbours
	dead   atomic.Bool

	mu    sync.Mutex
	table bgp.Desired
	still chan struct{} // what it is asked waits for its close, if it is there
}

func (w *world) start() (Child, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken {
		return nil, errors.New("no memory")
	}
	near, far := net.Pipe()
	c := &task{near: near, gone: make(chan struct{}), others: w.others}
	w.children = append(w.children, c)
	go func() {
		c.end = Serve(far, func(Settings) (Served, error) { return c, nil }, c.limit.Store)
		c.dead.Store(true)
		if c.others != nil {
			c.others.over(c)
		}
		close(c.gone)
	}()
	return c, nil
}

// among has this child, and those that follow, speak with neighbours.
func (w *world) among(n *neighbours) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.others = n
	for _, c := range w.children {
		c.others = n
	}
}

// breaks has no child be started from now on, or any.
func (w *world) breaks(is bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = is
}

// all are all children so far.
func (w *world) all() []*task {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.children)
}

func (w *world) last() *task { all := w.all(); return all[len(all)-1] }

func (c *task) Conn() net.Conn        { return c.near }
func (c *task) Gone() <-chan struct{} { return c.gone }
func (c *task) Kill() {
	c.kill.Do(func() {
		c.dead.Store(true)
		c.near.Close()
	})
}
func (c *task) Memory() uint64    { return c.has.Load() }
func (c *task) Reason() string    { return "killed" }
func (c *task) LastWords() string { return "" }

func (c *task) Apply(_ context.Context, d bgp.Desired) error {
	c.mu.Lock()
	still, before := c.still, c.table.Peers
	c.table = d
	c.mu.Unlock()
	if still != nil {
		<-still
	}
	for _, p := range d.Peers {
		if c.others != nil && !slices.ContainsFunc(before, func(q bgp.Peer) bool { return p.Equal(q) }) {
			go c.others.meet(c, p)
		}
	}
	if d.Paths.Len() > 9 {
		return fmt.Errorf("ten paths: %w", bgp.ErrInvalid)
	}
	return nil
}

func (c *task) Written(context.Context) (bool, error) { return true, nil }

// Links are those of open sessions with all peers.
func (c *task) Links(context.Context) (out []bgp.Link, _ error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.table.Peers {
		if c.others != nil {
			out = append(out, c.others.link(c, p))
			continue
		}
		out = append(out, bgp.Link{Peer: p.Address, Session: 1, Written: true, Sent: 9, Arrived: 9})
	}
	return out, nil
}

// Peers are without any detail.
func (c *task) Peers(context.Context) (out []bgp.PeerStatus, _ error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.table.Peers {
		out = append(out, bgp.PeerStatus{Name: p.Name, Address: p.Address})
	}
	return out, nil
}

func (c *task) Detach(context.Context) error { return nil }

func (c *task) prefixes() (out []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for p := range c.table.Paths.All() {
		out = append(out, p.Prefix.String())
	}
	return out
}

// inWorld runs a test with a speaker whose children are goroutines, in a bubble.
func inWorld(t *testing.T, test func(*testing.T, *world, *Speaker)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		s, err := New(Options{Start: w.start, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		test(t, w, s)
		if err := s.Detach(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute) // sessions that open see that their child is gone
	})
}

func path(i int) bgp.Path {
	return bgp.Path{Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{203, 0, 113, byte(i)}), 32), NextHop: netip.MustParseAddr("198.51.100.1")}
}

var peer = bgp.Peer{Name: "switch", Address: netip.MustParseAddr("192.0.2.254"), RemoteASN: 65000}

func desired(numbers ...int) bgp.Desired {
	d := bgp.Desired{Peers: []bgp.Peer{peer}}
	var paths []bgp.Path
	for _, n := range numbers {
		paths = append(paths, path(n))
	}
	d.Paths = bgp.NewPaths(paths...)
	return d
}

func apply(t *testing.T, s *Speaker, d bgp.Desired, want error) {
	t.Helper()
	if err := s.Apply(t.Context(), d); !errors.Is(err, want) {
		t.Fatalf("error is %v, want %v", err, want)
	}
}

// While there is no child, nothing counts as applied, written or received. The next one is told everything that was wanted last, and
// its sessions have numbers of their own.
func TestTheNextChildIsToldEverything(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *Speaker) {
		apply(t, s, desired(1, 2), nil)
		links, err := s.Links(t.Context())
		if err != nil || len(links) != 1 {
			t.Fatalf("links %+v: %v", links, err)
		}
		w.last().Kill()
		synctest.Wait()
		if ok, err := s.Written(t.Context()); ok || !errors.Is(err, ErrDown) {
			t.Errorf("without a child: written %t, %v", ok, err)
		}
		if links, err := s.Links(t.Context()); links != nil || !errors.Is(err, ErrDown) {
			t.Errorf("without a child: links %+v, %v", links, err)
		}
		d := desired(1, 3)
		d.Touched = []netip.Prefix{path(2).Prefix, path(3).Prefix}
		apply(t, s, d, ErrDown)
		time.Sleep(time.Second)
		if got, want := w.last().prefixes(), []string{"203.0.113.1/32", "203.0.113.3/32"}; len(w.all()) != 2 || !slices.Equal(got, want) {
			t.Errorf("child %d was told %v, want %v", len(w.all()), got, want)
		}
		again, err := s.Links(t.Context())
		if err != nil || len(again) != 1 || again[0].Session == links[0].Session {
			t.Errorf("links %+v, %v after %+v", again, err, links)
		}
		// What differs from what was applied last without an error is not all that differs from what this child was told.
		d = desired(1, 4)
		d.Touched = []netip.Prefix{path(4).Prefix}
		apply(t, s, d, nil)
		if got, want := w.last().prefixes(), []string{"203.0.113.1/32", "203.0.113.4/32"}; !slices.Equal(got, want) {
			t.Errorf("it was told %v, want %v", got, want)
		}
	})
}

// A peer that is taken away while no child speaks may keep what it was told, for as long as it keeps that.
func TestPeersOfALostChildMayKeepWhatTheyWereTold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *Speaker) {
		apply(t, s, desired(1), nil)
		w.last().Kill()
		synctest.Wait()
		apply(t, s, bgp.Desired{Paths: bgp.NewPaths(path(1))}, ErrDown)
		time.Sleep(time.Second)
		links, err := s.Links(t.Context())
		if want := []bgp.Link{{Peer: peer.Address}}; err != nil || !slices.Equal(links, want) {
			t.Errorf("links are %+v, %v, want %+v", links, err, want)
		}
		time.Sleep(peer.Normal(0).Keeps())
		if links, err := s.Links(t.Context()); err != nil || len(links) > 0 {
			t.Errorf("what a peer kept is over, and told of: %+v, %v", links, err)
		}
	})
}

// A peer that was taken away while a child had a session with it was taken leave of: it keeps nothing, whatever former children told it.
func TestPeersThatAChildLeavesKeepNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *Speaker) {
		apply(t, s, desired(1), nil)
		w.last().Kill()
		time.Sleep(time.Second) // the next one has a session
		apply(t, s, bgp.Desired{Paths: bgp.NewPaths(path(1))}, nil)
		if links, err := s.Links(t.Context()); err != nil || len(links) > 0 {
			t.Errorf("links are %+v, %v, want none", links, err)
		}
	})
}

// What a peer may keep is not over earlier since it was configured to keep things for less time.
func TestWhatAPeerKeepsIsNotOverEarlier(t *testing.T) {
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	var f former
	long, short := peer, peer
	long.Restart.StaleTime, short.Restart.StaleTime = 20*time.Minute, time.Minute
	f.met(long, now)
	f.met(short, now.Add(time.Second))
	if links := f.with(nil, now.Add(long.Normal(0).Keeps()-time.Second)); len(links) != 1 {
		t.Errorf("links are %v", links)
	}
}

// Children that die at once are started again less and less often, but never less than every ten seconds; one that lived is started
// again soon.
func TestChildrenThatDieAtOnceAreStartedLessOften(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *Speaker) {
		last := time.Now()
		for i, want := range []time.Duration{100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000} {
			w.last().Kill()
			for len(w.all()) == i+1 {
				time.Sleep(10 * time.Millisecond)
			}
			if took := time.Since(last); took < want*time.Millisecond || took > want*time.Millisecond+50*time.Millisecond {
				t.Errorf("child %d was started after %s, want %dms", i+2, took, want)
			}
			last = time.Now()
			synctest.Wait() // it was started
		}
		time.Sleep(steadyAfter + time.Second)
		w.breaks(true)
		w.last().Kill()
		time.Sleep(time.Second)
		w.breaks(false)
		time.Sleep(2 * time.Second)
		if n := len(w.all()); n != 11 {
			t.Errorf("%d children, want one more after one that lived", n)
		}
		if s.Restarts() != 10 {
			t.Errorf("%d restarts", s.Restarts())
		}
	})
}

// A child whose parent is silent ends too: nobody would withdraw what it announces.
func TestAChildEndsWhenItsParentIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		one, err := w.start()
		if err != nil {
			t.Fatal(err)
		}
		c := &child{Child: one, channel: newChannel(one.Conn())}
		if a, err := c.ask(request{Do: doStart, Start: Settings{Silence: 3 * time.Second}}, answerWithin); err != nil || a.err() != nil {
			t.Fatal(err, a.err())
		}
		begin := time.Now()
		<-c.Gone()
		if took := time.Since(begin); took != 3*time.Second || !errors.Is(w.last().end, os.ErrDeadlineExceeded) {
			t.Errorf("it ended after %s: %v", took, w.last().end)
		}
		c.release()
	})
}

// A child that does not answer is ended, and whoever asked it is told so.
func TestAChildThatStandsStillIsEnded(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *Speaker) {
		first, still := w.last(), make(chan struct{})
		first.mu.Lock()
		first.still = still
		first.mu.Unlock()
		begin := time.Now()
		apply(t, s, desired(1), os.ErrDeadlineExceeded)
		if took := time.Since(begin); took < answerWithin || took > answerWithin+time.Second {
			t.Errorf("it had %s", took)
		}
		close(still)
		time.Sleep(time.Second)
		if got := w.last().prefixes(); w.last() == first || len(got) != 1 {
			t.Errorf("the next one was told %v", got)
		}
	})
}

func TestAStoppedSpeakerSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		s, err := New(Options{Start: w.start, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Detach(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, written := s.Written(t.Context())
		_, peers := s.Peers(t.Context())
		_, links := s.Links(t.Context())
		for _, err := range []error{
			s.Apply(t.Context(), bgp.Desired{}), written, peers, links, s.Mend(t.Context(), 0), s.Detach(t.Context()), s.Drain(t.Context()),
		} {
			if !errors.Is(err, bgp.ErrStopped) {
				t.Errorf("error is %v", err)
			}
		}
	})
}

// Errors are what they were in the child for those who ask what they are.
func TestErrorsComeOver(t *testing.T) {
	inWorld(t, func(t *testing.T, _ *world, s *Speaker) {
		apply(t, s, desired(1, 2, 3, 4, 5, 6, 7, 8, 9, 10), bgp.ErrInvalid)
	})
	for _, is := range kinds {
		a := answer{Failures: failuresOf(fmt.Errorf("before: %w", is))}
		if err := a.err(); !errors.Is(err, is) || err.Error() != "before: "+is.Error() {
			t.Errorf("%v comes over as %v", is, err)
		}
	}
}
