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
	var d bgp.Desired
	for i := range 5000 {
		p := fmt.Sprintf("203.0.%d.%d/32", i/250, i%250)
		d.Paths = append(d.Paths, path(p, hop1), path(p, hop2))
	}
	if err := s.Apply(b.Context(), d); err != nil {
		b.Fatal(err)
	}
	d.Touched = []netip.Prefix{d.Paths[0].Prefix}
	for i := 0; b.Loop(); i++ {
		d.Paths[0].MED = uint32(i % 2)
		if err := s.Apply(b.Context(), d); err != nil {
			b.Fatal(err)
		}
	}
}
