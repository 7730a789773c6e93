// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

// Links implements Speaker: of one switch, and one that is told of by the test alone.
func (o *owner) Links(context.Context) ([]Link, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := uint64(len(o.applies))
	arrived := n
	if o.lost {
		arrived = 0
	}
	return []Link{{Peer: netip.MustParseAddr("192.0.2.254"), Session: 1, Written: !o.queued, Sent: n, Arrived: arrived}}, nil
}

// Mend implements Speaker: there is nothing to mend.
func (o *owner) Mend(_ context.Context, longer time.Duration) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mends = append(o.mends, longer)
	return nil
}

// Sessions are mended only for a receipt that waits, and one speaker after the other: each leaves time to those before it.
func TestSpeakersMendSessionsInTurn(t *testing.T) {
	story(t, func(t *testing.T, o *owner) {
		turn := 2
		o.turn = func() int { return turn }
		o.set(5, 5)
		_, stop := o.run()
		defer stop()
		mends := func() []time.Duration { o.mu.Lock(); defer o.mu.Unlock(); out := o.mends; o.mends = nil; return out }
		o.keepContact(2*time.Second, 5)
		mends()
		o.keepContact(20*time.Second, 5)
		if got := mends(); len(got) > 0 {
			t.Fatalf("with nothing to wait for it was mended %d times", len(got))
		}
		o.lose(true)
		o.set(6, 4)
		o.keepContact(time.Second, 6)
		for _, want := range []time.Duration{2 * mendTurn, 0} {
			if got := mends(); len(got) == 0 || slices.ContainsFunc(got, func(d time.Duration) bool { return d != want }) {
				t.Fatalf("mended after %v more, want %s", got, want)
			}
			turn = 0
			o.keepContact(time.Second, 6)
			mends()
			o.keepContact(time.Second, 6)
		}
	})
}

func (o *owner) withdraw(r Revision) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if n := len(o.announced); n == 0 || o.announced[n-1].Compare(r) < 0 {
		o.fault = fmt.Sprintf("withdrawn is %s, which is not announced", r)
	}
	if r.Compare(o.withdrawn) <= 0 {
		o.fault = fmt.Sprintf("withdrawn is %s after %s", r, o.withdrawn)
	}
	o.withdrawn = r
}

func (o *owner) reportedWithdrawn() Revision { o.mu.Lock(); defer o.mu.Unlock(); return o.withdrawn }

func (o *owner) lose(lost bool) { o.mu.Lock(); defer o.mu.Unlock(); o.lost = lost }

// What is written and does not arrive is announced, and withdrawn only once it has arrived; what is announced meanwhile
// goes on being reported.
func TestWithdrawnIsWhatArrived(t *testing.T) {
	story(t, func(t *testing.T, o *owner) {
		o.set(5, 5)
		_, stop := o.run()
		defer stop()
		o.keepContact(2*time.Second, 5)
		expect := func(announced, withdrawn uint64) {
			t.Helper()
			if got, want := [2]Revision{o.reported(), o.reportedWithdrawn()}, [2]Revision{{1, announced}, {1, withdrawn}}; got != want {
				t.Fatalf("announced and withdrawn up to %v, want %v", got, want)
			}
		}
		expect(5, 5)
		o.lose(true)
		o.set(6, 4)
		o.keepContact(20*time.Second, 6)
		expect(6, 5)
		o.set(7, 3)
		o.keepContact(2*time.Second, 7)
		expect(7, 5)
		o.lose(false)
		o.keepContact(time.Second, 7)
		expect(7, 7)
		o.set(8, 3) // changes nothing
		o.keepContact(time.Second, 8)
		expect(8, 8)
	})
}

// holder is a peer that a model follows: what of ours it may hold, by the number of the change that told it.
type holder struct {
	session       uint64
	open          bool
	sent, arrived uint64 // changes, over the session
	table         uint64 // the change of which the session sent the whole table
	residue       bool   // the session leaves it what it kept of an earlier one
	keeps         bool   // without a session
	holds         uint64 // it may hold anything that was withdrawn after this change
}

func (h *holder) write(applied uint64) {
	if h.sent = applied; h.table == 0 {
		h.table = applied
	}
}

