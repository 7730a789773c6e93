// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/internal/heap"
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

// BenchmarkPathsHeld is what GoBGP keeps of each path of a speaker without peers, beside what the speaker is told.
func BenchmarkPathsHeld(b *testing.B) {
	const prefixes, hops = 10_000, 4
	var paths []bgp.Path
	for i := range prefixes {
		for h := range hops {
			paths = append(paths, path(fmt.Sprintf("198.18.%d.%d/32", i/250, i%250), fmt.Sprintf("10.0.%d.%d", i%25, h+1)))
		}
	}
	d := bgp.Desired{Paths: bgp.NewPaths(paths...)}
	paths = nil
	for b.Loop() {
		before := heap.InUse()
		s, err := New(Config{ASN: 65000, RouterID: addr("192.0.2.1"), Logger: testLogger(b, "speaker")})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Apply(b.Context(), d); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(heap.InUse()-before)/(prefixes*hops), "B/path")
		runtime.KeepAlive(d)
		s.Drain(b.Context())
	}
}
