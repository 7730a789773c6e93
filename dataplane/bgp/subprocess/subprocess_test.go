// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/dataplane/bgp/gobgp"
	"fairlead.io/fairlead/dataplane/bgp/supervisor"
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

// speaker is one whose children the test sees.
type speaker struct {
	*supervisor.Speaker
	mu      sync.Mutex
	started []*exec.Cmd
}

// open starts a speaker that is drained when the test ends.
func open(t *testing.T, c gobgp.Config) *speaker {
	t.Helper()
	c.ASN, c.RouterID = asn, routerID
	if c.Logger == nil {
		c.Logger, _ = logged(t)
	}
	s, command := &speaker{}, ourselves(t)
	var err error
	s.Speaker, err = New(Options{Config: c, Command: func() *exec.Cmd {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.started = append(s.started, command())
		return s.started[len(s.started)-1]
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Drain(context.Background()); err != nil && !errors.Is(err, bgp.ErrStopped) {
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

// process is the child that was started last, once it was asked something.
func (s *speaker) process(t *testing.T) int {
	t.Helper()
	testkit.Until(t, "a child that answers", func() bool {
		_, err := s.Peers(t.Context())
		if err != nil && !errors.Is(err, supervisor.ErrDown) {
			t.Fatal(err)
		}
		return err == nil
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.started[len(s.started)-1].Process.Pid
}

func written(t *testing.T, s *speaker) {
	t.Helper()
	testkit.Until(t, "updates to be written", func() bool {
		ok, err := s.Written(t.Context())
		if err != nil && !errors.Is(err, supervisor.ErrDown) {
			t.Fatal(err)
		}
		return ok
	})
}

// session is the number of the only session, once it is open.
func session(t *testing.T, s *speaker) (number uint64) {
	t.Helper()
	testkit.Until(t, "the session", func() bool {
		links, err := s.Links(t.Context())
		if err != nil && !errors.Is(err, supervisor.ErrDown) {
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
			return s.process(t) != pid
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

// A child whose parent is gone leaves its sessions, and its port. Until then the port is taken, which is said with what to do.
func TestAChildEndsWithItsParent(t *testing.T) {
	t.Parallel()
	port, err := freeport.Draw(loopback)
	if err != nil {
		t.Fatal(err)
	}
	log, _ := logged(t)
	children := make(chan *child, 1)
	var starts atomic.Int32
	o := supervisor.Options{
		Settings: supervisor.Settings{ASN: asn, RouterID: routerID, ListenPort: port, ListenAddrs: []netip.Addr{loopback}},
		Start: func() (supervisor.Child, error) {
			c, err := startChild(ourselves(t)(), log)
			if err != nil {
				return nil, err
			}
			if starts.Add(1) > 1 {
				return c, nil
			}
			children <- c
			return spared{c}, nil
		},
		Logger: log,
	}
	s, err := supervisor.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Drain(context.Background()); err != nil {
			t.Error(err)
		}
	})
	first := <-children
	if _, err := supervisor.New(o); !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), "set bgp.port") {
		t.Errorf("a second one at the port: %v", err)
	}
	_ = first.Conn().Close() // as the end of the parent does
	<-first.Gone()
	if !first.cmd.ProcessState.Success() {
		t.Errorf("a child that speaks with nobody: %s, %s", first.Reason(), first.LastWords())
	}
	testkit.Until(t, "another child at the port", func() bool {
		_, err := s.Peers(t.Context())
		return err == nil
	})
}

// spared is a child that nobody kills: who finds that it does not answer any more would be as soon as the child itself.
type spared struct{ *child }

func (spared) Kill() {}

// A child makes do with what its parent says, or with GOMEMLIMIT where that is less.
func TestMemoryIsLimitedByTheLesserOfTwo(t *testing.T) { // by itself: the limit is that of the process
	was := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(was) })
	limit := limitMemory(20 << 30)
	for _, c := range []struct{ said, want int64 }{{10 << 30, 10 << 30}, {30 << 30, 20 << 30}} {
		limit(uint64(c.said))
		if got := debug.SetMemoryLimit(-1); got != c.want {
			t.Errorf("told of %d, it makes do with %d", c.said, got)
		}
	}
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
}

// The fence of a child's memory sees what a process has of its own, and not the pages of its program.
func TestMemoryOfAChild(t *testing.T) {
	self := &child{cmd: &exec.Cmd{Process: &os.Process{Pid: os.Getpid()}}}
	const more = 256 << 20
	before := self.Memory()
	own, err := unix.Mmap(-1, 0, more, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_POPULATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(own) }() // it is one
	if has := self.Memory(); before == 0 || has < before+more/2 || has > before+2*more {
		t.Errorf("this process has %d bytes more with %d of its own more, %d before", int64(has-before), more, before)
	}
}
