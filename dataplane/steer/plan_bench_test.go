// SPDX-License-Identifier: Apache-2.0

package steer_test

import (
	"slices"
	"testing"

	"fairlead.io/fairlead/dataplane/steer"
)

// What deciding costs when one of 10,000 addresses changes; the kernel is then told of that one only.
func BenchmarkOneAddressOfTenThousand(b *testing.B) {
	all := many(vip4, 10_000)
	w := newModelKernel()
	full := wanted(all...)
	for c := range steer.Plan(w.view(), steer.Aim(steer.Options{}, full, facts(), w.view())) {
		if err := w.make(c); err != nil {
			b.Fatal(err)
		}
	}
	fewer, view := wanted(all[1:]...), w.view()
	for b.Loop() {
		if n := len(slices.Collect(steer.Plan(view, steer.Aim(steer.Options{}, fewer, facts(), view)))); n != 2 {
			b.Fatalf("%d changes", n)
		}
	}
}
