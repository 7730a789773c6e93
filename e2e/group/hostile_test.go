// SPDX-License-Identifier: Apache-2.0

package group_test

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fairlead.io/fairlead/dataplane/bgp/birdtest"
	"fairlead.io/fairlead/dataplane/bgp/hostile"
	"fairlead.io/fairlead/e2e/lab"
)

// speakers are the processes of the members' BGP speakers, by member.
func speakers(l *lab.Lab) map[string]int {
	out := map[string]int{}
	for _, m := range l.Members {
		for _, pid := range m.Children() {
			out[m.Name] = pid
		}
	}
	return out
}

// standing is what must be the same after an attack: who leads, and the processes of the members.
func standing(t *testing.T, l *lab.Lab) string {
	t.Helper()
	s, ok := l.Status()
	if !ok {
		return "no answer"
	}
	text := "leader " + s.Leader
	for _, m := range l.Members {
		text += fmt.Sprintf(", %s %d", m.Name, m.PID())
	}
	return text
}

// torment has a speaker that dials a neighbour sent one of the hostile messages in each session, once and until then.
func torment(t *testing.T, evil *hostile.Peer, in hostile.Phase, name string, until time.Time) {
	for again := true; again; again = time.Now().Before(until) {
		c, err := evil.Session(in)
		if err == nil {
			err = errors.Join(c.Send(hostile.Messages()[name]), c.End())
		}
		if err != nil {
			t.Errorf("%s in %s: %v", name, in, err)
		}
	}
}

// Switches that send malformed messages end neither a member nor its speaker, and the switch that does not has every prefix all along.
func TestBytesOfANeighbourEndNothing(t *testing.T) {
	l := started(t, lab.Options{})
	before, children := standing(t, l), speakers(l)
	stop, ended, answered := l.NeverMissing(prefix(0)), starved(), asked(t, l)
	until := time.Now().Add(attackFor(t, 0))
	var wg sync.WaitGroup
	for i, name := range slices.Sorted(maps.Keys(hostile.Messages())) {
		for in := hostile.OpenSent; in <= hostile.Established; in++ {
			evil := hostile.Listen(t, netip.AddrFrom4([4]byte{127, 1, byte(i), byte(1 + in)}))
			at := evil.Peer()
			l.Manifests.Peer(name+"-"+strings.ToLower(in.String()), lab.ASN, hostile.ASN, at.Address, at.Port)
			for range l.Members { // each of them dials
				wg.Go(func() { torment(t, evil, in, name, until) })
			}
		}
	}
	wg.Wait()
	stop()
	judgeAnswers(t, answered(), ended())
	if after := standing(t, l); after != before {
		t.Errorf("before: %s, after: %s", before, after)
	}
	if after := speakers(l); !maps.Equal(after, children) || len(after) != len(l.Members) {
		t.Errorf("speakers before: %v, after: %v", children, after)
	}
	l.Manifests.Service(0, 2, 3)
	l.Bird.WaitNextHops(prefix(0), lab.NodeAddress(2), lab.NodeAddress(3))
}

// The same of nodes that peer themselves.
func TestBytesOfANeighbourEndNoNode(t *testing.T) {
	l, _, b := withSpeakers(t, 2)
	b.WaitNextHops(prefix(0), lab.NodeAddress(1), lab.NodeAddress(2))
	before, stop := peered(b, "n1", "n2"), b.Watch(prefix(0))
	until := time.Now().Add(attackFor(t, 0))
	var wg sync.WaitGroup
	for i, name := range slices.Sorted(maps.Keys(hostile.Messages())) {
		address := netip.AddrFrom4([4]byte{198, 51, 100, byte(200 + i)})
		l.AddAddress(address)
		evil := hostile.Listen(t, address)
		l.Manifests.Put("peer-evil-"+name+".yaml", fmt.Sprintf(`apiVersion: metallb.io/v1beta2
kind: BGPPeer
metadata: {name: evil-%s, annotations: {fairlead.io/mode: node}}
spec: {myASN: %d, peerASN: %d, peerAddress: %s, peerPort: %d, ebgpMultiHop: true}
`, name, lab.ASN, hostile.ASN, address, evil.Peer().Port))
		for range 2 { // each node dials
			wg.Go(func() { torment(t, evil, hostile.Established, name, until) })
		}
	}
	wg.Wait()
	l.Manifests.Service(0, 2)
	b.WaitNextHops(prefix(0), lab.NodeAddress(2))
	if n, total := birdtest.Gaps(stop()); n > 0 {
		t.Errorf("%d gaps, %s in all", n, total)
	}
	if after := peered(b, "n1", "n2"); after != before {
		t.Errorf("sessions were %s, are %s", before, after)
	}
}

// Whatever ends the speakers of all members at once ends no member, and takes no prefix from the switch; what changes meanwhile gets there.
func TestSpeakersThatEndAreStartedAgain(t *testing.T) {
	l := started(t, lab.Options{})
	before := standing(t, l)
	stop := l.NeverMissing(prefix(0))
	for _, nodes := range [][]int{{2, 3}, {1, 3}, {1, 2}} {
		children := speakers(l)
		if len(children) != len(l.Members) {
			t.Fatalf("speakers are %v", children)
		}
		for _, pid := range children {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		l.Manifests.Service(0, nodes...)
		l.Bird.WaitNextHops(prefix(0), lab.NodeAddress(nodes[0]), lab.NodeAddress(nodes[1]))
		for _, m := range l.Members {
			l.Bird.WaitEstablished(m.Name)
		}
		l.Eventually("other speakers", func() error {
			for name, pid := range speakers(l) {
				if pid == children[name] {
					return fmt.Errorf("%s has %d still", name, pid)
				}
			}
			return nil
		})
	}
	stop()
	if after := standing(t, l); after != before {
		t.Errorf("before: %s, after: %s", before, after)
	}
}

// The speaker of a member that stands still leaves its sessions, and one that goes on has another speaker.
func TestSpeakerOfAMemberThatStandsStillLeaves(t *testing.T) {
	l := started(t, lab.Options{})
	still := l.Others(l.Leader())[0]
	stop := l.NeverMissing(prefix(0))
	still.Signal(syscall.SIGSTOP)
	l.Bird.Wait("the end of its session", func() bool { return !l.Bird.Sessions()[still.Name].Established })
	l.Manifests.Service(0, 2, 3) // it cannot withdraw node 1
	l.Bird.Wait("what changed meanwhile", func() bool {
		return slices.Equal(fresh(l), []netip.Addr{lab.NodeAddress(2), lab.NodeAddress(3)})
	})
	still.Signal(syscall.SIGCONT)
	l.Bird.WaitEstablished(still.Name)
	l.Bird.WaitNextHops(prefix(0), lab.NodeAddress(2), lab.NodeAddress(3))
	stop()
}

// fresh are the next hops of the first service's routes that are no stale ones, in order.
func fresh(l *lab.Lab) (out []netip.Addr) {
	for _, r := range l.Bird.Routes() {
		if r.Prefix == prefix(0) && !r.Stale && !slices.Contains(out, r.NextHop) {
			out = append(out, r.NextHop)
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return out
}
