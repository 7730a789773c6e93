// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"fmt"
	"net/netip"
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
	var paths []bgp.Path
	for i := range 5000 {
		p := fmt.Sprintf("203.0.%d.%d/32", i/250, i%250)
		paths = append(paths, path(p, hop1), path(p, hop2))
	}
	d := bgp.Desired{Paths: bgp.NewPaths(paths...)}
	if err := s.Apply(b.Context(), d); err != nil {
		b.Fatal(err)
	}
	d.Touched = []netip.Prefix{paths[0].Prefix}
	for i := 1; b.Loop(); i++ {
		paths[0].MED = uint32(i % 2)
		d.Paths = d.Paths.With(d.Touched, func(netip.Prefix) []bgp.Path { return paths[:2] })
		if err := s.Apply(b.Context(), d); err != nil {
			b.Fatal(err)
		}
	}
}
