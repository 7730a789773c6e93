// SPDX-License-Identifier: Apache-2.0

package speaker_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/sim/fabric"
	"fairlead.io/fairlead/sim/guest/speaker"
)

func (l *lab) up(s *speaker.Speaker, members ...string) {
	l.t.Helper()
	for _, m := range members {
		if !l.Until(20*time.Second, func() bool { return l.sw.Established(m) }) {
			l.t.Fatalf("%s has no session", m)
		}
	}
	time.Sleep(10 * time.Millisecond)
	l.settle(s)
}

// Whatever is applied in a row, the switch forwards to exactly that, refuses nothing, and no prefix that stays is ever
// without a next hop.
func TestTheSwitchForwardsWhatWasApplied(t *testing.T) {
	testkit.Check(t, func(r *rapid.T) {
		most := rapid.SampledFrom([]uint8{1, 2, 64}).Draw(r, "send-max")
		onePath := rapid.Bool().Draw(r, "switch without add-path")
		var steps []bgp.Desired
		for range rapid.IntRange(1, 6).Draw(r, "steps") {
			var d bgp.Desired
			for n := byte(10); n < 13; n++ {
				for _, h := range rapid.SliceOfNDistinct(rapid.ByteRange(21, 24), 0, 4, rapid.ID).Draw(r, "hops") {
					d.Paths = bgp.NewPaths(append(slices.Collect(d.Paths.All()), bgp.Path{
						Prefix: prefixOf(n), NextHop: hopOf(h), MED: rapid.Uint32Range(0, 1).Draw(r, "med"),
					})...)
				}
			}
			d.Demoted = rapid.Bool().Draw(r, "demoted")
			p := peer()
			p.SendMax = most
			d.Peers = []bgp.Peer{p}
			steps = append(steps, d)
		}
		wrong := ""
		inLab(t, fabric.Options{Name: "switch", ASN: 65000, OnePath: onePath}, func(l *lab) {
			s, _ := l.start("m1")
			for i, d := range steps {
				l.apply(s, d)
				if i == 0 {
					l.up(s, "m1")
				}
				limit := int(most)
				if onePath {
					limit = 1
				}
				for n := byte(10); n < 13; n++ {
					if got, want := l.hops(prefixOf(n)), expected(d, prefixOf(n), limit); !bytes.Equal(got, want) {
						wrong += fmt.Sprintf("step %d: %s goes to %v, not %v\n", i, prefixOf(n), got, want)
					}
				}
			}
			l.detach(s)
		})
		if wrong != "" {
			r.Fatal(wrong)
		}
	})
}

// expected is which next hops share the traffic: of the first ones in order, those with the least MED.
func expected(d bgp.Desired, prefix netip.Prefix, limit int) (out []byte) {
	byHop := map[byte]uint32{}
	for p := range d.Paths.All() {
		if p.Prefix == prefix {
			byHop[p.NextHop.As4()[3]] = p.MED
		}
	}
	least := uint32(9)
	taken := 0
	for h := byte(0); h < 255 && taken < limit; h++ {
		med, there := byHop[h]
		if !there {
			continue
		}
		taken++
		if med < least {
			least, out = med, nil
		}
		if med == least {
			out = append(out, h)
		}
	}
	return out
}

func (l *lab) detach(s *speaker.Speaker) {
	if err := s.Detach(l.t.Context()); err != nil {
		l.t.Error(err)
	}
}

func TestADemotedMemberServesOnlyAlone(t *testing.T) {
	inLab(t, fabric.BIRD("switch", 65000), func(l *lab) {
		one, kill := l.start("m1")
		two, _ := l.start("m2")
		l.apply(one, desired([2]byte{10, 11}))
		l.apply(two, desired([2]byte{10, 12}))
		l.up(one, "m1", "m2")
		l.settle(two)
		if got := l.hops(prefixOf(10)); !bytes.Equal(got, []byte{11, 12}) {
			t.Fatalf("next hops %v", got)
		}
		d := desired([2]byte{10, 12})
		d.Demoted = true
		l.apply(two, d)
		if got := l.hops(prefixOf(10)); !bytes.Equal(got, []byte{11}) {
			t.Errorf("next hops %v while m2 is demoted", got)
		}
		kill()
		time.Sleep(1500 * time.Millisecond)
		if got := l.hops(prefixOf(10)); !bytes.Equal(got, []byte{12}) {
			t.Errorf("next hops %v after m1 was killed", got)
		}
		if l.count(&l.ups) != 2 {
			t.Errorf("%d sessions were made: one bounced", l.count(&l.ups))
		}
		l.detach(one)
		l.detach(two)
	})
}

