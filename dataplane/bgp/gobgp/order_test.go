// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	wire "github.com/osrg/gobgp/v4/pkg/packet/bgp"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/dataplane/bgp/hostile"
	"fairlead.io/fairlead/dataplane/bgp/testswitch"
	"fairlead.io/fairlead/internal/testkit"
)

// withSwitch opens a session with a switch that is sent so many paths of a prefix, 0 for all. Who waits for its hold time waits in vain.
func withSwitch(t *testing.T, most uint8, families ...bgp.Family) (*testswitch.Switch, *Speaker, bgp.Desired) {
	t.Helper()
	s := dialler(t, 0)
	sw, d := joinSwitch(t, s, most, families...)
	return sw, s, d
}

// joinSwitch opens the session of withSwitch for a speaker that the caller may have changed before.
func joinSwitch(t *testing.T, s *Speaker, most uint8, families ...bgp.Family) (*testswitch.Switch, bgp.Desired) {
	t.Helper()
	sw := startSwitch(t, 1)
	peer := switchPeer(sw)
	peer.SendMax, peer.HoldTime = most, time.Hour
	if families != nil {
		peer.Families = families
	}
	d := bgp.Desired{Peers: []bgp.Peer{peer}}
	apply(t, s, d)
	testkit.Until(t, "the session", func() bool { return sw.Peers()[0].Established && s.session(peer.Address) != nil })
	return sw, d
}

// prefixes and paths for tests with many.
func many(n int, hops ...string) []bgp.Path {
	var out []bgp.Path
	for i := range n {
		for _, h := range hops {
			p := path(fmt.Sprintf("203.0.113.%d/32", i), h)
			if i%2 == 1 {
				p = path(fmt.Sprintf("2001:db8:1::%x/128", i), "2001:db8::"+h[len(h)-1:])
			}
			out = append(out, p)
		}
	}
	return out
}

// The next hops of a hundred prefixes are replaced in one plan: there is no moment in which the switch has no path of one of them.
func TestPathsComeBeforeOthersGo(t *testing.T) {
	parallel(t)
	for _, most := range []uint8{0, 1} {
		t.Run(fmt.Sprintf("send-max-%d", most), func(t *testing.T) {
			parallel(t)
			sw, s, d := withSwitch(t, most)
			hops := []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}
			for i := range 6 {
				d.Paths = bgp.NewPaths(many(100, hops[i%3])...)
				if err := s.Apply(t.Context(), d); err != nil {
					t.Fatal(err)
				}
				waitRIB(t, sw, merged([]bgp.Desired{d}))
			}
			for p := range d.Paths.Prefixes() {
				if n := sw.Lost(p); n > 0 {
					t.Errorf("the switch had no path of %s for a moment, %d times", p, n)
				}
			}
		})
	}
}

// All that is applied counts as written before long, however GoBGP packs it, and what counts as written is: nothing is sent after that.
func TestWrittenIsToldInTime(t *testing.T) {
	parallel(t)
	for _, most := range []uint8{0, 1} {
		t.Run(fmt.Sprintf("send-max-%d", most), func(t *testing.T) {
			parallel(t)
			_, s, d := withSwitch(t, most)
			sent := func() uint64 {
				links, err := s.Links(t.Context())
				if err != nil || len(links) != 1 {
					t.Fatal(links, err)
				}
				return links[0].Sent
			}
			for i := range 10 {
				d.Paths = bgp.NewPaths(many(10*i, "192.0.2.1", "192.0.2.2")...)
				apply(t, s, d)
				before := sent()
				time.Sleep(10 * time.Millisecond) // too short hides a fault, too long makes none
				if after := sent(); after != before {
					t.Errorf("%d bytes were sent after all was written", after-before)
				}
			}
		})
	}
}