func (h *holder) link(peer netip.Addr, applied uint64) (Link, bool) {
	if h.open {
		return Link{Peer: peer, Session: h.session, Written: h.sent == applied, Sent: h.sent, Arrived: h.arrived, Residue: h.residue}, true
	}
	return Link{Peer: peer}, h.keeps
}

// A receipt is given only when no peer holds anything older than what was applied when it was asked for, and it is given
// once that is so and everything has arrived.
func TestAReceiptIsGivenWhenNoPeerHoldsMore(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		peers := []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")}
		holders := map[netip.Addr]*holder{}
		for _, p := range peers {
			holders[p] = &holder{keeps: rapid.Bool().Draw(t, "an earlier run announced to it")}
		}
		applied, sessions, asked := uint64(1), uint64(0), uint64(0)
		var r *receipt
		links := func() (out []Link) {
			for _, p := range peers {
				if l, there := holders[p].link(p, applied); there {
					out = append(out, l)
				}
			}
			return out
		}
		// older tells whether a peer may hold what a change before or at upto withdrew.
		older := func(h *holder, upto uint64) bool {
			return (h.open || h.keeps) && h.holds < upto
		}
		t.Repeat(map[string]func(*rapid.T){
			"apply": func(t *rapid.T) { applied++ },
			"open": func(t *rapid.T) {
				h := holders[rapid.SampledFrom(peers).Draw(t, "peer")]
				if !h.open {
					sessions++
					h.open, h.session, h.sent, h.arrived, h.table = true, sessions, 0, 0, 0
					if h.residue = h.keeps && rapid.Bool().Draw(t, "residue"); !h.keeps {
						h.holds = applied
					}
				}
			},
			"write": func(t *rapid.T) {
				if h := holders[rapid.SampledFrom(peers).Draw(t, "peer")]; h.open {
					h.write(applied)
				}
			},
			"arrive": func(t *rapid.T) {
				if h := holders[rapid.SampledFrom(peers).Draw(t, "peer")]; h.open {
					h.arrived = rapid.Uint64Range(h.arrived, h.sent).Draw(t, "arrived")
					if h.table > 0 && h.arrived >= h.table && !h.residue {
						h.holds = max(h.holds, h.arrived)
					}
				}
			},
			"lose": func(t *rapid.T) {
				if h := holders[rapid.SampledFrom(peers).Draw(t, "peer")]; h.open {
					h.open, h.keeps = false, true
				}
			},
			"forget": func(t *rapid.T) {
				if h := holders[rapid.SampledFrom(peers).Draw(t, "peer")]; !h.open {
					h.keeps = false
				}
			},
			"ask": func(t *rapid.T) {
				for _, p := range peers {
					if h := holders[p]; h.open {
						h.write(applied) // a receipt is asked for once all is written
					}
				}
				r, asked = askReceipt(links()), applied
			},
			"": func(t *rapid.T) {
				if r == nil {
					return
				}
				given := r.given(links())
				holding := ""
				for _, p := range peers {
					if older(holders[p], asked) {
						holding += p.String() + " "
					}
				}
				if given && holding != "" {
					t.Fatalf("a receipt for %d is given, and %s may hold more", asked, holding)
				}
				if given {
					r = nil
				}
			},
		})
		if r == nil {
			return
		}
		for _, h := range holders {
			h.residue = false
			if h.sent, h.arrived = applied, applied; !h.open {
				h.keeps = false
			}
		}
		if !r.given(links()) {
			t.Fatalf("everything has arrived, and %v are waited for", r.peers())
		}
	})
}

// A peer that restarts gracefully may keep what it has for hold, restart and stale time.
func TestHowLongAPeerKeeps(t *testing.T) {
	for _, c := range []struct {
		mode RestartMode
		want time.Duration
	}{{RestartLongLived, 631 * time.Second}, {RestartPlain, 31 * time.Second}, {RestartNone, 30 * time.Second}} {
		p := Peer{Address: netip.MustParseAddr("192.0.2.1"), Restart: GracefulRestart{Mode: c.mode}}.Normal(64512)
		if got := p.Keeps(); got != c.want {
			t.Errorf("mode %d: %s, want %s", c.mode, got, c.want)
		}
	}
}
