// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/api/desired/desiredtest"
	"fairlead.io/fairlead/dataplane/agent"
	"fairlead.io/fairlead/dataplane/agent/drain"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// delay is long enough that the clock, which stands still in a bubble unless somebody sleeps, has to be moved.
const delay = 30 * time.Second

type clock struct{}

func (clock) Now() time.Time                         { return time.Now() }
func (clock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// kernel is an Applier that shows what it was last brought to.
type kernel struct {
	mu     sync.Mutex
	shown  desired.State
	refuse error
	failed []agent.Failure
}

func (k *kernel) Apply(_ context.Context, want desired.State) ([]agent.Failure, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.refuse != nil {
		return nil, k.refuse
	}
	k.shown = want
	return k.failed, nil
}

func (k *kernel) set(f func(*kernel)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f(k)
}

func (k *kernel) addresses() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := []string{}
	for _, a := range k.shown.Addresses() {
		out = append(out, a.Prefix.Addr().String())
	}
	return out
}

func (k *kernel) found(context.Context) ([]desired.Address, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.shown.Addresses(), nil
}

func (k *kernel) state() desired.State {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.shown
}

func address(i int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}) }

func must(t interface{ Fatal(...any) }, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

// state is what a node shall have: each address with port 80, and Services by name.
func state(t desiredtest.T, index int, addresses []int, services ...desired.Service) desired.State {
	var m desiredtest.Told
	for _, i := range addresses {
		m.Address(address(i), desired.Port{Protocol: 6, Number: 80})
	}
	m.Services(services...)
	return m.StateAt(t, fsm.Index(index), nil)
}

// memory is a Store.
type memory struct{ data []byte }

func (m *memory) Load() ([]byte, error)  { return m.data, nil }
func (m *memory) Save(data []byte) error { m.data = data; return nil }

// running is a Drain whose Run runs.
type running struct {
	*drain.Drain
	stop func()
}

func run(t interface{ Fatal(...any) }, o drain.Options) *running {
	o.Clock, o.Log = clock{}, slog.New(slog.DiscardHandler)
	d, err := drain.New(o)
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = d.Run(ctx) }()
	return &running{d, func() { cancel(); <-done }}
}

// inBubble hides the deadline of a test, which must not be asked for in a bubble.
type inBubble struct{ testing.TB }

// For any history of states, pauses and restarts the kernel has what is wanted, and what left it less than the delay
// ago, and nothing else. The model is a list of when each address was last wanted.
func TestPropertyRulesGoOnlyAndSurelyAfterTheDrainDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		testkit.Check(inBubble{t}, func(t *rapid.T) {
			k, store := &kernel{}, &memory{}
			options := drain.Options{Applier: k, Delay: delay, Found: k.found}
			if rapid.Bool().Draw(t, "with store") {
				options.Store = store
			}
			d := run(t, options)
			defer func() { d.stop() }()
			want, goes := []int{}, map[int]time.Time{} // by address: when its rules go
			for i := range rapid.IntRange(1, 15).Draw(t, "steps") {
				switch rapid.SampledFrom([]string{"want", "want", "pause", "pause", "restart"}).Draw(t, "step") {
				case "want":
					before := want
					want = rapid.SliceOfNDistinct(rapid.IntRange(1, 5), 0, 5, rapid.ID).Draw(t, "want")
					for _, a := range before {
						if !slices.Contains(want, a) {
							goes[a] = time.Now().Add(delay)
						}
					}
					_, err := d.Apply(context.Background(), state(t, i+1, want))
					must(t, err)
				case "pause":
					time.Sleep(time.Duration(rapid.IntRange(1, 20).Draw(t, "seconds")) * time.Second)
				case "restart":
					d.stop()
					d = run(t, options)
					_, err := d.Apply(context.Background(), state(t, i+1, want))
					must(t, err)
					for a, end := range goes {
						if end.After(time.Now()) {
							goes[a] = time.Now().Add(delay) // anew
						}
					}
				}
				synctest.Wait()
				expect := []string{}
				for a := 1; a <= 5; a++ {
					if slices.Contains(want, a) || goes[a].After(time.Now()) {
						expect = append(expect, address(a).String())
					}
				}
				if got := k.addresses(); !slices.Equal(got, expect) {
					t.Fatalf("after step %d the kernel has %v, want %v", i, got, expect)
				}
			}
		})
	})
}

func TestRulesGoOnlyAfterTheDrainDelayAndWithTheirTranslations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &kernel{}
		d := run(t, drain.Options{Applier: k, Delay: delay})
		defer d.stop()
		pod := func(i int) []desired.Endpoint { return []desired.Endpoint{{Address: address(100 + i), Ready: true}} }
		moves := desired.Service{Name: "ns/moves", Addresses: []netip.Addr{address(1)}, Endpoints: pod(1)}
		ends := desired.Service{Name: "ns/ends", Addresses: []netip.Addr{address(2)}, Endpoints: pod(2)}
		_, err := d.Apply(t.Context(), state(t, 1, []int{1, 2}, moves, ends))
		must(t, err)
		moves.Addresses, moves.Endpoints = []netip.Addr{address(3)}, pod(3)
		want := state(t, 2, []int{3}, moves)
		_, err = d.Apply(t.Context(), want)
		must(t, err)
		translations := func() string {
			out := ""
			for _, s := range k.state().Services() {
				out += fmt.Sprint(s.Name, s.Addresses, s.Endpoints[0].Address, " ")
			}
			return out
		}
		time.Sleep(delay - time.Nanosecond)
		synctest.Wait()
		if got := fmt.Sprint(k.addresses()); got != "[192.0.2.1 192.0.2.2 192.0.2.3]" {
			t.Errorf("within the delay: %s", got)
		}
		if got := translations(); got != "ns/ends[192.0.2.2] 192.0.2.102 ns/moves[192.0.2.3 192.0.2.1] 192.0.2.103 " {
			t.Errorf("within the delay: %s", got)
		}
		if k.state().Revision != want.Revision {
			t.Errorf("shown as of %s", k.state().Revision)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if got := translations(); fmt.Sprint(k.addresses()) != "[192.0.2.3]" || got != "ns/moves[192.0.2.3] 192.0.2.103 " || k.state().Digest != want.Digest {
			t.Errorf("after the delay: %v, %s", k.addresses(), got)
		}
	})
}

