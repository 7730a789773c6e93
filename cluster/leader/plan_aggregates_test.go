// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"net/netip"
	"testing"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// Of each range of 32 addresses: there is no wider prefix in it than is found, and none before it that is as wide.
func TestWidestPrefixOfARange(t *testing.T) {
	t.Parallel()
	at := func(n int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, byte(n)}) }
	for from := range 32 {
		for to := from; to < 32; to++ {
			r := fsm.Range{From: at(from), To: at(to)}
			var want netip.Prefix
			for bits := 32; bits >= 27; bits-- {
				for n := 31; n >= 0; n-- {
					block := netip.PrefixFrom(at(n), bits)
					if block == block.Masked() && r.Contains(at(n)) && r.Contains(world.RangeOf(block).To) {
						want = block
					}
				}
			}
			if got := widest(r); got != want {
				t.Fatalf("%s-%s: %s, want %s", r.From, r.To, got, want)
			}
		}
	}
	whole := fsm.Range{From: netip.MustParseAddr("::"), To: world.RangeOf(netip.MustParsePrefix("::/0")).To}
	if got := widest(whole); got != netip.MustParsePrefix("::/0") {
		t.Errorf("everything: %s", got)
	}
}
