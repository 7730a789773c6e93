// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"fairlead.io/fairlead/dataplane/bgp"
)

// BenchmarkApplyOneChange changes one of 10,000 paths: what it costs to read the whole table back each time.
func BenchmarkApplyOneChange(b *testing.B) {
	s, err := New(Config{ASN: 65000, RouterID: addr("192.0.2.1"), Logger: testLogger(b, "speaker")})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Drain(b.Context())
	var d bgp.Desired
	for i := range 5000 {
		p := fmt.Sprintf("203.0.%d.%d/32", i/250, i%250)
		d.Paths = append(d.Paths, path(p, hop1), path(p, hop2))
	}
	if err := s.Apply(b.Context(), d); err != nil {
		b.Fatal(err)
	}
	d.Touched = []netip.Prefix{d.Paths[0].Prefix}
	lists := [][]bgp.Path{d.Paths, slices.Clone(d.Paths)}
	lists[1][0].MED = 1
	for i := 1; b.Loop(); i++ {
		d.Paths = lists[i%2]
		if err := s.Apply(b.Context(), d); err != nil {
			b.Fatal(err)
		}
	}
}
