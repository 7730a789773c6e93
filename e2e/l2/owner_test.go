// SPDX-License-Identifier: Apache-2.0

package l2_test

import (
	"net/netip"
	"slices"
	"syscall"
	"testing"
	"time"

	"fairlead.io/fairlead/e2e/lab"
)

// soon bounds what takes a second on a machine that has time.
const soon = 20 * time.Second

// settled is so long that whoever still believed to own an address would have answered: somebody asks all along.
const settled = 2 * time.Second

// mishap is what happens to an owner, and what becomes of it later.
type mishap struct {
	name         string
	of           netip.Addr
	happens      func(*lab.Node)
	silentAtOnce bool // once happens is done, nothing may be heard of the former owner any more
	ends         func(*lab.Node)
}

var vip4, vip6 = lab.SegmentVIPs[0], lab.SegmentVIPs[1]

func mishaps() []mishap {
	kill := func(n *lab.Node) { n.Kill() }
	start := func(n *lab.Node) { n.Start() }
	return []mishap{
		{"killed-ipv4", vip4, kill, true, start},
		{"killed-ipv6", vip6, kill, true, start},
		{"power-off", vip4, func(n *lab.Node) { n.Unplug(); n.CutOff(); n.Kill() }, true, func(n *lab.Node) { n.Plug(); n.Reconnect(); n.Start() }},
		{"data-link-down", vip4, func(n *lab.Node) { n.Unplug() }, true, func(n *lab.Node) { n.Plug() }},
		{"cut-off-from-the-group", vip6, func(n *lab.Node) { n.CutOff() }, false, func(n *lab.Node) { n.Reconnect() }},
		{"ended-in-order", vip4, func(n *lab.Node) { n.Stop() }, true, start},
	}
}

// Whatever becomes of an owner, another node answers, clients reach that, and in what order the wire has it: after the
// former owner's last word, which does not take back what it lost.
func TestOwnersAreSucceeded(t *testing.T) {
	l := lab.New(t, lab.Options{Steered: true, Log: "info"})
	s := l.Segment(3)
	defer s.Near.KeepAsking(10 * time.Millisecond)()
	for _, a := range lab.SegmentVIPs {
		s.Owner(a)
	}
	for _, m := range mishaps() {
		t.Run(m.name, func(t *testing.T) {
			s.AllUp()
			owner, since := s.Owner(m.of), time.Now()
			m.happens(owner)
			done := time.Now()
			next := s.Another(m.of, owner, since)
			t.Logf("%s answers for %s instead of %s: silence of %s", next.Name, m.of, owner.Name, s.Wire.Silence(m.of, since))
			reached(t, s.Near, m.of, next)
			time.Sleep(settled)
			m.ends(owner)
			time.Sleep(settled)
			reached(t, s.Near, m.of, next)
			if got := s.Wire.Turns(m.of, since); !slices.Equal(got, []string{owner.MAC, next.MAC}) && !slices.Equal(got, []string{next.MAC}) {
				t.Errorf("%s was at %v, in turn; its owner was %s", m.of, got, owner.MAC)
			}
			for _, c := range s.Wire.Claims(m.of, done) {
				if m.silentAtOnce && c.MAC == owner.MAC {
					t.Errorf("%s: its former owner is heard after that ended at %s", c, done.Format("05.000"))
				}
			}
		})
	}
}

// reached sees to it that a client which knows nothing finds the owner's pod, and, first, one that remembers what it knew.
func reached(t *testing.T, from *lab.Neighbour, a netip.Addr, owner *lab.Node) {
	t.Helper()
	for _, how := range []string{"remembering", "anew"} {
		deadline := time.Now().Add(soon)
		for {
			got, err := from.Get(a, time.Second)
			if err == nil && got == owner.Name {
				break
			}
			if time.Now().After(deadline) {
				t.Errorf("%s: client %s reaches %q: %v", a, how, got, err)
				break
			}
		}
		from.Forget(a)
	}
}

// Neighbours at two switches are told by the same node, as tcpdump has it at each of them, and by its successor after its last word: both
// switches have learned where to send.
func TestNeighboursAtTwoSwitchesFindTheOwner(t *testing.T) {
	l := lab.New(t, lab.Options{Steered: true, Log: "info"})
	s := l.Segment(2) // one at each
	neighbours := map[*lab.Neighbour]*lab.Dump{}
	for _, n := range []*lab.Neighbour{s.Near, s.Far} {
		neighbours[n] = n.Dump()
		defer n.KeepAsking(10 * time.Millisecond)()
	}
	for i := range 4 { // each node is the owner of each address at least once
		a := lab.SegmentVIPs[i%2]
		s.AllUp()
		owner, since := s.Owner(a), time.Now()
		for n := range neighbours {
			reached(t, n, a, owner)
		}
		owner.Kill()
		next := s.Another(a, owner, since)
		for n, dump := range neighbours {
			reached(t, n, a, next)
			if got := dump.Turns(a, since); !slices.Equal(got, []string{owner.MAC, next.MAC}) {
				t.Errorf("the neighbour %s hears that %s is at %v, in turn; its owners were %s and %s", n.Four, a, got, owner.MAC, next.MAC)
			}
		}
		owner.Start()
	}
}

// When the leading controller dies its owners go on, with the next leader.
func TestOwnersOutliveTheirLeader(t *testing.T) {
	l := lab.New(t, lab.Options{Steered: true, Log: "info"})
	s := l.Segment(2)
	defer s.Near.KeepAsking(10 * time.Millisecond)()
	for range 3 {
		// Asked anew: an agent that a busy machine kept from its heartbeats may have lost an address since the last round.
		owners := map[netip.Addr]*lab.Node{}
		for _, a := range lab.SegmentVIPs {
			owners[a] = s.Owner(a)
		}
		leader, since := l.Leader(), time.Now()
		leader.Signal(syscall.SIGKILL)
		leader.Ended(soon)
		l.Leader()
		time.Sleep(settled)
		for a, owner := range owners {
			if got := s.Wire.Turns(a, since); !slices.Equal(got, []string{owner.MAC}) {
				t.Errorf("%s was at %v, in turn; its owner is %s", a, got, owner.MAC)
			}
			t.Logf("%s: silence of %s", a, s.Wire.Silence(a, since))
		}
		leader.Start()
		l.Agreed()
	}
}

// Without an L2Advertisement nobody answers any more, and with one somebody does again.
func TestNobodyAnswersForWhatIsNotAdvertised(t *testing.T) {
	l := lab.New(t, lab.Options{Steered: true, Log: "info"})
	s := l.Segment(2)
	defer s.Near.KeepAsking(10 * time.Millisecond)()
	owned := func() {
		for _, a := range lab.SegmentVIPs {
			s.Owner(a)
		}
	}
	owned()
	s.Hush()
	for _, a := range lab.SegmentVIPs {
		for deadline, since := time.Now().Add(soon), time.Now(); ; since = time.Now() {
			time.Sleep(settled)
			claims := s.Wire.Claims(a, since)
			if len(claims) == 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s is claimed still: %v", a, claims[len(claims)-1])
			}
		}
	}
	s.Advertise()
	owned()
}
