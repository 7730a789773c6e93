// SPDX-License-Identifier: Apache-2.0

package l2_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"fairlead.io/fairlead/e2e/lab"
	"fairlead.io/fairlead/internal/testkit"
)

// settled is so long that whoever still believed to own an address would have answered: somebody asks all along.
const settled = 2 * time.Second

// mishap is what happens to an owner, and what becomes of it later.
type mishap struct {
	name         string
	of           netip.Addr
	happens      func(*lab.Node)
	silentAtOnce bool // once happens is done, the former owner puts out nothing any more
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
			reached(t, s, s.Near, m.of)
			time.Sleep(settled)
			if said := s.Said(owner, m.of, done); m.silentAtOnce && len(said) > 0 {
				t.Errorf("its former owner is heard after that ended at %s: %v", done.Format("05.000"), said)
			}
			m.ends(owner)
			time.Sleep(settled)
			reached(t, s, s.Near, m.of)
			s.InTurn(m.of, owner, since, func() []string { return s.Wire.Turns(m.of, since) })
		})
	}
}

// reached sees to it that a client which knows nothing finds the owner's pod, and, first, one that remembers what it knew.
func reached(t *testing.T, s *lab.Segment, from *lab.Neighbour, a netip.Addr) {
	t.Helper()
	for _, how := range []string{"remembering", "anew"} {
		testkit.Eventually(t, fmt.Sprintf("%s: a client %s reaches its owner", a, how), func() error {
			got, err := from.Get(a, 3*time.Second)
			if owner := s.Owner(a); err != nil || got != owner.Name {
				return fmt.Errorf("it reaches %q, and not %s: %w", got, owner.Name, err)
			}
			return nil
		})
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
			reached(t, s, n, a)
		}
		owner.Kill()
		s.Another(a, owner, since)
		for n, dump := range neighbours {
			reached(t, s, n, a)
			s.InTurn(a, owner, since, func() []string { return dump.Turns(a, since) })
		}
		owner.Start()
	}
}

// When the leading controller dies its owners go on, with the next leader, unless their agents renew in vain meanwhile, as they may on a machine that
// is busy: three rounds of at most six leave all addresses where they are. In none has one anybody but whom the group gave it to, and nobody is given it
// while its owner may use it still: the next leader, which does not know what the former one answered, waits for a term.
func TestOwnersOutliveTheirLeader(t *testing.T) {
	const term = 600 * time.Millisecond
	l := lab.New(t, lab.Options{Steered: true, Log: "info"})
	s := l.Segment(2)
	defer s.Near.KeepAsking(10 * time.Millisecond)()
	outlived := 0
	for round := 0; round < 6 && outlived < 3; round++ {
		leader := l.Leader()
		said := len(leader.Log())
		// Asked anew: an agent that a busy machine kept from its heartbeats may have lost an address since the last round.
		owners := map[netip.Addr]*lab.Node{}
		for _, a := range lab.SegmentVIPs {
			owners[a] = s.Owner(a)
		}
		since := time.Now()
		leader.Signal(syscall.SIGKILL)
		leader.Ended(testkit.Patience)
		l.Leader()
		time.Sleep(settled)
		all, earlier := true, strings.Contains(leader.Log()[said:], "lease granted") // by the former leader, before it died
		for a, owner := range owners {
			turns := func() []string { return s.Wire.Turns(a, since) }
			s.InTurn(a, owner, since, turns)
			stayed := slices.Equal(turns(), []string{owner.MAC})
			all = all && stayed
			t.Logf("%s: silence of %s, stays: %t", a, s.Wire.Silence(a, since), stayed)
			for _, c := range s.Wire.Claims(a, since) {
				if !earlier && c.MAC != owner.MAC && c.At.Before(since.Add(term)) {
					t.Errorf("%s, %s after the leader was killed", c, c.At.Sub(since))
					break
				}
			}
		}
		if all {
			outlived++
		}
		leader.Start()
		l.Agreed()
	}
	if outlived < 3 {
		t.Errorf("of six leaders that died only %d left all addresses with their owners", outlived)
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
		l.Eventually(a.String()+" is claimed no more", func() error {
			since := time.Now()
			time.Sleep(settled)
			if claims := s.Wire.Claims(a, since); len(claims) > 0 {
				return fmt.Errorf("%v", claims[len(claims)-1])
			}
			return nil
		})
	}
	s.Advertise()
	owned()
}
