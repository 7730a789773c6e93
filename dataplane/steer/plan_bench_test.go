// SPDX-License-Identifier: Apache-2.0

package steer_test

import (
	"testing"

	"fairlead.io/fairlead/dataplane/steer"
)

// What deciding costs when one of 10,000 addresses changes; the kernel is then told of that one only.
func BenchmarkOneAddressOfTenThousand(b *testing.B) {
	all := many(vip4, 10_000)
	w := newWorld()
	full := wanted(all...)
	for _, c := range steer.Plan(w.View, steer.Aim(steer.Options{}, full, facts(), w.View)) {
		if err := w.make(c); err != nil {
			b.Fatal(err)
		}
	}
	fewer := wanted(all[1:]...)
	for b.Loop() {
		if n := len(steer.Plan(w.View, steer.Aim(steer.Options{}, fewer, facts(), w.View))); n != 2 {
			b.Fatalf("%d changes", n)
		}
	}
}