// genRivals draws paths of two prefixes, each by none, some or all of a few next hops.
func genRivals() *rapid.Generator[[]bgp.Path] {
	return rapid.Custom(func(t *rapid.T) (out []bgp.Path) {
		for _, of := range []string{vip, "203.0.113.11/32"} {
			for _, hop := range []string{hop1, hop2, "192.0.2.11"} {
				p := path(of, hop)
				p.MED = rapid.SampledFrom([]uint32{0, 1, 2, 3, 4}).Draw(t, "med")
				if p.MED < 4 {
					out = append(out, p)
				}
			}
		}
		return out
	})
}

// Whatever is planned, the best path of a prefix changes once at most in a round, counted after each step, and just then the round says so.
func TestPropertyARoundChangesABestPathOnce(t *testing.T) {
	testkit.Check(t, func(rt *rapid.T) {
		had := bgp.AssignPathIDs(genRivals().Draw(rt, "observed"))
		wants := bgp.Desired{Paths: bgp.NewPaths(genRivals().Draw(rt, "desired")...)}
		steps, err := bgp.Plan(65000, wants, bgp.Observed{Paths: had})
		if err != nil {
			rt.Fatal(err)
		}
		done := 0
		for _, r := range inRounds(steps, had) {
			changed := map[netip.Prefix]int{}
			for _, step := range r.steps {
				done++
				before := bestOf(had)
				had = slices.DeleteFunc(slices.Clone(had), func(p bgp.Path) bool {
					return p.Prefix == step.Path.Prefix && p.PathID == step.Path.PathID
				})
				if step.Action == bgp.AddPath {
					had = append(had, step.Path)
				}
				if was, is := before[step.Path.Prefix], bestOf(had)[step.Path.Prefix]; !was.Equal(is) {
					changed[step.Path.Prefix]++
				}
			}
			for p, n := range changed {
				if n > 1 {
					rt.Fatalf("the best path of %s changes %d times in %v", p, n, r.steps)
				}
			}
			if !slices.Equal(slices.SortedFunc(maps.Keys(changed), netip.Prefix.Compare), slices.SortedFunc(maps.Keys(r.best), netip.Prefix.Compare)) {
				rt.Fatalf("the best paths change of %v, and %v is told of %v", changed, r.best, r.steps)
			}
		}
		if done != len(steps) {
			rt.Fatalf("%d of %d steps are done", done, len(steps))
		}
	})
}

// Whatever a speaker is told, and however fast, a switch that takes one path of a prefix has the best one in the end, and none of a prefix
// that has none.
func TestPropertySwitchWithoutAddPathHasTheBestPath(t *testing.T) {
	parallel(t)
	sw, s, d := withSwitch(t, 1)
	testkit.Check(t, func(rt *rapid.T) {
		for range rapid.IntRange(1, 4).Draw(rt, "changes") {
			d.Paths = bgp.NewPaths(genPaths().Draw(rt, "paths")...)
			d.Demoted = rapid.IntRange(0, 7).Draw(rt, "demoted") == 0 // all paths are sent again, which takes its time
			if err := s.Apply(t.Context(), d); err != nil {
				rt.Fatal(err)
			}
		}
		var want []testswitch.Entry
		for p, best := range bestOf(bgp.AssignPathIDs(listOf(d.Paths))) {
			want = append(want, testswitch.Entry{Prefix: p, NextHops: []netip.Addr{best.NextHop}})
		}
		slices.SortFunc(want, func(a, b testswitch.Entry) int { return a.Prefix.Compare(b.Prefix) })
		waitRIB(rt, sw, want)
	})
}

