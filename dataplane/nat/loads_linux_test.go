// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"context"
	"fmt"
	"net/netip"
	"testing"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/dataplane/flows"
	"fairlead.io/fairlead/internal/testkit"
)

// K39: new connections go to the endpoint that has fewer, by the kernel's own connection tracking: whatever the scheduler's name, by
// addresses and node ports; and to all alike again once the others have caught up.
// Rule: K39.
func TestNewConnectionsGoWhereFewerAre(t *testing.T) {
	l := newNodePortLab(t)
	for _, scheduler := range []string{desired.LeastConnections, desired.WeightedLeastConnections, desired.ShortestExpectedDelay, desired.NeverQueue} {
		t.Run(scheduler, func(t *testing.T) {
			alone := published(1)
			alone.Scheduler = scheduler
			l.apply(alone)
			var open []*conn
			keep := func(to netip.AddrPort) string {
				c, err := l.dial(l.client, "tcp", to, patience)
				if err != nil {
					t.Fatal(err)
				}
				open = append(open, c)
				pod, _, err := c.ask()
				if err != nil {
					t.Fatal(err)
				}
				return pod
			}
			for range 12 {
				keep(at(vip4, 80))
			}
			both := published(1, 3)
			both.Scheduler = scheduler
			l.apply(both)
			l.nat.balance(context.Background())
			l.nat.balance(context.Background()) // none is fresh any more
			for i, to := range []netip.AddrPort{at(vip4, 80), at(node4, 30080), at(vip4, 80), at(node4, 30080), at(vip4, 80)} {
				if pod := keep(to); pod != "pod3" {
					t.Errorf("connection %d went to %s, which has more", i, pod)
				}
			}
			for range 7 {
				keep(at(vip4, 80))
			}
			l.nat.balance(context.Background())
			l.sources("client", "tcp", at(vip4, 80), "pod1", "pod3")
			for _, c := range open {
				_ = c.Close()
			}
			testkit.Until(t, "connections that ended count no more", func() bool {
				loads, err := l.nat.edge.Loads(context.Background(), l.nat.planner.toCount())
				if err != nil {
					t.Fatal(err)
				}
				for _, load := range loads {
					if load.Open > 0 {
						return false
					}
				}
				return true
			})
		})
	}
}

// K39: it needs nobody to ask for it, and nothing is counted or written for Services that go by something else.
// Rule: K39.
func TestAgentsCountByThemselves(t *testing.T) {
	l := newLab(t)
	s := web(1)
	s.Scheduler = desired.LeastConnections
	l.apply(s)
	for range 6 {
		c, err := l.dial(l.client, "tcp", at(vip4, 80), patience)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	s = web(1, 2)
	s.Scheduler = desired.LeastConnections
	l.apply(s)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = l.nat.Run(ctx) }() // ends with ctx
	defer func() { stop(); <-done }()
	testkit.Until(t, "forty connections in a row go to the pod with fewer", func() bool {
		for range 40 {
			if pod, _ := l.must(l.client, "tcp", at(vip4, 80)); pod != "pod2" {
				return false
			}
		}
		return true
	})
}

// counted waits until the kernel counts so many connections and no more: one that its client has closed counts until that packet has passed
// the node.
func (l *lab) counted(want int) {
	l.t.Helper()
	testkit.Eventually(l.t, "connections that ended count no more", func() error {
		loads, err := flows.Reader{NetNS: l.nat.edge.(*kernel).netns}.Loads(context.Background(), l.nat.planner.toCount(), nil)
		if err != nil {
			return err
		}
		got := 0
		for _, load := range loads.Of {
			got += load.Open
		}
		if got != want {
			return fmt.Errorf("%d count, want %d", got, want)
		}
		return nil
	})
}

// K39: connections to what is dialled all go to one endpoint, by the kernel's own connection tracking, until that has more of them than it
// weighs and another one has none; with lblcr it has its share still, once the other one has as many.
// Rule: K39.
func TestWhatIsDialledKeepsItsEndpoint(t *testing.T) {
	l := newNodePortLab(t)
	for scheduler, last := range map[string][]string{desired.LocalityLeastConnections: {"pod3"}, desired.LocalityLeastConnectionsReplicated: {"pod1", "pod3"}} {
		t.Run(scheduler, func(t *testing.T) {
			both := published(1, 3)
			both.Scheduler = scheduler
			l.apply(both)
			l.nat.balance(context.Background())
			l.sources("client", "tcp", at(vip4, 80), "pod1")
			var open []*conn
			keep := func() {
				c, err := l.dial(l.client, "tcp", at(vip4, 80), patience)
				if err != nil {
					t.Fatal(err)
				}
				open = append(open, c)
			}
			balance := func() {
				l.counted(len(open))
				l.nat.balance(context.Background())
			}
			keep()
			balance()
			l.sources("client", "tcp", at(vip4, 80), "pod1") // it has no more than it weighs
			keep()
			balance()
			l.sources("client", "tcp", at(vip4, 80), "pod3")
			keep()
			keep()
			balance()
			balance() // none is fresh any more
			l.sources("client", "tcp", at(vip4, 80), last...)
			for _, c := range open {
				_ = c.Close()
			}
			l.apply()
		})
	}
}
