// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os/exec"
	"slices"
	"sync/atomic"
	"time"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/dataplane/bgp/birdtest"
	"fairlead.io/fairlead/dataplane/bgp/frrtest"
	"fairlead.io/fairlead/dataplane/bgp/gobgp"
	"fairlead.io/fairlead/dataplane/bgp/subprocess"
	"fairlead.io/fairlead/dataplane/bgp/supervisor"
	"fairlead.io/fairlead/e2e/lab"
	"fairlead.io/fairlead/internal/netnstest"
)

// restartLook is how often the switch is asked where a prefix leads.
const restartLook = 5 * time.Millisecond

// restartHold is the hold time of the sessions; the loss of a cable shows after it at the latest.
const restartHold = 3 * time.Second

// restartModes are ways to ask a switch to keep paths of a speaker that is lost.
var restartModes = []struct {
	name string
	ask  bgp.GracefulRestart
}{
	{"plain_60s", bgp.GracefulRestart{Mode: bgp.RestartPlain, RestartTime: time.Minute}},
	{"plain_5s", bgp.GracefulRestart{Mode: bgp.RestartPlain, RestartTime: 5 * time.Second}},
	{"long_lived_1s_600s", bgp.GracefulRestart{Mode: bgp.RestartLongLived, RestartTime: time.Second, StaleTime: 10 * time.Minute}},
	{"none", bgp.GracefulRestart{Mode: bgp.RestartNone}},
}

// restartSwitch is what this benchmark wants of a switch.
type restartSwitch interface {
	Address() netip.Addr
	Port() uint16
	NextHops(netip.Prefix) []netip.Addr
}

var restartSwitches = []struct {
	name  string
	start func(t *bench, at netip.Addr, from []birdtest.Neighbor) restartSwitch
}{
	{"bird", func(t *bench, at netip.Addr, from []birdtest.Neighbor) restartSwitch {
		return birdtest.Start(t, birdtest.Config{Address: at, HoldTime: restartHold, Neighbors: from})
	}},
	{"frr", func(t *bench, at netip.Addr, from []birdtest.Neighbor) restartSwitch {
		return frrtest.StartAt(t, at, from...)
	}},
}

// What two speakers announce by ADD-PATH: one prefix with two next hops.
var (
	restartPrefix = netip.MustParsePrefix("203.0.113.10/32")
	restartStays  = netip.MustParseAddr("198.51.100.11")
	restartGoes   = netip.MustParseAddr("198.51.100.12")
)

// bgpRestart takes, for each way to ask a switch to keep paths, how long a next hop stays at the switch that the living speaker of two
// withdraws after the other was killed or cut off, for how long there is no route when speakers are lost and come back, and how long it takes
// until a speaker that ranked second is used. The value is the latter with what Fairlead asks for by default. Lost speakers are processes as
// they ship, killed by SIGKILL; a cut is a cable without a carrier, of which the switch learns by the hold time.
func bgpRestart(t *bench) figures {
	f := figures{detail: map[string]any{}}
	for _, s := range restartSwitches {
		for _, mode := range restartModes {
			one, err := attempt(benchmark{name: s.name + "_" + mode.name, run: func(t *bench) figures {
				l := newRestartLab(t, s.start, mode.ask)
				defer l.close()
				return l.story()
			}}, t.progress)
			if err != nil {
				t.Fatalf("%s: %v", one.Name, err)
			}
			t.Logf("%s: %v", one.Name, one.Detail)
			f.detail[one.Name] = one.Detail
			if mode.ask.Mode == bgp.RestartLongLived {
				f.samples = append(f.samples, one.Value)
			}
		}
	}
	return f
}

// story is what befalls the two speakers.
func (l *restartLab) story() figures {
	told := map[string]any{}
	l.afterKill(told)
	l.afterCut(told)
	took := l.second()
	told["second_takes_over_ms"] = took
	return figures{samples: []float64{took}, detail: told}
}

// restartLab is a switch with two speakers, each at the end of a cable of its own.
type restartLab struct {
	t        *bench
	at       restartSwitch
	speakers [2]*restartSpeaker
}

type restartSpeaker struct {
	number int
	ns     *netnstest.Namespace
	peer   bgp.Peer
	speaks *supervisor.Speaker
	last   atomic.Pointer[exec.Cmd] // the process that was started last
	down   atomic.Bool              // none may be started
}