// A planned restart is never seen by traffic; a drain takes the paths along.
func TestARestartKeepsAndADrainWithdraws(t *testing.T) {
	inLab(t, fabric.BIRD("switch", 65000), func(l *lab) {
		s, _ := l.start("m1")
		l.apply(s, desired([2]byte{10, 11}, [2]byte{12, 11}))
		l.up(s, "m1")
		l.detach(s)
		time.Sleep(5 * time.Second)
		if got := l.hops(prefixOf(10)); !bytes.Equal(got, []byte{11}) {
			t.Fatalf("next hops %v while the member restarts", got)
		}
		s, _ = l.start("m1")
		l.apply(s, desired([2]byte{10, 13}))
		l.up(s, "m1")
		if got := l.hops(prefixOf(10)); !bytes.Equal(got, []byte{13}) || l.count(&l.flaps) > 1 {
			t.Errorf("next hops %v, %d gaps", got, l.count(&l.flaps))
		}
		if got := l.hops(prefixOf(12)); got != nil {
			t.Errorf("what was not announced again goes to %v", got)
		}
		if err := s.Drain(l.t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(100 * time.Millisecond)
		if got := l.hops(prefixOf(10)); got != nil {
			t.Errorf("next hops %v after the drain", got)
		}
		if _, err := s.Written(l.t.Context()); err == nil {
			t.Error("a drained speaker goes on")
		}
	})
}

func TestASpeakerDialsUntilTheSwitchIsBack(t *testing.T) {
	inLab(t, fabric.FRR("switch", 65000), func(l *lab) {
		s, _ := l.start("m1")
		l.apply(s, desired([2]byte{10, 11}))
		l.up(s, "m1")
		l.Do(l.sw.Down)
		time.Sleep(20 * time.Second)
		if peers, err := s.Peers(l.t.Context()); err != nil || len(peers) != 1 || peers[0].Established {
			t.Errorf("peers %v, %v", peers, err)
		}
		l.Do(l.sw.Up)
		l.up(s, "m1")
		if got := l.hops(prefixOf(10)); !bytes.Equal(got, []byte{11}) {
			t.Errorf("next hops %v", got)
		}
		l.detach(s)
	})
}

// A cut link ends the session on both sides after the hold time; after it has healed everything is there again.
func TestACutLinkHealsByItself(t *testing.T) {
	inLab(t, fabric.BIRD("switch", 65000), func(l *lab) {
		s, _ := l.start("m1")
		l.apply(s, desired([2]byte{10, 11}))
		l.up(s, "m1")
		var heal []func()
		l.Do(func() { heal = []func(){l.Network.Cut("m1", "switch"), l.Network.Cut("switch", "m1")} })
		time.Sleep(4 * time.Second)
		l.apply(s, desired([2]byte{10, 12}))
		if l.established("m1") {
			t.Error("the session outlived the hold time")
		}
		if got := l.hops(prefixOf(10)); !bytes.Equal(got, []byte{11}) {
			t.Errorf("next hops %v while cut off", got)
		}
		l.Do(func() { heal[0](); heal[1]() })
		l.up(s, "m1")
		time.Sleep(8 * time.Second)
		l.up(s, "m1")
		if got := l.hops(prefixOf(10)); !bytes.Equal(got, []byte{12}) || l.count(&l.flaps) > 0 {
			t.Errorf("next hops %v, %d gaps", got, l.count(&l.flaps))
		}
		l.detach(s)
	})
}

// Thousands of paths go in few messages of legal length, and come all.
func TestManyPathsArePacked(t *testing.T) {
	inLab(t, fabric.BIRD("switch", 65000), func(l *lab) {
		s, _ := l.start("m1")
		d := bgp.Desired{Peers: []bgp.Peer{peer()}}
		for i := range 2000 {
			p := netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 18, byte(i >> 8), byte(i)}), 32)
			d.Paths = bgp.NewPaths(append(slices.Collect(d.Paths.All()), bgp.Path{Prefix: p, NextHop: hopOf(11)}, bgp.Path{Prefix: p, NextHop: hopOf(12)})...)
		}
		l.apply(s, d)
		l.up(s, "m1")
		for p := range d.Paths.All() {
			if got := l.hops(p.Prefix); !bytes.Equal(got, []byte{11, 12}) {
				t.Fatalf("%s goes to %v", p.Prefix, got)
			}
		}
		peers, err := s.Peers(l.t.Context())
		if err != nil || peers[0].Announced != 4000 || peers[0].UpdatesSent > 30 || !peers[0].LongLived {
			t.Errorf("peers %+v, %v", peers, err)
		}
		l.detach(s)
	})
}

