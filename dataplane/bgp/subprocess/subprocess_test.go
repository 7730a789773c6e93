// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/dataplane/bgp/gobgp"
	"fairlead.io/fairlead/dataplane/bgp/testswitch"
	"fairlead.io/fairlead/internal/freeport"
	"fairlead.io/fairlead/internal/testkit"
)

// TestMain has the test's own program be the child.
func TestMain(m *testing.M) {
	if IsChild() {
		os.Exit(Main())
	}
	os.Exit(m.Run())
}

const asn = 65000

var (
	routerID = netip.MustParseAddr("192.0.2.10")
	loopback = netip.MustParseAddr("127.0.0.1")
)

func path(i int) bgp.Path {
	return bgp.Path{Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{203, 0, 113, byte(i)}), 32), NextHop: netip.MustParseAddr("198.51.100.1")}
}

// logged is a logger and what was logged by it, which is shown if the test fails.
func logged(t *testing.T) (*slog.Logger, *testkit.Log) {
	t.Helper()
	log := &testkit.Log{}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log:\n%s", log.String())
		}
	})
	return slog.New(slog.NewTextHandler(log, nil)), log
}

// open starts a speaker that is drained when the test ends.
func open(t *testing.T, c gobgp.Config) *Speaker {
	t.Helper()
	c.ASN, c.RouterID = asn, routerID
	if c.Logger == nil {
		c.Logger, _ = logged(t)
	}
	s, err := New(Options{Config: c})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Drain(context.Background()); err != nil && !errors.Is(err, gobgp.ErrStopped) {
			t.Error(err)
		}
	})
	return s
}