// A queue that does not move holds up others for some seconds. If the switch then may have got two changes of one prefix in the wrong order,
// and knows paths by the prefix alone, its session is restarted once it reads.
func TestSwitchThatMayHaveGotTheWrongOrderIsToldAnew(t *testing.T) {
	parallel(t)
	for most, restarts := range map[uint8]bool{0: false, 1: true} {
		t.Run(fmt.Sprintf("send-max-%d", most), func(t *testing.T) {
			parallel(t)
			sw, s, d := withSwitch(t, most)
			d.Paths = bgp.NewPaths(path(vip, hop1))
			apply(t, s, d)
			testkit.Until(t, "all to arrive", func() bool {
				links, err := s.Links(t.Context())
				return err == nil && links[0].Sent == links[0].Arrived
			})
			since := sw.Peers()[0].Since
			peers, err := s.listPeers(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			now, n := time.Now(), s.session(sw.Addr().Addr())
			next := round{kind: comes, steps: []bgp.Step{{Action: bgp.AddPath, Path: path(vip, hop2)}}, best: map[netip.Prefix]bool{prefix(vip): true}}
			for _, c := range []struct {
				after time.Duration
				goes  bool
			}{{0, true}, {unmoved / 2, false}, {2 * unmoved, false}, {2 * stalled, true}} {
				n.quiet = patience{c.after, now}
				if goes := s.enqueue(next, peers, now, false); goes != c.goes {
					t.Errorf("after %s the next change goes: %t", c.after, goes)
				}
			}
			for range 3 { // it is given to nobody, and written as far as the speaker knows
				s.onWritten(attributes{"Key": slog.StringValue(sw.Addr().Addr().String()), "nlri": slog.AnyValue(written(t, vip))})
			}
			apply(t, s, d)
			if got := !sw.Peers()[0].Since.Equal(since); got != restarts {
				t.Errorf("the session was restarted: %t", got)
			}
			waitRIB(t, sw, merged([]bgp.Desired{d}))
		})
	}
}

// A switch that does not read holds up others for a second only.
func TestSwitchThatDoesNotReadHoldsUpOthersForASecond(t *testing.T) {
	conn, t4 := connection(t)
	n := &session{queue: newQueue(time.Now()), tuple: t4}
	at := func(waited time.Duration) bool {
		now := time.Now()
		n.quiet = patience{waited, now}
		return n.holdsUp(now)
	}
	if !at(unmoved-1) || !at(unmoved) || !at(stalled-1) || at(stalled) {
		t.Error("a switch that has read all holds up others for ever, or not until the queue is stalled")
	}
	testkit.Until(t, "a switch that does not read holds up others for a second", func() bool {
		if err := conn.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write(make([]byte, 1<<20)) // until it is full of it
		return !at(unmoved)
	})
	if !at(unmoved - 1) {
		t.Error("a switch that does not read holds up others for less than a second")
	}
}

// A session may synchronise while paths are put: whether they came with all others or after them is not known then.
func TestSessionThatSynchronisesMeanwhileIsNotTakenForDone(t *testing.T) {
	parallel(t)
	s := dialler(t, 0)
	silent := hostile.Listen(t, addr("127.0.0.1"))
	peer := silent.Peer()
	peer.Restart.Deferral = time.Hour
	if err := s.Apply(t.Context(), bgp.Desired{Peers: []bgp.Peer{peer}}); err != nil {
		t.Fatal(err)
	}
	session := restarts(t, silent)
	testkit.Until(t, "the session", func() bool { return s.session(peer.Address) != nil })
	n := s.session(peer.Address)
	waits := func() bool {
		peers, err := s.listPeers(t.Context())
		return err == nil && synchronising(peers[peer.Address])
	}
	comes := inRounds([]bgp.Step{{Action: bgp.AddPath, Path: path(vip, hop1)}}, nil)[0]
	for _, meanwhile := range []bool{false, true} {
		done, err := s.expect(t.Context(), comes)
		if err != nil || !waits() {
			t.Fatalf("the session synchronises: %t, %v", waits(), err)
		}
		if meanwhile {
			sendMessages(t, session, wire.NewEndOfRib(wire.RF_IPv4_UC), wire.NewEndOfRib(wire.RF_IPv6_UC))
			testkit.Until(t, "the end of that", func() bool { return !waits() })
		}
		done()
		s.sessionsMu.Lock()
		if noted := n.likely[prefix(vip)] > 0; noted != meanwhile || n.mixed != meanwhile {
			t.Errorf("it synchronised meanwhile: %t; noted %t, mixed %t", meanwhile, noted, n.mixed)
		}
		s.sessionsMu.Unlock()
	}
}

// restarts takes a session to its end, as a switch without ADD-PATH that keeps paths over restarts, and has told none of its own yet.
func restarts(t *testing.T, n *hostile.Peer) *hostile.Conversation {
	t.Helper()
	c, err := n.Session(hostile.OpenSent)
	if err != nil {
		t.Fatal(err)
	}
	var tuples []*wire.CapGracefulRestartTuple
	var caps []wire.ParameterCapabilityInterface
	for _, f := range []wire.Family{wire.RF_IPv4_UC, wire.RF_IPv6_UC} {
		tuples, caps = append(tuples, wire.NewCapGracefulRestartTuple(f, true)), append(caps, wire.NewCapMultiProtocol(f))
	}
	caps = append(caps, wire.NewCapGracefulRestart(false, false, 120, tuples))
	open, err := wire.NewBGPOpenMessage(hostile.ASN, 3600, addr("192.0.2.254"), []wire.OptionParameterInterface{wire.NewOptionParameterCapability(caps)})
	if err != nil {
		t.Fatal(err)
	}
	sendMessages(t, c, open, wire.NewBGPKeepAliveMessage())
	return c
}

func sendMessages(t *testing.T, c *hostile.Conversation, messages ...*wire.BGPMessage) {
	t.Helper()
	for _, m := range messages {
		b, err := m.Serialize()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Send(b); err != nil {
			t.Fatal(err)
		}
	}
}

// A switch whose queue moves and does not become empty holds up one round for some seconds, and no further one.
func TestSwitchThatIsAlwaysBehindHoldsUpOneRound(t *testing.T) {
	parallel(t)
	sw, s, d := withSwitch(t, 0)
	d.Paths = bgp.NewPaths(path(vip, hop1))
	apply(t, s, d)
	peers, err := s.listPeers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n := s.session(sw.Addr().Addr())
	gone := round{kind: goes, steps: []bgp.Step{{Action: bgp.RemovePath, Path: path("203.0.113.11/32", hop1)}}}
	now := time.Now()
	for i, c := range []struct{ tooLong, goes bool }{{false, false}, {true, true}, {false, true}} {
		n.put(prefix(vip), true, now)
		if goes := s.enqueue(gone, peers, now, c.tooLong); goes != c.goes {
			t.Errorf("round %d goes: %t", i, goes)
		}
	}
	clear(n.certain)
	apply(t, s, d)
	s.enqueue(gone, peers, now, false)
	if s.enqueue(gone, peers, now, false) {
		t.Error("it does not hold up rounds any more, though it was empty once")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for ; ctx.Err() == nil; time.Sleep(time.Millisecond) {
			s.sessionsMu.Lock()
			n.put(prefix(vip), true, time.Now())
			s.sessionsMu.Unlock()
		}
	}()
	if err := s.Apply(t.Context(), bgp.Desired{Peers: d.Peers}); err != nil {
		t.Error(err)
	}
}

// connection is one of this process, whose other end reads nothing.
func connection(t *testing.T) (net.Conn, tuple) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	conn, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	local, remote := conn.LocalAddr().(*net.TCPAddr).AddrPort(), conn.RemoteAddr().(*net.TCPAddr).AddrPort()
	return conn, tuple{localPort: local.Port(), remote: remote}
}

// written is what GoBGP tells of a prefix that it wrote.
func written(t *testing.T, of string) []wire.PathNLRI {
	t.Helper()
	n, err := wire.NewIPAddrPrefix(prefix(of))
	if err != nil {
		t.Fatal(err)
	}
	return []wire.PathNLRI{{NLRI: n}}
}

// bestOf picks the best path of each prefix: of equal ones that of the lowest identifier.
func bestOf(paths []bgp.Path) map[netip.Prefix]bgp.Path {
	best := map[netip.Prefix]bgp.Path{}
	for _, p := range paths {
		if old, ok := best[p.Prefix]; !ok || p.MED < old.MED || p.MED == old.MED && p.PathID < old.PathID {
			best[p.Prefix] = p
		}
	}
	return best
}