// An address that another Service got is translated to that one only.
func TestAddressThatMovedToAnotherServiceDoesNotDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &kernel{}
		d := run(t, drain.Options{Applier: k, Delay: delay})
		defer d.stop()
		one, two := desired.Service{Name: "ns/one", Addresses: []netip.Addr{address(1)}}, desired.Service{Name: "ns/two", Addresses: []netip.Addr{address(1)}}
		_, err := d.Apply(t.Context(), state(t, 1, []int{1}, one))
		must(t, err)
		want := state(t, 2, []int{1}, two)
		_, err = d.Apply(t.Context(), want)
		must(t, err)
		if k.state().Digest != want.Digest {
			t.Errorf("shown: %+v", k.state().Services())
		}
	})
}

func TestAcknowledgementIsAboutWhatIsWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &kernel{}
		d := run(t, drain.Options{Applier: k, Delay: delay})
		defer d.stop()
		_, err := d.Apply(t.Context(), state(t, 1, []int{1, 2}))
		must(t, err)
		failure := func(i int) agent.Failure {
			return agent.Failure{Prefix: netip.PrefixFrom(address(i), 32), Why: "no such device"}
		}
		k.set(func(k *kernel) { k.failed = []agent.Failure{failure(1), failure(2)} })
		failed, err := d.Apply(t.Context(), state(t, 2, []int{2}))
		if err != nil || !slices.Equal(failed, []agent.Failure{failure(2)}) {
			t.Errorf("told %v, %v", failed, err)
		}
		full := errors.New("no room")
		k.set(func(k *kernel) { k.refuse = full })
		if _, err := d.Apply(t.Context(), state(t, 3, []int{2})); !errors.Is(err, full) {
			t.Errorf("told %v", err)
		}
	})
}

// Balancing §13.7: a node whose tunnel failed says so: it is no address of a Service, and the group would lead others to it.
// Rule: balancing §13.
func TestAcknowledgementNamesATunnelThatFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := netip.MustParseAddr("10.250.0.1")
		value, err := desired.TunnelHostValue(desired.TunnelHost{Underlay: netip.MustParseAddr("198.51.100.1"), Addresses: []netip.Addr{own}, Number: 1})
		var m desiredtest.Told
		m.Put(desired.TunnelHostKey("n1"), value, err)
		state := m.State(t, nil)
		failed := []agent.Failure{{Prefix: netip.PrefixFrom(own, 32), Why: "tunnel: somebody else's"}}
		d := run(t, drain.Options{Applier: &kernel{failed: failed}, Delay: delay})
		defer d.stop()
		if got, err := d.Apply(t.Context(), state); err != nil || !slices.Equal(got, failed) {
			t.Errorf("told %v, %v", got, err)
		}
	})
}

func TestRulesThatCouldNotBeRemovedAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &kernel{}
		d := run(t, drain.Options{Applier: k, Delay: delay})
		defer d.stop()
		for i, want := range [][]int{{1, 2}, {2}} {
			_, err := d.Apply(t.Context(), state(t, i+1, want))
			must(t, err)
		}
		k.set(func(k *kernel) { k.refuse = errors.New("busy") })
		time.Sleep(delay + time.Second)
		synctest.Wait()
		k.set(func(k *kernel) { k.refuse = nil })
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := fmt.Sprint(k.addresses()); got != "[192.0.2.2]" {
			t.Errorf("the kernel has %s", got)
		}
	})
}

// The store brings back what an address was, not only that it was; a damaged one leaves what the kernel shows.
func TestRestartKeepsTheTranslationsOfWhatLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, store := &kernel{}, &memory{}
		options := drain.Options{Applier: k, Delay: delay, Store: store, Found: k.found}
		d := run(t, options)
		s := desired.Service{Name: "ns/s", Addresses: []netip.Addr{address(1)}}
		for i, services := range [][]desired.Service{{s}, {}} {
			_, err := d.Apply(t.Context(), state(t, i+1, []int{1, 2}[i:], services...))
			must(t, err)
		}
		d.stop()
		want := state(t, 2, []int{2})
		for _, name := range []string{"whole", "damaged"} {
			if name == "damaged" {
				store.data = store.data[1:]
			}
			again := run(t, options)
			_, err := again.Apply(t.Context(), want)
			must(t, err)
			if got := fmt.Sprint(k.addresses()); got != "[192.0.2.1 192.0.2.2]" || name == "whole" && len(k.state().Services()) != 1 {
				t.Errorf("%s: %s with %d translations", name, got, len(k.state().Services()))
			}
			again.stop()
		}
	})
}
