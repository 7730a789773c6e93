// SPDX-License-Identifier: Apache-2.0

package fabric_test

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/sim/fabric"
	"fairlead.io/fairlead/sim/fabric/message"
)

// told is a path as the model has it: a line in a list, with the times at which its fate changes.
type told struct {
	member string
	prefix netip.Prefix
	id     uint32
	hop    netip.Addr
	med    uint32
	lostAt time.Duration // of its session; -1 while it is fresh
	last   time.Duration // when it became or becomes a last resort; -1 for never
	gone   time.Duration // when it goes; -1 for never
}

// account is the independent model of a switch: it looks at each path by itself and asks what time it is.
type account struct {
	paths  []told
	stale  time.Duration
	offers map[string]bool // graceful restart in the present session
}

const restartTime = 2 * time.Second

func (a *account) lose(member string, now time.Duration, word bool) {
	var kept []told
	for _, p := range a.paths {
		if p.member == member {
			again := p.lostAt >= 0 && (p.last < 0 || p.last > now)
			if word || !a.offers[member] || again {
				continue
			}
			p.lostAt = now
			end := now + restartTime
			switch {
			case a.stale == 0:
				p.gone = end
			default:
				if p.last < 0 || p.last > now {
					p.last = end
				}
				p.gone = end + a.stale
			}
		}
		kept = append(kept, p)
	}
	a.paths = kept
}

func (a *account) back(member string, offers, forwarding bool, now time.Duration) {
	a.expire(now)
	var kept []told
	for _, p := range a.paths {
		if p.member == member {
			if !offers || !forwarding {
				continue
			}
			p.gone = -1 // until its End-of-RIB
			if p.last > now {
				p.last = -1
			}
		}
		kept = append(kept, p)
	}
	a.paths, a.offers[member] = kept, offers
}

func (a *account) expire(now time.Duration) {
	a.paths = slices.DeleteFunc(a.paths, func(p told) bool { return p.gone >= 0 && p.gone <= now })
}

func (a *account) remove(member string, prefix netip.Prefix, id uint32) {
	a.paths = slices.DeleteFunc(a.paths, func(p told) bool { return p.member == member && p.prefix == prefix && p.id == id })
}

func (a *account) hops(prefix netip.Prefix, now time.Duration) (out []string) {
	a.expire(now)
	resort := func(p told) bool { return p.last >= 0 && p.last <= now }
	least, onlyLast := uint32(1<<31), true
	for _, p := range a.paths {
		if p.prefix == prefix && !resort(p) {
			onlyLast = false
		}
	}
	for range 2 {
		out = nil
		for _, p := range a.paths {
			if p.prefix != prefix || resort(p) != onlyLast {
				continue
			}
			least = min(least, p.med)
			if p.med == least && !slices.Contains(out, p.hop.String()) {
				out = append(out, p.hop.String())
			}
		}
	}
	slices.Sort(out)
	return out
}

// What a switch forwards to is what a list of paths with their times says, whatever speakers do and in which order.
func TestASwitchForwardsAsAListOfPathsSays(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		o := fabric.BIRD("switch", switchASN)
		o.Lag, o.LagMost = 0, 0
		stale := rapid.SampledFrom([]time.Duration{0, 5 * time.Second}).Draw(t, "stale")
		l := newPeering(o)
		model := &account{stale: stale, offers: map[string]bool{}}
		prefixes := []netip.Prefix{prefix, netip.MustParsePrefix("203.0.113.11/32")}
		name := rapid.SampledFrom(members)
		open := func() *speaker {
			if s := l.speakers[name.Draw(t, "speaker")]; s != nil && !s.ended && s.alive != nil {
				return s
			}
			return nil
		}
		t.Repeat(map[string]func(*rapid.T){
			"connect": func(t *rapid.T) {
				who := name.Draw(t, "who")
				if s := l.speakers[who]; s != nil && !s.ended {
					s.kill()
					s.ended = true
					model.expire(l.world.Now())
					model.lose(who, l.world.Now()-time.Millisecond, false)
				}
				offers, forwarding := rapid.Bool().Draw(t, "offers"), rapid.IntRange(0, 3).Draw(t, "forwarding") > 0
				at := l.world.Now()
				l.connect(who, func(o *message.Open) {
					o.Restart.Time, o.Restart.Stale, o.Restart.Forwarding = restartTime, stale, forwarding
					if !offers {
						o.Restart = nil
					}
				})
				model.back(who, offers, forwarding, at)
			},
			"kill": func(t *rapid.T) {
				if s := open(); s != nil {
					at := l.world.Now()
					s.kill()
					s.ended = true
					model.expire(at)
					model.lose(s.name, at, false)
				}
			},
			"leave": func(t *rapid.T) {
				if s := open(); s != nil {
					s.say(message.Notification{Code: message.Cease})
					s.kill()
					s.ended = true
					model.lose(s.name, l.world.Now(), true)
				}
			},
			"announce": func(t *rapid.T) {
				if s := open(); s != nil {
					p, id := rapid.SampledFrom(prefixes).Draw(t, "prefix"), rapid.Uint32Range(1, 3).Draw(t, "id")
					hop := netip.AddrFrom4([4]byte{192, 0, 2, byte(10 + id)})
					med := rapid.SampledFrom([]uint32{0, 0, 7}).Draw(t, "med")
					s.announce(p, id, hop, med)
					l.pass(time.Millisecond)
					model.remove(s.name, p, id)
					model.paths = append(model.paths, told{s.name, p, id, hop, med, -1, -1, -1})
				}
			},
			"withdraw": func(t *rapid.T) {
				if s := open(); s != nil {
					p, id := rapid.SampledFrom(prefixes).Draw(t, "prefix"), rapid.Uint32Range(1, 3).Draw(t, "id")
					s.withdraw(p, id)
					l.pass(time.Millisecond)
					model.remove(s.name, p, id)
				}
			},
			"end of rib": func(t *rapid.T) {
				if s := open(); s != nil {
					s.say(message.EndOfRIB{Family: 4})
					l.pass(time.Millisecond)
					model.paths = slices.DeleteFunc(model.paths, func(p told) bool { return p.member == s.name && p.lostAt >= 0 })
				}
			},
			"wait": func(t *rapid.T) {
				l.pass(time.Duration(rapid.IntRange(1, 40).Draw(t, "tenths")) * 100 * time.Millisecond)
			},
			"": func(t *rapid.T) {
				l.pass(10 * time.Millisecond)
				for _, p := range prefixes {
					if got, want := l.hops(p), model.hops(p, l.world.Now()); !slices.Equal(got, want) {
						t.Fatalf("at %s %s goes to %v, the model says %v", l.world.Now(), p, got, want)
					}
				}
				for _, r := range l.refused {
					t.Fatalf("refused %s of %s: %s", r.What, r.By, r.Why)
				}
			},
		})
	})
}