func startSwitch(t *testing.T) (*testswitch.Switch, bgp.Peer) {
	t.Helper()
	sw, err := testswitch.Start(testswitch.Config{Neighbors: []testswitch.Neighbor{{RouterID: routerID, ASN: asn}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sw.Close() })
	return sw, bgp.Peer{
		Name: "switch", Address: sw.Addr().Addr(), Port: sw.Addr().Port(), RemoteASN: sw.ASN(), Families: []bgp.Family{bgp.IPv4, bgp.IPv6},
	}
}

// process is the child that a speaker has now; 0 if it has none.
func (s *Speaker) process(t *testing.T) int {
	t.Helper()
	pid, err := with(t.Context(), s, func() (int, error) {
		if s.child == nil {
			return 0, nil
		}
		return s.child.cmd.Process.Pid, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func written(t *testing.T, s *Speaker) {
	t.Helper()
	testkit.Until(t, "updates to be written", func() bool {
		ok, err := s.Written(t.Context())
		if err != nil && !errors.Is(err, ErrDown) {
			t.Fatal(err)
		}
		return ok
	})
}

// session is the number of the only session, once it is open.
func session(t *testing.T, s *Speaker) (number uint64) {
	t.Helper()
	testkit.Until(t, "the session", func() bool {
		links, err := s.Links(t.Context())
		if err != nil && !errors.Is(err, ErrDown) {
			t.Fatal(err)
		}
		if len(links) == 1 {
			number = links[0].Session
		}
		return number > 0
	})
	return number
}

// A child that is killed is followed by another one that announces the same, on a session of another number; the switch keeps the paths.
func TestAKilledChildIsFollowedByOneThatAnnouncesTheSame(t *testing.T) {
	t.Parallel()
	sw, peer := startSwitch(t)
	log, lines := logged(t)
	s := open(t, gobgp.Config{Logger: log})
	d := bgp.Desired{Peers: []bgp.Peer{peer}, Paths: bgp.NewPaths(path(1), path(2))}
	if err := s.Apply(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	written(t, s)
	testkit.Until(t, "both paths", func() bool { return len(sw.RIB()) == 2 })
	seen := map[uint64]bool{session(t, s): true}
	for i, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGABRT, syscall.SIGKILL} {
		pid := s.process(t)
		if err := syscall.Kill(pid, signal); err != nil {
			t.Fatal(err)
		}
		testkit.Until(t, "another child", func() bool {
			if n := len(sw.RIB()); n < 2 {
				t.Fatalf("after %s the switch has %d paths", signal, n)
			}
			now := s.process(t)
			return now != 0 && now != pid
		})
		// What changes meanwhile, and then, is announced too.
		d.Paths, d.Touched = d.Paths.With([]netip.Prefix{path(3 + i).Prefix}, func(netip.Prefix) []bgp.Path { return []bgp.Path{path(3 + i)} }), []netip.Prefix{path(3 + i).Prefix}
		if err := s.Apply(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		written(t, s)
		testkit.Until(t, "all paths, none of them stale", func() bool {
			routes := sw.Routes()
			return len(routes) == 3+i && !slices.ContainsFunc(routes, func(r testswitch.Route) bool { return r.Stale })
		})
		if n := session(t, s); seen[n] {
			t.Errorf("session %d has the number of an earlier one", n)
		} else {
			seen[n] = true
		}
	}
	if s.Restarts() != 3 {
		t.Errorf("%d restarts", s.Restarts())
	}
	if text := lines.String(); !strings.Contains(text, "signal: killed") || !strings.Contains(text, "SIGABRT") {
		t.Errorf("the log does not say how children ended")
	}
}

// Until a child speaks again nothing counts as written, and a peer that is taken away meanwhile may keep what it was told.
func TestPeersOfAKilledChildMayKeepWhatTheyWereTold(t *testing.T) {
	t.Parallel()
	sw, peer := startSwitch(t)
	s := open(t, gobgp.Config{})
	if err := s.Apply(t.Context(), bgp.Desired{Peers: []bgp.Peer{peer}, Paths: bgp.NewPaths(path(1))}); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "the path", func() bool { return len(sw.RIB()) == 1 })
	if err := syscall.Kill(s.process(t), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "the end of the child", func() bool { return s.process(t) == 0 })
	if ok, err := s.Written(t.Context()); ok || err != nil && !errors.Is(err, ErrDown) {
		t.Errorf("written %t, %v", ok, err)
	}
	if err := s.Apply(t.Context(), bgp.Desired{Paths: bgp.NewPaths(path(1))}); err != nil && !errors.Is(err, ErrDown) {
		t.Fatal(err)
	}
	testkit.Until(t, "another child", func() bool { return s.process(t) != 0 })
	links, err := s.Links(t.Context())
	if want := []bgp.Link{{Peer: peer.Address}}; err != nil || !slices.Equal(links, want) {
		t.Errorf("links are %+v, %v, want %+v", links, err, want)
	}
	var f former
	f.lost(&bgp.Desired{Peers: []bgp.Peer{peer}}, time.Now().Add(-peer.Normal(asn).Keeps()-time.Second))
	if links := f.with(nil, time.Now()); len(links) > 0 {
		t.Errorf("what a peer kept is over, and told of: %+v", links)
	}
}

// What differs from what was applied last without an error is not all that differs from what a child was told since.
func TestWhatFailedIsComparedWithWhatIsThere(t *testing.T) {
	t.Parallel()
	sw, peer := startSwitch(t)
	log, _ := logged(t)
	s := &Speaker{
		options: Options{Config: gobgp.Config{ASN: asn, RouterID: routerID, Logger: log}, Command: ourselves(t)}, turn: make(chan struct{}, 1),
	}
	var err error
	if s.child, err = s.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.child.kill(); s.child.release() })
	apply := func(touched []netip.Prefix, paths ...bgp.Path) error {
		return s.Apply(t.Context(), bgp.Desired{Peers: []bgp.Peer{peer}, Paths: bgp.NewPaths(paths...), Touched: touched})
	}
	if err := apply(nil, path(1)); err != nil {
		t.Fatal(err)
	}
	s.child.kill()
	<-s.child.gone
	s.lost()
	if err := apply([]netip.Prefix{path(2).Prefix}, path(1), path(2)); !errors.Is(err, ErrDown) {
		t.Fatalf("without a child: %v", err)
	}
	if _, err := s.succeed(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := apply([]netip.Prefix{path(3).Prefix}, path(1), path(3)); err != nil {
		t.Fatal(err)
	}
	want := []netip.Prefix{path(1).Prefix, path(3).Prefix}
	testkit.Until(t, "what was applied last", func() bool {
		var got []netip.Prefix
		for _, r := range sw.Routes() {
			got = append(got, r.Prefix)
		}
		slices.SortFunc(got, netip.Prefix.Compare)
		return slices.Equal(got, want)
	})
}

// A child whose parent is gone leaves its sessions, and its port. Until then the port is taken, which is said with what to do.
func TestAChildEndsWithItsParent(t *testing.T) {
	t.Parallel()
	port, err := freeport.Draw(loopback)
	if err != nil {
		t.Fatal(err)
	}
	log, _ := logged(t)
	begin := func() (*child, error) {
		t.Helper()
		c, err := startChild(ourselves(t)(), log)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.kill(); c.release() })
		a, err := c.ask(request{Do: doStart, Start: settings{ASN: asn, RouterID: routerID, ListenPort: port, ListenAddrs: []netip.Addr{loopback}}}, answerWithin)
		if err != nil {
			t.Fatal(err)
		}
		return c, a.err()
	}
	first, err := begin()
	if err != nil {
		t.Fatal(err)
	}
	second, err := begin()
	if !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), "choose a free port") {
		t.Errorf("a second one at the port: %v", err)
	}
	for _, c := range []*child{second, first} {
		c.Close()
		<-c.gone
		if !c.cmd.ProcessState.Success() {
			t.Errorf("a child that speaks with nobody: %s, %s", c.reason(), c.lastWords())
		}
	}
	if third, err := begin(); err != nil {
		t.Errorf("at the port of a child that ended: %v, %s", err, third.lastWords())
	}
}