// What was written to a link that loses it has not arrived, and a switch that was lost may keep what it has.
func TestLinksTellWhatArrived(t *testing.T) {
	inLab(t, fabric.BIRD("switch", 65000), func(l *lab) {
		s, _ := l.start("m1")
		link := func() bgp.Link {
			t.Helper()
			links, err := s.Links(t.Context())
			if err != nil || len(links) > 1 {
				t.Fatalf("links %+v: %v", links, err)
			}
			if len(links) == 0 {
				return bgp.Link{}
			}
			return links[0]
		}
		if err := s.Apply(t.Context(), desired([2]byte{10, 21})); err != nil {
			t.Fatal(err)
		}
		if got, want := link(), (bgp.Link{Peer: switchAddress}); got != want {
			t.Errorf("before the first session %+v, want %+v", got, want)
		}
		l.up(s, "m1")
		if got := link(); got.Session != 1 || !got.Written || got.Sent == 0 || got.Arrived != got.Sent {
			t.Errorf("at rest %+v", got)
		}
		var heal func()
		l.Do(func() { heal = l.Network.Cut("m1", "switch") })
		l.apply(s, desired())
		if got := link(); got.Session != 1 || !got.Written || got.Arrived >= got.Sent {
			t.Errorf("lost on the way %+v", got)
		}
		if !l.Until(20*time.Second, func() bool { return !l.sw.Established("m1") }) {
			t.Fatal("the session does not end")
		}
		time.Sleep(time.Second)
		if got, want := link(), (bgp.Link{Peer: switchAddress}); got != want {
			t.Errorf("without a session %+v, want %+v", got, want)
		}
		l.Do(heal)
		l.up(s, "m1")
		if got := link(); got.Session < 2 || !got.Written || got.Arrived != got.Sent {
			t.Errorf("at rest again %+v", got)
		}
		l.apply(s, bgp.Desired{})
		if got := link(); got != (bgp.Link{}) {
			t.Errorf("after the leave %+v", got)
		}
		l.detach(s)
	})
}

// What the library has lost count of, and does not take back, is with the switch: it counts as written no sooner than another session has
// told that switch everything, which begins once in a minute. Whatever stays is told on, and no prefix that stays is without a path.
func TestWhatTheLibraryLosesCountOfIsTakenBack(t *testing.T) {
	inLab(t, fabric.BIRD("switch", 65000), func(l *lab) {
		s, _ := l.start("m1")
		l.apply(s, desired([2]byte{10, 21}, [2]byte{11, 21}, [2]byte{12, 21}))
		l.up(s, "m1")
		for round, d := range []bgp.Desired{desired([2]byte{10, 22}, [2]byte{12, 21}), desired([2]byte{10, 22})} {
			l.Do(l.sw.Confuse)
			time.Sleep(50 * time.Millisecond)
			began, ups := time.Now(), l.ups
			if err := s.Apply(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			gone := prefixOf(11 + byte(round))
			for ok := false; !ok; time.Sleep(10 * time.Millisecond) {
				links, err := s.Links(t.Context())
				if err != nil || len(links) != 1 {
					t.Fatalf("links are %+v, %v", links, err)
				}
				if ok = links[0].Session != 0 && links[0].Written && links[0].Arrived == links[0].Sent; ok && len(l.hops(gone)) > 0 {
					t.Fatalf("round %d: the switch has %s, and links are %+v", round, gone, links)
				}
				if time.Since(began) > 2*time.Minute {
					t.Fatalf("round %d: %s is never taken back", round, gone)
				}
			}
			if took := time.Since(began); round == 1 && took < 50*time.Second {
				t.Errorf("another session began %s after the one before", took)
			}
			if l.ups != ups+1 || len(l.hops(gone)) > 0 || !slices.Equal(l.hops(prefixOf(10)), []byte{22}) {
				t.Errorf("round %d: %d sessions more, %s by %v, %s by %v", round, l.ups-ups, gone, l.hops(gone), prefixOf(10), l.hops(prefixOf(10)))
			}
		}
		l.detach(s)
	})
}