func newRestartLab(t *bench, start func(*bench, netip.Addr, []birdtest.Neighbor) restartSwitch, ask bgp.GracefulRestart) *restartLab {
	here, at := netnstest.Here(t), netip.MustParseAddr("198.51.100.1")
	here.Run("ip", "address", "replace", at.String()+"/32", "dev", "lo")
	l := &restartLab{t: t}
	var from []birdtest.Neighbor
	for i := range l.speakers {
		s := &restartSpeaker{number: i + 1, ns: netnstest.New(t, fmt.Sprintf("speaker%d", i+1))}
		own, gateway := s.address(), netip.AddrFrom4([4]byte{10, 77, byte(s.number), 1})
		netnstest.Join(netnstest.Link{In: here, Name: s.cable(), Addresses: []string{gateway.String() + "/24"}},
			netnstest.Link{In: s.ns, Name: "eth0", Addresses: []string{own.String() + "/24"}})
		t.Cleanup(func() { here.Run("ip", "link", "del", s.cable()) })
		s.ns.Run("ip", "route", "add", at.String(), "via", gateway.String())
		from = append(from, birdtest.Neighbor{Name: fmt.Sprintf("s%d", s.number), Address: own, Port: bgp.DefaultPort})
		l.speakers[i] = s
	}
	l.at = start(t, at, from)
	for _, s := range l.speakers {
		s.peer = bgp.Peer{
			Address: at, Port: l.at.Port(), RemoteASN: frrtest.ASN, LocalAddress: s.address(), EBGPMultihop: 3,
			HoldTime: restartHold, Keepalive: time.Second, ConnectRetry: time.Second, Restart: ask,
		}
		s.start(t)
	}
	return l
}

func (s *restartSpeaker) address() netip.Addr {
	return netip.AddrFrom4([4]byte{10, 77, byte(s.number), 2})
}

func (s *restartSpeaker) cable() string { return fmt.Sprintf("down%d", s.number) }