// A child whose parent stands still ends too: nobody would withdraw what it announces.
func TestAChildEndsWhenItsParentIsSilent(t *testing.T) {
	t.Parallel()
	sw, peer := startSwitch(t)
	log, _ := logged(t)
	c, err := startChild(ourselves(t)(), log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.kill(); c.release() })
	const silence = 3 * time.Second
	for _, r := range []request{
		{Do: doStart, Start: settings{ASN: asn, RouterID: routerID, Silence: silence}},
		{Do: doAnnounce, Announce: announcementOf(bgp.Desired{Peers: []bgp.Peer{peer}, Paths: bgp.NewPaths(path(1))}, nil)},
	} {
		if a, err := c.ask(r, answerWithin); err != nil || a.err() != nil {
			t.Fatal(err, a.err())
		}
	}
	<-c.gone
	if !strings.Contains(c.lastWords(), "i/o timeout") {
		t.Errorf("it ended by %s, and said %q", c.reason(), c.lastWords())
	}
	testkit.Until(t, "the end of the session", func() bool { return !sw.Peers()[0].Established })
}

// ourselves gives commands that run this test's program as a child.
func ourselves(t *testing.T) func() *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return func() *exec.Cmd { return exec.Command(self, Command) }
}

// A child that does not answer is ended, and whoever asked it is told so.
func TestAChildThatStandsStillIsEnded(t *testing.T) {
	t.Parallel()
	log, _ := logged(t)
	c, err := startChild(ourselves(t)(), log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.kill(); c.release() })
	if err := c.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ask(request{Do: doNothing}, time.Second); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("error is %v", err)
	}
	<-c.gone
}

func TestAStoppedSpeakerSaysSo(t *testing.T) {
	t.Parallel()
	s := open(t, gobgp.Config{})
	if err := s.Detach(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, written := s.Written(t.Context())
	_, peers := s.Peers(t.Context())
	_, links := s.Links(t.Context())
	for _, err := range []error{
		s.Apply(t.Context(), bgp.Desired{}), written, peers, links, s.Mend(t.Context(), 0), s.Detach(t.Context()), s.Drain(t.Context()),
	} {
		if !errors.Is(err, gobgp.ErrStopped) {
			t.Errorf("error is %v", err)
		}
	}
}

// Errors are what they were in the child for those who ask what they are, and as many.
func TestErrorsComeOver(t *testing.T) {
	t.Parallel()
	s := open(t, gobgp.Config{})
	bad, worse := path(1), path(2)
	bad.NextHop, worse.NextHop = netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::1")
	err := s.Apply(t.Context(), bgp.Desired{Paths: bgp.NewPaths(bad, worse, path(3))})
	joined, ok := err.(interface{ Unwrap() []error })
	if !errors.Is(err, bgp.ErrInvalid) || !ok || len(joined.Unwrap()) != 2 {
		t.Errorf("error is %v", err)
	}
	for _, is := range kinds {
		a := answer{Failures: failuresOf(fmt.Errorf("before: %w", is))}
		if err := a.err(); !errors.Is(err, is) || err.Error() != "before: "+is.Error() {
			t.Errorf("%v comes over as %v", is, err)
		}
	}
}
