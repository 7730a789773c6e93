// SPDX-License-Identifier: Apache-2.0

package ndp

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

var start = time.Unix(1_700_000_000, 0)

// A neighbour is somebody who was alone on the link when he was heard. He stays until another one is alone; before that, nobody and
// several are told apart.
func TestPropertyNeighbourWasAlone(t *testing.T) {
	routers := []netip.Addr{netip.MustParseAddr("fe80::1"), netip.MustParseAddr("fe80::2"), netip.MustParseAddr("fe80::3")}
	type hearing struct {
		from netip.Addr
		when time.Time
	}
	testkit.Check(t, func(t *rapid.T) {
		var h heard
		var all []hearing
		var want netip.Addr
		now := start
		for range rapid.IntRange(0, 30).Draw(t, "advertisements") {
			now = now.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "seconds")) * time.Second)
			all = append(all, hearing{rapid.SampledFrom(routers).Draw(t, "from"), now})
			there := map[netip.Addr]bool{}
			for _, a := range all {
				if !a.when.Add(fresh).Before(now) {
					there[a.from] = true
				}
			}
			from, before := all[len(all)-1].from, want
			if len(there) == 1 {
				want = from
			}
			if changed := h.hear(from, now); changed != (before != want) {
				t.Fatalf("%s at %s: changed %t, the neighbour was %s, is %s", from, now.Sub(start), changed, before, want)
			}
			got, err := h.neighbour()
			if got != want || (err == nil) != want.IsValid() || err != nil && !errors.Is(err, ErrSeveral) {
				t.Fatalf("%s at %s: %s (%v), want %s", from, now.Sub(start), got, err, want)
			}
		}
	})
}

func TestNobodyIsToldApart(t *testing.T) {
	var h heard
	if _, err := h.neighbour(); !errors.Is(err, ErrNobody) {
		t.Errorf("%v, want %v", err, ErrNobody)
	}
}

// Whoever floods a link with advertisements takes no memory.
func TestRoutersOfALinkAreBounded(t *testing.T) {
	var h heard
	a := netip.MustParseAddr("fe80::1")
	for range 1000 {
		h.hear(a, start)
		a = a.Next()
	}
	if len(h.at) > most {
		t.Errorf("%d are kept apart", len(h.at))
	}
}