func (s *restartSpeaker) start(t *bench) {
	speaks, err := subprocess.New(subprocess.Options{
		Config: gobgp.Config{
			ASN: lab.ASN, RouterID: netip.AddrFrom4([4]byte{192, 0, 2, byte(s.number)}), ListenPort: bgp.DefaultPort,
			ListenAddrs: []netip.Addr{s.address()}, Logger: slog.New(slog.DiscardHandler),
		},
		Command: func() *exec.Cmd {
			if s.down.Load() {
				return exec.Command("/bin/false")
			}
			s.last.Store(s.ns.Command(lab.Binary(t), subprocess.Command))
			return s.last.Load()
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.speaks = speaks
}

// announce has the speaker announce exactly these next hops, second to the other speaker's or not.
func (s *restartSpeaker) announce(t *bench, demoted bool, hops ...netip.Addr) {
	if err := s.speaks.Apply(context.Background(), s.desired(demoted, hops...)); err != nil {
		t.Fatal(err)
	}
}

func (s *restartSpeaker) desired(demoted bool, hops ...netip.Addr) bgp.Desired {
	var paths []bgp.Path
	for _, h := range hops {
		paths = append(paths, bgp.Path{Prefix: restartPrefix, NextHop: h})
	}
	return bgp.Desired{Peers: []bgp.Peer{s.peer}, Paths: bgp.NewPaths(paths...), Demoted: demoted}
}

// kill ends the speaker's process, and has no other one started.
func (s *restartSpeaker) kill(t *bench) {
	s.down.Store(true)
	if err := s.last.Load().Process.Kill(); err != nil {
		t.Fatal(err)
	}
}

// fresh waits until both speakers have told the switch everything on sessions that stand.
func (l *restartLab) fresh() {
	l.t.Helper()
	for i, s := range l.speakers {
		l.wait(fmt.Sprintf("speaker %d to have told the switch", i+1), func() bool {
			links, err := s.speaks.Links(context.Background())
			written, writtenErr := s.speaks.Written(context.Background())
			return err == nil && writtenErr == nil && written && len(links) == 1 && links[0].Session > 0
		})
	}
	time.Sleep(2 * time.Second) // End-of-RIB has the switch drop what is stale
}

func (l *restartLab) wait(what string, is func() bool) (took time.Duration) {
	l.t.Helper()
	began := time.Now()
	for !is() {
		if took = time.Since(began); took > 2*time.Minute {
			l.t.Fatalf("%s: not within %s", what, took)
		}
		time.Sleep(restartLook)
	}
	return time.Since(began)
}

// leads waits until the switch leads to exactly these next hops, and says how long that took, in milliseconds.
func (l *restartLab) leads(to ...netip.Addr) float64 {
	l.t.Helper()
	return milliseconds(l.wait(fmt.Sprintf("a route to %v", to), func() bool { return slices.Equal(l.at.NextHops(restartPrefix), to) }))
}

// watch looks at the route until stop, which says for how many milliseconds there was none, and whether any looked for was there.
func (l *restartLab) watch(ghost netip.Addr) (stop func() (gap float64, seen bool)) {
	type found struct {
		gap  time.Duration
		seen bool
	}
	end, out := make(chan struct{}), make(chan found, 1)
	go func() {
		var f found
		for last := time.Now(); ; {
			hops := l.at.NextHops(restartPrefix)
			if now := time.Now(); len(hops) == 0 {
				f.gap, last = f.gap+now.Sub(last), now
			} else {
				last = now
			}
			f.seen = f.seen || slices.Contains(hops, ghost)
			select {
			case <-end:
				out <- f
				return
			case <-time.After(restartLook):
			}
		}
	}()
	return func() (float64, bool) {
		close(end)
		f := <-out
		return milliseconds(f.gap), f.seen
	}
}

// both has both speakers announce both next hops.
func (l *restartLab) both() {
	for _, s := range l.speakers {
		s.announce(l.t, false, restartStays, restartGoes)
	}
	l.leads(restartStays, restartGoes)
	l.fresh()
}

// afterKill kills one speaker, has the other withdraw a next hop, and then kills both.
func (l *restartLab) afterKill(told map[string]any) {
	a, b := l.speakers[0], l.speakers[1]
	l.both()
	stop := l.watch(netip.Addr{})
	a.kill(l.t)
	time.Sleep(3 * time.Second)
	told["killed_gap_ms"], _ = stop()
	b.announce(l.t, false, restartStays)
	told["killed_hop_goes_ms"] = l.leads(restartStays)

	stop = l.watch(restartGoes)
	a.back(l.t, restartStays)
	l.fresh()
	told["returns_gap_ms"], told["returns_with_old_hop"] = stop()

	l.both()
	a.kill(l.t)
	time.Sleep(2 * time.Second)
	b.announce(l.t, false, restartStays)
	time.Sleep(time.Second)
	stop = l.watch(restartGoes)
	b.kill(l.t)
	time.Sleep(6 * time.Second)
	told["both_killed_gap_ms_of_6000"], told["both_killed_old_hop"] = stop()
	a.back(l.t, restartStays)
	b.back(l.t, restartStays)
	l.fresh()
}

// back has a speaker that was killed be started again.
func (s *restartSpeaker) back(t *bench, hops ...netip.Addr) {
	s.down.Store(false)
	for began := time.Now(); s.speaks.Apply(context.Background(), s.desired(false, hops...)) != nil; time.Sleep(restartLook) {
		if time.Since(began) > time.Minute {
			t.Fatal("a speaker that was killed is not started again")
		}
	}
}

// afterCut cuts one speaker's cable, and has the other withdraw a next hop once the switch knows.
func (l *restartLab) afterCut(told map[string]any) {
	a, b := l.speakers[0], l.speakers[1]
	l.both()
	stop := l.watch(netip.Addr{})
	a.ns.Run("ip", "link", "set", "eth0", "down")
	time.Sleep(restartHold + 2*time.Second)
	told["cut_gap_ms"], _ = stop()
	b.announce(l.t, false, restartStays)
	told["cut_hop_goes_ms"] = l.leads(restartStays)
	a.ns.Run("ip", "link", "set", "eth0", "up")
	a.ns.Run("ip", "route", "replace", l.at.Address().String(), "via", netip.AddrFrom4([4]byte{10, 77, byte(a.number), 1}).String())
	l.fresh()
}

// second kills the speaker whose path is used, and says how long it takes until that of the other one is.
func (l *restartLab) second() float64 {
	a, b := l.speakers[0], l.speakers[1]
	b.announce(l.t, true, restartStays)
	a.announce(l.t, false, restartGoes)
	l.fresh()
	l.leads(restartGoes)
	a.kill(l.t)
	return l.leads(restartStays)
}

func (l *restartLab) close() {
	for _, s := range l.speakers {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		_ = s.speaks.Drain(ctx) // the first has been killed
		cancel()
	}
}
