// SPDX-License-Identifier: Apache-2.0

package connlimit

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

// ledger is what a pool should hold, in the order in which it came.
type ledger []*place

func (l ledger) of(key string) (own ledger) {
	for _, x := range l {
		if x.key == key {
			own = append(own, x)
		}
	}
	return own
}

// most is how many places the biggest holder has.
func (l ledger) most() (n int) {
	for _, x := range l {
		n = max(n, len(l.of(x.key)))
	}
	return n
}

// judge tells what is wrong with who has to go for a place that was taken last.
func (l ledger) judge(out *place, room Room, stay bool, now time.Time) error {
	taken := l[len(l)-1]
	own := l.of(taken.key)
	switch {
	case out == nil:
		if len(own) > room.PerKey || len(l) > room.Total {
			return fmt.Errorf("nobody goes, with %d places of %s and %d in all", len(own), taken.key, len(l))
		}
	case len(own) > room.PerKey:
		if out != own[0] {
			return fmt.Errorf("%s has too many, and its oldest stays", taken.key)
		}
	case len(l) <= room.Total:
		return fmt.Errorf("%s goes, and there was room", out.key)
	case len(l.of(out.key)) != l.most():
		return fmt.Errorf("%s goes with %d places, somebody has %d", out.key, len(l.of(out.key)), l.most())
	case len(own) == l.most() && out.key != taken.key && len(own) > 1:
		return fmt.Errorf("%s goes for %s, which has as much and could do with one less", out.key, taken.key)
	case l.most() > 1:
		if out != l.of(out.key)[0] {
			return fmt.Errorf("of %s it is not the oldest that goes", out.key)
		}
	case stay, now.Sub(l[0].since) < grace:
		if out != taken {
			return fmt.Errorf("%s goes, which has as much as the new one, and came just now or stays", out.key)
		}
	case out != l[0]:
		return fmt.Errorf("%s goes, and is not the oldest", out.key)
	}
	return nil
}

// Whoever comes and goes: there are never more places than there is room for, who holds less is never put out for who holds
// more, and of each holder the oldest goes.
func TestPropertyOldestOfWhoHoldsMostGoes(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		room := Room{Total: rapid.IntRange(1, 6).Draw(t, "total"), PerKey: rapid.IntRange(1, 4).Draw(t, "per-key")}
		stay := rapid.Bool().Draw(t, "stay")
		p, held, now := newPool(room, stay), ledger{}, time.Unix(0, 0)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 700).Draw(t, "milliseconds")) * time.Millisecond)
			if len(held) > 0 && rapid.IntRange(0, 3).Draw(t, "leaves") == 0 {
				i := rapid.IntRange(0, len(held)-1).Draw(t, "who")
				held[i].leave()
				held[i].leave() // is nothing
				held = slices.Delete(held, i, i+1)
			} else {
				taken, out, _ := p.enter(rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "g"}).Draw(t, "key"), now)
				held = append(held, taken)
				if err := held.judge(out, room, stay, now); err != nil {
					t.Fatal(err)
				}
				if out != nil {
					out.leave()
					held = slices.DeleteFunc(held, func(x *place) bool { return x == out })
				}
			}
			count := 0
			for _, own := range p.holders {
				count += own.Len()
			}
			if p.size != len(held) || count != len(held) || len(held) > room.Total {
				t.Fatalf("%d places, %d counted, %d should be", count, p.size, len(held))
			}
		}
	})
}

func TestFewDescriptorsMakeFewPlaces(t *testing.T) {
	l := Limits{Strangers: Room{1024, 64}, Guests: Room{128, 32}, Known: Room{8192, 64}}
	for most, want := range map[uint64]Limits{
		1 << 20: l,
		1024:    {Strangers: Room{32, 32}, Guests: Room{32, 32}, Known: l.Known},
		10:      {Strangers: Room{1, 1}, Guests: Room{1, 1}, Known: l.Known},
	} {
		if got := l.fit(most); got != want {
			t.Errorf("%d descriptors: %+v, want %+v", most, got, want)
		}
	}
	if got := (Limits{Strangers: Room{8, 8}}).fit(1024); got.Guests != (Room{}) {
		t.Errorf("a port without guests got room for them: %+v", got)
	}
}
