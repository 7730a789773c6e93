// SPDX-License-Identifier: Apache-2.0

package birdtest

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/internal/testkit"
)

// notInTable is how BIRD answers for a prefix that it has no route to.
const notInTable = "Network not found"

// nextHops asks for one prefix only.
func (b *Bird) nextHops(prefix netip.Prefix) ([]netip.Addr, error) {
	return b.asked(prefix.String(), func(found netip.Prefix) bool { return found == prefix })
}

// way asks where packets to an address go, by whichever prefix.
func (b *Bird) way(to netip.Addr) ([]netip.Addr, error) {
	return b.asked("for "+to.String(), func(found netip.Prefix) bool { return found.Contains(to) })
}

func (b *Bird) asked(of string, found func(netip.Prefix) bool) ([]netip.Addr, error) {
	answer, err := b.ask(fmt.Sprintf("show route %s all", of))
	if err != nil {
		if strings.Contains(err.Error(), notInTable) {
			return nil, nil
		}
		return nil, err
	}
	for _, e := range ecmp(parseRoutes(answer)) {
		if found(e.Prefix) {
			return e.NextHops, nil
		}
	}
	return nil, nil
}

// NextHops returns where the switch sends packets for prefix, sorted; nothing if it has no route.
func (b *Bird) NextHops(prefix netip.Prefix) []netip.Addr {
	b.t.Helper()
	hops, err := b.nextHops(prefix)
	if err != nil {
		b.t.Fatalf("bird: routes to %s: %v", prefix, err)
	}
	return hops
}

// WaitNextHops waits until the switch sends packets for prefix exactly to want, and fails the test after a while.
func (b *Bird) WaitNextHops(prefix netip.Prefix, want ...netip.Addr) {
	b.t.Helper()
	slices.SortFunc(want, netip.Addr.Compare)
	b.Wait(fmt.Sprintf("%s to go to %v", prefix, want), func() bool { return slices.Equal(b.NextHops(prefix), want) })
}

// WaitEstablished waits for sessions to be open, and fails the test after a while.
func (b *Bird) WaitEstablished(names ...string) {
	b.t.Helper()
	b.Wait(fmt.Sprintf("sessions %v", names), func() bool {
		open := b.Sessions()
		return !slices.ContainsFunc(names, func(n string) bool { return !open[n].Established })
	})
}

// patience is how long Wait waits, and whoever waits for BIRD's answer.
const patience = testkit.Patience

// Wait waits for a condition, and fails the test with the state of the switch if it does not come.
func (b *Bird) Wait(what string, condition func() bool) {
	b.t.Helper()
	for deadline := time.Now().Add(patience); !condition(); {
		if time.Now().After(deadline) {
			b.t.Fatalf("waited %s for %s; the switch has\n%s\n%s", patience, what,
				b.Command("show protocols all"), b.Command("show route all"))
		}
		time.Sleep(3 * time.Millisecond)
	}
}

// Seen is where the switch sent packets for a prefix, from a moment on.
type Seen struct {
	At       time.Time
	NextHops []netip.Addr
}

// Watch follows where the switch sends packets for prefix, a few hundred times a second, until the returned function is
// called, which tells every change that was seen. The first entry is the state at the beginning.
func (b *Bird) Watch(prefix netip.Prefix) (stop func() []Seen) {
	b.t.Helper()
	return b.watch(prefix.String(), func() ([]netip.Addr, error) { return b.nextHops(prefix) })
}

// WatchAddress does the same of an address, by whichever prefix the switch sends packets to it.
func (b *Bird) WatchAddress(to netip.Addr) (stop func() []Seen) {
	b.t.Helper()
	return b.watch(to.String(), func() ([]netip.Addr, error) { return b.way(to) })
}

func (b *Bird) watch(what string, look func() ([]netip.Addr, error)) (stop func() []Seen) {
	b.t.Helper()
	var seen []Seen
	end, ended := make(chan struct{}), make(chan struct{})
	first := make(chan struct{})
	go func() {
		defer close(ended)
		for started := false; ; {
			hops, err := look()
			if err == nil && (!started || !slices.Equal(seen[len(seen)-1].NextHops, hops)) {
				seen = append(seen, Seen{time.Now(), hops})
				if !started {
					started = true
					close(first)
				}
			}
			select {
			case <-end:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	select {
	case <-first:
	case <-time.After(patience):
		b.t.Fatalf("bird does not answer about %s", what)
	}
	return func() []Seen {
		close(end)
		<-ended
		return seen
	}
}

// Look is a whole table as it was at some moment between two times.
type Look struct {
	Begin, End time.Time
	Routes     []Route
}

// WatchTable hands the whole table to hear, again and again, with a pause between two looks, until the returned function is called, which
// gives how often that was. A look to which BIRD gave no answer is left out.
func (b *Bird) WatchTable(pause time.Duration, hear func(Look)) (stop func() (looks int)) {
	looks, end, ended := 0, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			begin := time.Now()
			if answer, err := b.ask("show route all"); err == nil {
				looks++
				hear(Look{begin, time.Now(), parseRoutes(answer)})
			}
			select {
			case <-end:
				return
			case <-time.After(pause):
			}
		}
	}()
	return func() int {
		close(end)
		<-ended
		return looks
	}
}

// Gaps returns how often, and for how long in all, there was no next hop.
func Gaps(seen []Seen) (n int, total time.Duration) {
	for i, s := range seen {
		if len(s.NextHops) > 0 {
			continue
		}
		n++
		end := time.Now()
		if i+1 < len(seen) {
			end = seen[i+1].At
		}
		total += end.Sub(s.At)
	}
	return n, total
}
